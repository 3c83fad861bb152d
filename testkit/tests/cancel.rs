//! Cancelled work must have no effect, however far it had come.

use larch::options::LevelOptions;
use larch::{Database, Error, Table, TableOptions};
use os::sim::SimDisk;
use os::{Disk, Machine};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

const ROWS: u32 = 4_000;

fn key(row: u32) -> Vec<u8> {
    format!("row{row:06}").into_bytes()
}

/// A database with many files, which are compacted only on request.
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
    assert!(db.check(|_| {}).expect("the disk works").problems.is_empty());
}

#[test]
fn a_compaction_that_is_given_up_leaves_the_files_as_they_were() {
    let (db, table, disk, _) = database();
    let before = ssts(&disk);
    assert!(before > 10);
    let mut looks = 0;
    let outcome = table.compact_with(|at| {
        // The first call comes before anything was read, and does not cancel the compaction.
        looks += u32::from(at.total > 0);
        if looks > 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert!(matches!(outcome, Err(Error::Cancelled("the compaction"))), "{outcome:?}");
    assert_eq!((looks, ssts(&disk)), (1, before), "it ends where it is told, and removes what it wrote");
    check_whole(&db, &table);
    assert!(db.compact_with(|_| ControlFlow::Break(())).is_err_and(|error| matches!(error, Error::Cancelled(_))));
    db.compact_with(|_| {}).expect("nobody gives it up");
    assert_eq!(ssts(&disk), 1);
    check_whole(&db, &table);
}

#[test]
fn a_check_that_is_given_up_reads_no_further() {
    let (db, table, ..) = database();
    let whole = table.check(|_| {}).expect("the disk works").pages;
    let mut calls = 0u64;
    let outcome = db.check(|_| {
        calls += 1;
        if calls >= 5 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert!(matches!(outcome, Err(Error::Cancelled("the check"))), "{outcome:?}");
    assert_eq!(calls, 5, "it is asked no more after it has ended the check; a whole one has {whole} pages");
}

#[test]
fn an_import_that_is_given_up_leaves_neither_rows_nor_files() {
    let (db, table, disk, _) = database();
    let before = ssts(&disk);
    // Cancelled while rows come in order, while rows are sorted, and while runs are merged.
    for (is_sorted, is_finished) in [(true, false), (false, false), (false, true)] {
        let mut import = table.import().expect("the disk works");
        for row in 0..ROWS {
            let row = if is_sorted { row } else { row * 7 % ROWS };
            import.add(&key(row), &[b'n'; 300]).expect("the disk works");
        }
        if is_finished {
            let outcome = import.finish(|at| match at.total {
                0 => ControlFlow::Continue(()),
                _ => ControlFlow::Break(()),
            });
            assert!(matches!(outcome, Err(Error::Cancelled("the import"))), "{outcome:?}");
        } else {
            drop(import);
        }
        assert_eq!(ssts(&disk), before, "sorted {is_sorted} finished {is_finished}");
        check_whole(&db, &table);
        assert_eq!(table.get(key(3)).expect("the disk works").as_deref(), Some(&[b'v'; 300][..]));
    }
}

#[test]
fn work_that_may_not_begin_changes_nothing() {
    let (db, table, disk, _) = database();
    let before = ssts(&disk);
    let never = |_| ControlFlow::Break(());
    assert!(matches!(table.compact_with(never), Err(Error::Cancelled(_))));
    assert!(matches!(table.check(never), Err(Error::Cancelled(_))));
    assert!(matches!(table.warm_with(.., 1 << 20, never), Err(Error::Cancelled(_))));
    assert!(matches!(db.checkpoint_with("copy", never), Err(Error::Cancelled(_))));
    assert!(matches!(table.import().expect("the disk works").finish(never), Err(Error::Cancelled(_))));
    assert_eq!(ssts(&disk), before);
    check_whole(&db, &table);
}
