use crate::{Conflict, Database, Durability, Isolation, Readable, Table, Transaction, TransactionOptions};
use os::Machine;
use os::sim::SimDisk;
use std::path::Path;

const BUFFER_BYTES: u64 = 16 << 10;

fn open(disk: &os::sync::Arc<SimDisk>) -> Database {
    let machine = Machine::simulated_on(disk.clone(), 1);
    let builder = Database::builder("db").machine(machine).write_buffer_bytes(BUFFER_BYTES);
    builder.durability(Durability::Buffered).open().expect("the disk works")
}

fn key(number: u32) -> [u8; 4] {
    number.to_be_bytes()
}

/// Puts `rows` rows of a hundred bytes.
fn fill(tx: &mut Transaction, table: &Table, rows: u32) {
    for number in 0..rows {
        tx.insert(table, key(number), [b'v'; 100]).expect("the disk works");
    }
}

fn ssts(disk: &SimDisk) -> usize {
    let names = os::Disk::list(disk, Path::new("db")).expect("the disk works");
    names.iter().filter(|name| name.name.ends_with(".sst")).count()
}

#[test]
fn a_transaction_of_fifty_write_buffers_keeps_a_share_of_one_in_memory() {
    let disk = SimDisk::new(1);
    let db = open(&disk);
    let table = db.table("t").expect("the disk works");
    table.insert(key(3), "old").expect("the disk works");
    let version = db.version();
    let mut tx = db.begin().expect("it begins");
    let rows = (50 * BUFFER_BYTES / 100) as u32;
    for number in 0..rows {
        tx.insert(&table, key(number), [b'v'; 100]).expect("the disk works");
        assert!((tx.work().writes.ops().bytes().len() as u64) < BUFFER_BYTES / 2);
        assert!(tx.work().writes.runs().len() < 24, "runs are merged");
    }
    tx.remove_range(&table, key(10)..key(rows - 10)).expect("the disk works");
    assert_eq!(tx.len(), rows as usize + 1);
    assert_eq!(tx.iter(&table).count(), 20);
    assert_eq!(table.iter().count(), 1, "others do not see it");
    let committed = tx.commit().expect("the disk works").expect("nobody else writes");
    assert_eq!(committed.0, version.0 + 1, "it is one commit");
    assert_eq!(table.iter().count(), 20);
    assert_eq!(table.get(key(3)).expect("the disk works").as_deref(), Some(&[b'v'; 100][..]));
    drop((table, db));
    disk.crash_keeping_nothing();
    let table = open(&disk).table("t").expect("the disk works");
    assert_eq!(table.iter().count(), 20, "it is durable with its files");
}

#[test]
fn files_go_with_the_transaction() {
    let disk = SimDisk::new(2);
    let db = open(&disk);
    let table = db.table("t").expect("the disk works");
    let before = ssts(&disk);
    let mut tx = db.begin().expect("it begins");
    fill(&mut tx, &table, 1000);
    assert!(ssts(&disk) > before);
    let range = tx.iter(&table);
    drop(tx);
    assert_eq!(range.count(), 1000, "a range goes on seeing them");
    assert_eq!(ssts(&disk), before, "after the last reader they are gone");

    let mut tx = db.begin().expect("it begins");
    fill(&mut tx, &table, 1000);
    let there = ssts(&disk);
    assert!(there > before);
    disk.crash_keeping_everything();
    drop((tx, table, db));
    let db = open(&disk);
    assert_eq!(ssts(&disk), before, "after a crash the next open removes them");
    assert_eq!(db.table("t").expect("the disk works").iter().count(), 0);
}

#[test]
fn savepoints_lie_within_files() {
    let db = open(&SimDisk::new(3));
    let table = db.table("t").expect("the disk works");
    let mut tx = db.begin().expect("it begins");
    let mut savepoints = vec![(tx.savepoint(), 0)];
    for number in 0..1500 {
        tx.insert(&table, key(number), [b'v'; 100]).expect("the disk works");
        if number % 37 == 0 {
            savepoints.push((tx.savepoint(), number as usize + 1));
        }
    }
    tx.remove_range(&table, ..).expect("the disk works");
    assert_eq!(tx.iter(&table).count(), 0);
    for (place, (savepoint, rows)) in savepoints.iter().enumerate().rev() {
        tx.rollback_to(savepoint).expect("it is there");
        assert_eq!((tx.len(), tx.iter(&table).count()), (*rows, *rows));
        if place % 5 == 0 {
            fill(&mut tx, &table, 100);
            tx.remove_range(&table, ..).expect("the disk works");
            tx.rollback_to(savepoint).expect("it is there");
            assert_eq!(tx.iter(&table).count(), *rows);
        }
    }
    assert!(tx.is_empty());
    tx.commit().expect("the disk works").expect("nobody else writes");
}

#[test]
fn a_disk_that_is_full_leaves_the_transaction_as_it_was() {
    let disk = SimDisk::new(4);
    let db = open(&disk);
    let table = db.table("t").expect("the disk works");
    let mut tx = db.begin().expect("it begins");
    fill(&mut tx, &table, 500);
    let before = ssts(&disk);
    disk.set_capacity(0);
    let (mut number, error) = (
        500,
        loop {
            let number = tx.len() as u32;
            if let Err(error) = tx.insert(&table, key(number), [b'v'; 100]) {
                break error;
            }
        },
    );
    assert!(error.is_disk_full(), "{error}");
    assert_eq!(ssts(&disk), before);
    let rows = tx.len();
    assert_eq!(tx.iter(&table).count(), rows);
    disk.set_capacity(u64::MAX);
    while number < 1000 {
        tx.insert(&table, key(number), [b'v'; 100]).expect("there is room again");
        number += 1;
    }
    tx.commit().expect("the disk works").expect("nobody else writes");
    assert_eq!(table.iter().count(), 1000);
}

#[test]
fn under_snapshot_isolation_writes_in_files_conflict() {
    let options = TransactionOptions { isolation: Isolation::Snapshot, ..TransactionOptions::default() };
    let db = open(&SimDisk::new(5));
    let table = db.table("t").expect("the disk works");
    let mut tx = db.begin_with(&options).expect("it begins");
    fill(&mut tx, &table, 1000);
    table.insert(key(7), "other").expect("the disk works");
    match tx.commit().expect("the disk works") {
        Err(Conflict::Changed { table, key: found }) => assert_eq!((&*table, &found[..]), ("t", &key(7)[..])),
        other => panic!("{other:?}"),
    }
    assert_eq!(table.iter().count(), 1);
}
