//! Tests that futures of writes never block their thread, and leave nothing behind when they are dropped.
#![allow(clippy::disallowed_methods, reason = "the database lies on the machine's disk, and has threads")]

use crate::base::event::{Event, StallReason};
use crate::base::extractors::IndexKeys;
use crate::index::IndexOptions;
use crate::options::{Expiry, LevelOptions};
use crate::{Database, Durability, Error, MergeOp, Table, TableOptions};
use os::Machine;
use os::sync::Arc;
use os::sync::atomic::{AtomicBool, Ordering};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tempfile::TempDir;

/// A test polls whether a task on another thread has made progress. After this many polls in vain, it takes the
/// task to be stuck.
const PATIENCE: u32 = 3_000_000;

/// A database whose flushes wait until the test lets them go on.
struct Held {
    _directory: TempDir,
    db: Database,
    table: Table,
    may_flush: Arc<AtomicBool>,
}

impl Held {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let may_flush = Arc::new(AtomicBool::new(false));
        let flushes = may_flush.clone();
        let builder = Database::builder(&directory).durability(Durability::Buffered).write_buffer_bytes(64 << 10);
        let builder = builder.on_event(move |event| {
            let mut patience = PATIENCE;
            while matches!(event, Event::FlushStarted { .. }) && !flushes.load(Ordering::SeqCst) && patience > 0 {
                patience -= 1;
                std::thread::yield_now();
            }
        });
        let db = builder.open().expect("the disk works");
        let table = db.table("t").expect("the disk works");
        Self { _directory: directory, db, table, may_flush }
    }

    fn stalled(&self) -> u64 {
        self.db.core().background.stalls.totals(StallReason::WriteBuffer).0
    }

    /// Polls `write` until it is done or waits for room in the write buffer. Returns `None` if it waits.
    fn poll<T>(&self, mut write: Pin<&mut impl Future<Output = T>>) -> Option<T> {
        let before = self.stalled();
        loop {
            match write.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(done) => return Some(done),
                Poll::Pending if self.stalled() > before => return None,
                Poll::Pending => std::thread::yield_now(),
            }
        }
    }

    /// Fills the write buffer. Returns the number of the first row that found no room.
    fn fill(&self) -> u32 {
        let full =
            (0_u32..1000).find(|i| self.poll(pin!(self.table.insert_async(i.to_be_bytes(), [7; 4000]))).is_none());
        full.expect("the write buffer has room for 16 of them")
    }

    /// How many tasks wait for a time, and how many wait for progress.
    fn waiting(&self) -> (usize, usize) {
        let tasks = self.db.core().background.waiting.0.lock();
        (tasks.by_time.len(), tasks.for_progress.len())
    }
}

#[test]
fn an_insert_without_room_waits_without_its_thread_until_a_flush_has_ended() {
    let held = Held::new();
    let first = held.fill();
    let mut write = pin!(held.table.insert_async(first.to_be_bytes(), [7; 4000]));
    assert!(held.poll(write.as_mut()).is_none(), "it waits, and this thread goes on");
    assert_eq!(held.waiting(), (0, 1));
    held.may_flush.store(true, Ordering::SeqCst);
    smol::block_on(write).expect("the disk works");
    assert_eq!(held.table.iter().count(), first as usize + 1);
    assert_eq!(held.waiting(), (0, 0));
}

#[test]
fn a_write_that_is_dropped_while_it_waits_leaves_nothing_behind() {
    let held = Held::new();
    let first = held.fill();
    {
        let mut batch = held.db.batch();
        batch.insert(&held.table, "dropped", [7; 4000]);
        let mut dropped = pin!(batch.submit_async());
        assert!(held.poll(dropped.as_mut()).is_none());
        let mut other = pin!(held.table.remove_async(0_u32.to_be_bytes()));
        // There is no room for a row of 4000 bytes. This erase is smaller: it may find room, or wait, too.
        held.poll(other.as_mut());
        assert!(held.waiting().1 >= 1);
    }
    assert_eq!(held.waiting(), (0, 0));
    let mut next = pin!(held.table.insert_async("next", [7; 4000]));
    assert!(held.poll(next.as_mut()).is_none());
    held.may_flush.store(true, Ordering::SeqCst);
    smol::block_on(next).expect("the one that was dropped has taken no room and no wake-up");
    assert!(!held.table.contains_key("dropped").expect("the disk works"));
    assert!(held.table.contains_key("next").expect("the disk works"));
    assert!(held.table.contains_key((first - 1).to_be_bytes()).expect("the disk works"));
    assert_eq!(held.waiting(), (0, 0));
}

#[test]
fn a_thousand_writes_of_one_thread_wait_together_and_all_of_them_end() {
    let held = Held::new();
    held.fill();
    let executor = smol::LocalExecutor::new();
    let writes: Vec<_> = (0..1000_u32)
        .map(|i| executor.spawn(held.table.insert_async(format!("late {i:04}"), vec![7; 100 + i as usize])))
        .collect();
    smol::block_on(executor.run(async {
        while held.stalled() < 100 {
            smol::future::yield_now().await;
        }
        held.may_flush.store(true, Ordering::SeqCst);
        for write in writes {
            write.await.expect("the disk works");
        }
    }));
    assert_eq!(held.table.prefix("late ").count(), 1000);
    assert_eq!(held.waiting(), (0, 0));
}

#[test]
fn a_batch_that_is_tried_comes_back_while_there_is_no_room() {
    let held = Held::new();
    let first = held.fill();
    let mut batch = held.db.batch();
    batch.insert(&held.table, "tried", [7; 4000]);
    let batch = match batch.try_submit().expect("the disk works") {
        Ok(_) => panic!("row {first} had no room"),
        Err(batch) => batch,
    };
    assert_eq!((batch.len(), held.waiting()), (1, (0, 0)));
    held.may_flush.store(true, Ordering::SeqCst);
    smol::block_on(batch.submit_async()).expect("the disk works");
    assert!(held.table.contains_key("tried").expect("the disk works"));
    let mut batch = held.db.batch();
    batch.insert(&held.table, "small", "1");
    held.db.flush().expect("the disk works");
    let commit = batch.try_submit().expect("the disk works").expect("now there is room");
    assert_eq!(held.db.version(), commit.version());
}

/// A database that slows writes down because level 0 has many files.
fn slowed() -> (TempDir, Database, Table) {
    let directory = tempfile::tempdir().expect("a directory");
    let levels = LevelOptions { level0_files: 1000, slow_files: 1, ..LevelOptions::default() };
    let builder = Database::builder(&directory).durability(Durability::Buffered).levels(levels);
    let db = builder.open().expect("the disk works");
    let table = db.table("t").expect("the disk works");
    for i in 0..4_u32 {
        table.insert(i.to_be_bytes(), "1").expect("it is taken");
        db.flush().expect("the disk works");
    }
    (directory, db, table)
}

#[test]
fn a_slowed_batch_that_is_tried_and_comes_back_gives_its_time_back() {
    let (_directory, db, table) = slowed();
    let mut batch = db.batch();
    batch.insert(&table, "tried", [7; 30_000]);
    let lock = db.core().writes.writer.lock();
    let batch = batch.try_submit().expect("the disk works").expect_err("another thread has the writer");
    assert!(db.core().writes.pace.is_free(db.core().env.machine.clock.now()), "it has used no time");
    drop(lock);
    batch.try_submit().expect("the disk works").expect("the writer is free");
    assert!(table.contains_key("tried").expect("the disk works"));
}

#[test]
fn a_slowed_write_that_is_dropped_gives_its_time_back() {
    let (_directory, db, table) = slowed();
    let pace = &db.core().writes.pace;
    let now = || db.core().env.machine.clock.now();
    let mut context = Context::from_waker(Waker::noop());
    let first = pin!(table.insert_async("first", [7; 30_000])).as_mut().poll(&mut context);
    assert!(matches!(first, Poll::Ready(Ok(()))), "nobody was before it");
    let taken = (0..20).map(|_| {
        let mut write = Box::pin(table.insert_async("dropped", [7; 30_000]));
        assert!(write.as_mut().poll(&mut context).is_pending(), "it waits for the share of those before it");
        write
    });
    let taken: Vec<_> = taken.collect();
    assert_eq!(db.core().background.waiting.0.lock().by_time.len(), 20);
    let far = now() + std::time::Duration::from_millis(200);
    assert!(!pace.is_free(far), "the time of 20 writes is taken");
    drop(taken);
    assert!(pace.is_free(far), "it is free again");
    assert_eq!(db.core().background.waiting.0.lock().by_time.len(), 0);
    smol::block_on(table.insert_async("last", "1")).expect("the disk works");
    assert!(!table.contains_key("dropped").expect("the disk works"));
}

#[test]
fn a_write_waits_for_the_lock_of_the_writer_without_its_thread() {
    let directory = tempfile::tempdir().expect("a directory");
    let db = Database::open(&directory).expect("the disk works");
    let table = db.table("t").expect("the disk works");
    let mut write = pin!(table.insert_async("a", "1"));
    let empty = db.batch();
    let mut nothing = pin!(empty.submit_async());
    let mut context = Context::from_waker(Waker::noop());
    let lock = db.core().writes.writer.lock();
    assert!(write.as_mut().poll(&mut context).is_pending());
    assert!(nothing.as_mut().poll(&mut context).is_pending());
    drop(lock);
    smol::block_on(write).expect("the disk works");
    assert!(smol::block_on(nothing).expect("the disk works").version() <= db.version());
    assert!(db.durable_version() == db.version(), "the default is a write that is durable");
}

#[test]
fn a_batch_that_is_larger_than_the_write_buffer_is_committed_by_a_thread_of_its_own() {
    let directory = tempfile::tempdir().expect("a directory");
    let db = Database::builder(&directory).write_buffer_bytes(64 << 10).open().expect("the disk works");
    let table = db.table("t").expect("the disk works");
    let mut batch = db.batch();
    (0..1000_u32).for_each(|i| batch.insert(&table, i.to_be_bytes(), [7; 100]));
    let levels = db.core().writes.levels.own();
    let mut commit = pin!(batch.commit_async());
    // The commit cannot install its files while this thread holds the lock of levels.
    assert!(commit.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    drop(levels);
    smol::block_on(commit).expect("the disk works");
    assert_eq!(table.iter().count(), 1000);
}

/// An extractor whose index key is the whole value of the row.
struct Whole;

impl IndexKeys for Whole {
    fn groups(&self) -> &[usize] {
        &[0]
    }

    fn index_keys<'r>(
        &self,
        _: &'r [u8],
        part: &dyn Fn(usize) -> Option<&'r [u8]>,
        emit: &mut dyn FnMut(&[u8]),
    ) -> Result<(), String> {
        emit(part(0).ok_or("it has no value")?);
        Ok(())
    }
}

/// A database whose table has a unique index. `builder` decides whether its machine is simulated or real.
fn indexed(builder: crate::Builder) -> (Database, Table) {
    let builder = builder.extractors(|_: &[u8]| Ok(Box::new(Whole) as Box<dyn IndexKeys>));
    let db = builder.write_buffer_bytes(64 << 10).open().expect("the disk works");
    let table = db.table("t").expect("the disk works");
    let options = IndexOptions { unique: true };
    table.create_index("by_value", "value", &options, |_| {}).expect("the disk works");
    (db, table)
}

#[test]
fn futures_of_writes_keep_indexes_in_all_their_forms() {
    let directory = tempfile::tempdir().expect("a directory");
    for builder in [Database::builder(&directory), Database::builder("db").machine(Machine::simulated(1).0)] {
        let (db, table) = indexed(builder);
        smol::block_on(async {
            for i in 0..300_u32 {
                table.insert_async(i.to_be_bytes(), i.to_string()).await.expect("the disk works");
            }
            db.flush().expect("the disk works");
            let error = table.insert_async("a", "7").await.expect_err("another row has it");
            assert!(matches!(error, Error::Duplicate { .. }), "{error}");
            table.remove_async(7_u32.to_be_bytes()).await.expect("the disk works");
            table.insert_async("a", "7").await.expect("it is free");
            assert_eq!(table.replace_async("a", "seven").await.expect("the disk works").expect("it is there"), "7");
            assert_eq!(table.take_async("a").await.expect("the disk works").expect("it is there"), "seven");
            assert!(table.take_async("a").await.expect("the disk works").is_none());
            table.remove_range_async(..100_u32.to_be_bytes()).await.expect("the disk works");
            let mut batch = db.batch();
            (100..110_u32).for_each(|i| batch.insert(&table, i.to_be_bytes(), (i + 1000).to_string()));
            batch.remove(&table, 110_u32.to_be_bytes());
            batch.commit_async().await.expect("the disk works");
            let mut batch = db.batch();
            batch.insert(&table, "tried", "tried");
            assert!(batch.try_submit().expect("the disk works").is_err(), "it would read rows");
            table.remove_range_async("b".."a").await.expect("it removes nothing");
        });
        assert_eq!(table.iter().count(), 199);
        let index = table.index("by_value").expect("it is there");
        assert_eq!(index.get_by("1105").expect("the disk works").len(), 1);
        assert_eq!(index.get_by("105").expect("the disk works").len(), 0);
        let report = index.check(|_| {}).expect("the disk works");
        assert!(report.problems.is_empty(), "{report:?}");
    }
}

#[test]
fn a_merge_into_a_table_that_gives_times_is_applied_by_a_thread_of_its_own() {
    let directory = tempfile::tempdir().expect("a directory");
    let (here, was_elsewhere) = (std::thread::current().id(), Arc::new(AtomicBool::new(false)));
    let noted = was_elsewhere.clone();
    let last = move |_: &[u8], _: Option<&[u8]>, operand: &[u8]| {
        noted.store(std::thread::current().id() != here, Ordering::SeqCst);
        Ok::<_, String>(operand.to_vec())
    };
    let db = Database::builder(&directory).merge_function("last", last).open().expect("the disk works");
    let expiry = Expiry::After(Duration::from_secs(1000));
    let table = db.table_with("t", TableOptions { expiry, ..TableOptions::default() }).expect("the disk works");
    let merge = MergeOp::Call { function: "last", operand: b"v" };
    smol::block_on(table.merge_async("k", merge)).expect("it is taken");
    assert!(was_elsewhere.swap(false, Ordering::SeqCst), "this thread must not wait for the row");
    let mut batch = db.batch();
    batch.insert(&table, "other", "v");
    batch.merge(&table, "k", merge);
    smol::block_on(batch.commit_async()).expect("it is taken");
    assert!(was_elsewhere.load(Ordering::SeqCst), "this thread must not wait for the row");
    assert!(table.until("k").expect("the disk works").is_some());
}

#[test]
fn errors_of_arguments_come_from_the_futures() {
    let db = Database::builder("db").machine(Machine::simulated(1).0).open().expect("the disk works");
    let table = db.table("t").expect("the disk works");
    let long = vec![0; 70_000];
    for outcome in [
        smol::block_on(table.insert_async(&long, "")),
        smol::block_on(table.remove_async(&long)),
        smol::block_on(table.remove_range_async(&long[..]..)),
    ] {
        assert!(matches!(outcome, Err(Error::KeyTooLong { .. })), "{outcome:?}");
    }
    let mut batch = db.batch();
    batch.insert(&table, &long, "");
    assert!(matches!(smol::block_on(batch.commit_async()), Err(Error::KeyTooLong { .. })));
    let mut batch = db.batch();
    batch.expect(&table, "a", crate::transaction::Expected::Absent);
    assert!(matches!(batch.submit(), Err(Error::HasConditions)), "it does not look at conditions");
}
