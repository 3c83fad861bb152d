use super::*;
use crate::base::record::LEAN_RECORDS;
use crate::base::release::Release;
use crate::{Database, Durability};
use os::sim::SimDisk;
use os::sync::Arc;
use os::{Disk, Machine};
use std::path::Path;

fn open(disk: &Arc<SimDisk>, durability: Durability) -> Database {
    let machine = Machine::simulated_on(disk.clone(), 1);
    Database::builder("db")
        .machine(machine)
        .durability(durability)
        .write_buffer_bytes(64 << 10)
        .open()
        .expect("it opens")
}

/// The number of the next log, if the job has created its file.
fn next_number(db: &Database) -> Option<u64> {
    let next = db.core().writes.ahead.take_next()?;
    let number = next.number();
    db.core().writes.ahead.put_next(next);
    Some(number)
}

fn log_files(disk: &SimDisk) -> Vec<u64> {
    let entries = disk.list(Path::new("db")).expect("the disk works");
    entries.iter().filter(|entry| entry.name.ends_with(".log")).map(|entry| entry.bytes).collect()
}

#[test]
fn a_log_that_grows_becomes_durable_and_has_a_successor_before_it_ends() {
    let disk = SimDisk::new(1);
    let db = open(&disk, Durability::Buffered);
    let table = db.table("t").expect("the disk works");
    table.insert("first", "1").expect("the disk works");
    assert_eq!(log_files(&disk).len(), 1, "a database with few writes has one log");
    for i in 0..75u32 {
        table.insert(i.to_be_bytes(), [7; 100]).expect("the disk works");
    }
    assert_eq!(log_files(&disk)[1..], [64], "the file of the next log has a header");
    let log = |db: &Database| db.core().views.newest().memory[0].log;
    let before = log(&db);
    let next = next_number(&db);
    disk.crash_keeping_nothing();
    drop((table, db));
    let db = open(&disk, Durability::Buffered);
    let rows = db.table("t").expect("it is there").iter().count();
    assert!(rows > 30, "{rows} rows were made durable before anything asked for it");
    assert!(next > Some(before));
    assert_eq!(log_files(&disk).len(), 1, "an open removes a log that never began");
}

/// The feature bits of all logs that have a header.
fn features(disk: &SimDisk) -> Vec<u32> {
    let entries = disk.list(Path::new("db")).expect("the disk works");
    let logs = entries.iter().filter(|entry| entry.name.ends_with(".log") && entry.bytes > 0);
    let bytes = logs.map(|log| disk.read_all(&Path::new("db").join(&log.name)).expect("it is there"));
    bytes.map(|bytes| u32::from_le_bytes(bytes[12..16].try_into().expect("4 bytes"))).collect()
}

#[test]
fn logs_are_lean_unless_an_older_release_must_read_them() {
    for (compat, first, next) in [(Release::V0_1, 0, 0), (Release::V0_2, LEAN_RECORDS, LEAN_RECORDS | BEGIN_RECORD)] {
        let disk = SimDisk::new(1);
        let machine = Machine::simulated_on(disk.clone(), 1);
        let builder = Database::builder("db").machine(machine).write_buffer_bytes(64 << 10).compat(compat);
        let db = builder.open().expect("it opens");
        let table = db.table("t").expect("the disk works");
        table.insert("first", "1").expect("the disk works");
        assert_eq!(features(&disk), [first], "{compat}");
        for i in 0..75u32 {
            table.insert(i.to_be_bytes(), [7; 100]).expect("the disk works");
        }
        db.flush().expect("the disk works");
        table.insert("last", "1").expect("the disk works");
        assert_eq!(features(&disk), [next], "{compat}");
    }
}

#[test]
fn a_rotation_takes_the_file_that_is_there() {
    let disk = SimDisk::new(1);
    let db = open(&disk, Durability::Synced);
    let table = db.table("t").expect("the disk works");
    for i in 0..75u32 {
        table.insert(i.to_be_bytes(), [7; 100]).expect("the disk works");
    }
    let next = next_number(&db).expect("the job has run");
    db.flush().expect("the disk works");
    assert_eq!(db.core().views.newest().memory[0].log, next);
    db.close().expect("the disk works");
    assert_eq!(log_files(&disk).len(), 1);
}

#[test]
fn a_file_made_before_a_rotation_that_overtook_it_is_not_used() {
    let disk = SimDisk::new(1);
    let db = open(&disk, Durability::Synced);
    let table = db.table("t").expect("the disk works");
    let late = create(db.core(), 0).expect("the disk works");
    let old = late.number();
    table.insert("a", "1").expect("the disk works");
    db.flush().expect("the disk works");
    db.core().writes.ahead.put_next(late);
    table.insert("b", "2").expect("the disk works");
    db.flush().expect("the disk works");
    assert!(db.core().views.newest().memory[0].log > old, "numbers of logs grow");
    drop((table, db));
    let table = open(&disk, Durability::Synced).table("t").expect("it is there");
    assert_eq!(table.iter().count(), 2);
}
