//! Tests that compactions leave a file as it is if no other file has keys within it, without a change for readers.

use crate::options::LevelOptions;
use crate::{Database, Readable, Snapshot, Table, TableOptions};
use os::Machine;
use os::sim::SimDisk;
use os::sync::Arc;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeMap;

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

fn database(disk: &Arc<SimDisk>, levels: LevelOptions) -> Database {
    Database::builder("db").machine(Machine::simulated_on(disk.clone(), 1)).levels(levels).open().expect("it opens")
}

/// With these options, two files in level 0 start a compaction, and a file has about 16 KiB.
fn small_levels() -> LevelOptions {
    LevelOptions { level0_files: 2, slow_files: 100, file_bytes: 16 << 10, base_bytes: 64 << 10, growth: 4 }
}

fn key(i: u32) -> Vec<u8> {
    format!("k{i:06}").into_bytes()
}

fn put(table: &Table, rows: &mut Rows, i: u32, value: u32) {
    let value = format!("{value:0100}").into_bytes();
    table.insert(key(i), &value).expect("the disk works");
    rows.insert(key(i), value);
}

fn flush(db: &Database) {
    db.flush().expect("the disk works");
    db.compact_due().expect("the disk works");
}

#[track_caller]
fn check(db: &Database, table: &Table, rows: &Rows) {
    let found: Rows =
        table.iter().map(|row| row.expect("the disk works")).map(|(k, v)| (k.to_vec(), v.to_vec())).collect();
    assert_eq!(found.len(), rows.len());
    assert!(found == *rows, "rows differ");
    assert!(rows.iter().all(|(key, value)| table.get(key).expect("the disk works").as_deref() == Some(value)));
    let report = db.check(|_| {}).expect("the disk works");
    assert!(report.problems.is_empty(), "{report:?}");
}

#[test]
fn files_of_rows_in_order_go_down_without_being_written_again() {
    let db = database(&SimDisk::new(1), small_levels());
    let table = db.table("t").expect("the disk works");
    let mut rows = Rows::new();
    for file in 0..10 {
        (file * 200..(file + 1) * 200).for_each(|i| put(&table, &mut rows, i, i));
        flush(&db);
    }
    let metrics = db.metrics();
    assert_eq!(metrics.compaction_bytes, 0);
    assert!(metrics.trivial_moves >= 10, "{} moves", metrics.trivial_moves);
    check(&db, &table, &rows);
}

#[test]
fn a_merge_rewrites_only_the_files_between_whose_keys_it_has_some() {
    let db = database(&SimDisk::new(1), small_levels());
    let table = db.table("t").expect("the disk works");
    let mut rows = Rows::new();
    (0..4000).for_each(|i| put(&table, &mut rows, i, i));
    flush(&db);
    table.compact().expect("the disk works");
    let before = db.metrics().compaction_bytes;
    assert!(before > 400_000, "{before}");
    // Both files have some of the least and some of the greatest keys, so their bounds overlap those of all other
    // files.
    for value in 0..2 {
        [3, 5, 3990, 3995].into_iter().for_each(|i| put(&table, &mut rows, i, value));
        flush(&db);
    }
    let written = db.metrics().compaction_bytes - before;
    assert!((1..100_000).contains(&written), "{written} bytes for keys in two of about twenty files");
    check(&db, &table, &rows);
}

#[test]
fn a_file_under_a_range_erase_is_rewritten() {
    let db = database(&SimDisk::new(1), small_levels());
    let table = db.table("t").expect("the disk works");
    let mut rows = Rows::new();
    (0..2000).for_each(|i| put(&table, &mut rows, i, i));
    flush(&db);
    table.compact().expect("the disk works");
    for _ in 0..2 {
        put(&table, &mut rows, 1, 0);
        table.remove_range(key(900)..key(905)).expect("the disk works");
        put(&table, &mut rows, 1999, 0);
        flush(&db);
    }
    (900..905).for_each(|i| drop(rows.remove(&key(i))));
    check(&db, &table, &rows);
}

/// Writes clusters of rows, erases and range erases to many small files, with snapshots, and compares the database
/// with a map.
fn clusters(seed: u64) {
    let random = &mut StdRng::seed_from_u64(seed);
    let disk = SimDisk::new(seed);
    let mut db = database(&disk, small_levels());
    let page_bytes = if seed.is_multiple_of(2) { 1 << 10 } else { 16 << 10 };
    let options = TableOptions { page_bytes, ..TableOptions::default() };
    let mut table = db.table_with("t", options).expect("the disk works");
    let mut rows = Rows::new();
    let mut snapshots: Vec<(Snapshot, Rows)> = Vec::new();
    for round in 0..40 {
        for _ in 0..random.random_range(1..4) {
            let (first, count) = (random.random_range(0..20_000), random.random_range(1..400));
            for i in first..first + count {
                if random.random_range(0..20) == 0 {
                    table.remove(key(i)).expect("the disk works");
                    rows.remove(&key(i));
                } else {
                    put(&table, &mut rows, i, round);
                }
            }
        }
        if random.random_range(0..6) == 0 {
            let (low, high) = {
                let low = random.random_range(0..20_000);
                (key(low), key(low + random.random_range(1..2000)))
            };
            table.remove_range(&low[..]..&high[..]).expect("the disk works");
            rows.retain(|key, _| *key < low || *key >= high);
        }
        match random.random_range(0..8) {
            0 => snapshots.push((db.snapshot(), rows.clone())),
            1 => snapshots.clear(),
            _ => {}
        }
        flush(&db);
        for (snapshot, rows) in &snapshots {
            let found =
                snapshot.iter(&table).map(|row| row.expect("the disk works")).map(|(k, v)| (k.to_vec(), v.to_vec()));
            assert!(found.collect::<Rows>() == *rows, "a snapshot of seed {seed} sees other rows");
        }
        if round % 10 == 9 {
            check(&db, &table, &rows);
            snapshots.clear();
            drop((table, db));
            db = database(&disk, small_levels());
            table = db.table("t").expect("the disk works");
        }
    }
}

#[test]
fn writes_in_clusters_beside_files_and_pages_that_stay_as_they_are_change_no_row() {
    (0..6).for_each(clusters);
}

/// With a target of one byte, even a file without rows is too long. So the merge may begin a file for a page, and
/// then not add the page.
#[test]
fn no_file_is_empty_however_short_files_are() {
    let db = database(&SimDisk::new(1), LevelOptions { file_bytes: 1, ..small_levels() });
    let table = db.table("t").expect("the disk works");
    let mut rows = Rows::new();
    for value in 0..3 {
        (0..4).for_each(|i| put(&table, &mut rows, 10 * i + value, value));
        flush(&db);
        check(&db, &table, &rows);
    }
    table.compact().expect("the disk works");
    check(&db, &table, &rows);
}

#[test]
fn a_range_erase_before_a_file_that_stays_does_not_follow_it() {
    let db = database(&SimDisk::new(1), small_levels());
    let table = db.table("t").expect("the disk works");
    let mut rows = Rows::new();
    (1000..3000).for_each(|i| put(&table, &mut rows, i, i));
    flush(&db);
    table.compact().expect("the disk works");
    let _snapshot = db.snapshot();
    for value in 0..2 {
        table.remove_range(key(value)..key(500)).expect("the disk works");
        flush(&db);
        put(&table, &mut rows, 4000, value);
        flush(&db);
    }
    check(&db, &table, &rows);
}
