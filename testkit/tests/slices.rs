//! Tests of tables that see only a part of a file, because a range was removed or several tables share the file.

use larch::options::LevelOptions;
use larch::stats::TableStats;
use larch::{Database, Error, Readable, Result, Table, TableOptions};
use os::sim::SimDisk;
use os::sync::Arc;
use os::{Disk, Machine};
use std::path::Path;

const DIRECTORY: &str = "db";
const ROWS: u32 = 4000;

fn open(disk: &Arc<SimDisk>) -> Database {
    // The levels allow enough files that no compaction starts by itself.
    let levels = LevelOptions { level0_files: 100, slow_files: 100, file_bytes: 64 << 10, ..LevelOptions::default() };
    let machine = Machine::simulated_on(disk.clone(), 1);
    Database::builder(DIRECTORY).machine(machine).levels(levels).open().expect("the disk works")
}

fn key(i: u32) -> String {
    format!("k{i:05}")
}

fn value(i: u32) -> Vec<u8> {
    format!("{i} ").repeat(20).into_bytes()
}

/// Writes rows to several files of the deepest level. Pages and nodes are small.
fn filled(db: &Database, groups: &[&str]) -> Table {
    let groups = groups.iter().map(|&name| name.to_owned()).collect();
    let options = TableOptions { page_bytes: 1024, node_bytes: 512, groups, ..TableOptions::default() };
    let table = db.table_with("t", options).expect("the disk works");
    for first in (0..ROWS).step_by(500) {
        let mut batch = db.batch();
        for i in first..first + 500 {
            match table.options().groups.len() {
                0 => batch.insert(&table, key(i), value(i)),
                _ => batch.insert_parts(&table, key(i), &[value(i), value(i / 2)]),
            }
        }
        batch.commit().expect("the disk works");
    }
    table.compact().expect("the disk works");
    table
}

fn stats(table: &Table) -> TableStats {
    table.stats().expect("the table is there")
}

/// Checks that every kind of read shows exactly the rows `expected`.
#[track_caller]
fn check_rows(db: &Database, table: &Table, expected: &[u32]) {
    let keys = |rows: Vec<Result<(larch::Key, larch::Parts)>>| -> Vec<Vec<u8>> {
        rows.into_iter().map(|row| row.expect("the disk works").0.to_vec()).collect()
    };
    let all = table.select(table.options().groups).expect("the groups are its own");
    let wanted: Vec<Vec<u8>> = expected.iter().map(|&i| key(i).into_bytes()).collect();
    assert_eq!(keys(all.iter().collect()), wanted);
    assert_eq!(keys(all.iter().rev().collect()).into_iter().rev().collect::<Vec<_>>(), wanted);
    assert_eq!(
        keys(all.range(key(990)..key(3010)).collect()),
        wanted
            .iter()
            .filter(|wanted| (key(990).into_bytes()..key(3010).into_bytes()).contains(*wanted))
            .cloned()
            .collect::<Vec<_>>()
    );
    for i in (0..ROWS).step_by(7).chain([0, 999, 1000, 2999, 3000, ROWS - 1]) {
        assert_eq!(table.contains_key(key(i)).expect("the disk works"), expected.contains(&i), "row {i}");
    }
    let report = db.check(|_| {}).expect("the disk works");
    assert!(report.problems.is_empty(), "{}", report.problems[0]);
}

fn without(from: u32, to: u32) -> Vec<u32> {
    (0..ROWS).filter(|i| !(from..to).contains(i)).collect()
}

#[test]
fn a_removed_range_is_cut_off_without_writing_a_data_page_once_no_snapshot_sees_it() {
    for groups in [&[][..], &["a", "b"]] {
        let disk = SimDisk::new(1);
        let db = open(&disk);
        let table = filled(&db, groups);
        let before = stats(&table);
        assert!(before.files >= 4, "{before:?}");
        let snapshot = db.snapshot();
        let compacted = db.metrics().compaction_bytes;

        table.remove_range(key(10)..key(ROWS - 10)).expect("the disk works");
        db.flush().expect("the disk works");
        check_rows(&db, &table, &without(10, ROWS - 10));
        assert_eq!(snapshot.contains_key(&table, key(2000)).ok(), Some(true));
        assert_eq!(stats(&table).files, before.files + 1, "a snapshot sees the rows");

        drop(snapshot);
        // The database notices only after a later write and flush that no snapshot needs the removed rows any more.
        table.insert_parts(key(ROWS), &vec![value(1); groups.len().max(1)]).expect("the disk works");
        db.flush().expect("the disk works");
        let after = stats(&table);
        assert!(after.files <= 2 + 2 && after.rows <= 21, "{after:?}");
        assert!(after.file_bytes < before.file_bytes / 2, "whole files are gone: {after:?}");
        let rewritten = db.metrics().compaction_bytes - compacted;
        assert!(rewritten < before.file_bytes / 20, "{rewritten} bytes were written of files that lost most");
        let expected: Vec<u32> = without(10, ROWS - 10).into_iter().chain([ROWS]).collect();
        check_rows(&db, &table, &expected);
        drop((table, db));

        let db = open(&disk);
        let table = db.table("t").expect("the disk works");
        check_rows(&db, &table, &expected);
        db.compact().expect("the disk works");
        let least = stats(&table);
        assert!(least.unseen_bytes == 0 && least.range_erase_bytes == 0, "{least:?}");
        assert!(least.file_bytes < before.file_bytes / 20, "{least:?}");
        check_rows(&db, &table, &expected);
    }
}

#[test]
fn a_hole_in_a_file_is_a_slice_until_a_compaction_comes() {
    let disk = SimDisk::new(1);
    let db = open(&disk);
    let table = filled(&db, &[]);
    let (before, written) = (stats(&table), db.metrics().compaction_bytes);
    // The removed range is less than half of any file, so no file needs to be rewritten.
    table.remove_range(key(1000)..key(1050)).expect("the disk works");
    db.flush().expect("the disk works");
    let after = stats(&table);
    assert_eq!(db.metrics().compaction_bytes, written, "no page is rewritten");
    assert_eq!((after.rows, after.data_pages), (before.rows - 50, before.data_pages));
    assert!(after.unseen_bytes > 0, "{after:?}");
    check_rows(&db, &table, &without(1000, 1050));
    // Writes a row into the gap.
    table.insert(key(1025), "new").expect("the disk works");
    db.flush().expect("the disk works");
    let mut expected = without(1000, 1050);
    expected.insert(1000, 1025);
    check_rows(&db, &table, &expected);
    db.compact().expect("the disk works");
    assert_eq!(stats(&table).unseen_bytes, 0);
    check_rows(&db, &table, &expected);
}

/// SSTs on the disk.
fn files_on_disk(disk: &Arc<SimDisk>) -> usize {
    let entries = disk.list(Path::new(DIRECTORY)).expect("the directory is there");
    entries.iter().filter(|entry| entry.name.ends_with(".sst")).count()
}

#[test]
fn a_clone_shares_files_and_nothing_else() {
    let disk = SimDisk::new(1);
    let db = open(&disk);
    let table = filled(&db, &["a", "b"]);
    let (files, metrics) = (files_on_disk(&disk), db.metrics());
    let clone = table.clone_as("u").expect("the name is free");
    assert_eq!((files_on_disk(&disk), db.metrics().file_bytes), (files, metrics.file_bytes), "nothing is copied");
    assert_eq!(clone.options(), table.options());
    let all: Vec<u32> = (0..ROWS).collect();
    check_rows(&db, &clone, &all);
    assert!(matches!(table.clone_as("u"), Err(Error::TableExists(name)) if name == "u"));
    assert!(matches!(table.clone_as(""), Err(Error::BadTableName(_))));

    clone.remove_range(key(1000)..key(3000)).expect("the disk works");
    db.flush().expect("the disk works");
    check_rows(&db, &table, &all);
    check_rows(&db, &clone, &without(1000, 3000));
    drop((table, clone, db));
    let db = open(&disk);
    let clone = db.table("u").expect("the disk works");
    let table = db.table("t").expect("the disk works");
    check_rows(&db, &table, &all);
    check_rows(&db, &clone, &without(1000, 3000));

    // Drops the first table. Its files must stay, because the other table needs them.
    drop(table);
    assert!(db.drop_table("t").expect("the disk works"));
    assert!(db.existing_table("t").expect("the disk works").is_none());
    check_rows(&db, &clone, &without(1000, 3000));
    clone.compact().expect("the disk works");
    check_rows(&db, &clone, &without(1000, 3000));
    assert_eq!(files_on_disk(&disk) as u64, stats(&clone).files, "what nobody sees is gone");
}

#[test]
fn a_split_takes_rows_from_one_table_to_another_but_not_from_snapshots() {
    for at in [0, 1, 1700, 3999, 4000] {
        let disk = SimDisk::new(1);
        let db = open(&disk);
        let table = filled(&db, &[]);
        // Some of the table is in memory.
        table.insert(key(1), value(1)).expect("the disk works");
        table.remove(key(3998)).expect("the disk works");
        let snapshot = db.snapshot();
        let rest = table.split_off(key(at), "rest").expect("the name is free");
        let left: Vec<u32> = (0..at).filter(|&i| i != 3998).collect();
        let right: Vec<u32> = (at..ROWS).filter(|&i| i != 3998).collect();
        check_rows(&db, &table, &left);
        check_rows(&db, &rest, &right);
        assert_eq!(snapshot.iter(&table).count(), ROWS as usize - 1, "split at {at}");
        drop(snapshot);
        rest.insert(key(5), "came later").expect("the disk works");
        let right: Vec<u32> = [5].into_iter().filter(|_| at > 5).chain(right).collect();
        db.compact().expect("the disk works");
        check_rows(&db, &table, &left);
        check_rows(&db, &rest, &right);
        drop((table, rest, db));
        let db = open(&disk);
        check_rows(&db, &db.table("t").expect("the disk works"), &left);
        check_rows(&db, &db.table("rest").expect("the disk works"), &right);
        assert_eq!(files_on_disk(&disk) as u64, db.metrics().files);
    }
}

/// A file of level 6 has range erases up to where the next, older file begins. If the first file is cut down to this
/// bound, the next one must be removed, because a level is ordered by bounds.
#[test]
fn a_file_that_is_cut_down_to_a_bound_leaves_the_order_of_its_level() {
    let disk = SimDisk::new(1);
    let levels = LevelOptions { level0_files: 1, file_bytes: 16 << 10, base_bytes: 1 << 30, ..LevelOptions::default() };
    let machine = Machine::simulated_on(disk.clone(), 1);
    let db = Database::builder(DIRECTORY).machine(machine).levels(levels).open().expect("the disk works");
    let table = db.table("t").expect("the disk works");
    let mut batch = db.batch();
    for key in ["a", "d", "m", "n", "x", "z"] {
        batch.insert(&table, key, vec![b'v'; if key < "m" { 20_000 } else { 10 }]);
    }
    batch.commit().expect("the disk works");
    let snapshot = db.snapshot();
    table.remove_range("b".."m").expect("the disk works");
    db.flush().expect("the disk works");
    for byte in [1, 2] {
        table.insert("e", vec![byte; 20_000]).expect("the disk works");
        db.flush().expect("the disk works");
    }
    drop(snapshot);
    let rest = table.split_off("m", "rest").expect("the name is free");
    let report = db.check(|_| {}).expect("the disk works");
    assert!(report.problems.is_empty(), "{}", report.problems[0]);
    let keys = ["m", "n", "x", "z"];
    for (i, key) in keys.into_iter().enumerate() {
        assert!(rest.contains_key(key).expect("the disk works"), "row {key}");
        let found: Vec<_> = rest.range(key..).map(|row| row.expect("the disk works").0.to_vec()).collect();
        assert_eq!(found, keys[i..].iter().map(|key| key.as_bytes()).collect::<Vec<_>>());
    }
}

#[test]
fn what_was_cut_off_a_file_hides_nothing_that_came_later_to_a_deeper_level() {
    let disk = SimDisk::new(1);
    let db = open(&disk);
    let table = db.table("t").expect("the disk works");
    table.insert("z", "old").expect("the disk works");
    table.remove_range("a".."m").expect("the disk works");
    let rest = table.split_off("p", "rest").expect("the name is free");
    let mut import = rest.import().expect("the disk works");
    import.add(b"c", b"new").expect("the disk works");
    import.finish(|_| {}).expect("the disk works");
    // Another commit and flush let background work go on.
    rest.insert("y", "new").expect("the disk works");
    db.flush().expect("the disk works");
    assert!(rest.contains_key("c").expect("the disk works"), "the erase of a to m was cut off");
}

#[test]
fn a_damaged_page_at_the_edge_of_a_removed_range_stops_no_writes() {
    let disk = SimDisk::new(1);
    let db = open(&disk);
    let table = filled(&db, &[]);
    drop((table, db));
    for entry in disk.list(Path::new(DIRECTORY)).expect("the directory is there") {
        let path = Path::new(DIRECTORY).join(&entry.name);
        if entry.name.ends_with(".sst") {
            let bytes = disk.read_all(&path).expect("the file is there").len() as u64;
            (100..bytes - 4096).step_by(1024).for_each(|at| disk.flip_bit(&path, at, 1));
        }
    }
    let db = open(&disk);
    let table = db.table("t").expect("the disk works");
    table.remove_range(key(110)..key(3150)).expect("the disk works");
    db.flush().expect("a cut is left out where its file cannot be read");
    table.insert("x", "y").expect("writes go on");
    db.flush().expect("writes go on");
    assert!(table.contains_key("x").expect("this row is not damaged"));
}

/// A table `t` with rows in files and in memory.
fn filled_twice(db: &Database, groups: &[&str]) -> (Table, Vec<u32>) {
    let table = filled(db, groups);
    table.remove_range(key(1000)..key(3000)).expect("the disk works");
    db.flush().expect("the disk works");
    table.insert_parts(key(ROWS), &vec![value(1); groups.len().max(1)]).expect("the disk works");
    (table, without(1000, 3000).into_iter().chain([ROWS]).collect())
}

#[test]
fn a_renamed_table_has_the_rows_and_files_it_had() {
    for groups in [&[][..], &["a", "b"]] {
        let disk = SimDisk::new(1);
        let db = open(&disk);
        let (table, rows) = filled_twice(&db, groups);
        let (options, snapshot) = (table.options(), db.snapshot());
        let compacted = db.metrics().compaction_bytes;
        let renamed = db.rename_table("t", "u").expect("the name is free");
        assert_eq!((db.tables(), renamed.options()), (vec!["u".to_owned()], options));
        assert_eq!(db.metrics().compaction_bytes, compacted, "no row is copied");
        check_rows(&db, &renamed, &rows);
        assert!(matches!(db.rename_table("t", "v"), Err(Error::NoSuchTable(name)) if name == "t"));
        assert!(matches!(db.rename_table("u", "u"), Err(Error::TableExists(name)) if name == "u"));
        assert!(matches!(db.rename_table("u", ""), Err(Error::BadTableName(_))));
        // A new table may take the old name.
        let other = db.table("t").expect("the disk works");
        other.insert("k", "v").expect("the disk works");
        check_rows(&db, &renamed, &rows);
        drop((table, renamed, other, snapshot, db));

        let db = open(&disk);
        let renamed = db.table("u").expect("the disk works");
        check_rows(&db, &renamed, &rows);
        renamed.compact().expect("the disk works");
        check_rows(&db, &renamed, &rows);
        let all = stats(&renamed).files + stats(&db.table("t").expect("the disk works")).files;
        assert_eq!(files_on_disk(&disk) as u64, all, "what nobody sees is gone");
    }
}

#[test]
fn a_crash_while_a_table_is_renamed_leaves_all_rows_under_one_of_its_names() {
    let mut names = Vec::new();
    for sync in 1.. {
        let disk = SimDisk::new(1);
        let db = open(&disk);
        let (table, rows) = filled_twice(&db, &[]);
        disk.crash_at_sync(sync);
        let renamed = db.rename_table("t", "u").is_ok();
        let has_crashed = disk.has_crashed();
        drop((table, db));
        disk.crash_keeping_nothing();
        let db = open(&disk);
        let [name] = &db.tables()[..] else { panic!("sync {sync}: tables {:?}", db.tables()) };
        assert!(!renamed || name == "u", "sync {sync}: the new name was acknowledged");
        check_rows(&db, &db.table(name).expect("the disk works"), &rows);
        names.push(name.clone());
        if !has_crashed {
            break;
        }
    }
    assert_eq!((names.first().map(String::as_str), names.last().map(String::as_str)), (Some("t"), Some("u")));
}
