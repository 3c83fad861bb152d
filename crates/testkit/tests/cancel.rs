//! Long work that is cancelled has no effect, at whatever point.

use larch::options::LevelOptions;
use larch::{Cancel, Database, Error, Table, TableOptions};
use os::sim::SimDisk;
use os::{Disk, Machine};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const ROWS: u32 = 4_000;

fn key(row: u32) -> Vec<u8> {
    format!("row{row:06}").into_bytes()
}

/// A database with many files that are not compacted.
fn database() -> (Database, Table, Arc<SimDisk>, Machine) {
    let (machine, disk) = Machine::simulated(7);
    let levels = LevelOptions { level0_files: 1_000, slow_files: 2_000, ..LevelOptions::default() };
    let builder = Database::builder("db").machine(machine.clone()).cache_bytes(1 << 20).write_buffer_bytes(64 << 10);
    let db = builder.levels(levels).open().expect("the disk works");
    let options = TableOptions { page_bytes: 512, node_bytes: 512, ..TableOptions::default() };
    let table = db.table_with("t", options).expect("the disk works");
    for row in 0..ROWS {
        table.insert(key(row * 7 % ROWS), [b'v'; 300]).expect("the disk works");
    }
    db.flush().expect("the disk works");
    (db, table, disk, machine)
}

fn ssts(disk: &SimDisk) -> usize {
    let entries = disk.list(Path::new("db")).expect("the disk works");
    entries.iter().filter(|entry| entry.name.ends_with(".sst")).count()
}

#[track_caller]
fn check_whole(db: &Database, table: &Table) {
    assert_eq!(table.iter().count(), ROWS as usize);
    assert!(db.check(&mut |_| {}).expect("the disk works").problems.is_empty());
}

#[test]
fn a_compaction_that_is_given_up_leaves_the_files_as_they_were() {
    let (db, table, disk, _) = database();
    let before = ssts(&disk);
    assert!(before > 10);
    let cancel = Cancel::new();
    let mut looks = 0;
    let outcome = table.until(&cancel).compact_with(&mut |_, _| {
        looks += 1;
        cancel.cancel();
    });
    assert!(matches!(outcome, Err(Error::Cancelled("the compaction"))), "{outcome:?}");
    assert_eq!((looks, ssts(&disk)), (1, before), "it ends where it next looks, and removes what it wrote");
    check_whole(&db, &table);
    assert!(db.until(&cancel).compact().is_err_and(|error| matches!(error, Error::Cancelled(_))));
    db.until(&Cancel::new()).compact().expect("nobody gives it up");
    assert_eq!(ssts(&disk), 1);
    check_whole(&db, &table);
}

#[test]
fn a_check_that_is_given_up_reads_no_further() {
    let (db, table, ..) = database();
    let whole = table.check(&mut |_| {}).expect("the disk works").pages;
    let cancel = Cancel::new();
    let mut calls = 0u64;
    let outcome = db.until(&cancel).check(&mut |_| {
        calls += 1;
        if calls == 5 {
            cancel.cancel();
        }
    });
    assert!(matches!(outcome, Err(Error::Cancelled("the check"))), "{outcome:?}");
    assert!(calls < whole / 10, "{calls} of {whole} pages");
}

#[test]
fn an_import_that_is_given_up_leaves_neither_rows_nor_files() {
    let (db, table, disk, _) = database();
    let before = ssts(&disk);
    // While rows come in order, while they are sorted, and while runs are merged.
    for (is_sorted, is_finished) in [(true, false), (false, false), (false, true)] {
        let cancel = Cancel::new();
        let mut import = table.until(&cancel).import().expect("the disk works");
        for row in 0..ROWS {
            let row = if is_sorted { row } else { row * 7 % ROWS };
            import.add(&key(row), &[b'n'; 300]).expect("the disk works");
        }
        let outcome = if is_finished {
            import.finish(&mut |_, _| cancel.cancel()).map(|_| ())
        } else {
            cancel.cancel();
            let outcome = (0..100).try_for_each(|row| import.add(&key(ROWS + row), b"n"));
            drop(import);
            outcome
        };
        assert!(matches!(outcome, Err(Error::Cancelled("the import"))), "{outcome:?}");
        assert_eq!(ssts(&disk), before, "sorted {is_sorted} finished {is_finished}");
        check_whole(&db, &table);
        assert_eq!(table.get(key(3)).expect("the disk works").as_deref(), Some(&[b'v'; 300][..]));
    }
}

#[test]
fn work_ends_when_its_time_is_over() {
    let (db, table, disk, machine) = database();
    let before = ssts(&disk);
    // No time at all, and more than there will be.
    let over = Cancel::after(Duration::ZERO);
    assert!(matches!(table.until(&over).compact(), Err(Error::Cancelled(_))));
    assert!(matches!(table.until(&over).check(&mut |_| {}), Err(Error::Cancelled(_))));
    assert!(matches!(table.until(&over).warm(..), Err(Error::Cancelled(_))));
    let mut import = table.until(&over).import().expect("nothing was done yet");
    assert!(matches!(import.add(b"k", b"v"), Err(Error::Cancelled(_))));
    drop(import);
    assert_eq!(ssts(&disk), before);
    let long = Cancel::after(Duration::from_secs(3_600));
    table.until(&long).warm(..).expect("there is time");
    table.until(&long).compact().expect("there is time");
    check_whole(&db, &table);
    // Each piece of work has its own time.
    machine.clock.sleep(Duration::from_secs(7_200));
    table.until(&long).check(&mut |_| {}).expect("there is time again");
}
