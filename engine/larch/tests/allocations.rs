//! Tests how much memory reads and commits allocate, with an allocator that counts the bytes.

use kit::allocations::{Counting, Thread};
use larch::index::{IndexKeys, IndexOptions};
use larch::rows::Tried;
use larch::{Database, Durability, Table};
use std::ops::ControlFlow;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

#[global_allocator]
static COUNTING: Counting<Thread> = Counting::new();

fn poll_once<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => done,
        Poll::Pending => panic!("all is in memory"),
    }
}

#[test]
fn a_cached_get_allocates_nothing_in_any_form() {
    let machine = os::Machine::simulated_on(os::sim::SimDisk::new(1), 1);
    let db = Database::builder("db").machine(machine).open().expect("the disk works");
    let table = db.table("t").expect("the disk works");
    let key = |i: u32| (i * 7 % 1000).to_be_bytes();
    for i in 0..1000 {
        table.insert(key(i), [7; 100]).expect("the disk works");
    }
    db.compact_due().expect("the disk works");

    let waits = |i| table.get(key(i)).expect("the disk works").is_some();
    let tries = |i| matches!(table.try_get(key(i)), Ok(Tried::Ready(Some(_))));
    let polls = |i| poll_once(table.get_async(key(i))).expect("the disk works").is_some();
    let before = Thread::so_far().count;
    assert!((0..1000).all(waits));
    assert!(Thread::so_far().count > before, "faults allocate, and the allocator counts");
    let before = Thread::so_far().count;
    for i in 0..1000 {
        assert!(waits(i) && tries(i) && polls(i), "row {i} is there");
    }
    assert_eq!(Thread::so_far().count - before, 0);
}

/// Runs `work` twenty times, and returns the fewest bytes that a run allocated. Some runs allocate more, because of
/// the simulated disk.
fn least_bytes(mut work: impl FnMut(u32)) -> u64 {
    (0..20).map(|i| Thread::during(|| work(i)).1.bytes).min().expect("there are some")
}

/// The bytes that a commit and an install allocate in a database of `tables` tables, each with rows in memory.
fn bytes_with_tables(tables: u32) -> (u64, u64) {
    let machine = os::Machine::simulated_on(os::sim::SimDisk::new(1), 1);
    let db = Database::builder("db").machine(machine).reserve_bytes(0).open().expect("the disk works");
    for i in 0..tables {
        db.table(&format!("table {i}")).expect("the disk works").insert("k", "v").expect("the disk works");
    }
    let table = db.table("table 7").expect("it is there");
    let commit = least_bytes(|i| table.insert(i.to_be_bytes(), [7; 10]).expect("the disk works"));
    let install = least_bytes(|i| {
        table.alter(|options| options.metadata = i.to_be_bytes().to_vec()).expect("the disk works");
    });
    (commit, install)
}

#[test]
fn a_commit_in_flight_allocates_what_a_commit_does() {
    let machine = os::Machine::simulated_on(os::sim::SimDisk::new(1), 1);
    let db = Database::builder("db").machine(machine).reserve_bytes(0).open().expect("the disk works");
    let table = db.table("t").expect("the disk works");
    let batch = |i: u32| {
        let mut batch = db.batch().durability(Durability::Buffered);
        batch.insert(&table, i.to_be_bytes(), [7; 10]);
        batch
    };
    let commit = least_bytes(|i| _ = batch(i).commit().expect("the disk works"));
    let submit = least_bytes(|i| drop(batch(i).submit().expect("the disk works")));
    assert_eq!(submit, commit);
}

#[test]
fn a_commit_and_an_install_cost_the_same_among_ten_and_ten_thousand_tables() {
    let (few, many) = (bytes_with_tables(10), bytes_with_tables(10_000));
    println!("commit and install allocate {few:?} bytes among 10 tables, {many:?} among 10,000");
    assert_eq!(many.0, few.0, "of a commit");
    // The install changes two maps, which are trees. With 10,000 tables, a path in a tree is ten nodes longer than
    // with 10 tables.
    assert!(many.1 <= few.1 + 8192, "of an install");
}

/// Makes an index key from the first bytes of a value. Each time, notes the thread's live bytes.
struct FirstBytes;

thread_local! {
    static MOST_LIVE: std::cell::Cell<i64> = const { std::cell::Cell::new(0) };
}

fn note_live() {
    MOST_LIVE.set(MOST_LIVE.get().max(Thread::so_far().live_bytes()));
}

impl IndexKeys for FirstBytes {
    fn groups(&self) -> &[usize] {
        &[0]
    }

    fn index_keys<'r>(
        &self,
        _: &'r [u8],
        part: &dyn Fn(usize) -> Option<&'r [u8]>,
        emit: &mut dyn FnMut(&[u8]),
    ) -> Result<(), String> {
        note_live();
        part(0).and_then(|value| value.get(..4)).map(emit);
        Ok(())
    }
}

const LARGE_ROWS: u32 = 120;
const LARGE_BYTES: usize = 200_000;

/// A table with large values and an index. If `is_flushed`, all its rows are in files; otherwise some are in memory.
fn large_values(is_flushed: bool) -> (Database, Table) {
    let machine = os::Machine::simulated_on(os::sim::SimDisk::new(1), 1);
    let builder = Database::builder("db").machine(machine).cache_bytes(1 << 20).write_buffer_bytes(4 << 20);
    let db = builder.extractors(|_: &[u8]| Ok(Box::new(FirstBytes))).open().expect("the disk works");
    let table = db.table("t").expect("the disk works");
    table.create_index("i", "", &IndexOptions::default(), |_| {}).expect("it is built");
    for i in 0..LARGE_ROWS {
        let mut value = i.to_be_bytes().to_vec();
        value.resize(LARGE_BYTES, 7);
        table.insert(i.to_be_bytes(), value).expect("it is taken");
    }
    if is_flushed {
        db.flush().expect("the disk works");
    }
    (db, table)
}

/// By how much the thread's live bytes, as the extractor notes them, exceed those before `work`, at most.
fn most_live_bytes(work: impl FnOnce()) -> i64 {
    let before = Thread::so_far().live_bytes();
    MOST_LIVE.set(before);
    work();
    MOST_LIVE.get() - before
}

/// The most bytes that a read may hold: the rows of one round at each end, and some values that are being read.
const ROUNDS_BYTES: i64 = 6 << 20;

#[test]
fn a_read_by_an_index_holds_so_many_bytes_of_rows_and_not_so_many_rows() {
    for is_flushed in [true, false] {
        let (_db, table) = large_values(is_flushed);
        let index = table.index("i").expect("it is there");
        let check = |what: &str, read: &dyn Fn() -> u32| {
            let most = most_live_bytes(|| assert_eq!(read(), LARGE_ROWS, "{what}"));
            assert!(most < ROUNDS_BYTES, "{what}, flushed {is_flushed}: {most} bytes of rows of {LARGE_BYTES}");
        };
        let seen = |row: larch::Result<(larch::index::IndexEntry, larch::Value)>| {
            note_live();
            u32::from(row.expect("the disk works").1.len() == LARGE_BYTES)
        };
        check("forwards", &|| index.range_by(..).map(seen).sum());
        check("backwards", &|| index.range_by(..).rev().map(seen).sum());
        check("from both ends", &|| {
            let (mut rows, mut count) = (index.range_by(..), 0);
            while let Some(row) = rows.next() {
                count += seen(row) + rows.next_back().map_or(0, seen);
            }
            count
        });
        check("handed over", &|| {
            let mut count = 0;
            let end = index.range_by(..).for_each_row(|row| {
                note_live();
                assert_eq!(row.row_key(), u32::to_be_bytes(count));
                count += 1;
                ControlFlow::<()>::Continue(())
            });
            assert!(end.expect("the disk works").is_continue());
            count
        });
        check("as a future", &|| {
            let mut rows = index.scan_by_async(..);
            let mut count = 0;
            smol::block_on(async {
                while let Some(row) = rows.next().await {
                    count += seen(row);
                }
            });
            count
        });
        check("checked", &|| {
            let found = index.check(&mut |_| note_live()).expect("the disk works");
            assert!(found.problems.is_empty());
            LARGE_ROWS
        });
    }
}

#[test]
fn a_batch_into_an_indexed_table_holds_so_many_bytes_of_the_rows_of_before() {
    let (db, table) = large_values(true);
    let mut batch = db.batch();
    for i in 0..LARGE_ROWS {
        batch.insert(&table, i.to_be_bytes(), "small");
    }
    let most = most_live_bytes(|| assert!(batch.commit().is_ok()));
    assert!(most < ROUNDS_BYTES, "{most} bytes of rows of {LARGE_BYTES}");
    assert_eq!(table.index("i").expect("it is there").entries(..).count() as u32, LARGE_ROWS);
}
