//! Tests of opening and dropping databases and their handles. No rows, space or writers may be lost on the way.

#![allow(clippy::disallowed_methods, reason = "one test needs writers beside an import")]

use larch::{Database, Durability, Error};
use os::sim::SimDisk;
use os::{Disk, Machine};
use std::path::Path;
use std::sync::Arc;

const DIRECTORY: &str = "db";

fn open(machine: &Machine) -> larch::Result<Database> {
    Database::builder(DIRECTORY).machine(machine.clone()).write_buffer_bytes(64 << 10).cache_bytes(1 << 20).open()
}

fn ssts(disk: &SimDisk) -> usize {
    let entries = disk.list(Path::new(DIRECTORY)).expect("the directory is there");
    entries.iter().filter(|entry| entry.name.ends_with(".sst")).count()
}

#[test]
fn a_directory_without_current_is_refused_while_it_has_logs_or_files() {
    let (machine, disk) = Machine::simulated(1);
    let db = open(&machine).expect("a new database");
    db.table("t").expect("a table").insert("k", "v").expect("a row");
    drop(db);
    disk.remove(&Path::new(DIRECTORY).join("CURRENT")).expect("it is there");
    let names = || disk.list(Path::new(DIRECTORY)).expect("the directory is there");
    let before = names();
    let error = open(&machine).expect_err("acknowledged rows are in the log");
    assert!(error.is_corruption() && error.to_string().contains("CURRENT"), "{error}");
    assert_eq!(names(), before, "nothing was touched");
}

#[test]
fn a_missing_log_is_corruption_and_not_an_empty_one() {
    let (machine, disk) = Machine::simulated(2);
    let db = open(&machine).expect("a new database");
    db.table("t").expect("a table").insert("k", "v").expect("a row");
    drop(db);
    let entries = disk.list(Path::new(DIRECTORY)).expect("the directory is there");
    let log = entries.iter().find(|entry| entry.name.ends_with(".log")).expect("a log");
    disk.remove(&Path::new(DIRECTORY).join(&log.name)).expect("it is there");
    let error = open(&machine).expect_err("the row is gone");
    assert!(error.is_corruption() && error.to_string().contains(&log.name), "{error}");
}

#[test]
fn a_durable_drop_makes_the_buffered_commits_before_it_durable() {
    let (machine, disk) = Machine::simulated(3);
    let db = open(&machine).expect("a new database");
    let (a, b) = (db.table("a").expect("a table"), db.table("b").expect("a table"));
    b.insert("k", "v").expect("a row");
    let mut copy = db.batch().durability(Durability::Buffered);
    copy.insert(&a, "k", "v");
    copy.commit().expect("a copy");
    assert!(db.drop_table("b").expect("the disk works"));
    disk.crash_keeping_nothing();
    drop((a, b, db));
    let db = open(&machine).expect("it recovers");
    assert_eq!(db.tables(), ["a"]);
    assert!(
        db.table("a").expect("a table").contains_key("k").expect("the disk works"),
        "the copy came before the drop"
    );
}

#[test]
fn a_dropped_table_is_refused_and_its_id_is_not_given_again() {
    let (machine, _) = Machine::simulated(4);
    let db = open(&machine).expect("a new database");
    let old = db.table("t").expect("a table");
    old.insert("k", "old").expect("a row");
    assert!(db.drop_table("t").expect("the disk works"));
    assert!(matches!(old.insert("k", "lost"), Err(Error::TableDropped(_))));
    assert!(matches!(old.get("k"), Err(Error::TableDropped(_))));
    drop((old, db));
    let db = open(&machine).expect("it opens");
    let new = db.table("t").expect("a table");
    assert!(new.get("k").expect("the disk works").is_none(), "the old table's row does not come back");
    new.insert("k", "new").expect("a row");
    db.flush().expect("the disk works");
    assert_eq!(new.get("k").expect("the disk works").as_deref(), Some(&b"new"[..]));
}

#[test]
fn an_idle_range_keeps_no_file_that_compaction_replaced() {
    let (machine, disk) = Machine::simulated(5);
    let db = open(&machine).expect("a new database");
    let table = db.table("t").expect("a table");
    for round in 0..4 {
        for i in 0..200 {
            table.insert(format!("k{i:03}"), format!("{round} {i}")).expect("a row");
        }
        db.flush().expect("the disk works");
    }
    let mut range = table.iter();
    let first = range.next().expect("there are rows").expect("the disk works");
    let last = range.next_back().expect("there are rows").expect("the disk works");
    db.compact().expect("the disk works");
    assert_eq!(ssts(&disk) as u64, db.metrics().files, "what the range looked at is gone");
    let left: Vec<_> = range.map(|row| row.expect("the disk works").0).collect();
    assert_eq!((&first.0[..], &last.0[..], left.len()), (&b"k000"[..], &b"k199"[..], 198), "the range goes on");
}

#[test]
fn a_long_log_is_recovered_in_parts_that_fit_the_write_buffer() {
    let (machine, _) = Machine::simulated(6);
    let large = Database::builder(DIRECTORY).machine(machine.clone()).write_buffer_bytes(8 << 20).open();
    let large = large.expect("a new database");
    let table = large.table("t").expect("a table");
    for i in 0..2000 {
        table.insert(format!("k{i:04}"), [7; 100]).expect("a row");
    }
    drop((table, large));
    let levels = larch::options::LevelOptions { level0_files: 100, slow_files: 100, ..Default::default() };
    let small = Database::builder(DIRECTORY).machine(machine).write_buffer_bytes(64 << 10).levels(levels).open();
    let small = small.expect("it recovers");
    let table = small.table("t").expect("a table");
    let stats = table.stats().expect("the table is there");
    assert!(stats.files > 7, "{} files hold about 280 KiB of memtables in parts of 32 KiB", stats.files);
    assert_eq!(table.iter().count(), 2000);
}

#[test]
fn after_the_due_compactions_nothing_is_left_to_compact() {
    let (machine, _) = Machine::simulated(7);
    let open = |level0_files| {
        let levels = larch::options::LevelOptions { level0_files, slow_files: 100, ..Default::default() };
        Database::builder(DIRECTORY).machine(machine.clone()).levels(levels).open().expect("a database")
    };
    let db = open(100);
    let table = db.table("t").expect("a table");
    for flush in 0..10 {
        table.insert("first", format!("{flush}")).expect("a row");
        table.insert("last", format!("{flush}")).expect("a row");
        db.flush().expect("the disk works");
    }
    let level0 = |db: &Database| {
        let stats = db.table("t").expect("a table").stats().expect("the table is there");
        stats.levels.iter().filter(|level| level.level == 0).map(|level| level.files).sum::<u64>()
    };
    assert_eq!(level0(&db), 10);
    db.close().expect("the disk works");
    drop(table);

    let db = open(4);
    db.table("t").expect("a table").insert("middle", "not in a file").expect("a row");
    db.compact_due().expect("the disk works");
    assert!(level0(&db) < 4, "{} files of level 0", level0(&db));
    let metrics = db.metrics();
    db.compact_due().expect("the disk works");
    let again = db.metrics();
    assert_eq!((again.compactions, again.trivial_moves), (metrics.compactions, metrics.trivial_moves));
    assert_eq!(db.table("t").expect("a table").iter().count(), 3);
}

#[test]
fn an_import_beside_writers_flushes_once_and_ends() {
    let scratch = kit::Scratch::new("import-beside");
    let db = Database::builder(scratch.path()).durability(Durability::Buffered).open().expect("a new database");
    let table = db.table("t").expect("a table");
    table.insert("first", "row").expect("a row");
    let mut import = table.import().expect("an import");
    for i in 0..1000 {
        import.add(format!("import{i:04}").as_bytes(), b"v").expect("a row");
    }
    let stop = Arc::new(os::sync::atomic::AtomicBool::new(false));
    let flushes = std::thread::scope(|scope| {
        for writer in 0..2 {
            let (table, stop) = (table.clone(), stop.clone());
            scope.spawn(move || {
                let mut i = 0u64;
                while !stop.load(os::sync::atomic::Ordering::Relaxed) {
                    i += 1;
                    table.insert(format!("w{writer} {i}"), "v").expect("a row");
                }
            });
        }
        let before = db.metrics().flushes;
        import.finish(|_| {}).expect("it ends");
        let flushes = db.metrics().flushes - before;
        stop.store(true, os::sync::atomic::Ordering::Relaxed);
        flushes
    });
    assert!(flushes <= 2, "{flushes} flushes for one import");
    assert_eq!(table.prefix("import").count(), 1000);
}

#[test]
fn a_snapshot_of_another_database_is_refused_by_every_read() {
    use larch::Readable;
    let ((here, _), (there, _)) = (Machine::simulated(7), Machine::simulated(8));
    let (mine, theirs) = (open(&here).expect("a database"), open(&there).expect("a database"));
    let table = theirs.table("t").expect("a table");
    table.insert("k", "v").expect("a row");
    let snapshot = mine.snapshot();
    assert!(matches!(snapshot.get(&table, "k"), Err(Error::ForeignTable(_))));
    assert!(matches!(snapshot.iter(&table).next(), Some(Err(Error::ForeignTable(_)))));
}
