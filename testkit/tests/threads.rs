//! Many threads on the real machine, with tiny options, so that background work goes on all the time. The threads
//! interleave in an unknown order, so each check must hold for every order. Tests end after a fixed number of steps.

#![allow(clippy::disallowed_methods, reason = "threads of the machine are what is tested")]

use kit::Scratch;
use larch::options::{LevelOptions, PageIndexKind};
use larch::{Database, Durability, Readable, Result, Table, TableOptions, Version};
use os::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::ops::Bound;
use std::thread;

const WRITERS: usize = 4;
const READERS: usize = 3;
const COMMITS: u64 = 300;
/// How many rows each writer has at a time, beside its counter.
const ROWS: u64 = 40;

fn open(directory: &Scratch, cache_bytes: u64) -> Database {
    let levels = LevelOptions { level0_files: 2, slow_files: 6, base_bytes: 32 << 10, growth: 3, file_bytes: 16 << 10 };
    let builder =
        Database::builder(directory.path()).cache_bytes(cache_bytes).write_buffer_bytes(32 << 10).levels(levels);
    builder.open_files(4).open().expect("the directory is ours")
}

fn options() -> TableOptions {
    TableOptions { page_bytes: 512, node_bytes: 256, ..TableOptions::default() }
}

fn counter_key(writer: usize) -> String {
    format!("counter {writer}")
}

/// Makes the commits of a writer. Commit `n` sets the writer's counter in both tables, inserts row `n`, and
/// removes rows that are too old by then.
fn write(db: &Database, (left, right): (&Table, &Table), writer: usize) -> Result<()> {
    for n in 1..=COMMITS {
        let durability = if n % 50 == 0 { Durability::Synced } else { Durability::Buffered };
        let mut batch = db.batch().durability(durability);
        let value = format!("{n:08}");
        batch.insert(left, counter_key(writer), &value);
        batch.insert(right, counter_key(writer), &value);
        batch.insert(left, format!("row {writer} {n:08}"), value.repeat(1 + n as usize % 20));
        if n % 10 == 0 {
            let old = n.saturating_sub(ROWS);
            batch.remove_range(left, format!("row {writer} ")..=format!("row {writer} {old:08}"));
        } else if let Some(old) = n.checked_sub(ROWS) {
            batch.remove(left, format!("row {writer} {old:08}"));
        }
        batch.commit()?;
        if n % 100 == 0 {
            db.flush()?;
        }
    }
    Ok(())
}

/// What one reader saw last.
#[derive(Default)]
struct Seen {
    version: Version,
    counters: [u64; WRITERS],
}

impl Seen {
    /// Checks both tables at one version: they must agree, no counter may be lower than before, and each writer's
    /// rows must match its counter.
    fn look(&mut self, db: &Database, (left, right): (&Table, &Table)) -> Result<()> {
        let snapshot = db.snapshot();
        assert!(snapshot.version() >= self.version, "versions never go back");
        self.version = snapshot.version();
        for writer in 0..WRITERS {
            let read = |table| -> Result<u64> {
                let value = snapshot.get(table, counter_key(writer))?;
                Ok(value.map_or(0, |value| std::str::from_utf8(&value).unwrap().parse().unwrap()))
            };
            let (a, b) = (read(left)?, read(right)?);
            assert_eq!(a, b, "both tables have the same counter of writer {writer}");
            assert!(a >= self.counters[writer], "the counter of writer {writer} went back to {a}");
            self.counters[writer] = a;
            expect_window(&snapshot, left, writer, a)?;
        }
        Ok(())
    }
}

/// Checks the rows of a writer after its commit `n`: their numbers must have no gaps, and the last must be `n`.
fn expect_window(snapshot: &impl Readable, left: &Table, writer: usize, n: u64) -> Result<()> {
    let (low, high) = (format!("row {writer} "), format!("row {writer}!"));
    let bounds = || (Bound::Included(low.clone()), Bound::Excluded(high.clone()));
    let numbers = |range: &mut dyn Iterator<Item = Result<(larch::Key, larch::Value)>>| -> Result<Vec<u64>> {
        range.map(|row| row.map(|(key, _)| std::str::from_utf8(&key[low.len()..]).unwrap().parse().unwrap())).collect()
    };
    let forward = numbers(&mut snapshot.range(left, bounds()))?;
    let mut backward = numbers(&mut snapshot.range(left, bounds()).rev())?;
    backward.reverse();
    assert_eq!(forward, backward, "both directions give the same rows");
    assert_eq!(
        forward,
        (n.saturating_sub(ROWS) + 1..=n).collect::<Vec<_>>(),
        "rows of writer {writer} after its commit {n}"
    );
    Ok(())
}

#[test]
fn readers_see_whole_commits_in_order_while_everything_moves() {
    let directory = Scratch::new("threads");
    {
        let db = open(&directory, 1 << 20);
        let (left, right) = (db.table_with("left", options()).unwrap(), db.table_with("right", options()).unwrap());
        let tables = (&left, &right);
        let writing = &AtomicUsize::new(WRITERS);
        let db = &db;
        thread::scope(|scope| {
            for writer in 0..WRITERS {
                scope.spawn(move || {
                    let _done = Done(writing);
                    write(db, tables, writer).unwrap();
                });
            }
            for _ in 0..READERS {
                scope.spawn(move || {
                    let mut seen = Seen::default();
                    while writing.load(Ordering::Acquire) > 0 {
                        seen.look(db, tables).unwrap();
                    }
                    seen.look(db, tables).unwrap();
                    assert_eq!(seen.counters, [COMMITS; WRITERS]);
                });
            }
            scope.spawn(move || {
                while writing.load(Ordering::Acquire) > 0 {
                    db.compact().unwrap();
                    let report = db.check(|_| {}).unwrap();
                    assert!(report.problems.is_empty(), "{}", report.problems[0]);
                }
            });
        });
        assert_eq!(db.version(), Version(WRITERS as u64 * COMMITS));
    }
    // The database was dropped without being closed, so some commits are only in the log.
    let db = open(&directory, 1 << 20);
    let (left, right) = (db.table("left").unwrap(), db.table("right").unwrap());
    let mut seen = Seen::default();
    seen.look(&db, (&left, &right)).unwrap();
    assert_eq!(seen.counters, [COMMITS; WRITERS]);
    let report = db.check(|_| {}).unwrap();
    assert!(report.problems.is_empty(), "{}", report.problems[0]);
}

/// Counts a thread as done even if it panics, because the other threads must not wait for it.
struct Done<'a>(&'a AtomicUsize);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Release);
    }
}

#[test]
fn tables_and_imports_come_and_go_while_others_write() {
    let directory = Scratch::new("tables");
    // Together, the threads want to pin more pages than the cache has room for, so some must wait for others.
    let db = &open(&directory, 24 << 10);
    let steady = &db.table_with("steady", options()).unwrap();
    let working = &AtomicBool::new(true);
    thread::scope(|scope| {
        scope.spawn(move || {
            let mut n = 0u64;
            while working.load(Ordering::Acquire) {
                n += 1;
                let mut batch = db.batch().durability(Durability::Buffered);
                batch.insert(steady, "n", n.to_string());
                batch.insert(steady, format!("row {:03}", n % 500), n.to_string().repeat(10));
                batch.commit().unwrap();
            }
            assert_eq!(steady.get("n").unwrap().as_deref(), Some(n.to_string().as_bytes()));
        });
        scope.spawn(move || {
            let _stop = Stop(working);
            for round in 0..20 {
                let table = db.table_with("passing", options()).unwrap();
                for i in 0..30 {
                    let mut batch = db.batch().durability(Durability::Buffered);
                    batch.insert(&table, format!("{i:03}"), format!("{round} {i}").repeat(20));
                    batch.commit().unwrap();
                }
                let mut import = table.import().unwrap();
                for i in 0..60u32 {
                    import.add(format!("{:03}", i * 7 % 60).as_bytes(), format!("{round}").as_bytes()).unwrap();
                }
                assert_eq!(import.finish(|_| {}).unwrap().rows, 60);
                let values = table.iter().map(|row| row.map(|(_, value)| value.to_vec()));
                let values: Vec<Vec<u8>> = values.collect::<Result<_>>().unwrap();
                assert_eq!(values, vec![format!("{round}").into_bytes(); 60]);
                assert!(db.drop_table("passing").unwrap());
            }
        });
        scope.spawn(move || {
            while working.load(Ordering::Acquire) {
                db.compact().unwrap();
            }
        });
    });
    let report = db.check(|_| {}).unwrap();
    assert!(report.problems.is_empty(), "{}", report.problems[0]);
}

#[test]
fn rows_are_there_while_the_way_they_are_stored_changes() {
    let directory = Scratch::new("alter");
    let db = &open(&directory, 1 << 20);
    let table = &db.table_with("t", options()).unwrap();
    let working = &AtomicBool::new(true);
    let kinds = [PageIndexKind::Btree, PageIndexKind::Flat, PageIndexKind::Both];
    thread::scope(|scope| {
        scope.spawn(move || {
            let _stop = Stop(working);
            for n in 0..2000u32 {
                let mut batch = db.batch().durability(Durability::Buffered);
                batch.insert(table, format!("{n:06}"), n.to_string().repeat(20));
                batch.commit().unwrap();
                let known = n / 2;
                let value = table.get(format!("{known:06}")).unwrap();
                assert_eq!(value.as_deref(), Some(known.to_string().repeat(20).as_bytes()));
                if n % 200 == 0 {
                    let keys = table.iter().map(|row| row.map(|(key, _)| key.to_vec()));
                    let keys: Vec<Vec<u8>> = keys.collect::<Result<_>>().unwrap();
                    assert_eq!(keys, (0..=n).map(|n| format!("{n:06}").into_bytes()).collect::<Vec<_>>());
                }
            }
        });
        // Two threads change one option each, and neither may undo the other's change.
        scope.spawn(move || {
            while working.load(Ordering::Acquire) {
                for index in kinds {
                    table.alter(|options| options.index = index).unwrap();
                    assert_eq!(table.options().index, index);
                }
            }
        });
        scope.spawn(move || {
            while working.load(Ordering::Acquire) {
                for page_bytes in [256, 512, 1024] {
                    table.alter(|options| options.page_bytes = page_bytes).unwrap();
                    assert_eq!(table.options().page_bytes, page_bytes);
                    table.compact().unwrap();
                }
            }
        });
    });
    for index in kinds {
        table.alter(|options| options.index = index).unwrap();
        table.compact().unwrap();
        let stats = table.stats().unwrap();
        let has = (stats.btree_bytes > 0, stats.flat_bytes > 0);
        assert_eq!(has, (index != PageIndexKind::Flat, index != PageIndexKind::Btree), "{index:?}");
        assert_eq!(table.iter().count(), 2000);
        let report = db.check(|_| {}).unwrap();
        assert!(report.problems.is_empty(), "{}", report.problems[0]);
    }
}

/// Tells the other threads to end when it is dropped, even by a panic.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}
