//! Opens a database for writing on a disk without room.

use crate::memtable::set::MemSet;
use crate::{Database, Durability, Table};
use os::sim::SimDisk;
use os::sync::Arc;
use os::{Disk, Machine};
use std::io::ErrorKind;
use std::path::Path;

/// The reserve is smaller than the logs, but large enough for a flush of range erases.
const RESERVE_BYTES: u64 = 64 << 10;
const WRITE_BUFFER_BYTES: u64 = 512 << 10;

fn try_open(disk: &Arc<SimDisk>) -> crate::Result<Database> {
    let machine = Machine::simulated_on(disk.clone(), 1);
    let builder = Database::builder("db").machine(machine).reserve_bytes(RESERVE_BYTES);
    builder.write_buffer_bytes(WRITE_BUFFER_BYTES).open()
}

fn open(disk: &Arc<SimDisk>) -> Database {
    try_open(disk).unwrap_or_else(|error| panic!("it opens: {error}"))
}

fn rows(db: &Database, table: &str) -> Vec<(Vec<u8>, Vec<u8>)> {
    let table = db.existing_table(table).expect("the disk works").expect("the table is there");
    table.iter().map(|row| row.expect("the disk works")).map(|(key, value)| (key.to_vec(), value.to_vec())).collect()
}

fn put(table: &Table, keys: std::ops::Range<u32>, byte: u8) {
    keys.for_each(|i| table.insert(i.to_be_bytes(), [byte; 1000]).expect("the disk works"));
}

/// The bytes of all files of the database except the reserve.
fn data_bytes(disk: &SimDisk) -> u64 {
    let entries = disk.list(Path::new("db")).expect("the disk works");
    let names =
        entries.into_iter().map(|entry| Path::new("db").join(entry.name)).filter(|path| !path.ends_with("RESERVE"));
    names.map(|path| disk.read_all(&path).expect("the disk works").len() as u64).sum()
}

/// A disk with a database that is not open: two tables with rows in files and in several logs, and a filled reserve.
fn with_rows(is_closed: bool) -> Arc<SimDisk> {
    let disk = SimDisk::new(1);
    let db = open(&disk);
    let (t, u) = (db.table("t").expect("the disk works"), db.table("u").expect("the disk works"));
    put(&t, 0..100, 1);
    put(&u, 0..100, 1);
    db.flush().expect("the disk works");
    // From here on flushes fail, so that several memtables stay in memory.
    disk.fail_opens(".sst", ErrorKind::Other);
    put(&t, 50..300, 2);
    put(&u, 50..100, 2);
    t.remove_range(10u32.to_be_bytes()..20u32.to_be_bytes()).expect("the disk works");
    assert!(db.core().views.newest().memory.len() > 1, "there are several logs");
    disk.clear_faults();
    if is_closed {
        drop((t, u));
        db.close().expect("the disk works");
    } else {
        drop((t, u, db));
    }
    disk.crash_keeping_everything();
    assert!(disk.exists(Path::new("db/RESERVE")).expect("the disk works"));
    disk
}

#[test]
fn a_full_disk_opens_for_reads_erases_and_drops_whatever_room_is_left() {
    for is_closed in [false, true] {
        let whole = with_rows(is_closed);
        let expected = (rows(&open(&whole.image()), "t"), rows(&open(&whole.image()), "u"));
        for room in (0..4000).step_by(97).chain((4000..500_000).step_by(30_011)) {
            let disk = whole.image();
            disk.set_capacity(disk.used_bytes() + room);
            let db = open(&disk);
            assert_eq!((rows(&db, "t"), rows(&db, "u")), expected, "room {room}");
            let t = db.table("t").expect("it is there");
            t.remove_range(..200u32.to_be_bytes()).unwrap_or_else(|error| panic!("an erase, room {room}: {error}"));
            let left: Vec<_> =
                expected.0.iter().filter(|(key, _)| key[..] >= 200u32.to_be_bytes()[..]).cloned().collect();
            assert_eq!(rows(&db, "t"), left, "room {room}");
            db.drop_table("u").unwrap_or_else(|error| panic!("a dropped table, room {room}: {error}"));
            // When the disk has room again, writes and flushes succeed.
            disk.set_capacity(u64::MAX);
            t.insert("later", "a row").expect("the disk has room");
            db.flush().expect("the disk has room");
            drop((t, db));
            disk.crash_keeping_nothing();
            let db = open(&disk);
            assert_eq!(rows(&db, "t")[..left.len()], left, "room {room}");
            assert_eq!(rows(&db, "t").len(), left.len() + 1, "room {room}");
            assert!(db.existing_table("u").expect("the disk works").is_none());
            db.check(|_| {}).expect("the database is whole");
        }
    }
}

#[test]
fn a_change_on_a_full_disk_ends_with_a_close_that_succeeds_and_keeps_it() {
    for durability in [Durability::Synced, Durability::Buffered] {
        for room in (0..4000).step_by(197).chain((4000..100_000).step_by(10_007)) {
            let disk = with_rows(false);
            disk.set_capacity(disk.used_bytes() + room);
            let db = open(&disk);
            let before = rows(&db, "t");
            let mut batch = db.batch().durability(durability);
            batch.remove(&db.table("t").expect("it is there"), before[0].0.clone());
            batch.commit().unwrap_or_else(|error| panic!("an erase, room {room}: {error}"));
            db.drop_table("u").unwrap_or_else(|error| panic!("a dropped table, room {room}: {error}"));
            db.close().unwrap_or_else(|error| panic!("a close, room {room}: {error}"));
            disk.crash_keeping_nothing();
            let db = open(&disk);
            assert_eq!(rows(&db, "t"), before[1..], "room {room}");
            assert!(db.existing_table("u").expect("the disk works").is_none(), "room {room}");
        }
    }
}

#[test]
fn an_open_of_which_a_sync_fails_takes_nothing_away_that_the_next_one_needs() {
    let whole = with_rows(false);
    let expected = rows(&open(&whole.image()), "t");
    let syncs = {
        let disk = whole.image();
        drop(open(&disk));
        disk.sync_count()
    };
    assert!(syncs > 3, "a manifest, a log and files are synced: {syncs}");
    for n in 1..=syncs {
        for loses_writes in [false, true] {
            let disk = whole.image();
            if loses_writes {
                disk.lose_writes_of_failed_syncs();
            }
            disk.fail_sync(n, ErrorKind::Other);
            // The open may succeed although a sync fails, for example the sync of the reserve.
            drop(try_open(&disk));
            disk.clear_faults();
            assert_eq!(rows(&open(&disk), "t"), expected, "sync {n}, writes lost: {loses_writes}");
        }
    }
}

#[test]
fn an_open_on_a_full_disk_takes_no_room_and_leaves_nothing_behind_however_often_it_is_done() {
    for room in [0, 100, 1000] {
        let disk = with_rows(false);
        let expected = rows(&open(&disk.image()), "t");
        disk.set_capacity(disk.used_bytes() + room);
        let mut most = 0;
        for n in 0..40 {
            drop(open(&disk));
            if n == 2 {
                most = disk.used_bytes();
            }
            disk.crash_keeping_everything();
        }
        assert!(
            disk.used_bytes() <= most,
            "room {room}: {most} bytes after two opens, {} after forty",
            disk.used_bytes()
        );
        assert_eq!(rows(&open(&disk), "t"), expected, "room {room}");
    }
}

#[test]
fn without_a_reserve_a_full_disk_opens_for_reads() {
    for room in [0, 10, 100] {
        let disk = with_rows(false);
        let expected = rows(&open(&disk.image()), "t");
        disk.remove(Path::new("db/RESERVE")).expect("the disk works");
        disk.set_capacity(disk.used_bytes() + room);
        for _ in 0..3 {
            let db = open(&disk);
            assert_eq!(rows(&db, "t"), expected, "room {room}");
            let error = db.table("t").expect("it is there").insert("x", "y").expect_err("the disk is full");
            assert!(error.is_disk_full(), "room {room}: {error}");
            drop(db);
            disk.crash_keeping_everything();
        }
        let db = open(&disk);
        disk.set_capacity(u64::MAX);
        db.table("t").expect("it is there").insert("x", "y").expect("the disk has room");
        drop(db);
        disk.crash_keeping_nothing();
        assert_eq!(rows(&open(&disk), "t").len(), expected.len() + 1, "room {room}");
    }
}

#[test]
fn erases_of_one_process_make_room_for_the_flush_of_the_next() {
    let disk = with_rows(false);
    // Another program takes all room. Most of the database is in logs.
    disk.set_capacity(disk.used_bytes());
    let before = data_bytes(&disk);
    let db = open(&disk);
    for table in ["t", "u"] {
        db.table(table).expect("it is there").remove_range(..).expect("the reserve has room for an erase");
    }
    drop(db);
    disk.crash_keeping_everything();
    let db = open(&disk);
    assert!(db.core().views.newest().memory.iter().all(|set: &Arc<MemSet>| set.is_empty()), "all is flushed");
    db.compact().expect("there is room");
    assert!(rows(&db, "t").is_empty());
    assert!(data_bytes(&disk) < before / 2, "{before} bytes before, {} bytes after", data_bytes(&disk));
}

#[test]
fn erases_make_room_for_the_flush_that_failed_before_them() {
    let disk = with_rows(false);
    disk.set_capacity(disk.used_bytes());
    let before = data_bytes(&disk);
    let db = open(&disk);
    assert!(db.core().views.newest().memory.len() > 1, "the flush found no room");
    db.table("t").expect("it is there").remove_range(..).expect("the reserve has room for an erase");
    db.table("u").expect("it is there").remove_range(..).expect("the reserve has room for an erase");
    db.flush().expect("what is erased need not be written");
    db.compact().expect("there is room");
    assert!(data_bytes(&disk) < before / 2, "{before} bytes before, {} bytes after", data_bytes(&disk));
}

#[test]
fn recovery_gives_every_acknowledged_commit_when_the_process_dies_again_and_again_during_open_on_a_full_disk() {
    for is_closed in [false, true] {
        let whole = with_rows(is_closed);
        let expected = (rows(&open(&whole.image()), "t"), rows(&open(&whole.image()), "u"));
        for room in [0, 700] {
            for n in (1..120).step_by(2) {
                let disk = whole.image();
                disk.set_capacity(disk.used_bytes() + room);
                for (dies, keeps) in [(n, true), (n / 2 + 1, false), (n + 3, true)] {
                    // After `dies` operations the process is as good as dead: nothing it does has an effect.
                    // Unsynced bytes are kept or lost, depending on `keeps`.
                    disk.fail_all_after(dies, ErrorKind::StorageFull);
                    drop(try_open(&disk));
                    if keeps {
                        disk.crash_keeping_everything();
                    } else {
                        disk.crash_keeping_nothing();
                    }
                }
                let db = open(&disk);
                assert_eq!(
                    (rows(&db, "t"), rows(&db, "u")),
                    expected,
                    "closed {is_closed}, room {room}, {n} operations"
                );
                db.check(|_| {}).expect("the database is whole");
                drop(db);
                disk.set_capacity(u64::MAX);
                disk.crash_keeping_nothing();
                let db = open(&disk);
                assert_eq!(
                    (rows(&db, "t"), rows(&db, "u")),
                    expected,
                    "closed {is_closed}, room {room}, {n} operations"
                );
            }
        }
    }
}

#[test]
fn a_write_that_finds_no_room_during_open_loses_no_acknowledged_commit() {
    let whole = with_rows(false);
    let expected = (rows(&open(&whole.image()), "t"), rows(&open(&whole.image()), "u"));
    for n in 1..150 {
        let disk = whole.image();
        disk.fail_operation(n, ErrorKind::StorageFull);
        // The open may fail if the failing operation is a rename or a sync, so its result is not checked.
        let opened = try_open(&disk);
        disk.clear_faults();
        if let Ok(db) = opened {
            assert_eq!((rows(&db, "t"), rows(&db, "u")), expected, "operation {n}");
            db.table("t").expect("it is there").insert("new", "row").unwrap_or_else(|error| panic!("{n}: {error}"));
            db.table("t").expect("it is there").remove("new").unwrap_or_else(|error| panic!("{n}: {error}"));
        }
        disk.crash_keeping_nothing();
        let db = open(&disk);
        assert_eq!((rows(&db, "t"), rows(&db, "u")), expected, "operation {n}");
        db.check(|_| {}).expect("the database is whole");
    }
}
