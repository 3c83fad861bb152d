//! Tests that a million reads, half of them in a database opened read-only, and transactions of every kind leak no
//! memory: an allocator counts the bytes in use, which must be the same at the end as at the beginning. Nobody writes
//! during the reads, so no new view frees what a read has left behind.

use kit::allocations::{Counting, Thread};
use larch::index::{IndexKeys, IndexOptions};
use larch::rows::Tried;
use larch::transaction::{Expected, Isolation, TransactionOptions};
use larch::{Database, Index, Readable, Table, TableOptions, Transaction};
use os::Machine;
use os::sim::SimDisk;
use os::sync::Arc;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

#[global_allocator]
static COUNTING: Counting<Thread> = Counting::new();

const ROWS: u32 = 20_000;

fn key(i: u32) -> [u8; 4] {
    (i.wrapping_mul(7919) % ROWS).to_be_bytes()
}

/// Polls a future at most `times` times, and drops it.
fn poll<T>(future: impl Future<Output = T>, times: u32) -> Option<T> {
    let mut future = pin!(future);
    let context = &mut Context::from_waker(Waker::noop());
    (0..times).find_map(|_| match future.as_mut().poll(context) {
        Poll::Ready(done) => Some(done),
        Poll::Pending => None,
    })
}

/// Does one read, whose kind and key follow from `i`. Returns whether it was dropped before it was done.
fn read(db: &Database, i: u32) -> bool {
    let table = db.existing_table("t").expect("the disk works").expect("the table is there");
    let key = key(i);
    let mut cut_short = false;
    match i % 16 {
        0..4 => assert!(table.range(key..).next().expect("there is a row").is_ok()),
        4 => assert!(table.get(key).expect("the disk works").is_some()),
        5 => assert!(table.range(..=key).next_back().expect("there is a row").is_ok()),
        6 => {
            let snapshot = db.snapshot();
            assert!(snapshot.get(&table, key).expect("the disk works").is_some());
            assert!(snapshot.range(&table, key..).next().expect("there is a row").is_ok());
        }
        7 => cut_short = poll(table.get_async(key), 1 + i / 16 % 2).is_none(),
        8 => cut_short = poll(table.multi_get_async([key, self::key(i + 1)]), 1 + i / 16 % 2).is_none(),
        9 => cut_short = poll(table.scan_async(key..).next(), 1 + i / 16 % 2).is_none(),
        10 => {
            let mut scan = pin!(table.scan_async(key..).limit(10));
            let next = |cx: &mut Context<'_>| futures_core::Stream::poll_next(Pin::as_mut(&mut scan), cx);
            cut_short = poll(std::future::poll_fn(next), 1 + i / 16 % 2).is_none();
        }
        11 => cut_short = table.range(key..).try_next().is_ok_and(|tried| tried.would_fault()),
        12 => {
            let keys = table.select(None::<&str>).expect("there is no group");
            assert!(keys.get(key).expect("the disk works").is_some());
            assert!(keys.range(key..).next().expect("there is a row").is_ok());
        }
        13 => {
            let mut rows = table.range(key..).limit(3);
            while let Some(row) = rows.next_row().expect("the disk works") {
                assert_eq!(row.value_len(), 100);
            }
        }
        14 => assert_eq!(table.multi_get([key, self::key(i + 1)]).expect("the disk works").len(), 2),
        _ => cut_short = matches!(table.try_get(key).expect("the disk works"), Tried::WouldFault),
    }
    cut_short
}

/// Checks that half a million reads leave nothing behind: no bytes, no pages in use, and nothing else that the
/// metrics count.
fn check(read_only: bool) {
    let disk = SimDisk::new(1);
    let open = |read_only: bool| {
        let machine = Machine::simulated_on(disk.clone(), 1);
        // The cache holds a third of the data, so some reads find their pages in memory and others do not.
        let builder = Database::builder("db").machine(machine).cache_bytes(1 << 20).read_only(read_only);
        builder.open().expect("the disk works")
    };
    let db = open(false);
    let options = TableOptions { page_bytes: 4096, ..TableOptions::default() };
    let table = db.table_with("t", options).expect("the disk works");
    let mut import = table.import().expect("the disk works");
    for i in 0..ROWS {
        import.add(&i.to_be_bytes(), &[7; 100]).expect("the disk works");
    }
    import.finish(|_| {}).expect("the disk works");
    drop(table);
    let db = if read_only {
        db.close().expect("the disk works");
        open(true)
    } else {
        db
    };

    // The first reads are not counted: they fill the cache, and its lists get their final lengths.
    let mut cut_short = (0..50_000).filter(|&i| read(&db, i)).count();
    let at_start = Thread::so_far().live_bytes();
    cut_short += (0..500_000).filter(|&i| read(&db, i)).count();
    let grown = Thread::so_far().live_bytes() - at_start;
    let metrics = db.metrics();
    println!("{grown} bytes more in use, {cut_short} reads were cut short");
    assert!(cut_short > 20_000, "{cut_short} reads were dropped before they were done");
    assert!(grown.abs() < 64 << 10, "{grown} bytes more are in use");
    assert_eq!(metrics.memory().session_bytes, 0, "ranges that are being read");
    assert_eq!(metrics.pinned_versions, 0);
    assert_eq!(metrics.memory().pinned_bytes, 0);
    // A range gets a session that counts when it goes on beyond its first pages. Each of these has 500 rows before it
    // ends, because a range that has ended no longer counts.
    let begins = (0..100).map(|i: u32| (i * 100).to_be_bytes());
    let mut ranges: Vec<_> = begins.map(|key| db.table("t").expect("it is there").range(key..)).collect();
    for range in &mut ranges {
        assert!(range.nth(500).expect("there are more rows").is_ok());
    }
    let open = db.metrics().memory().session_bytes;
    assert!(open > 0 && open.is_multiple_of(100), "{open} bytes for 100 ranges");
    ranges.truncate(50);
    assert_eq!(db.metrics().memory().session_bytes * 2, open);
}

#[test]
fn half_a_million_reads_leave_nothing_behind() {
    check(false);
}

#[test]
fn half_a_million_reads_of_a_database_opened_read_only_leave_nothing_behind() {
    check(true);
}

/// An index with one key for each row: the first byte of the value.
struct FirstByte;

impl IndexKeys for FirstByte {
    fn groups(&self) -> &[usize] {
        &[0]
    }

    fn index_keys<'r>(
        &self,
        _key: &'r [u8],
        part: &dyn Fn(usize) -> Option<&'r [u8]>,
        emit: &mut dyn FnMut(&[u8]),
    ) -> Result<(), String> {
        emit(part(0).and_then(|value| value.get(..1)).ok_or("the value is empty")?);
        Ok(())
    }
}

/// A database of 2,000 rows with an index. Its write buffer is so small that large transactions spill into files.
struct Indexed {
    db: Database,
    table: Table,
    index: Index,
}

const INDEXED_ROWS: u32 = 2_000;

impl Indexed {
    fn new(disk: Arc<SimDisk>) -> Self {
        let machine = Machine::simulated_on(disk, 2);
        let builder = Database::builder("db").machine(machine).cache_bytes(1 << 20).write_buffer_bytes(256 << 10);
        let db = builder.extractors(|_: &[u8]| Ok(Box::new(FirstByte) as Box<dyn IndexKeys>)).open();
        let db = db.expect("the disk works");
        let table = db.table("t").expect("the disk works");
        for i in 0..INDEXED_ROWS {
            table.insert(i.to_be_bytes(), value(i)).expect("the disk works");
        }
        let index = table.create_index("by_first", b"first", &IndexOptions::default(), |_| {});
        Self { db, index: index.expect("the disk works"), table }
    }

    fn begin(&self) -> Transaction {
        self.db.begin().expect("the disk works")
    }

    /// Begins a transaction that reads and overwrites row `i`, and returns it.
    fn overwriting(&self, i: u32, isolation: Isolation) -> Transaction {
        let options = TransactionOptions { isolation, ..TransactionOptions::default() };
        let mut tx = self.db.begin_with(&options).expect("the disk works");
        assert!(tx.get(&self.table, row(i)).expect("the disk works").is_some());
        tx.insert(&self.table, row(i), value(i + 1)).expect("it is open for writing");
        tx
    }

    /// Does one transaction, whose kind and rows follow from `i`, and which does not change the number of rows.
    fn transaction(&self, i: u32) {
        let Self { db, table, index } = self;
        let key = row(i);
        match i % 18 {
            0 => assert!(self.overwriting(i, Isolation::Serializable).commit().expect("the disk works").is_ok()),
            1 => assert!(self.overwriting(i, Isolation::Snapshot).commit().expect("the disk works").is_ok()),
            2 => self.overwriting(i, Isolation::Serializable).rollback(),
            3 => {
                let late = self.overwriting(i, Isolation::Serializable);
                table.insert(key, value(i)).expect("the disk works");
                assert!(late.commit().expect("the disk works").is_err(), "another commit has written the row");
            }
            4 => {
                let mut tx = self.begin();
                assert_eq!(tx.range(table, ..).count() as u32, INDEXED_ROWS);
                let savepoint = tx.savepoint();
                tx.remove_range(table, ..).expect("it is open for writing");
                assert_eq!(tx.iter(table).count(), 0);
                tx.rollback_to(&savepoint).expect("the savepoint is of this transaction");
                tx.insert(table, key, value(i)).expect("it is open for writing");
                assert!(tx.commit().expect("the disk works").is_ok());
            }
            5 | 6 => {
                // The writes take either more than a transaction's share of the write buffer, or more than half of
                // it.
                let mut tx = self.begin();
                for j in 0..INDEXED_ROWS / (i % 18 - 3) {
                    tx.insert(table, row(i + j), value(j)).expect("the disk works");
                }
                if i.is_multiple_of(4) {
                    tx.rollback();
                } else {
                    assert!(tx.commit().expect("the disk works").is_ok());
                }
            }
            7 => {
                let tx = self.overwriting(i, Isolation::Serializable);
                if let Some(committed) = poll(tx.commit_async(), 1 + i / 18 % 2) {
                    assert!(committed.expect("the disk works").is_ok());
                }
            }
            8 => {
                let commit = self.overwriting(i, Isolation::Serializable).submit();
                let commit = commit.expect("the disk works").expect("nothing else writes");
                if i.is_multiple_of(4) {
                    commit.wait().expect("the disk works");
                }
            }
            9 => {
                let mut tx = self.begin();
                assert!(tx.get_for_update(table, key).expect("the disk works").is_some());
                if !i.is_multiple_of(4) {
                    tx.insert(table, key, value(i)).expect("it is open for writing");
                    assert!(tx.commit().expect("the disk works").is_ok());
                }
            }
            10 => {
                let done: larch::Result<()> = db.transact(|tx| {
                    let old = tx.get(table, key)?;
                    tx.insert(table, key, old.expect("the row is there"))
                });
                done.expect("the disk works");
            }
            11 => assert!(!table.insert_new(key, value(i)).expect("the disk works")),
            12 => {
                let old = table.get(key).expect("the disk works").expect("the row is there");
                let swapped = table.compare_and_swap(key, Some(&old[..]), Some(&value(i)[..]));
                assert!(swapped.expect("the disk works").is_ok());
            }
            13 => {
                let mut batch = db.batch();
                batch.expect(table, key, Expected::Absent);
                batch.insert(table, key, value(i));
                assert!(batch.commit().is_err(), "the row is there");
            }
            14 => {
                let mut cursor = table.cursor();
                assert!(cursor.seek(key).expect("the disk works"));
                assert!(cursor.prev().is_ok() && cursor.next().is_ok());
            }
            15 => assert!(!index.get_by(&value(i)[..1]).expect("the disk works").is_empty()),
            16 => assert!(index.range_by(..).limit(7).all(|row| row.is_ok())),
            _ => assert_eq!(index.entries(..).count() as u32, INDEXED_ROWS),
        }
    }
}

fn row(i: u32) -> [u8; 4] {
    (i.wrapping_mul(7919) % INDEXED_ROWS).to_be_bytes()
}

fn value(i: u32) -> [u8; 100] {
    [b'a' + (i % 26) as u8; 100]
}

#[test]
fn transactions_of_every_kind_leave_nothing_behind() {
    let disk = SimDisk::new(2);
    let indexed = Indexed::new(disk.clone());
    let settle = || {
        indexed.db.flush().expect("the disk works");
        indexed.db.compact().expect("the disk works");
        // The bytes of the simulated disk are subtracted, because the manifest grows on the disk.
        Thread::so_far().live_bytes() - disk.memory_bytes() as i64
    };
    // The first transactions are not counted: they fill the cache, and its lists get their final lengths.
    (0..18 * 20).for_each(|i| indexed.transaction(i));
    let at_start = settle();
    (0..18 * 100).for_each(|i| indexed.transaction(i));
    let grown = settle() - at_start;
    println!("{grown} bytes more in use");
    assert!(grown.abs() < 64 << 10, "{grown} bytes more are in use");
    let metrics = indexed.db.metrics();
    assert_eq!(metrics.pinned_versions, 0);
    assert_eq!(metrics.memory().session_bytes, 0, "ranges that are being read");
    assert!(indexed.index.check(|_| {}).expect("the disk works").problems.is_empty());
}
