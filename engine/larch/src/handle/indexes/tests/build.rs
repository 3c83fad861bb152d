//! Tests that an index is built while writes go on, and that it is either complete or does not exist.

use super::*;
use crate::base::record::tests::seeds;
use os::sync::atomic::{AtomicBool, Ordering};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::ops::ControlFlow;

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
    let mut looks = 0;
    let cancelled = table.create_index("words", "words", &IndexOptions::default(), |progress| {
        if progress.total > 0 {
            assert!(matches!(table.index("words"), Err(Error::IndexNotReady { .. })));
            looks += 1;
        }
        assert_eq!(table.indexes().expect("it is there"), [] as [&str; 0]);
        if progress.done >= 128 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert!(looks > 1);
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
        let built = table.create_index("words", "words", &IndexOptions::default(), |_| {
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
        let index = table.create_index("words", "words", &IndexOptions::default(), |progress| {
            assert!(progress.done <= progress.total);
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
        let built = table.create_index("words", "words", &IndexOptions::default(), |progress| {
            if disk.has_crashed() {
                return;
            }
            // This write may fail. After the crash, its row and entries are either all there or all missing.
            table.insert(format!("{:05}", progress.done), "w1 meanwhile").ok();
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

#[test]
fn rows_of_before_that_an_index_cannot_have_are_replaced_while_it_is_built() {
    for (declaration, bad, removes) in [
        ("value", vec![b'x'; 100_000], true),
        ("value", vec![b'x'; 100_000], false),
        ("length", b"bad!".to_vec(), true),
    ] {
        let (disk, db, table) = with_table();
        fill(&table, 300);
        table.insert("zz", bad).expect("no index is in the way");
        let index = table.create_index("i", declaration, &IndexOptions::default(), |_| {
            match removes {
                true => table.remove("zz").expect("it is taken"),
                false => table.insert("zz", "short").expect("it is taken"),
            };
        });
        is_clean(&index.expect("the row was replaced before the build came to it"));
        db.flush().expect("the disk works");
        drop((table, db));
        disk.crash_keeping_everything();
        let table = on(&disk, 2).open().expect("the log can be read").table("t").expect("it is there");
        is_clean(&table.index("i").expect("it is there"));
        assert_eq!(table.contains_key("zz").expect("the disk works"), !removes);
    }
}

#[test]
fn the_log_of_a_build_that_meets_too_long_a_key_can_be_read() {
    let (disk, db, table) = with_table();
    fill(&table, 300);
    table.insert("zz", vec![b'x'; 100_000]).expect("no index is in the way");
    let mut progress = |_: crate::Progress| table.remove_range("zz"..).expect("it is taken");
    table.create_index("i", "value", &IndexOptions::default(), &mut progress).expect("the row is gone");
    drop((table, db));
    disk.crash_keeping_everything();
    assert_eq!(on(&disk, 2).open().expect("the log can be read").table("t").expect("it is there").iter().count(), 300);
}

#[test]
fn a_database_opened_read_only_sees_a_new_index_whole() {
    let (disk, db, table) = with_table();
    fill(&table, 300);
    db.flush().expect("the disk works");
    create(&table, "words", "words", false).expect("it is built");
    table.insert("zz", "later same").expect("it is taken");
    let reader = on(&disk, 2).read_only(true).open().expect("the disk works");
    let seen = reader.existing_table("t").expect("the disk works").expect("it is there");
    let index = seen.index("words").expect("it is ready");
    assert_eq!(index.get_by(ended("same")).expect("the disk works").len(), seen.iter().count());
    is_clean(&index);
}

#[test]
fn an_extractor_that_panics_in_a_build_breaks_nothing_else() {
    let (_, _db, table) = with_table();
    fill(&table, 300);
    table.insert("zz", "bad!").expect("no index is in the way");
    let building = std::panic::AssertUnwindSafe(|| create(&table, "i", "panic", false).map(drop));
    std::panic::catch_unwind(building).expect_err("the extractor panics");
    assert!(matches!(table.index("i"), Err(Error::NoSuchIndex { .. })));
    table.insert("1", "other").expect("writes go on");
}

#[test]
fn an_erase_that_ends_in_a_panic_is_not_committed() {
    let (_, db, table) = with_table();
    fill(&table, 300);
    table.insert("zz", "hook").expect("no index is in the way");
    let index = create(&table, "i", "hook", false).expect("it is built");
    let mut tx = db.begin().expect("it begins");
    tx.insert(&table, "a", "b").expect("it is taken");
    HOOK.set(Some(Box::new(|| panic!("of the test"))));
    let erase = std::panic::AssertUnwindSafe(|| tx.remove_range(&table, ..));
    std::panic::catch_unwind(erase).expect_err("the extractor panics").downcast::<&str>().expect("it is that panic");
    assert!(matches!(tx.commit(), Err(Error::HalfErased { .. })));
    is_clean(&index);
    assert_eq!(table.iter().count(), 301);
}

#[test]
fn a_build_ends_however_many_rows_are_appended() {
    let (_, _db, table) = with_table();
    fill(&table, 300);
    let mut appended = 0;
    let index = table.create_index("words", "words", &IndexOptions::default(), |_| {
        for _ in 0..100 {
            table.insert(format!("z{appended:05}"), "later same").expect("it is taken");
            appended += 1;
        }
        assert!(appended < 10_000, "it goes on for ever");
    });
    is_clean(&index.expect("it is built"));
}

#[test]
fn a_write_that_looks_into_an_index_that_is_dropped_meanwhile_succeeds() {
    let (_, _db, table) = with_table();
    create(&table, "i", "hook", true).expect("it is built");
    table.insert("1", "one").expect("it is taken");
    let dropping = table.clone();
    HOOK.set(Some(Box::new(move || assert!(dropping.drop_index("i").expect("the disk works")))));
    table.insert("2", "two").expect("the index is gone, the table is there");
    assert!(HOOK.take().is_none() && table.contains_key("2").expect("the disk works"));
}

#[test]
fn an_index_that_cannot_be_dropped_is_dropped_before_the_next_one() {
    let (disk, db, table) = with_table();
    fill(&table, 300);
    let built = table.create_index("first", "first", &IndexOptions::default(), |at| {
        if at.total > 0 {
            disk.set_capacity(0);
        }
    });
    assert!(built.expect_err("the disk is full").is_disk_full());
    disk.set_capacity(u64::MAX);
    assert_eq!(db.core().views.newest().files.tables.indexes().count(), 1, "it could not be dropped");
    is_clean(&create(&table, "first", "words", false).expect("there is room again"));
    assert_eq!(db.core().views.newest().files.tables.indexes().count(), 1);
}
