//! Tests that the next open loads the pages that were in memory at the close, and that the warm state changes only
//! the speed of reads, never their results.

use super::*;
use crate::{Database, Table, TableOptions};
use os::sim::SimDisk;
use os::{Disk, Machine};
use pages::Reason;
use std::io::ErrorKind;

const ROWS: u32 = 3_000;

fn open(disk: &Arc<SimDisk>, is_warm: bool) -> Database {
    let machine = Machine::simulated_on(disk.clone(), 1);
    let builder = Database::builder("db").machine(machine).cache_bytes(1 << 20).warm_from_last(is_warm);
    builder.open().expect("the disk works")
}

fn key(row: u32) -> Vec<u8> {
    format!("row{row:07}").into_bytes()
}

fn check(table: &Table, rows: std::ops::Range<u32>) {
    for row in rows {
        assert_eq!(table.get(key(row)).expect("the disk works").as_deref(), Some(&[b'v'; 90][..]), "row {row}");
    }
}

/// A disk with a closed database, which had a third of its table in memory.
fn disk_with_state() -> Arc<SimDisk> {
    let (_, disk) = Machine::simulated(1);
    let db = open(&disk, true);
    let table = db.table_with("t", TableOptions { page_bytes: 4096, node_bytes: 4096, ..TableOptions::default() });
    let table = table.expect("the disk works");
    for row in 0..ROWS {
        table.insert(key(row), [b'v'; 90]).expect("the disk works");
    }
    db.flush().expect("the disk works");
    check(&table, 0..1_000);
    drop((table, db));
    assert!(disk.exists(std::path::Path::new("db/WARM")).expect("the disk works"));
    disk
}

fn reads(db: &Database, reason: Reason) -> u64 {
    db.metrics().pages.of_reason(reason).faults
}

#[test]
fn what_was_in_memory_comes_back_after_open() {
    let disk = disk_with_state();
    for is_asked in [false, true] {
        let disk = disk.image();
        let db = open(&disk, !is_asked);
        let table = db.table("t").expect("it is there");
        assert_eq!(db.metrics().page_reads, 0, "opening reads none");
        if is_asked {
            let warmed = db.warm_up();
            assert!(warmed.is_whole && warmed.page_reads > 10, "{warmed:?}");
        } else {
            table.core().background.drive();
        }
        assert!(reads(&db, Reason::Warm) > 10);
        assert_eq!(db.metrics().restored_bytes, db.cache().used_bytes());
        check(&table, 0..1_000);
        assert_eq!(reads(&db, Reason::Point), 0);
        check(&table, 2_000..2_100);
        assert!(reads(&db, Reason::Point) > 0, "the others did not come");
    }
    // The warm state is written only if the options ask for it.
    disk.remove(std::path::Path::new("db/WARM")).expect("the disk works");
    let db = open(&disk, false);
    check(&db.table("t").expect("it is there"), 0..10);
    drop(db);
    assert!(!disk.exists(std::path::Path::new("db/WARM")).expect("the disk works"));
    let db = open(&disk, true);
    assert_eq!((db.warm_up(), db.metrics().refused_states), (Warmed::default(), 0), "there is none");
}

#[test]
fn a_state_comes_back_as_far_as_there_is_room() {
    let disk = disk_with_state();
    let machine = Machine::simulated_on(disk.clone(), 1);
    let db = Database::builder("db").machine(machine).cache_bytes(64 << 10).open().expect("the disk works");
    let warmed = db.warm_up();
    assert!(!warmed.is_whole && (16 << 10..=60 << 10).contains(&warmed.bytes), "{warmed:?}");
    assert!(db.metrics().pages.index_reads() > 0, "nodes come first");
    check(&db.table("t").expect("it is there"), 0..1_000);
}

#[test]
fn a_state_of_files_that_are_gone_brings_nothing() {
    let disk = disk_with_state();
    let db = open(&disk, false);
    let table = db.table("t").expect("it is there");
    table.insert(key(0), [b'v'; 90]).expect("the disk works");
    table.compact().expect("the disk works");
    drop((table, db));
    let db = open(&disk, false);
    let warmed = db.warm_up();
    assert_eq!((warmed.bytes, db.metrics().refused_states), (0, 0));
    check(&db.table("t").expect("it is there"), 0..1_000);
}

#[test]
fn a_state_with_a_wrong_bit_is_refused_and_removed() {
    let disk = disk_with_state();
    let bytes = disk.read_all(std::path::Path::new("db/WARM")).expect("the disk works").len() as u64;
    for byte in (0..bytes).step_by(7).chain([bytes - 1]) {
        let disk = disk.image();
        disk.flip_bit("db/WARM", byte, (byte % 8) as u32);
        let db = open(&disk, false);
        assert_eq!((db.warm_up(), db.metrics().refused_states), (Warmed::default(), 1), "byte {byte}");
        assert!(!disk.exists(std::path::Path::new("db/WARM")).expect("the disk works"));
        check(&db.table("t").expect("it is there"), 0..10);
    }
}

#[test]
fn a_damaged_page_does_not_come_back_and_the_others_do() {
    let disk = disk_with_state();
    let db = open(&disk, false);
    let table = db.table("t").expect("it is there");
    let path = {
        let view = table.core().views.newest();
        view.files.tables[&table.id()].files().next().expect("it has one").1.path().to_owned()
    };
    disk.flip_bit(&path, 5_000, 1);
    let warmed = db.warm_up();
    assert!(!warmed.is_whole, "{warmed:?}");
    assert_eq!(db.metrics().refused_states, 0);
    assert!((0..1_000).any(|row| table.get(key(row)).is_err()), "who needs the page is told");
    check(&table, 2_000..3_000);
}

#[test]
fn a_crash_while_a_state_is_saved_harms_nothing() {
    for failing in 0..12 {
        for seed in 0..4 {
            let disk = disk_with_state();
            let db = open(&disk, true);
            let table = db.table("t").expect("it is there");
            table.core().background.drive();
            check(&table, 0..500);
            disk.reseed(seed);
            disk.fail_all_after(failing, ErrorKind::Other);
            drop((table, db));
            disk.crash();
            let db = open(&disk, true);
            let table = db.table("t").expect("it is there");
            table.core().background.drive();
            check(&table, 0..ROWS);
        }
    }
}

#[test]
fn a_state_has_these_bytes() {
    let page = |offset, bytes, kind, heat| Saved { at: Address { offset, bytes, crc: 0x0403_0201 }, kind, heat };
    let files = [
        FilePages {
            number: 300,
            epoch: 2,
            pages: vec![page(0, 4096, PageKind::Data, 5), page(16_384, 64, PageKind::Index, 0)],
        },
        FilePages { number: 301, epoch: 2, pages: vec![page(64, 128, PageKind::Filter, 8)] },
    ];
    let bytes = encode(0x1122_3344_5566_7788, &files);
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let expected = [
        "4c415243485752 4d 01000000 00000000 8877665544332211 02",
        "ac02 02 02  00 40 01020304 01 05  c001 01 01020304 02 00",
        "ad02 02 01  01 02 01020304 07 08",
    ];
    let expected: String = expected.concat().split_whitespace().collect();
    assert_eq!(hex[..hex.len() - 8], expected);
    assert_eq!(decode(&bytes, 0x1122_3344_5566_7788).as_deref(), Some(&files[..]));
    assert_eq!(decode(&bytes, 1), None, "of another database");
    for end in 0..bytes.len() {
        assert_eq!(decode(&bytes[..end], 0x1122_3344_5566_7788), None);
    }
}

#[test]
fn a_state_of_a_later_release_is_read_where_what_is_new_is_optional() {
    let with = |at: usize, to: u8, added: &[u8]| {
        let mut bytes = encode(7, &[]);
        bytes.truncate(bytes.len() - CRC_BYTES);
        bytes[at] = to;
        bytes.extend_from_slice(added);
        let crc = crc_fast::crc32_iscsi(&bytes);
        bytes.extend_from_slice(&crc.to_le_bytes());
        decode(&bytes, 7)
    };
    assert_eq!(with(8, 2, b""), None, "another format version");
    assert_eq!(with(14, 1, b""), None, "feature 16, a required one");
    assert_eq!(with(12, 1, b""), Some(Vec::new()), "feature 0, an optional one");
    assert_eq!(with(12, 0, b"\x80\x01x"), Some(Vec::new()), "an optional field");
    assert_eq!(with(12, 0, b"\x01\x01x"), None, "a required field");
}

#[test]
fn any_bytes_with_the_right_checksum_decode_or_are_refused() {
    let mut state = 1u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u8
    };
    let head = &encode(7, &[])[..HEAD_BYTES];
    for length in 0..2_000 {
        let mut bytes = head.to_vec();
        bytes.extend((0..length % 50).map(|i| if i == 0 { next() % 4 } else { next() }));
        let crc = crc_fast::crc32_iscsi(&bytes);
        bytes.extend_from_slice(&crc.to_le_bytes());
        if let Some(files) = decode(&bytes, 7) {
            assert_eq!(decode(&encode(7, &files), 7), Some(files));
        }
    }
}
