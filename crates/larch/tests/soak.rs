//! Memory of a million reads while nothing is written, half of them in a database opened read-only: an allocator counts the
//! bytes in use, and they end where they began. A database that no one writes to makes no new view, so nothing but the end of
//! a read can free what the read took.

use kit::allocations::{Counting, Thread};
use larch::{Database, Readable, TableOptions, Tried};
use os::Machine;
use os::sim::SimDisk;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

#[global_allocator]
static COUNTING: Counting<Thread> = Counting::new();

const ROWS: u32 = 20_000;

fn key(i: u32) -> [u8; 4] {
    (i.wrapping_mul(7919) % ROWS).to_be_bytes()
}

/// Polls a future as often as `times` says and drops it.
fn poll<T>(future: impl Future<Output = T>, times: u32) -> Option<T> {
    let mut future = pin!(future);
    let context = &mut Context::from_waker(Waker::noop());
    (0..times).find_map(|_| match future.as_mut().poll(context) {
        Poll::Ready(done) => Some(done),
        Poll::Pending => None,
    })
}

/// A read of one of many kinds, `i` says which and where; whether it was dropped before it was done.
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

/// Half a million reads leave nothing behind: neither bytes nor pages in use, nor anything that `metrics` counts.
fn check(read_only: bool) {
    let disk = SimDisk::new(1);
    let open = |read_only: bool| {
        let machine = Machine::simulated_on(disk.clone(), 1);
        // A third of the data: some reads find their pages, others miss them.
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
    import.finish(&mut |_, _| {}).expect("the disk works");
    drop(table);
    let db = if read_only {
        db.close().expect("the disk works");
        open(true)
    } else {
        db
    };

    // The cache fills, and its lists reach their lengths.
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
    let ranges: Vec<_> = (0..100).map(|i| db.table("t").expect("it is there").range(key(i)..)).collect();
    let mut ranges: Vec<_> = ranges.into_iter().map(|mut range| (range.next().is_some(), range)).collect();
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
