//! Tests that a checkpoint is either a complete database with a prefix of the commits, or does not exist.

#![allow(clippy::disallowed_methods, reason = "threads of the machine write while checkpoints are made")]

use crate::rows::{Rows, rows};
use larch::{Database, Durability, Error, TableOptions, Version};
use os::sim::SimDisk;
use os::sync::atomic::{AtomicBool, Ordering};
use os::sync::{Arc, Mutex};
use os::{Access, Disk, Machine};
use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::ops::ControlFlow;
use std::path::Path;

const HERE: &str = "db";
const THERE: &str = "copy";

fn open(machine: &Machine, directory: &str) -> larch::Result<Database> {
    Database::builder(directory).machine(machine.clone()).write_buffer_bytes(64 << 10).cache_bytes(1 << 20).open()
}

fn look_at(machine: &Machine, directory: &str) -> larch::Result<Database> {
    Database::builder(directory).machine(machine.clone()).read_only(true).cache_bytes(1 << 20).open()
}

/// The files in a directory with their bytes, except the lock file. Empty if the directory does not exist.
fn files(disk: &SimDisk, directory: &str) -> BTreeMap<String, Vec<u8>> {
    let directory = Path::new(directory);
    let listed = disk.list(directory).unwrap_or_default();
    let names = listed.into_iter().map(|entry| entry.name).filter(|name| name != "LOCK");
    names.map(|name| (name.clone(), disk.read_all(&directory.join(&name)).expect("it is there"))).collect()
}

/// Makes a database with two tables, with rows in files and in memory, older versions in the history of files, range
/// erases, and long values.
fn prepare(machine: &Machine) -> Database {
    let db = open(machine, HERE).expect("the disk works");
    let (a, b) = (db.table("a").expect("a table"), db.table_with("b", small_pages()).expect("a table"));
    let snapshot = db.snapshot();
    for round in 0..3u8 {
        for i in 0..200u32 {
            a.insert(format!("key {i:04}"), [round; 40]).expect("the disk works");
        }
        b.insert(format!("long {round}"), vec![round; 10_000]).expect("the disk works");
        a.remove_range(format!("key {round:04}0")..format!("key {round:04}9")).expect("the disk works");
        db.flush().expect("the disk works");
    }
    drop(snapshot);
    a.remove_range("key 0050".."key 0060").expect("the disk works");
    a.insert("key 0055", "again").expect("the disk works");
    b.insert("only in memory", "yes").expect("the disk works");
    db
}

fn small_pages() -> TableOptions {
    TableOptions { page_bytes: 1 << 10, node_bytes: 1 << 10, ..TableOptions::default() }
}

/// Checks that the copy is sound and has the rows `expected`, also when it is opened read-only and so without a
/// recovery.
fn expect_copy(machine: &Machine, expected: &Rows) {
    let read_only = look_at(machine, THERE).expect("it is a database");
    assert!(rows(&read_only) == *expected, "a look at the copy shows the rows of that moment");
    drop(read_only);
    let copy = open(machine, THERE).expect("it is a database");
    assert_eq!(copy.check(|_| {}).expect("the disk works").problems.len(), 0);
    assert!(rows(&copy) == *expected, "the copy has the rows of that moment");
}

#[test]
fn a_checkpoint_has_every_commit_before_it_and_none_after() {
    let (machine, _) = Machine::simulated(1);
    let db = prepare(&machine);
    let (expected, version) = (rows(&db), db.version());
    let report = db.checkpoint(THERE).expect("the disk works");
    assert_eq!((report.version, report.copied_bytes), (version, 0));
    assert!(report.files > 0 && report.bytes > 0, "{report:?}");
    db.table("a").expect("a table").insert("later", "no").expect("the disk works");
    db.compact().expect("the disk works");
    expect_copy(&machine, &expected);
    let copy = look_at(&machine, THERE).expect("it is a database");
    assert_eq!(copy.version(), version);
}

#[test]
fn a_checkpoint_of_an_empty_database_is_an_empty_database() {
    let (machine, _) = Machine::simulated(2);
    let db = open(&machine, HERE).expect("the disk works");
    db.checkpoint(THERE).expect("the disk works");
    expect_copy(&machine, &Rows::new());
}

#[test]
fn a_copy_and_its_origin_do_not_change_each_other() {
    let (machine, disk) = Machine::simulated(3);
    let db = prepare(&machine);
    let expected = rows(&db);
    db.checkpoint(THERE).expect("the disk works");
    let before = files(&disk, HERE);
    let copy = open(&machine, THERE).expect("it is a database");
    copy.table("a").expect("a table").remove_range("a".."z").expect("the disk works");
    copy.table("c").expect("a table").insert("new", "row").expect("the disk works");
    copy.drop_table("b").expect("the disk works");
    copy.compact().expect("the disk works");
    let in_copy = rows(&copy);
    copy.close().expect("the disk works");
    assert!(files(&disk, HERE) == before, "no byte of the origin has changed");
    assert!(rows(&db) == expected);
    db.table("a").expect("a table").remove_range("a".."z").expect("the disk works");
    db.compact().expect("the disk works");
    db.close().expect("the disk works");
    expect_copy(&machine, &in_copy);
}

#[test]
fn a_directory_with_files_is_refused_and_left_as_it_is() {
    let (machine, disk) = Machine::simulated(4);
    let db = prepare(&machine);
    db.checkpoint(THERE).expect("the disk works");
    let before = files(&disk, THERE);
    for directory in [THERE, HERE] {
        let error = db.checkpoint(directory).expect_err("a database is there");
        assert!(matches!(&error, Error::CopyTarget(path) if path == Path::new(directory)), "{error}");
    }
    assert!(files(&disk, THERE) == before);
}

/// Checks that a checkpoint that may have failed has left a complete copy, or an unfinished one that another
/// checkpoint replaces.
fn expect_all_or_nothing(machine: &Machine, disk: &SimDisk, expected: &Rows) {
    match open(machine, THERE) {
        Ok(copy) => {
            assert!(rows(&copy) == *expected, "what opens is whole");
            assert_eq!(copy.check(|_| {}).expect("the disk works").problems.len(), 0);
        }
        // An unfinished copy can be neither opened nor read.
        Err(error) => {
            assert!(matches!(error, Error::UnfinishedCopy(_)), "{error}");
            assert!(look_at(machine, THERE).is_err(), "nor is it read");
            let db = open(machine, HERE).expect("the origin is whole");
            assert!(rows(&db) == *expected);
            db.checkpoint(THERE).expect("the second attempt removes what the first has left");
            drop(db);
            expect_copy(machine, expected);
        }
    }
    assert!(files(disk, THERE).keys().all(|name| name != "UNFINISHED"));
}

#[test]
fn a_crash_at_any_sync_leaves_no_checkpoint_or_a_whole_one() {
    let (machine, disk) = Machine::simulated(5);
    let db = prepare(&machine);
    let before = disk.sync_count();
    let expected = rows(&db);
    db.checkpoint(THERE).expect("the disk works");
    let syncs = disk.sync_count() - before;
    assert!(syncs >= 5, "{syncs}");
    drop(db);
    let mut whole = 0;
    for seed in 0..8 {
        for n in 1..=syncs {
            let (machine, disk) = Machine::simulated(5);
            let db = prepare(&machine);
            disk.reseed(seed);
            disk.crash_at_sync(n);
            let error = db.checkpoint(THERE).expect_err("the machine has crashed");
            assert!(!error.is_corruption(), "{error}");
            drop(db);
            match seed % 4 {
                0 => disk.crash_keeping_nothing(),
                1 => disk.crash_keeping_everything(),
                _ => disk.crash(),
            }
            if files(&disk, THERE).is_empty() {
                continue;
            }
            whole += u32::from(disk.exists(Path::new("copy/CURRENT")).expect("the disk works"));
            expect_all_or_nothing(&machine, &disk, &expected);
        }
    }
    assert!(whole > 0, "some crashes came when the checkpoint was whole");
}

#[test]
fn a_failed_operation_leaves_no_file_and_no_memory_of_the_checkpoint() {
    let count = {
        let (machine, disk) = Machine::simulated(6);
        let db = prepare(&machine);
        let before = disk.operation_count();
        db.checkpoint(THERE).expect("the disk works");
        disk.operation_count() - before
    };
    let mut ignored = 0;
    for n in 1..=count {
        let (machine, disk) = Machine::simulated(6);
        let db = prepare(&machine);
        let (expected, handles, used) = (rows(&db), disk.open_handles(), disk.used_bytes());
        disk.fail_operation(n, if n % 2 == 0 { ErrorKind::StorageFull } else { ErrorKind::Other });
        let Err(error) = db.checkpoint(THERE) else {
            ignored += 1;
            drop(db);
            expect_copy(&machine, &expected);
            continue;
        };
        assert!(error.to_string().contains("a fault asked for by the test"), "operation {n}: {error}");
        assert!(
            !disk.exists(Path::new(THERE)).expect("the disk works"),
            "operation {n}: {:?}",
            files(&disk, THERE).keys()
        );
        assert_eq!((disk.open_handles(), disk.used_bytes()), (handles, used), "operation {n}");
        db.checkpoint(THERE).expect("the fault has passed");
        drop(db);
        expect_copy(&machine, &expected);
    }
    assert_eq!(ignored, 2, "the proofs in the manifest, without which it is read as well");
}

#[test]
fn a_checkpoint_whose_last_step_fails_and_cannot_be_taken_back_is_whole() {
    let mut whole = 0;
    for n in 1.. {
        let (machine, disk) = Machine::simulated(15);
        let db = prepare(&machine);
        let expected = rows(&db);
        let before = disk.operation_count();
        disk.fail_operations(n..n + 2, ErrorKind::StorageFull);
        let outcome = db.checkpoint(THERE);
        let is_over = disk.operation_count() - before < n;
        disk.clear_faults();
        if disk.exists(Path::new("copy/CURRENT")).expect("the disk works") {
            whole += u32::from(outcome.is_err());
        } else {
            db.checkpoint(THERE).expect("the faults have passed");
        }
        drop(db);
        expect_copy(&machine, &expected);
        if is_over {
            assert_eq!(whole, 1, "the sync after the last step, and the way back");
            return;
        }
    }
}

#[test]
fn a_checkpoint_whose_clean_up_fails_too_is_made_by_the_next_attempt() {
    for n in 1.. {
        let (machine, disk) = Machine::simulated(7);
        let db = prepare(&machine);
        let expected = rows(&db);
        disk.fail_all_after(n, ErrorKind::PermissionDenied);
        let outcome = db.checkpoint(THERE);
        disk.clear_faults();
        if outcome.is_ok() {
            assert!(n > 20, "{n}");
            return;
        }
        if disk.exists(Path::new("copy/CURRENT")).expect("the disk works") {
            // The last sync has failed, and the rename before it could not be undone.
            drop(db);
            expect_copy(&machine, &expected);
            continue;
        }
        if disk.exists(Path::new("copy/UNFINISHED")).expect("the disk works") {
            let error = open(&machine, THERE).expect_err("it is not whole");
            assert!(error.to_string().contains("make the copy again"), "{error}");
        }
        db.checkpoint(THERE).expect("the fault has passed");
        // An earlier attempt may have left files that it could not remove. A later install must not remove them.
        db.table("a").expect("a table").insert("later", "no").expect("the disk works");
        db.flush().expect("the disk works");
        drop(db);
        expect_copy(&machine, &expected);
    }
}

#[test]
fn files_that_cannot_have_a_second_name_are_copied() {
    for kind in [ErrorKind::CrossesDevices, ErrorKind::TooManyLinks, ErrorKind::PermissionDenied] {
        let (machine, disk) = Machine::simulated(8);
        let db = prepare(&machine);
        let expected = rows(&db);
        disk.fail_links(kind);
        let mut told = Vec::new();
        let report = db.checkpoint_with(THERE, |at| told.push((at.done, at.total)));
        let report = report.expect("the disk works");
        assert!(report.copied_bytes == report.bytes && report.bytes > 0, "{report:?}");
        assert_eq!(told.last(), Some(&(report.bytes, report.bytes)));
        disk.clear_faults();
        drop(db);
        expect_copy(&machine, &expected);
    }
}

#[test]
fn a_full_disk_is_an_error_that_names_a_file_and_frees_all_space() {
    let (machine, disk) = Machine::simulated(9);
    let db = prepare(&machine);
    let expected = rows(&db);
    disk.fail_links(ErrorKind::CrossesDevices);
    let used = disk.used_bytes();
    for room in (0..60).map(|step| step * 500) {
        disk.set_capacity(used + room);
        match db.checkpoint(THERE) {
            Ok(_) => break,
            Err(error) => {
                assert!(error.is_disk_full() && error.to_string().contains("copy"), "{error}");
                assert_eq!(disk.used_bytes(), used, "{room} bytes of room");
            }
        }
    }
    disk.set_capacity(u64::MAX);
    disk.clear_faults();
    if !disk.exists(Path::new(THERE)).expect("the disk works") {
        db.checkpoint(THERE).expect("there is room");
    }
    drop(db);
    expect_copy(&machine, &expected);
}

#[test]
fn a_cancelled_checkpoint_leaves_nothing() {
    let (machine, disk) = Machine::simulated(10);
    let db = prepare(&machine);
    let outcome = db.checkpoint_with(THERE, |_| ControlFlow::Break(()));
    assert!(matches!(outcome, Err(Error::Cancelled(_))), "{outcome:?}");
    assert!(!disk.exists(Path::new(THERE)).expect("the disk works"));
}

#[test]
fn a_checkpoint_beside_a_writer_has_the_commits_that_are_only_in_its_log() {
    let (machine, disk) = Machine::simulated(11);
    let db = prepare(&machine);
    let mut batch = db.batch().durability(Durability::Buffered);
    batch.insert(&db.table("a").expect("a table"), "buffered", "yes");
    batch.commit().expect("the disk works");
    let (expected, version) = (rows(&db), db.version());
    let before = files(&disk, HERE);
    let reader = look_at(&machine, HERE).expect("it is a database");
    assert!(reader.version() < version, "reads beside a writer do not show them");
    let report = reader.checkpoint(THERE).expect("the disk works");
    assert_eq!(report.version, version);
    assert!(files(&disk, HERE) == before, "a copy changes nothing of the database");
    assert!(files(&disk, THERE).keys().all(|name| !name.ends_with(".log")), "{:?}", files(&disk, THERE).keys());
    expect_copy(&machine, &expected);
}

#[test]
fn a_checkpoint_beside_a_writer_begins_again_when_a_file_is_gone() {
    let (machine, _) = Machine::simulated(12);
    let db = prepare(&machine);
    let reader = look_at(&machine, HERE).expect("it is a database");
    // The compaction replaces the files of the file set that the reader has read.
    db.table("a").expect("a table").insert("key 0001", "new").expect("the disk works");
    db.compact().expect("the disk works");
    let expected = rows(&db);
    let report = reader.checkpoint(THERE).expect("the disk works");
    assert_eq!(report.version, db.version());
    expect_copy(&machine, &expected);
}

#[test]
fn a_checkpoint_does_not_have_what_is_lost_when_a_log_is_damaged() {
    let (machine, disk) = Machine::simulated(13);
    let db = prepare(&machine);
    db.table("a").expect("a table").insert("last", "row").expect("the disk works");
    let names = files(&disk, HERE);
    let log = names.keys().rfind(|name| name.ends_with(".log") && names[*name].len() > 64).expect("there is a log");
    disk.flip_bit(Path::new(HERE).join(log), 100, 3);
    let reader = look_at(&machine, HERE).expect("it is a database");
    let error = reader.checkpoint(THERE).expect_err("the log is damaged");
    assert!(error.is_corruption(), "{error}");
    assert!(!disk.exists(Path::new(THERE)).expect("the disk works"));
}

/// Writers note the version and the keys of each of their commits. Most commits have one key, and some are so large
/// that their rows go into files at once. A copy at a version must have exactly the keys of all commits up to this
/// version.
#[test]
fn checkpoints_beside_writers_have_exactly_the_commits_up_to_their_version() {
    const WRITERS: u64 = 3;
    const CHECKPOINTS: usize = 12;
    let scratch = tempfile::tempdir().expect("there is room");
    let here = scratch.path().join("db");
    let db = Database::builder(&here).write_buffer_bytes(64 << 10).open().expect("the disk works");
    let table = db.table("t").expect("a table");
    let first = db.version();
    let committed = Mutex::new(BTreeMap::<Version, Vec<String>>::new());
    let is_over = AtomicBool::new(false);
    let copies: Vec<_> = std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (db, table, committed, is_over) = (&db, &table, &committed, &is_over);
            scope.spawn(move || {
                for n in 0u64.. {
                    if is_over.load(Ordering::Relaxed) {
                        return;
                    }
                    let count = if writer == 0 && n % 50 == 0 { 200 } else { 1 };
                    let keys: Vec<String> = (0..count).map(|i| format!("{writer} {n:08} {i:03}")).collect();
                    let mut batch = db.batch();
                    keys.iter().for_each(|key| batch.insert(table, key, vec![writer as u8; n as usize % 300]));
                    let version = batch.submit().expect("the disk works").version();
                    assert!(committed.lock().insert(version, keys).is_none(), "each commit has its version");
                }
            });
        }
        let make = |i: usize| {
            let there = scratch.path().join(format!("copy {i}"));
            let before = db.version();
            let version = db.checkpoint(&there).expect("the disk works").version;
            assert!(version >= before, "what was visible before is in it");
            (there, version)
        };
        let copies = (0..CHECKPOINTS).map(make).collect();
        is_over.store(true, Ordering::Relaxed);
        copies
    });
    let committed = committed.into_inner();
    for (there, version) in copies {
        let copy = Database::builder(&there).read_only(true).open().expect("it is a database");
        let found: BTreeSet<String> = {
            let table = copy.existing_table("t").expect("a name").expect("it is there");
            table.iter().map(|row| String::from_utf8(row.expect("the disk works").0.to_vec()).expect("text")).collect()
        };
        let commits = committed.range(first..=version);
        assert_eq!(commits.clone().count() as u64, version.0 - first.0, "a commit for each version");
        let expected: BTreeSet<String> = commits.flat_map(|(_, keys)| keys).cloned().collect();
        assert!(found == expected, "the copy at {version:?} has the commits up to it");
        assert!(copy.check(|_| {}).expect("the disk works").problems.is_empty());
    }
}

#[test]
fn an_unfinished_copy_is_not_opened_and_not_taken_for_an_empty_directory() {
    let (machine, disk) = Machine::simulated(14);
    disk.create_dir(Path::new(THERE)).expect("the disk works");
    disk.open(Path::new("copy/UNFINISHED"), Access::Create).expect("the disk works");
    for opened in [open(&machine, THERE), look_at(&machine, THERE)] {
        assert!(matches!(opened, Err(Error::UnfinishedCopy(_))), "{opened:?}");
    }
    let _: Arc<SimDisk> = disk;
}

#[test]
fn two_checkpoints_into_one_directory_do_not_meet() {
    let (machine, disk) = Machine::simulated(16);
    let db = prepare(&machine);
    let (expected, mut tried) = (rows(&db), 0);
    let report = db.checkpoint_with(THERE, |_| {
        tried += 1;
        let error = db.checkpoint(THERE).expect_err("one is being made there");
        assert!(matches!(&error, Error::CopyLocked(path) if path == Path::new(THERE)), "{error}");
        assert!(open(&machine, THERE).is_err() && look_at(&machine, THERE).is_err(), "it is no database yet");
    });
    report.expect("the second has changed nothing");
    assert!(tried > 0);
    disk.create_dir(Path::new("other")).expect("the disk works");
    let lock = disk.lock(Path::new("other/LOCK")).expect("nobody has it");
    assert!(matches!(db.checkpoint("other"), Err(Error::CopyLocked(_))));
    drop(lock);
    db.checkpoint("other").expect("a lock that nobody holds is no other file");
    drop(db);
    expect_copy(&machine, &expected);
}

#[test]
fn a_checkpoint_beside_a_writer_is_not_newer_than_the_database_after_a_crash() {
    let (machine, disk) = Machine::simulated(17);
    let db = prepare(&machine);
    let mut batch = db.batch().durability(Durability::Buffered);
    batch.insert(&db.table("a").expect("a table"), "buffered", "yes");
    batch.commit().expect("the disk works");
    let expected = rows(&db);
    look_at(&machine, HERE).and_then(|reader| reader.checkpoint(THERE)).expect("the disk works");
    disk.crash_at_sync(1);
    db.flush().expect_err("the machine has crashed");
    drop(db);
    disk.crash_keeping_nothing();
    assert!(
        rows(&open(&machine, HERE).expect("it is whole")) == expected,
        "what the copy has is durable in its origin"
    );
    expect_copy(&machine, &expected);
}

#[test]
fn a_checkpoint_beside_a_writer_has_no_log_whatever_fails() {
    for n in 1.. {
        let (machine, disk) = Machine::simulated(18);
        let db = prepare(&machine);
        let (expected, reader) = (rows(&db), look_at(&machine, HERE).expect("it is a database"));
        let before = disk.operation_count();
        disk.fail_operation(n, ErrorKind::StorageFull);
        let outcome = reader.checkpoint(THERE);
        let is_over = disk.operation_count() - before < n;
        disk.clear_faults();
        match outcome {
            Err(error) => assert!(!disk.exists(Path::new(THERE)).expect("the disk works"), "operation {n}: {error}"),
            Ok(_) => {
                assert!(files(&disk, THERE).keys().all(|name| !name.ends_with(".log")), "operation {n}");
                expect_copy(&machine, &expected);
            }
        }
        if is_over {
            return;
        }
    }
}
