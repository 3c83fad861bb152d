//! Tests on a real disk what happens when the directory of an open database, a backup or a copy is moved or removed.

#![allow(clippy::disallowed_methods, reason = "a user moves and removes directories with the tools of the system")]

use larch::backup::Backups;
use larch::{Database, Error, Follow, Result, Table};
use std::fs;
use std::path::Path;

const ROWS: u32 = 100;
const VALUE_BYTES: usize = 400;

fn open(directory: &Path) -> Database {
    Database::builder(directory).write_buffer_bytes(64 << 10).open().expect("the disk works")
}

/// Makes a database with some rows, whose values consist of `byte`.
fn filled(directory: &Path, byte: u8) -> (Database, Table) {
    let db = open(directory);
    let table = db.table("t").expect("the disk works");
    write(&table, 0..ROWS, byte).expect("the disk works");
    (db, table)
}

fn write(table: &Table, keys: std::ops::Range<u32>, byte: u8) -> Result<()> {
    keys.into_iter().try_for_each(|key| table.insert(key.to_be_bytes(), [byte; VALUE_BYTES]))
}

/// The number of rows whose values consist of `byte`.
fn rows(directory: &Path, byte: u8) -> usize {
    let db = open(directory);
    assert!(db.check(|_| {}).expect("the disk works").problems.is_empty());
    let table = db.table("t").expect("the disk works");
    table.iter().filter(|row| row.as_ref().expect("the disk works").1[..] == [byte; VALUE_BYTES]).count()
}

#[test]
fn a_database_that_is_moved_goes_on_and_never_touches_the_one_that_comes_to_its_place() {
    let scratch = tempfile::tempdir().expect("a directory");
    let (here, there) = (scratch.path().join("db"), scratch.path().join("moved"));
    let (first, table) = filled(&here, 1);
    let follower = Database::builder(&here).follow(Follow::Commits).open().expect("the disk works");
    fs::rename(&here, &there).expect("both are on one disk");
    let (second, other) = filled(&here, 2);
    // A log has only 64 KiB, so these writes begin many logs, and many files are written, merged and removed.
    write(&table, ROWS..10 * ROWS, 1).expect("the directory is there, elsewhere");
    first.flush().and_then(|()| first.compact()).expect("the directory is there, elsewhere");
    write(&other, ROWS..2 * ROWS, 2).expect("nobody else writes there");
    assert_eq!(follower.catch_up().expect("it follows the database that it has opened"), first.version());
    assert_eq!(follower.table("t").expect("it is there").iter().count(), 10 * ROWS as usize);
    drop((follower, table, other));
    first.close().expect("the directory is there, elsewhere");
    second.close().expect("nobody else writes there");
    assert_eq!(rows(&there, 1), 10 * ROWS as usize);
    assert_eq!(rows(&here, 2), 2 * ROWS as usize);
}

#[test]
fn a_commit_into_a_directory_that_was_removed_is_not_reported_as_durable() {
    let scratch = tempfile::tempdir().expect("a directory");
    let here = scratch.path().join("db");
    let (first, table) = filled(&here, 1);
    let follower = Database::builder(&here).follow(Follow::Commits).open().expect("the disk works");
    let durable = first.durable_version();
    fs::remove_dir_all(&here).expect("it is there");
    let (second, other) = filled(&here, 2);
    for key in 0..2000u32 {
        let error = table.insert(key.to_be_bytes(), [1; VALUE_BYTES]).expect_err("its log has no name");
        assert!(error.to_string().contains("was removed"), "{error}");
    }
    assert_eq!(first.durable_version(), durable);
    first.flush().expect_err("there is no directory for files");
    let error = follower.catch_up().expect_err("what it follows is gone");
    assert!(error.to_string().contains("was removed"), "{error}");
    drop((follower, table));
    first.close().ok();
    write(&other, ROWS..2 * ROWS, 2).expect("nobody else writes there");
    drop(other);
    second.close().expect("nobody else writes there");
    assert_eq!(rows(&here, 2), 2 * ROWS as usize);
}

#[test]
fn a_writer_whose_lock_file_was_removed_makes_way_for_the_next_one() {
    let scratch = tempfile::tempdir().expect("a directory");
    let here = scratch.path().join("db");
    let (first, table) = filled(&here, 1);
    fs::remove_file(here.join("LOCK")).expect("it is there");
    let second = open(&here);
    let other = second.table("t").expect("the disk works");
    assert_eq!(other.iter().count(), ROWS as usize, "what was durable is there");
    table.insert("key", [1; VALUE_BYTES]).expect_err("another process writes now");
    first.flush().expect_err("another process writes now");
    drop(table);
    first.close().ok();
    write(&other, 0..ROWS, 2).expect("nobody else writes there");
    drop(other);
    second.close().expect("nobody else writes there");
    assert_eq!(rows(&here, 2), ROWS as usize);
}

#[test]
fn a_relative_path_is_that_of_the_open_whatever_the_directory_of_the_process_is() {
    // A change of the working directory would disturb other tests, so this one uses a symbolic link that later leads
    // elsewhere.
    let scratch = tempfile::tempdir().expect("a directory");
    let (link, one, two) = (scratch.path().join("link"), scratch.path().join("one"), scratch.path().join("two"));
    fs::create_dir(&one).and_then(|()| fs::create_dir(&two)).expect("the disk works");
    std::os::unix::fs::symlink(&one, &link).expect("the disk works");
    let (db, table) = filled(&link.join("db"), 1);
    fs::remove_file(&link).and_then(|()| std::os::unix::fs::symlink(&two, &link)).expect("the disk works");
    write(&table, ROWS..10 * ROWS, 1).expect("the directory is there");
    drop(table);
    db.close().expect("the directory is there");
    assert_eq!(rows(&one.join("db"), 1), 10 * ROWS as usize);
    assert_eq!(fs::read_dir(&two).expect("it is there").count(), 0);
}

#[test]
fn a_copy_and_a_backup_go_where_they_began_or_nowhere() {
    let scratch = tempfile::tempdir().expect("a directory");
    let (here, backups) = (scratch.path().join("db"), scratch.path().join("backups"));
    let (db, table) = filled(&here, 1);
    db.flush().expect("the disk works");
    let elsewhere = scratch.path().join("elsewhere");
    db.backup(&backups).expect("the disk works");
    write(&table, ROWS..2 * ROWS, 1).and_then(|()| db.flush()).expect("the disk works");
    // In the middle of the next backup, the directory is moved, and an empty directory takes its place.
    let mut is_moved = false;
    let outcome = db.backup_to(&Backups::at(&backups), |_| {
        if !std::mem::replace(&mut is_moved, true) {
            fs::rename(&backups, &elsewhere).and_then(|()| fs::create_dir(&backups)).expect("both are on one disk");
        }
    });
    outcome.expect("the directory is there, elsewhere");
    assert!(is_moved);
    assert_eq!(fs::read_dir(&backups).expect("it is there").count(), 0, "nothing came to the other directory");
    assert!(Backups::at(&elsewhere).verify(|_| {}).expect("the disk works").problems.is_empty());
    assert_eq!(Backups::at(&elsewhere).list().expect("the disk works").len(), 2);
    // So does a checkpoint whose directory is removed.
    let copy = scratch.path().join("copy");
    let mut is_removed = false;
    let outcome = db.checkpoint_with(&copy, |_| {
        if !std::mem::replace(&mut is_removed, true) {
            fs::remove_dir_all(&copy).and_then(|()| fs::create_dir(&copy)).expect("it is there");
        }
    });
    let error = outcome.expect_err("the directory is gone");
    assert!(is_removed && error.to_string().contains("was removed"), "{error}");
    assert!(matches!(Database::open(&copy).map(drop), Ok(()) | Err(Error::UnfinishedCopy(_))));
}
