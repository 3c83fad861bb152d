//! Tests that choosing a compaction examines only the tables that changed, however many there are.

use crate::Database;
use crate::options::LevelOptions;
use os::Machine;
use os::sim::SimDisk;

fn database(tables: u32) -> Database {
    let machine = Machine::simulated_on(SimDisk::new(1), 1);
    let levels = LevelOptions { level0_files: 2, ..LevelOptions::default() };
    let db = Database::builder("db").machine(machine).levels(levels).open().expect("it opens");
    for i in 0..tables {
        db.table(&format!("table {i}")).expect("the disk works");
    }
    db.compact_due().expect("the disk works");
    db
}

/// How many times a table is examined while one of `tables` tables is written, flushed and compacted ten times.
fn looks(tables: u32) -> u64 {
    let db = database(tables);
    let table = db.table("table 3").expect("it is there");
    let before = db.core().writes.picks.examined_count();
    for i in 0..10u8 {
        table.insert([i % 3], [i]).expect("the disk works");
        db.flush().expect("the disk works");
        db.compact_due().expect("the disk works");
    }
    assert!(db.metrics().compactions > 0, "there was something to compact");
    db.core().writes.picks.examined_count() - before
}

#[test]
fn looks_do_not_grow_with_the_number_of_tables() {
    let few = looks(10);
    assert_eq!(looks(500), few);
    assert!((10..100).contains(&few), "{few} looks at one table that changed ten times");
}

/// A snapshot still reads rows that a range erase hides. When it is dropped, these rows are cut off their files,
/// although the table has not changed since.
#[test]
fn a_table_that_waits_for_a_reader_is_looked_at_again() {
    let db = database(10);
    let table = db.table("table 3").expect("it is there");
    for i in 0..100u8 {
        table.insert([i], [i; 100]).expect("the disk works");
    }
    db.flush().expect("the disk works");
    table.compact().expect("the disk works");
    let snapshot = db.snapshot();
    table.remove_range(..).expect("the disk works");
    db.flush().expect("the disk works");
    db.compact_due().expect("the disk works");
    let rows = |db: &Database| db.table("table 3").expect("it is there").stats().expect("it is there").rows;
    assert!(rows(&db) >= 100, "a reader sees them");
    drop(snapshot);
    db.table("table 5").expect("it is there").insert("a", "b").expect("the disk works");
    db.flush().expect("the disk works");
    db.compact_due().expect("the disk works");
    assert_eq!(rows(&db), 0);
}
