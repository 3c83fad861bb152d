use crate::transaction::{Isolation, TransactionOptions};
use crate::{Conflict, Database, Durability, Readable, Table, Transaction};
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

/// Puts `rows` rows of a hundred bytes each.
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
    disk.fail_all_after(0, std::io::ErrorKind::Other);
    drop((tx, table, db));
    disk.clear_faults();
    assert_eq!(ssts(&disk), there, "as after a crash they are still there");
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

#[test]
fn a_read_only_database_gets_no_files_of_a_transaction() {
    let disk = SimDisk::new(6);
    let db = open(&disk);
    db.table("t").expect("the disk works").insert(key(1), "row").expect("the disk works");
    db.flush().expect("the disk works");
    let machine = Machine::simulated_on(disk.clone(), 2);
    let builder = Database::builder("db").machine(machine).write_buffer_bytes(BUFFER_BYTES);
    let reader = builder.read_only(true).open().expect("the disk works");
    let table = reader.existing_table("t").expect("the disk works").expect("it is there");
    let names = || os::Disk::list(&*disk, Path::new("db")).expect("the disk works").len();
    let before = names();
    let mut tx = reader.begin().expect("it begins");
    let error = (0..1000).find_map(|number| tx.insert(&table, key(number), [b'v'; 100]).err());
    assert!(matches!(error, Some(crate::Error::ReadOnly)), "{error:?}");
    assert_eq!(names(), before);
}

#[test]
fn a_transaction_that_wrote_to_a_table_that_was_dropped_commits_nothing() {
    for goes_back in [false, true] {
        let db = open(&SimDisk::new(7));
        let (dropped, other) = (db.table("t").expect("the disk works"), db.table("u").expect("the disk works"));
        let mut tx = db.begin().expect("it begins");
        fill(&mut tx, &dropped, 10);
        fill(&mut tx, &other, 10);
        let savepoint = tx.savepoint();
        fill(&mut tx, &other, 300);
        assert!(tx.work().writes.in_runs() > 20);
        db.drop_table("t").expect("the disk works");
        if goes_back {
            tx.rollback_to(&savepoint).unwrap_or_default();
        }
        let outcome = tx.commit();
        assert!(matches!(&outcome, Err(crate::Error::TableDropped(name)) if name == "t"), "{outcome:?}");
        assert_eq!(other.iter().count(), 0);
    }
}

#[test]
fn erases_of_any_number_take_the_reserve_of_a_full_disk() {
    let disk = SimDisk::new(8);
    let machine = Machine::simulated_on(disk.clone(), 1);
    let builder = Database::builder("db").machine(machine).write_buffer_bytes(BUFFER_BYTES).reserve_bytes(1 << 20);
    let db = builder.open().expect("the disk works");
    let table = db.table("t").expect("the disk works");
    let mut tx = db.begin().expect("it begins");
    fill(&mut tx, &table, 2000);
    tx.commit().expect("the disk works").expect("nobody else writes");
    disk.set_capacity(disk.used_bytes());
    let mut tx = db.begin().expect("it begins");
    let error = (3000..4000).find_map(|number| tx.insert(&table, key(number), [b'v'; 100]).err());
    assert!(error.expect("the reserve is not for puts").is_disk_full());
    drop(tx);
    let mut tx = db.begin().expect("it begins");
    for number in 0..1900 {
        tx.remove(&table, key(number)).expect("there is the reserve");
    }
    assert!(tx.work().writes.in_runs() > 0);
    tx.commit().expect("there is the reserve").expect("nobody else writes");
    assert_eq!(table.iter().count(), 100);
}

#[test]
fn many_erases_of_ranges_over_each_other_do_not_fill_the_memory() {
    let disk = SimDisk::new(9);
    let db = Database::builder("db").machine(Machine::simulated_on(disk.clone(), 1)).open().expect("the disk works");
    let table = db.table("t").expect("the disk works");
    let mut tx = db.begin().expect("it begins");
    for number in (0..3000).rev() {
        tx.remove_range(&table, key(number)..).expect("the disk works");
        assert!(tx.work().writes.ops().range_erases() <= 512);
    }
    tx.insert(&table, key(7), "later").expect("the disk works");
    assert_eq!(tx.iter(&table).count(), 1);
    tx.commit().expect("the disk works").expect("nobody else writes");
    assert_eq!(table.iter().count(), 1);
}

#[test]
fn a_repair_leaves_out_the_writes_of_a_transaction() {
    let disk = SimDisk::new(10);
    let db = open(&disk);
    let table = db.table("t").expect("the disk works");
    table.insert(key(1), "row").expect("the disk works");
    db.flush().expect("the disk works");
    let mut tx = db.begin().expect("it begins");
    fill(&mut tx, &table, 1000);
    // The process is killed, so it cannot remove the files.
    disk.fail_all_after(0, std::io::ErrorKind::Other);
    drop((tx, table, db));
    disk.clear_faults();
    for file in os::Disk::list(&*disk, Path::new("db")).expect("the disk works") {
        if file.name.starts_with("CURRENT") || file.name.starts_with("MANIFEST") {
            os::Disk::remove(&*disk, &Path::new("db").join(file.name)).expect("it is there");
        }
    }
    let machine = Machine::simulated_on(disk.clone(), 3);
    let report =
        crate::repair::repair_on(&machine, Path::new("db"), Path::new("repaired"), |_| {}).expect("the disk works");
    assert!(report.guesses.iter().any(|guess| guess.contains("a transaction that did not commit")), "{report:?}");
    let db = Database::builder("repaired").machine(machine).open().expect("the disk works");
    assert_eq!(db.table("t").expect("the disk works").iter().count(), 1);
}

#[test]
fn a_transaction_over_many_tables_has_a_file_for_each_run_and_not_for_each_table() {
    const TABLES: u32 = 100;
    let disk = SimDisk::new(1);
    let db = open(&disk);
    let tables: Vec<Table> = (0..TABLES).map(|i| db.table(&format!("t{i}")).expect("the disk works")).collect();
    let before = ssts(&disk);
    let mut tx = db.begin().expect("it is open");
    let mut most = 0;
    for row in 0..200 {
        for (i, table) in (0..).zip(&tables) {
            let mut value = key(i).to_vec();
            value.resize(100, row as u8);
            tx.insert(table, key(row), value).expect("the disk works");
        }
        most = most.max(ssts(&disk) - before);
    }
    assert!((2..40).contains(&most), "{most} files for {TABLES} tables");
    // Every table has rows in files and in memory. A rollback to the savepoint takes only the later rows from each.
    let savepoint = tx.savepoint();
    for table in &tables {
        (100..400).for_each(|row| tx.remove(table, key(row)).expect("the disk works"));
    }
    tx.rollback_to(&savepoint).expect("the disk works");
    for (i, table) in (0..).zip(&tables) {
        let rows: Vec<_> = tx.range(table, ..).map(|row| row.expect("the disk works")).collect();
        assert_eq!(rows.len(), 200, "table {i}");
        assert!(rows.iter().all(|(_, value)| value[..4] == key(i)), "table {i}");
    }
    tx.commit().expect("the disk works").expect("nobody else writes");
    for (i, table) in (0..).zip(&tables) {
        assert_eq!(
            table.get(key(150)).expect("the disk works").map(|value| value[..4].to_vec()),
            Some(key(i).to_vec())
        );
    }
    assert!(ssts(&disk) - before <= TABLES as usize, "the runs are gone");
    db.check(|_| {}).expect("the database is whole");
}
