//! An index is built while writes go on, and either it is whole or there is none.

use super::*;
use crate::Cancel;
use crate::log::record::tests::seeds;
use os::sync::atomic::{AtomicBool, Ordering};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

fn fill(table: &Table, rows: u32) {
    for number in 0..rows {
        table.insert(format!("{number:05}"), format!("w{} same", number % 97)).expect("it is taken");
    }
}

#[test]
fn an_index_that_cannot_be_built_leaves_nothing() {
    let (_, db, table) = with_table();
    fill(&table, 300);
    let duplicate = create(&table, "first", "first", true).expect_err("words come again");
    assert!(matches!(duplicate, Error::Duplicate { ref row, .. } if row[..] == *b"00000"), "{duplicate}");
    table.insert("99999", "bad!").expect("it is taken");
    assert!(matches!(create(&table, "length", "length", false), Err(Error::BadRow { .. })));
    let cancel = Cancel::new();
    let cancelled = table.until(&cancel).create_index("words", "words", &IndexOptions::default(), &mut |progress| {
        assert!(matches!(table.index("words"), Err(Error::IndexNotReady { .. })));
        assert_eq!(table.indexes().expect("it is there"), [] as [&str; 0]);
        if progress.rows >= 128 {
            cancel.cancel();
        }
    });
    assert!(matches!(cancelled, Err(Error::Cancelled(_))));
    assert!(table.indexes().expect("it is there").is_empty());
    assert_eq!(db.core().views.newest().files.tables.values().count(), 1);
    assert_eq!(db.core().writes.recent.running(), 0);
    table.insert("1", "bad!").expect("no index is in the way");
    db.compact().expect("the disk works");
    assert_eq!(db.metrics().files, 1);
}

#[test]
fn a_table_that_is_dropped_or_renamed_ends_the_building_of_its_index() {
    for is_renamed in [false, true] {
        let (_, db, table) = with_table();
        fill(&table, 300);
        let built = table.create_index("words", "words", &IndexOptions::default(), &mut |_| {
            let changed = if is_renamed { db.rename_table("t", "u").map(drop) } else { db.drop_table("t").map(drop) };
            assert!(matches!(changed, Ok(()) | Err(Error::NoSuchTable(_))));
        });
        assert!(built.is_err());
        assert_eq!(db.core().views.newest().files.tables.values().count(), usize::from(is_renamed));
    }
}

#[test]
fn rows_that_are_written_while_an_index_is_built_are_in_it() {
    for seed in seeds(4) {
        let mut rng = StdRng::seed_from_u64(seed);
        let (_, db, table) = with_table();
        fill(&table, 2000);
        let index = table.create_index("words", "words", &IndexOptions::default(), &mut |progress| {
            assert!(progress.rows <= progress.total_rows);
            for _ in 0..rng.random_range(0..20) {
                let key = format!("{:05}", rng.random_range(0..2500));
                match rng.random_range(0..4) {
                    0 => table.remove(key).expect("it is taken"),
                    1 => db.flush().expect("the disk works"),
                    _ => table.insert(key, format!("w{} new", rng.random_range(0..97))).expect("it is taken"),
                }
            }
        });
        is_clean(&index.expect("it is built"));
    }
}

#[test]
fn a_crash_while_an_index_is_built_leaves_all_of_it_or_nothing() {
    for seed in seeds(12) {
        let mut rng = StdRng::seed_from_u64(seed);
        let (_, disk) = Machine::simulated(seed);
        let open = |seed| on(&disk, seed).write_buffer_bytes(128 << 10).open().expect("the disk works");
        let db = open(seed);
        let table = db.table("t").expect("it is made");
        fill(&table, 1500);
        disk.crash_at_sync(rng.random_range(1..40));
        let built = table.create_index("words", "words", &IndexOptions::default(), &mut |progress| {
            if disk.has_crashed() {
                return;
            }
            // A write that fails is not there after the crash, or is there whole.
            table.insert(format!("{:05}", progress.rows), "w1 meanwhile").ok();
        });
        let is_built = built.is_ok();
        drop((built, table, db));
        disk.crash();
        disk.clear_faults();
        let db = open(seed + 1);
        let table = db.table("t").expect("it is there");
        let names = table.indexes().expect("it is there");
        assert!(!is_built || names == ["words"], "what was ready is ready after a crash");
        match names.is_empty() {
            true => assert_eq!(db.core().views.newest().files.tables.values().count(), 1, "nothing is left of it"),
            false => is_clean(&table.index("words").expect("it is there")),
        }
        table.insert("x", "w1").expect("it is taken");
        let again = create(&table, "again", "words", false).expect("it is built");
        is_clean(&again);
        drop((again, table, db));
        drop(open(seed + 2));
    }
}

#[test]
#[allow(clippy::disallowed_methods, reason = "real threads write beside a build")]
fn threads_write_while_an_index_is_built() {
    let directory = tempfile::tempdir().expect("there is room");
    let db = Database::builder(directory.path())
        .durability(crate::Durability::Buffered)
        .write_buffer_bytes(1 << 20)
        .extractors(|declaration| Extractor::of(declaration).map(|it| Box::new(it) as Box<dyn IndexKeys>))
        .open()
        .expect("the disk works");
    let table = db.table("t").expect("it is made");
    fill(&table, 20_000);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|threads| {
        for thread in 0..3_u64 {
            let (db, table, is_over) = (&db, &table, &is_over);
            threads.spawn(move || {
                let mut rng = StdRng::seed_from_u64(thread);
                while !is_over.load(Ordering::Acquire) {
                    let key = format!("{:05}", rng.random_range(0..22_000));
                    let value = format!("w{} thread", rng.random_range(0..97));
                    match rng.random_range(0..6) {
                        0 => table.remove(key).expect("it is taken"),
                        1 => {
                            let mut batch = db.batch();
                            batch.insert(table, &key, &value);
                            batch.insert(table, format!("{key} more"), &value);
                            batch.commit().expect("it is taken");
                        }
                        2 => db.transact(|tx| tx.insert(table, &key, &value)).expect("it is taken"),
                        _ => table.insert(key, value).expect("it is taken"),
                    }
                }
            });
        }
        for round in 0..3 {
            let index = create(&table, "words", "words", false).expect("it is built");
            is_clean(&index);
            if round < 2 {
                assert!(table.drop_index("words").expect("the disk works"));
            }
        }
        is_over.store(true, Ordering::Release);
    });
    let index = table.index("words").expect("it is there");
    is_clean(&index);
    assert_eq!((db.core().writes.recent.running(), db.core().writes.reserved.count()), (0, 0));
}

#[test]
fn a_reader_of_an_older_version_is_told_that_the_index_was_not_there() {
    let (_, db, table) = with_table();
    fill(&table, 100);
    let (before, tx) = (db.snapshot(), db.begin().expect("it begins"));
    let index = create(&table, "words", "words", false).expect("it is built");
    let is_refused = |outcome: Result<usize>| matches!(outcome, Err(Error::IndexNotReady { .. }));
    assert!(is_refused(before.get_by(&index, ended("w1")).map(|rows| rows.len())));
    assert!(is_refused(tx.range_by(&index, ..).collect::<Result<Vec<_>>>().map(|rows| rows.len())));
    assert!(is_refused(before.entries(&index, ..).collect::<Result<Vec<_>>>().map(|entries| entries.len())));
    let after = db.snapshot();
    let all = table.iter().count();
    table.remove_range(..).expect("it is taken");
    assert_eq!(after.range_by(&index, ..).count(), 2 * all, "each row has two words");
    assert_eq!(index.entries(..).count(), 0);
}
