//! Tests that background work removes erased rows from an idle database, and counts the pages that a seek reads.
//! The machine has no threads, so background work runs only when the test drives it.

use super::*;
use crate::Readable;
use os::sim::SimDisk;
use os::sync::Arc;
use std::time::Duration;

const ROWS: u32 = 20_000;

fn open(disk: &Arc<SimDisk>) -> Database {
    Database::builder("db").machine(Machine::simulated_on(disk.clone(), 1)).open().expect("the disk works")
}

fn key(i: u32) -> [u8; 4] {
    i.to_be_bytes()
}

/// Writes rows, compacts them into the deepest level, and then erases all but the last, one by one.
fn erase(db: &Database) -> Table {
    let table = db.table("t").expect("the disk works");
    for i in 0..=ROWS {
        table.insert(key(i), "a value").expect("the disk works");
    }
    db.compact().expect("the disk works");
    for i in 0..ROWS {
        table.remove(key(i)).expect("the disk works");
    }
    table
}

fn drive(db: &Database) {
    for _ in 0..10 {
        db.core().background.drive();
    }
}

#[test]
fn a_seek_across_erased_rows_reads_few_pages_once_background_work_is_done() {
    let disk = SimDisk::new(1);
    let db = open(&disk);
    let table = erase(&db);
    db.flush().expect("the disk works");
    drive(&db);
    let stats = table.stats().expect("the table is there");
    assert_eq!((stats.rows, stats.erased_rows), (1, 0));
    drop(table);
    db.close().expect("the disk works");
    let db = open(&disk);
    let first = db.table("t").and_then(|table| table.first_key_value()).expect("the disk works");
    assert_eq!(first.expect("one row is left").0[..], key(ROWS));
    let reads = db.metrics().page_reads;
    assert!(reads <= 2, "{reads} pages read for the first row");
}

#[test]
fn erased_rows_in_memory_go_when_the_database_is_left_alone() {
    let machine = Machine::simulated_on(SimDisk::new(1), 1);
    let db = Database::builder("db").machine(machine.clone()).open().expect("the disk works");
    let table = erase(&db);
    assert!(db.metrics().memtable_bytes > u64::from(ROWS));
    for _ in 0..4 {
        machine.clock.sleep(Duration::from_secs(1));
        drive(&db);
    }
    let stats = table.stats().expect("the table is there");
    assert_eq!((stats.rows, stats.erased_rows), (1, 0));
    assert!(db.metrics().memtable_bytes < 1000);
}

#[test]
fn erased_rows_that_a_snapshot_sees_through_are_not_merged_over_and_over() {
    let db = open(&SimDisk::new(1));
    let table = db.table("t").expect("the disk works");
    for i in 0..=ROWS {
        table.insert(key(i), "a value").expect("the disk works");
    }
    db.compact().expect("the disk works");
    let snapshot = db.snapshot();
    for i in 0..ROWS {
        table.remove(key(i)).expect("the disk works");
    }
    db.flush().expect("the disk works");
    let before = db.metrics().compactions;
    for _ in 0..5 {
        db.core().background.wake_compact();
        drive(&db);
    }
    assert_eq!(db.metrics().compactions, before, "nothing could be gained");
    assert_eq!(snapshot.get(&table, key(7)).expect("the disk works").as_deref(), Some(&b"a value"[..]));
    drop(snapshot);
    // Only the snapshot still saw the erased rows. Background work notices by itself that it is gone.
    drive(&db);
    assert_eq!(table.stats().expect("the table is there").erased_rows, 0);
    assert_eq!(db.metrics().compactions, before + 1);
}
