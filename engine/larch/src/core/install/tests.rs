//! Runs all kinds of work that change the file set, with a manifest that is due to be replaced, and fails each disk
//! operation in turn. The database must then open again, with every change whose call had succeeded.

use crate::options::LevelOptions;
use crate::{Compression, Database, Error, Result, TableOptions};
use os::sim::SimDisk;
use os::sync::Arc;
use os::{Disk, Machine};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;

const DIRECTORY: &str = "db";

#[derive(Clone, Copy, Debug)]
enum Work {
    Import,
    Clone,
    Split,
    Create,
    Drop,
    Alter,
    Compact,
    Flush,
}

impl Work {
    fn run(self, db: &Database) -> Result<()> {
        let apples = db.existing_table("apples")?.expect("it was prepared");
        match self {
            Self::Import => {
                let mut import = apples.import()?;
                for i in (0..60u32).rev() {
                    import.add(key(2 * i + 1).as_bytes(), b"imported")?;
                }
                import.finish(|_| {}).map(drop)
            }
            Self::Clone => apples.clone_as("cherries").map(drop),
            Self::Split => apples.split_off(key(50), "cherries").map(drop),
            Self::Create => db.table("cherries").map(drop),
            Self::Drop => db.drop_table("beans").map(drop),
            Self::Alter => apples.alter(|options| options.compression = Compression::Lz4),
            Self::Compact => db.compact(),
            Self::Flush => db.flush(),
        }
    }
}

fn key(i: u32) -> String {
    format!("k{i:03}")
}

fn open(disk: &Arc<SimDisk>, slack_bytes: u64) -> Result<Database> {
    let levels = LevelOptions { file_bytes: 1 << 10, ..LevelOptions::default() };
    let machine = Machine::simulated_on(disk.clone(), 1);
    let builder = Database::builder(DIRECTORY).machine(machine).levels(levels);
    builder.write_buffer_bytes(64 << 10).manifest_slack_bytes(slack_bytes).open()
}

/// A database with overlapping files, rows in memory, and a manifest that the next install should replace.
fn prepared() -> (Arc<SimDisk>, Database) {
    // Make the database twice: the first shows how long the manifest gets.
    let prepare = |slack_bytes| -> Result<(Arc<SimDisk>, Database)> {
        let disk = SimDisk::new(1);
        let db = open(&disk, slack_bytes)?;
        let (apples, beans) = (db.table("apples")?, db.table("beans")?);
        for round in 0..2u32 {
            for i in 0..50 {
                apples.insert(key(2 * i + round), format!("value {i} of round {round}"))?;
            }
            beans.insert(key(round), "a bean")?;
            db.flush()?;
        }
        for i in 0..20u8 {
            beans.alter(|options| options.metadata = vec![i; 100])?;
        }
        apples.remove_range(key(20)..key(25))?;
        apples.insert(key(0), "newer")?;
        beans.insert(key(9), "in memory")?;
        Ok((disk, db))
    };
    let (_, db) = prepare(u64::MAX / 2).expect("the disk works");
    let (end, initial) = db.core().writes.manifest.lock().as_ref().expect("it is open for writing").lengths();
    drop(db);
    prepare(end - 2 * initial).expect("the disk works")
}

type State = BTreeMap<String, (TableOptions, Vec<(Vec<u8>, Vec<u8>)>)>;

/// All tables of the database, with their options and rows.
fn state(db: &Database) -> State {
    let rows = |name: &str| {
        let table = db.existing_table(name).expect("it works").expect("it is listed");
        let rows =
            table.iter().map(|row| row.expect("the disk works")).map(|(key, value)| (key.to_vec(), value.to_vec()));
        (table.options(), rows.collect())
    };
    db.tables().into_iter().map(|name| (name.clone(), rows(&name))).collect()
}

fn manifests(disk: &SimDisk) -> Vec<String> {
    let entries = disk.list(Path::new(DIRECTORY)).expect("the disk works");
    entries.into_iter().map(|entry| entry.name).filter(|name| name.starts_with("MANIFEST-")).collect()
}

fn is_stopped(error: &Error) -> bool {
    matches!(error, Error::OutcomeUnknown { .. } | Error::WritesStopped(_))
}

/// Does `work`, whose disk operation number `n` fails. Then opens the database again, and checks that its state is
/// `before` or `after`.
fn check(work: Work, n: u64, before: &State, after: &State) {
    let (disk, db) = prepared();
    if n.is_multiple_of(2) {
        disk.lose_writes_of_failed_syncs();
    }
    disk.fail_operation(n, ErrorKind::Other);
    let outcome = work.run(&db);
    disk.clear_faults();
    let what = || format!("{work:?} with operation {n} failing: {outcome:?}");
    let may_be: &[&State] = match &outcome {
        Ok(()) => &[after],
        Err(error) if is_stopped(error) => &[before, after],
        Err(_) => &[before],
    };
    let now = state(&db);
    assert!(may_be.contains(&&now), "{}: {now:?}", what());
    // A failure must not prevent later work.
    let later = db.existing_table("apples").expect("it works").expect("it is there").insert("later", "a row");
    let flushed = later.and_then(|()| db.flush());
    let has_later = flushed.is_ok();
    match flushed {
        Ok(()) => assert_eq!(db.metrics().leftover_files, 0, "{}", what()),
        Err(error) => assert!(is_stopped(&error), "{}, then {error}", what()),
    }
    drop(db);
    match n % 3 {
        0 => disk.crash_keeping_nothing(),
        1 => disk.crash(),
        _ => {}
    }
    let db = open(&disk, 4 << 20).unwrap_or_else(|error| panic!("{}, then open: {error}", what()));
    let mut now = state(&db);
    let apples = &mut now.get_mut("apples").unwrap_or_else(|| panic!("{}: apples are gone", what())).1;
    let rows = apples.len();
    apples.retain(|(key, _)| key != b"later");
    assert!(!has_later || apples.len() < rows, "{}: the later row is lost", what());
    assert!(may_be.contains(&&now), "{}: opened again, {now:?}", what());
    let report = db.check(|_| {}).expect("the disk works");
    assert!(report.problems.is_empty(), "{}: {:?}", what(), report.problems);
    let entries = disk.list(Path::new(DIRECTORY)).expect("the disk works");
    let files = entries.iter().filter(|entry| entry.name.ends_with(".sst")).count() as u64;
    assert_eq!((files, manifests(&disk).len()), (db.metrics().files, 1), "{}: {entries:?}", what());
}

fn check_all(work: Work) {
    let (disk, db) = prepared();
    let (before, manifest, operations) = (state(&db), manifests(&disk), disk.operation_count());
    work.run(&db).expect("the disk works");
    let operations = disk.operation_count() - operations;
    assert_ne!(manifests(&disk), manifest, "{work:?} renews the manifest");
    let after = state(&db);
    for n in 1..=operations {
        check(work, n, &before, &after);
    }
    println!("{work:?}: {operations} operations");
}

#[test]
fn an_import_that_fails_anywhere_is_whole_or_nothing() {
    check_all(Work::Import);
}

#[test]
fn a_clone_or_a_split_that_fails_anywhere_is_whole_or_nothing() {
    check_all(Work::Clone);
    check_all(Work::Split);
}

#[test]
fn a_change_of_tables_that_fails_anywhere_is_whole_or_nothing() {
    check_all(Work::Create);
    check_all(Work::Drop);
    check_all(Work::Alter);
}

#[test]
fn a_flush_or_a_compaction_that_fails_anywhere_loses_nothing() {
    check_all(Work::Flush);
    check_all(Work::Compact);
}

/// Only operations after the sync of the manifest fail, so the work is done and must not return an error.
#[test]
fn a_manifest_that_cannot_be_renewed_is_renewed_by_a_later_install() {
    let (disk, db) = prepared();
    let (old, operations) = (manifests(&disk), disk.operation_count());
    db.table("cherries").expect("the disk works");
    let operations = disk.operation_count() - operations;
    drop(db);
    // The first three operations append the edits to the manifest, sync them, and append a record which proves that
    // the edits are durable.
    let mut failed = 0;
    for n in 4..=operations {
        let (disk, db) = prepared();
        disk.fail_operation(n, ErrorKind::StorageFull);
        db.table("cherries").unwrap_or_else(|error| panic!("operation {n}: {error}"));
        failed += db.metrics().failed_cleanups;
        db.table("dates").unwrap_or_else(|error| panic!("operation {n}: {error}"));
        assert_eq!(db.metrics().leftover_files, 0, "operation {n}");
        assert!(manifests(&disk).len() == 1 && manifests(&disk) != old, "operation {n}");
    }
    // All these failures are counted except the last one, which hits such a record at the end of the new manifest,
    // where nothing needs it yet.
    assert_eq!(failed, operations - 4, "of {operations} operations");
}
