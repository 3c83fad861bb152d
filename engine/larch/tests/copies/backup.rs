//! Tests that backups share files, and that each backup is either complete or does not exist.

use crate::rows::{Rows, rows};
use larch::backup::Backups;
use larch::{Database, Error, Version};
use os::sim::SimDisk;
use os::sync::Arc;
use os::{Disk, Machine};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::ops::ControlFlow;
use std::path::Path;

const HERE: &str = "db";
const KEPT: &str = "kept";
const THERE: &str = "restored";

fn open(machine: &Machine, directory: &str) -> larch::Result<Database> {
    Database::builder(directory).machine(machine.clone()).write_buffer_bytes(64 << 10).cache_bytes(1 << 20).open()
}

fn backups(machine: &Machine) -> Backups {
    Backups::at(KEPT).on(machine)
}

/// Adds the rows of a round, which go into a file of their own.
fn add(db: &Database, round: u8) {
    let table = db.table("t").expect("a table");
    for i in 0..300u32 {
        table.insert(format!("{round} {i:04}"), [round; 50]).expect("the disk works");
    }
    db.flush().expect("the disk works");
    table.insert(format!("{round} in memory"), "yes").expect("the disk works");
}

/// All files in `directory` and its subdirectories with their bytes, except lock files.
fn files(disk: &SimDisk, directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in disk.list(directory).expect("it is there") {
        let path = directory.join(&entry.name);
        if entry.name == "LOCK" {
            continue;
        }
        match disk.read_all(&path) {
            Ok(bytes) => _ = all.insert(path.display().to_string(), bytes),
            Err(_) => all.append(&mut files(disk, &path)),
        }
    }
    all
}

fn expect_restored(machine: &Machine, number: Option<u64>, expected: &Rows) {
    let is_free = |there: &String| !machine.disk.exists(Path::new(there)).expect("the disk works");
    let there = (0..).map(|i| format!("{THERE} {i}")).find(is_free).expect("some name is free");
    backups(machine).restore(number, &there, |_| {}).expect("the backup is whole");
    let db = open(machine, &there).expect("it is a database");
    assert!(rows(&db) == *expected, "the rows of backup {number:?}");
    assert!(db.check(|_| {}).expect("the disk works").problems.is_empty());
}

fn expect_sound(machine: &Machine, numbers: &[u64]) {
    let listed = backups(machine).list().expect("the disk works");
    assert_eq!(listed.iter().map(|info| info.number).collect::<Vec<_>>(), numbers);
    let report = backups(machine).verify(|_| {}).expect("the disk works");
    assert!(report.problems.is_empty(), "{:?}", report.problems);
}

#[test]
fn each_backup_is_restored_as_it_was_and_copies_only_new_files() {
    let (machine, disk) = Machine::simulated(1);
    let db = open(&machine, HERE).expect("the disk works");
    let mut made = Vec::new();
    for round in 0..4u8 {
        add(&db, round);
        let before = disk.counts().write_bytes;
        let report = db.backup(KEPT).expect("the disk works");
        let written = disk.counts().write_bytes - before;
        assert_eq!((report.number, report.version), (u64::from(round) + 1, db.version()));
        // New are the file of the flush, the file with the row from memory, and the manifest. The directory of the
        // backups already has all older files.
        assert_eq!((report.files, report.new_files), (u64::from(round) + 3, 3), "{report:?}");
        assert!(report.new_bytes <= written && written < report.new_bytes + 2_000, "{report:?}, {written} written");
        assert!(report.new_bytes < report.bytes || round == 0);
        made.push((report.number, rows(&db), report.version));
    }
    expect_sound(&machine, &[1, 2, 3, 4]);
    for (number, expected, version) in &made {
        expect_restored(&machine, Some(*number), expected);
        let info = &backups(&machine).list().expect("the disk works")[*number as usize - 1];
        assert_eq!((info.number, info.version), (*number, *version));
    }
    expect_restored(&machine, None, &made[3].1);
}

#[test]
fn a_restored_database_has_the_files_of_its_origin_byte_by_byte() {
    let (machine, disk) = Machine::simulated(2);
    let db = open(&machine, HERE).expect("the disk works");
    add(&db, 0);
    db.flush().expect("the disk works");
    db.backup(KEPT).expect("the disk works");
    backups(&machine).restore(None, THERE, |_| {}).expect("the backup is whole");
    let ssts = |directory: &str| -> BTreeMap<String, Vec<u8>> {
        let all = files(&disk, Path::new(directory));
        let all = all.into_iter().filter(|(path, _)| path.ends_with(".sst"));
        all.map(|(path, bytes)| (path.rsplit('/').next().expect("a name").to_owned(), bytes)).collect()
    };
    assert!(!ssts(HERE).is_empty());
    assert!(ssts(HERE) == ssts(THERE));
}

#[test]
fn old_backups_go_with_the_files_that_only_they_have() {
    let (machine, disk) = Machine::simulated(3);
    let db = open(&machine, HERE).expect("the disk works");
    for round in 0..4 {
        add(&db, round);
        db.backup(KEPT).expect("the disk works");
        db.compact().expect("the disk works");
    }
    let expected = rows(&db);
    db.backup(KEPT).expect("the disk works");
    let before = disk.used_bytes();
    assert_eq!(backups(&machine).keep(2).expect("the disk works"), [1, 2, 3]);
    assert!(disk.used_bytes() < before);
    expect_sound(&machine, &[4, 5]);
    expect_restored(&machine, Some(5), &expected);
    assert_eq!(backups(&machine).keep(2).expect("the disk works"), [0; 0]);
    let report = db.backup(KEPT).expect("the disk works");
    assert_eq!((report.number, report.new_files), (6, 1), "the manifest is all that is new");
    // Each file that is left belongs to a backup.
    backups(&machine).keep(1).expect("the disk works");
    let report = backups(&machine).verify(|_| {}).expect("the disk works");
    assert_eq!(files(&disk, Path::new(KEPT)).len() as u64, report.files + 1, "and there is its list");
}

#[test]
fn a_backup_that_cannot_be_read_is_removed_only_if_enough_newer_ones_are_whole() {
    let (machine, disk) = Machine::simulated(14);
    let (db, _) = prepare(&machine);
    disk.flip_bit("kept/backup-1/LIST", 30, 1);
    assert_eq!(backups(&machine).keep(3).expect("the disk works"), [0; 0], "two are whole");
    assert_eq!(backups(&machine).keep(2).expect("the disk works"), [1]);
    // With this bit, the format version of the list is one that only a newer release writes.
    disk.flip_bit("kept/backup-2/LIST", 8, 1);
    db.backup(KEPT).expect("the disk works");
    assert_eq!(backups(&machine).keep(1).expect("the disk works"), [3], "a newer release made backup 2");
    disk.flip_bit("kept/backup-2/LIST", 8, 1);
    expect_sound(&machine, &[2, 4]);
}

/// Makes three backups. The tests then call an [`Act`]. Whatever fails in it, the backups that it does not remove
/// must stay complete.
fn prepare(machine: &Machine) -> (Database, Vec<Rows>) {
    let db = open(machine, HERE).expect("the disk works");
    let mut made = Vec::new();
    for round in 0..3 {
        add(&db, round);
        db.backup(KEPT).expect("the disk works");
        made.push(rows(&db));
        db.compact().expect("the disk works");
    }
    add(&db, 3);
    (db, made)
}

/// A call that makes or removes backups, and how many of the first three backups it leaves.
type Act = (fn(&Machine, &Database) -> larch::Result<()>, usize);

const ACTS: [Act; 2] = [(|_, db| db.backup(KEPT).map(drop), 3), (|machine, _| backups(machine).keep(1).map(drop), 1)];

/// Checks that each backup is complete, that the newest `stay` of the first three exist, and that another backup
/// can be made.
fn expect_whole_backups(machine: &Machine, disk: &SimDisk, made: &[Rows], stay: usize) {
    let db = open(machine, HERE).expect("the database is whole");
    let listed = backups(machine).list().expect("the disk works");
    let numbers: Vec<u64> = listed.iter().map(|info| info.number).collect();
    assert!(listed.iter().all(|info| info.damage.is_none()), "{listed:?}");
    for number in 4 - stay as u64..=3 {
        assert!(numbers.contains(&number), "backup {number} of {numbers:?}");
    }
    expect_sound(machine, &numbers);
    for &number in numbers.iter().filter(|number| **number <= 3) {
        expect_restored(machine, Some(number), &made[number as usize - 1]);
    }
    if numbers.contains(&4) {
        expect_restored(machine, Some(4), &rows(&db));
    }
    let report = db.backup(KEPT).expect("the disk works");
    expect_restored(machine, Some(report.number), &rows(&db));
    let report = backups(machine).verify(|_| {}).expect("the disk works");
    assert!(report.unfinished.is_empty(), "the backup has removed what was left");
    assert_eq!(files(disk, Path::new(KEPT)).len() as u64, report.files + report.backups, "nothing else is left");
}

#[test]
fn a_crash_at_any_sync_leaves_whole_backups() {
    for (act, stay) in ACTS {
        let syncs = {
            let (machine, disk) = Machine::simulated(4);
            let (db, _) = prepare(&machine);
            let before = disk.sync_count();
            act(&machine, &db).expect("the disk works");
            disk.sync_count() - before
        };
        for n in 1..=syncs {
            for seed in 0..4 {
                let (machine, disk) = Machine::simulated(4);
                let (db, made) = prepare(&machine);
                disk.reseed(seed);
                disk.crash_at_sync(n);
                act(&machine, &db).expect_err("the machine has crashed");
                drop(db);
                match seed {
                    0 => disk.crash_keeping_nothing(),
                    1 => disk.crash_keeping_everything(),
                    _ => disk.crash(),
                }
                expect_whole_backups(&machine, &disk, &made, stay);
            }
        }
    }
}

#[test]
fn a_failed_operation_leaves_whole_backups_and_nothing_else() {
    for ((act, stay), proofs) in ACTS.into_iter().zip([2, 0]) {
        let operations = {
            let (machine, disk) = Machine::simulated(5);
            let (db, _) = prepare(&machine);
            let before = disk.operation_count();
            act(&machine, &db).expect("the disk works");
            disk.operation_count() - before
        };
        let mut ignored = 0;
        for n in 1..=operations {
            // Only this operation fails, or the next one, too, or all later ones, so that nothing can be cleaned up.
            for count in [1, 2, u64::MAX] {
                let (machine, disk) = Machine::simulated(5);
                let (db, made) = prepare(&machine);
                let handles = disk.open_handles();
                match count {
                    u64::MAX => disk.fail_all_after(n - 1, ErrorKind::PermissionDenied),
                    _ => disk.fail_operations(n..n + count, ErrorKind::StorageFull),
                }
                let outcome = act(&machine, &db);
                // A failure to append a proof to the manifest is ignored, because the manifest can be read without
                // it.
                ignored += u32::from(outcome.is_ok() && count == 1);
                if let Err(error) = outcome {
                    assert!(error.to_string().contains("a fault asked for"), "operation {n}: {error}");
                }
                assert_eq!(disk.open_handles(), handles);
                disk.clear_faults();
                drop(db);
                expect_whole_backups(&machine, &disk, &made, stay);
            }
        }
        assert_eq!(ignored, proofs);
    }
}

#[test]
fn a_crash_or_a_failed_operation_of_a_restore_leaves_no_database_or_a_whole_one() {
    let restore = |machine: &Machine| backups(machine).restore(Some(2), THERE, |_| {}).map(drop);
    let prepared = || {
        let (machine, disk) = Machine::simulated(6);
        let (db, made) = prepare(&machine);
        drop(db);
        (machine, disk, made)
    };
    let (machine, disk, _) = prepared();
    let (syncs, operations) = (disk.sync_count(), disk.operation_count());
    restore(&machine).expect("the disk works");
    let (syncs, operations) = (disk.sync_count() - syncs, disk.operation_count() - operations);
    let expect = |machine: &Machine, made: &[Rows]| {
        if machine.disk.exists(&Path::new(THERE).join("CURRENT")).expect("the disk works") {
            assert!(rows(&open(machine, THERE).expect("it is whole")) == made[1]);
            return;
        }
        if machine.disk.list(Path::new(THERE)).is_ok_and(|all| all.iter().any(|entry| entry.name != "LOCK")) {
            assert!(matches!(open(machine, THERE), Err(Error::UnfinishedCopy(_))));
        }
        restore(machine).expect("the second attempt removes what the first has left");
        assert!(rows(&open(machine, THERE).expect("it is whole")) == made[1]);
    };
    for n in 1..=syncs {
        let (machine, disk, made) = prepared();
        disk.crash_at_sync(n);
        restore(&machine).expect_err("the machine has crashed");
        disk.crash();
        expect(&machine, &made);
    }
    for n in 1..=operations {
        let (machine, disk, made) = prepared();
        disk.fail_operation(n, ErrorKind::StorageFull);
        restore(&machine).expect_err("an operation fails");
        assert!(!disk.exists(Path::new(THERE)).expect("the disk works"), "operation {n}");
        disk.fail_all_after(n - 1, ErrorKind::StorageFull);
        restore(&machine).expect_err("all operations fail");
        disk.clear_faults();
        expect(&machine, &made);
    }
}

#[test]
fn damage_of_any_file_is_found_and_refused() {
    let (machine, disk) = Machine::simulated(7);
    let (db, made) = prepare(&machine);
    drop(db);
    for path in files(&disk, Path::new(KEPT)).into_keys() {
        let whole = disk.image();
        let machine = Machine::simulated_on(whole.clone(), 7);
        let bytes = whole.read_all(Path::new(&path)).expect("it is there").len() as u64;
        let damage: [&dyn Fn(&SimDisk); 3] =
            [&|disk| disk.flip_bit(&path, bytes / 2, 5), &|disk| disk.flip_bit(&path, bytes - 1, 0), &|disk| {
                disk.open(Path::new(&path), os::Access::Write)
                    .and_then(|file| file.set_len(bytes - 1))
                    .expect("it is there")
            }];
        for damage in damage {
            let image = whole.image();
            let machine = Machine::simulated_on(image.clone(), 7);
            damage(&image);
            expect_found(&machine, &path, &made);
        }
        if !path.ends_with("LIST") {
            whole.remove(Path::new(&path)).expect("it is there");
            expect_found(&machine, &path, &made);
        }
    }
}

/// Checks that a verification reports damage of `path`, that the backups that it names cannot be restored, and that
/// all others can.
fn expect_found(machine: &Machine, path: &str, made: &[Rows]) {
    let report = backups(machine).verify(|_| {}).expect("damage is no error");
    let [problem] = &report.problems[..] else { panic!("one file is damaged: {:?}", report.problems) };
    assert_eq!(problem.file, Path::new(path));
    assert!(problem.to_string().contains(path) && !problem.backups.is_empty(), "{problem}");
    for number in 1..=3 {
        if problem.backups.contains(&number) {
            let error = backups(machine).restore(Some(number), THERE, |_| {}).expect_err("it is damaged");
            assert!(error.is_corruption() && error.to_string().contains(path), "{error}");
            assert!(!machine.disk.exists(Path::new(THERE)).expect("the disk works"));
        } else {
            expect_restored(machine, Some(number), &made[number as usize - 1]);
        }
    }
}

#[test]
fn while_a_list_is_damaged_no_file_that_it_may_name_is_removed() {
    let (machine, disk) = Machine::simulated(8);
    let (db, _) = prepare(&machine);
    let whole = disk.read_all(Path::new("kept/backup-2/LIST")).expect("it is there");
    disk.flip_bit("kept/backup-2/LIST", 30, 1);
    db.backup(KEPT).expect("a damaged backup does not keep others from being made");
    let listed = backups(&machine).list().expect("the disk works");
    assert!(listed[1].damage.as_ref().is_some_and(|why| why.contains("backup-2/LIST")), "{listed:?}");
    disk.flip_bit("kept/backup-2/LIST", 30, 1);
    assert!(disk.read_all(Path::new("kept/backup-2/LIST")).expect("it is there") == whole);
    expect_sound(&machine, &[1, 2, 3, 4]);
}

#[test]
fn a_file_that_was_lost_is_copied_again_for_the_next_backup() {
    let (machine, disk) = Machine::simulated(9);
    let db = open(&machine, HERE).expect("the disk works");
    add(&db, 0);
    db.backup(KEPT).expect("the disk works");
    let copied = disk.list(Path::new("db")).expect("it is there").into_iter().map(|entry| entry.name);
    let copied = copied.filter(|name| name.ends_with(".sst")).find_map(|name| {
        let path = Path::new("kept/backup-1").join(name);
        disk.exists(&path).expect("the disk works").then_some(path)
    });
    disk.remove(&copied.expect("a file that was copied")).expect("it is there");
    db.backup(KEPT).expect("the disk works");
    let problems = backups(&machine).verify(|_| {}).expect("damage is no error").problems;
    assert!(problems.len() == 1 && problems[0].backups == [1], "{problems:?}");
    expect_restored(&machine, None, &rows(&db));
    backups(&machine).keep(1).expect("the disk works");
    expect_sound(&machine, &[2]);
}

#[test]
fn files_of_copies_that_went_on_apart_do_not_get_mixed() {
    let (machine, _) = Machine::simulated(10);
    let db = open(&machine, HERE).expect("the disk works");
    add(&db, 0);
    db.close().expect("the disk works");
    let db = open(&machine, HERE).expect("the disk works");
    db.checkpoint("twin").expect("the disk works");
    db.close().expect("the disk works");
    // Both databases are opened again, and make new files with the same numbers and the same epoch.
    let mut made = Vec::new();
    for (directory, round) in [(HERE, 1), ("twin", 2)] {
        let db = open(&machine, directory).expect("the disk works");
        add(&db, round);
        db.backup(KEPT).expect("a copy has the identity of its origin");
        made.push(rows(&db));
    }
    expect_restored(&machine, Some(1), &made[0]);
    expect_restored(&machine, Some(2), &made[1]);
}

#[test]
fn a_directory_of_something_else_is_refused() {
    let (machine, disk) = Machine::simulated(11);
    let db = open(&machine, HERE).expect("the disk works");
    add(&db, 0);
    let before = files(&disk, Path::new(HERE));
    let error = db.backup(HERE).expect_err("a database is there");
    assert!(matches!(error, Error::NotBackups { .. }), "{error}");
    assert!(files(&disk, Path::new(HERE)) == before);
    db.backup(KEPT).expect("the disk works");
    let other = open(&machine, "other").expect("the disk works");
    let error = other.backup(KEPT).expect_err("these are of another database");
    assert!(matches!(error, Error::OtherDatabase(_)), "{error}");
    let error = backups(&machine).restore(Some(7), THERE, |_| {}).expect_err("there is one");
    assert!(error.to_string().contains("no backup 7; choose from 1"), "{error}");
    let lock = disk.lock(Path::new("kept/LOCK")).expect("nobody has it");
    assert!(matches!(db.backup(KEPT), Err(Error::BackupsLocked(_))));
    drop(lock);
    db.backup(KEPT).expect("the disk works");
    expect_sound(&machine, &[1, 2]);
}

#[test]
fn a_cancelled_backup_leaves_the_others_and_nothing_else() {
    let (machine, disk) = Machine::simulated(12);
    let (db, made) = prepare(&machine);
    let before = files(&disk, Path::new(KEPT));
    let stops = |_| ControlFlow::Break(());
    let outcome = db.backup_to(&backups(&machine), stops);
    assert!(matches!(outcome, Err(Error::Cancelled(_))), "{outcome:?}");
    assert!(files(&disk, Path::new(KEPT)) == before);
    assert!(matches!(backups(&machine).verify(stops), Err(Error::Cancelled(_))));
    assert!(matches!(backups(&machine).restore(None, THERE, stops), Err(Error::Cancelled(_))));
    assert!(!disk.exists(Path::new(THERE)).expect("the disk works"));
    drop(db);
    expect_whole_backups(&machine, &disk, &made, 3);
}

#[test]
fn a_backup_beside_a_writer_has_the_commits_that_are_only_in_its_log() {
    let (machine, disk): (Machine, Arc<SimDisk>) = Machine::simulated(13);
    let db = open(&machine, HERE).expect("the disk works");
    add(&db, 0);
    let (expected, version) = (rows(&db), db.version());
    let before = files(&disk, Path::new(HERE));
    let reader = Database::builder(HERE).machine(machine.clone()).read_only(true).open().expect("it is a database");
    let report = reader.backup(KEPT).expect("the disk works");
    assert_eq!(report.version, version);
    assert!(version > Version(0));
    assert!(files(&disk, Path::new(HERE)) == before, "a backup changes nothing of the database");
    expect_restored(&machine, None, &expected);
}

#[test]
fn a_backup_of_a_database_that_lacks_a_file_is_an_error() {
    let (machine, disk) = Machine::simulated(15);
    let db = open(&machine, HERE).expect("the disk works");
    add(&db, 0);
    db.close().expect("the disk works");
    let lost = files(&disk, Path::new(HERE)).into_keys().find(|path| path.ends_with(".sst")).expect("a file of rows");
    disk.remove(Path::new(&lost)).expect("it is there");
    let reader = Database::builder(HERE).machine(machine.clone()).read_only(true).open().expect("it is a database");
    for error in [reader.backup(KEPT).map(drop), reader.checkpoint(THERE).map(drop)].map(Result::unwrap_err) {
        assert!(error.to_string().contains(&lost), "{error}");
    }
    assert!(!disk.exists(Path::new(THERE)).expect("the disk works"));
}

#[test]
fn a_file_that_a_damaged_list_names_is_never_lost() {
    for n in 1.. {
        let (machine, disk) = Machine::simulated(16);
        let db = open(&machine, HERE).expect("the disk works");
        add(&db, 0);
        let expected = rows(&db);
        db.backup(KEPT).expect("the disk works");
        disk.flip_bit("kept/backup-1/LIST", 30, 1);
        disk.fail_all_after(n, ErrorKind::StorageFull);
        let outcome = db.backup(KEPT);
        disk.clear_faults();
        let sound = disk.image();
        sound.flip_bit("kept/backup-1/LIST", 30, 1);
        expect_restored(&Machine::simulated_on(sound, 16), Some(1), &expected);
        if outcome.is_ok() {
            return;
        }
        db.backup(KEPT).expect("the faults have passed");
    }
}

#[test]
fn a_backup_that_is_removed_meanwhile_is_not_reported_as_damaged() {
    let prepared = || {
        let (machine, _) = Machine::simulated(17);
        drop(prepare(&machine));
        machine
    };
    let machine = prepared();
    let report = backups(&machine).verify(|_| _ = backups(&machine).keep(1).expect("the disk works"));
    let report = report.expect("the disk works");
    assert!(report.problems.is_empty(), "{:?}", report.problems);
    let machine = prepared();
    let restored =
        backups(&machine).restore(Some(1), THERE, |_| _ = backups(&machine).keep(1).expect("the disk works"));
    assert!(matches!(restored, Err(Error::NoSuchBackup { .. })), "{restored:?}");
}

#[test]
fn other_names_beside_backups_are_passed_over_and_kept() {
    let (machine, disk) = Machine::simulated(18);
    let db = open(&machine, HERE).expect("the disk works");
    add(&db, 0);
    db.backup(KEPT).expect("the disk works");
    disk.create_dir(Path::new("kept/files")).expect("the disk works");
    let others = ["kept/lost+found", "kept/files/notes", "kept/files/notes.new", "kept/backup-18446744073709551615"];
    let others = others.map(Path::new);
    for other in others {
        disk.open(other, os::Access::Create).expect("the disk works");
    }
    db.backup(KEPT).expect("the disk works");
    expect_sound(&machine, &[1, 2]);
    backups(&machine).keep(1).expect("the disk works");
    assert!(others.iter().all(|other| disk.exists(other).expect("the disk works")));
    assert!(Backups::at("mistyped").on(&machine).keep(1).is_err());
    assert!(!disk.exists(Path::new("mistyped")).expect("the disk works"));
}

#[test]
fn a_list_that_is_too_long_is_damaged_and_not_read() {
    let (machine, disk) = Machine::simulated(19);
    open(&machine, HERE).and_then(|db| db.backup(KEPT)).expect("the disk works");
    let list = disk.open(Path::new("kept/backup-1/LIST"), os::Access::Write).expect("it is there");
    list.set_len((256 << 20) + 1).expect("the disk works");
    let listed = backups(&machine).list().expect("the disk works");
    assert!(listed[0].damage.as_ref().is_some_and(|why| why.contains("more than any list")), "{listed:?}");
}
