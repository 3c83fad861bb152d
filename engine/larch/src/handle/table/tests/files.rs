//! Tests how files store rows with values in parts, by reading the files after each way in which rows get into
//! them.

use crate::base::ops::BatchOps;
use crate::base::options::{Durability, LevelOptions, TableOptions};
use crate::handle::table::Table;
use crate::write::commit;
use crate::{Database, Snapshot};
use os::Machine;
use os::sim::SimDisk;
use os::sync::Arc;
use pages::{Admit, Reason, Session, retry};
use sst::{Compression, Groups, PageIndexKind, Readahead, Row, RowKind, SstCursor, Version};
use std::cmp::Reverse;
use std::collections::BTreeMap;

type Parts = Vec<Vec<u8>>;

const ROWS: u32 = 300;

fn builder(disk: &Arc<SimDisk>) -> crate::Builder {
    // The cache has room for only a few pages, so every step of a compaction faults.
    let levels = LevelOptions { level0_files: 100, slow_files: 100, file_bytes: 16 << 10, ..LevelOptions::default() };
    Database::builder("db").machine(Machine::simulated_on(disk.clone(), 1)).cache_bytes(2 << 10).levels(levels)
}

fn key(i: u32) -> Vec<u8> {
    format!("k{i:04}").into_bytes()
}

/// The parts of a row. Some parts are empty, some are short, and some are too long for a page.
fn parts(i: u32, round: u32, count: usize) -> Parts {
    let part = |group: u32| {
        let bytes = match (i + group) % 17 {
            0 => 3000,
            1..5 => 0,
            other => (other * 7 + i) % 60,
        };
        format!("{i} of {round} in {group};").bytes().cycle().take(bytes as usize).collect()
    };
    (0..count as u32).map(part).collect()
}

/// The rows that a reader should see.
type Rows = BTreeMap<Vec<u8>, Parts>;

/// The versions in files. `None` is an erase.
type Stored = BTreeMap<(Vec<u8>, Reverse<Version>), Option<Parts>>;

/// All versions in all files of `table`. Reads the parts of each row in two ways, which must agree.
fn stored(table: &Table) -> Stored {
    let core = table.core();
    let session = Session::new(&core.env.cache, Reason::Check, Admit::Pass);
    let count = table.options().groups.len().max(1);
    let view = core.views.newest();
    let mut stored = Stored::new();
    for (_, file) in view.files.tables[&table.id()].files() {
        let mut cursor = SstCursor::new(file.sst.clone()).with_readahead(Readahead::full(4096));
        let mut add = |cursor: &mut SstCursor, row: Row| {
            let parts = (row.kind != RowKind::Erase).then(|| parts_of(&session, cursor, &row, count));
            let old = stored.insert((cursor.key().to_vec(), Reverse(row.version)), parts);
            assert_eq!(old, None, "a version is in one file");
        };
        let mut there = retry(&session, || cursor.seek_first(&session)).expect("the disk works");
        while there {
            let newest = cursor.newest().expect("the cursor is at a row");
            add(&mut cursor, newest);
            let mut older = retry(&session, || cursor.first_older(&session)).expect("the disk works");
            while older {
                let row = cursor.older().expect("there is one");
                add(&mut cursor, row);
                older = retry(&session, || cursor.next_older(&session)).expect("the disk works");
            }
            there = retry(&session, || cursor.next(&session)).expect("the disk works");
        }
    }
    stored
}

fn parts_of(session: &Session, cursor: &mut SstCursor, row: &Row, count: usize) -> Parts {
    let mut beside = Vec::new();
    let all = Groups::first(count);
    retry(session, || cursor.parts(session, all, row.place, &mut beside)).expect("the disk works");
    let sst = cursor.sst();
    let found = std::iter::once(row.value.clone()).chain(beside).map(|part| {
        let loaded = retry(session, || part.load(session, &sst.file)).expect("the disk works");
        assert_eq!(loaded.as_bytes().len() as u64, part.len());
        loaded.as_bytes().to_vec()
    });
    let found: Parts = found.collect();
    for (group, expected) in found.iter().enumerate().skip(1) {
        let part = retry(session, || sst.part(session, group, row.place)?.load(session, &sst.file));
        assert_eq!(part.expect("the disk works").as_bytes(), expected);
    }
    found
}

/// Checks, for each version in `expected`, that the files show the expected rows.
#[track_caller]
fn check(db: &Database, table: &Table, expected: &[(Version, &Rows)]) {
    db.flush().expect("the disk works");
    let stored = stored(table);
    for (at, expected) in expected {
        let mut found = Rows::new();
        let mut last: Option<&[u8]> = None;
        for ((key, version), parts) in &stored {
            if version.0 <= *at && last != Some(key) {
                last = Some(key);
                parts.iter().for_each(|parts| drop(found.insert(key.clone(), parts.clone())));
            }
        }
        assert!(found.keys().eq(expected.keys()), "keys at {at:?}");
        for (key, parts) in &found {
            assert_eq!(parts, &expected[key], "{} at {at:?}", key.escape_ascii());
        }
    }
    let report = db.check(|_| {}).expect("the disk works");
    assert!(report.problems.is_empty(), "{}", report.problems[0]);
}

fn split(count: usize) -> Vec<String> {
    (0..count).map(|group| format!("g{group}")).collect()
}

/// Writes the rows `first`, `first + step`, `first + 2 * step` and so on, in batches.
fn write(db: &Database, table: &Table, rows: &mut Rows, first: u32, step: usize, round: u32) {
    let count = table.options().groups.len().max(1);
    for chunk in (first..ROWS).step_by(step).collect::<Vec<_>>().chunks(10) {
        let mut batch = db.batch().durability(Durability::Buffered);
        for &i in chunk {
            let parts = parts(i, round, count);
            batch.insert_parts(table, key(i), &parts);
            rows.insert(key(i), parts);
        }
        batch.commit().expect("the disk works");
    }
}

fn travel(options: &TableOptions) {
    let count = options.groups.len().max(1);
    let disk = SimDisk::new(1);
    let db = builder(&disk).open().expect("the disk works");
    let table = db.table_with("t", options.clone()).expect("the disk works");
    let mut rows = Rows::new();

    write(&db, &table, &mut rows, 0, 1, 0);
    let (first, first_rows) = (db.snapshot(), rows.clone());
    db.flush().expect("the disk works");
    write(&db, &table, &mut rows, 1, 3, 1);
    for i in (0..ROWS).step_by(7) {
        table.remove(key(i)).expect("the disk works");
        rows.remove(&key(i));
    }
    let (second, second_rows) = (db.snapshot(), rows.clone());
    write(&db, &table, &mut rows, 2, 5, 2);
    let views = |first: &Snapshot, second: &Snapshot| (first.version(), second.version());
    let (first_at, second_at) = views(&first, &second);
    let all = [(first_at, &first_rows), (second_at, &second_rows), (db.version(), &rows)];
    check(&db, &table, &all);
    let history = |table: &Table| table.stats().expect("the table is there").history_rows;
    assert!(history(&table) > 0, "the second flush has several versions of a row");
    db.compact().expect("the disk works");
    check(&db, &table, &all);
    assert!(history(&table) > 0, "a compaction keeps what snapshots see");
    drop((first, second));
    db.compact().expect("the disk works");
    check(&db, &table, &[(db.version(), &rows)]);
    assert_eq!(history(&table), 0);

    // These rows are only in the log, and the next open writes them to files.
    write(&db, &table, &mut rows, 0, 4, 3);
    drop((table, db));
    let db = builder(&disk).open().expect("the disk works");
    let table = db.table("t").expect("the disk works");
    check(&db, &table, &[(db.version(), &rows)]);

    for in_order in [true, false] {
        let mut import = table.import().expect("the database takes writes");
        let mut numbers: Vec<u32> = (0..ROWS).step_by(2).collect();
        if !in_order {
            // Some keys are added twice; the second row must win.
            numbers.extend((0..ROWS).step_by(6).rev());
        }
        for (round, i) in (10 * u32::from(in_order)..).zip(numbers) {
            let parts = parts(i, round, count);
            import.add_parts(&key(i), &parts).expect("the disk works");
            rows.insert(key(i), parts);
        }
        let report = import.finish(|_| {}).expect("the disk works");
        assert_eq!((report.sorted, report.rows), (in_order, u64::from(ROWS) / 2));
        check(&db, &table, &[(db.version(), &rows)]);
    }
    db.compact().expect("the disk works");
    check(&db, &table, &[(db.version(), &rows)]);
}

#[test]
fn parts_come_to_files_and_stay_what_they_were() {
    for groups in [0, 1, 2, 3, 16] {
        for (index, compression) in [
            (PageIndexKind::Btree, Compression::None),
            (PageIndexKind::Flat, Compression::Lz4),
            (PageIndexKind::Both, Compression::None),
            (PageIndexKind::Btree, Compression::ZSTD),
        ] {
            let small = TableOptions { page_bytes: 256, node_bytes: 256, ..Default::default() };
            travel(&TableOptions { groups: split(groups), index, compression, ..small });
        }
    }
}

#[test]
fn a_part_of_several_chunks_is_copied_whole() {
    let disk = SimDisk::new(1);
    let db = builder(&disk).open().expect("the disk works");
    let options = TableOptions { groups: split(3), ..TableOptions::default() };
    let table = db.table_with("t", options).expect("the disk works");
    let mut rows = Rows::new();
    for i in 0..3 {
        let mut parts = vec![b"short".to_vec(); 3];
        parts[i] = (0..2_500_000u32).map(|byte| (byte % 251) as u8).collect();
        table.insert_parts(key(i as u32), &parts).expect("the disk works");
        rows.insert(key(i as u32), parts);
        db.flush().expect("the disk works");
    }
    table.compact().expect("the disk works");
    check(&db, &table, &[(db.version(), &rows)]);
}

#[test]
fn a_value_that_does_not_split_is_told_when_it_goes_to_a_file() {
    let disk = SimDisk::new(1);
    let db = builder(&disk).open().expect("the disk works");
    let table = db.table_with("t", TableOptions { groups: split(2), ..TableOptions::default() }).expect("it works");
    let mut ops = BatchOps::new();
    ops.put(table.id().0, b"a key", b"\x20too short");
    commit::commit(table.core(), ops.resolve(), &[table.identity().clone()], Durability::Synced)
        .expect("nobody looks at values here");
    let why = "the value of key a key in table t does not split in 2 parts; restore the database from a backup";
    let error = db.flush().expect_err("it cannot be written");
    assert!(error.to_string().contains(why), "{error}");
    drop((table, db));
    let error = builder(&disk).open().expect_err("nor when the log is read");
    assert!(error.is_corruption(), "{error}");
    assert_eq!(error.to_string(), why);
}
