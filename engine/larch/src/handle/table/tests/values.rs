//! Tests, by counting rounds, that scans and compactions read values outside of data pages ahead, a window at a
//! time.

use super::*;
use crate::base::options::LevelOptions;
use os::sim::SimDisk;
use os::sync::Arc;
use pages::{PageKind, Reason};

const ROWS: u32 = 3000;
const VALUE_BYTES: usize = 5000;

/// The most memory that the page of such a value should take while it is read.
const VALUE_MEMORY: u64 = 32 << 10;

const CACHE_BYTES: u64 = 16 << 20;

fn open(disk: &Arc<SimDisk>) -> Database {
    let levels = LevelOptions { level0_files: 100, slow_files: 100, ..LevelOptions::default() };
    let builder = Database::builder("db").machine(Machine::simulated_on(disk.clone(), 1)).cache_bytes(CACHE_BYTES);
    builder.levels(levels).open().expect("the disk works")
}

fn key(i: u32) -> [u8; 4] {
    i.to_be_bytes()
}

/// Writes three files in level 0, each with every third row, and opens the database again, so that the cache is
/// cold.
fn written(groups: &[&str]) -> Database {
    let disk = SimDisk::new(1);
    let db = open(&disk);
    let table = table(&db, "t", groups);
    for file in 0..3 {
        for i in (file..ROWS).step_by(3) {
            let value = [i as u8; VALUE_BYTES];
            match groups {
                [] => table.insert(key(i), value),
                _ => table.insert_parts(key(i), &[&value[..], &value[..]]),
            }
            .expect("the disk works");
        }
        db.flush().expect("the disk works");
    }
    drop(table);
    db.close().expect("the disk works");
    open(&disk)
}

#[track_caller]
fn check_rounds(db: &Database, reason: Reason, window_bytes: u64, parts: u64, read: impl FnOnce(&Table)) {
    let before = db.metrics().pages;
    read(&db.table("t").expect("it was written"));
    let after = db.metrics().pages;
    let values = u64::from(ROWS) * parts;
    let reads = after.pages(reason, PageKind::Value).faults - before.pages(reason, PageKind::Value).faults;
    assert!(reads <= values, "{reads} reads of {values} values");
    // Each round should load half a window. Allow a few more rounds while the window of each file grows.
    let bound = values * VALUE_MEMORY / (window_bytes / 2) + 3 * 20;
    let rounds = after.rounds(reason) - before.rounds(reason);
    assert!(rounds <= bound, "{rounds} rounds of at most {bound} for {values} values");
}

#[test]
fn a_cold_scan_waits_for_values_once_a_window() {
    for (groups, parts) in [(&[][..], 1), (&["a", "b"][..], 2)] {
        let scan = |table: &Table| {
            if parts == 1 {
                assert_eq!(table.iter().filter(|row| row.is_ok()).count(), ROWS as usize);
                return;
            }
            let rows = table.select(["a", "b"]).expect("both are there").iter();
            assert_eq!(rows.filter(|row| row.is_ok()).count(), ROWS as usize);
        };
        check_rounds(&written(groups), Reason::Scan, CACHE_BYTES / 8, parts, scan);
    }
}

#[test]
fn a_reader_who_loads_the_value_of_each_row_waits_once_a_window() {
    check_rounds(&written(&[]), Reason::Scan, CACHE_BYTES / 8, 1, |table| {
        let (mut rows, mut count) = (table.iter(), 0);
        while let Some(row) = rows.next_row_back().expect("the disk works") {
            assert_eq!(row.value().expect("the disk works").len(), VALUE_BYTES);
            count += 1;
        }
        assert_eq!(count, ROWS);
    });
}

#[test]
fn a_reader_of_keys_reads_no_value() {
    let db = written(&[]);
    let table = db.table("t").expect("it was written");
    let (mut rows, mut bytes) = (table.iter(), 0);
    while let Some(row) = rows.next_row().expect("the disk works") {
        bytes += row.value_len();
    }
    assert_eq!(bytes, u64::from(ROWS) * VALUE_BYTES as u64);
    assert_eq!(db.metrics().pages.pages(Reason::Scan, PageKind::Value).faults, 0);
}

#[test]
fn a_compaction_waits_for_values_once_a_window() {
    for (groups, parts) in [(&[][..], 1), (&["a", "b"][..], 2)] {
        // Compactions read ahead with a part of the work memory, at least this much.
        let window = 1 << 20;
        check_rounds(&written(groups), Reason::Compaction, window, parts, |table| {
            table.compact().expect("the disk works");
        });
    }
}
