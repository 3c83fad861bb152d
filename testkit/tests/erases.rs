//! Tests of tables with many range erases: what readers see, and how many more pages reads and compactions look at.

use larch::options::LevelOptions;
use larch::stats::Reason;
use larch::{Database, Durability, Readable, Snapshot, Table, TableOptions};
use os::Machine;
use os::sim::SimDisk;
use os::sync::Arc;
use pages::PageKind;
use pages::counters::Pages;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeMap;
use std::ops::Bound;

fn open(disk: &Arc<SimDisk>, cache_bytes: u64, levels: LevelOptions) -> Database {
    let machine = Machine::simulated_on(disk.clone(), 1);
    let builder = Database::builder("db").machine(machine).cache_bytes(cache_bytes).levels(levels);
    builder.open().expect("the disk works")
}

/// Levels that allow enough files that no compaction starts by itself.
fn patient() -> LevelOptions {
    LevelOptions { level0_files: 1000, slow_files: 1000, ..LevelOptions::default() }
}

fn key(i: u32) -> Vec<u8> {
    format!("k{i:06}").into_bytes()
}

type Model = BTreeMap<Vec<u8>, Vec<u8>>;
type Range = (Bound<Vec<u8>>, Bound<Vec<u8>>);

fn random_range(rng: &mut StdRng, keys: u32) -> Range {
    let start = rng.random_range(0..keys);
    let length = if rng.random_range(0..40) == 0 { keys / 4 } else { rng.random_range(0..6) };
    let bound = |rng: &mut StdRng, i: u32| match rng.random_range(0..20) {
        0 if length > 6 => Bound::Unbounded,
        0..10 => Bound::Included(key(i)),
        _ => Bound::Excluded(key(i)),
    };
    (bound(rng, start), bound(rng, start + length))
}

fn is_void((low, high): &Range) -> bool {
    match (low, high) {
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
        (Bound::Included(low), Bound::Included(high)) => low > high,
        (Bound::Included(low) | Bound::Excluded(low), Bound::Included(high) | Bound::Excluded(high)) => low >= high,
    }
}

/// Compares `table` with `model`: the rows of a random range, read from both ends, and some single keys.
fn check(rng: &mut StdRng, table: &Table, snapshot: &Snapshot, model: &Model, keys: u32) {
    let mut range = random_range(rng, keys);
    while is_void(&range) {
        range = random_range(rng, keys);
    }
    let wide = if rng.random() { (Bound::Unbounded, Bound::Unbounded) } else { (range.0.clone(), Bound::Unbounded) };
    for range in [range, wide] {
        let mut expected = model.range(range.clone());
        let mut rows = snapshot.range(table, range.clone());
        let ends = rng.random_range(0..3);
        loop {
            let from_front = ends == 0 || ends == 1 && rng.random_bool(0.9);
            let (row, expected) = match from_front {
                true => (rows.next(), expected.next()),
                false => (rows.next_back(), expected.next_back()),
            };
            let row = row.map(|row| row.expect("the disk works"));
            let row = row.as_ref().map(|(key, value)| (&key[..], &value[..]));
            assert_eq!(row, expected.map(|(key, value)| (&key[..], &value[..])), "{range:?}");
            if row.is_none() {
                break;
            }
        }
    }
    for _ in 0..20 {
        let key = key(rng.random_range(0..keys));
        let value = snapshot.get(table, &key).expect("the disk works");
        assert_eq!(value.as_deref(), model.get(&key).map(Vec::as_slice), "{key:?}");
    }
}

#[test]
fn rows_are_those_of_a_model_under_many_range_erases_whatever_becomes_of_files() {
    const KEYS: u32 = 2_000;
    for seed in 0..16 {
        let cache_bytes = [64 << 10, 8 << 20][seed as usize % 2];
        println!("seed {seed}, cache of {cache_bytes} bytes");
        let rng = &mut StdRng::seed_from_u64(seed);
        let levels = LevelOptions {
            file_bytes: 8 << 10,
            base_bytes: 16 << 10,
            level0_files: rng.random_range(2..6),
            slow_files: 100,
            ..LevelOptions::default()
        };
        let disk = SimDisk::new(seed);
        let db = open(&disk, cache_bytes, levels);
        let options = TableOptions { page_bytes: 512, node_bytes: 256, ..TableOptions::default() };
        let mut table = db.table_with("t", options).expect("the disk works");
        let mut model = Model::new();
        let mut shown: Vec<(Snapshot, Table, Model)> = Vec::new();
        for round in 0..40u32 {
            let mut batch = db.batch().durability(Durability::Buffered);
            for i in 0..rng.random_range(0..150u32) {
                if rng.random_range(0..3) > 0 {
                    let (key, value) = (key(rng.random_range(0..KEYS)), format!("{round} {i}").into_bytes());
                    batch.insert(&table, &key, &value);
                    model.insert(key, value);
                } else {
                    let range = random_range(rng, KEYS);
                    batch.remove_range(&table, range.clone());
                    if !is_void(&range) {
                        let gone: Vec<_> = model.range(range).map(|(key, _)| key.clone()).collect();
                        gone.iter().for_each(|key| drop(model.remove(key)));
                    }
                }
            }
            batch.commit().expect("the disk works");
            match rng.random_range(0..12) {
                0..4 => db.flush().expect("the disk works"),
                4 => table.compact().expect("the disk works"),
                5 if round > 20 && table.name() == "t" => {
                    // Splits off the rows from a random key on.
                    let from = key(rng.random_range(0..KEYS / 2));
                    shown.push((db.snapshot(), table.clone(), model.clone()));
                    let rest = table.split_off(&from, "rest").expect("the disk works");
                    let left: Model = model.range(..from.clone()).map(|(k, v)| (k.clone(), v.clone())).collect();
                    check(rng, &table, &db.snapshot(), &left, KEYS);
                    model = model.split_off(&from);
                    table = rest;
                }
                6..8 => shown.push((db.snapshot(), table.clone(), model.clone())),
                8 if !shown.is_empty() => drop(shown.swap_remove(rng.random_range(0..shown.len()))),
                _ => {}
            }
            check(rng, &table, &db.snapshot(), &model, KEYS);
            if let Some((snapshot, table, model)) = shown.last() {
                check(rng, table, snapshot, model, KEYS);
            }
        }
        for (snapshot, table, model) in &shown {
            check(rng, table, snapshot, model, KEYS);
        }
        let report = db.check(|_| {}).expect("the disk works");
        assert!(report.problems.is_empty(), "{}", report.problems[0]);
        drop(shown);
        db.compact().expect("the disk works");
        check(rng, &table, &db.snapshot(), &model, KEYS);
        assert_eq!(table.count_exact(..).expect("the disk works"), model.len() as u64);
        assert_eq!(table.stats().expect("it is there").range_erase_bytes, 0, "nothing is left for them to hide");
        assert_eq!(db.metrics().cache.pinned_bytes, 0);
    }
}

const ROWS: u32 = 20_000;

/// A table with `ROWS` rows in the deepest level.
fn filled(db: &Database) -> Table {
    let options = TableOptions { page_bytes: 4096, ..TableOptions::default() };
    let table = db.table_with("t", options).expect("the disk works");
    let mut import = table.import().expect("the disk works");
    for i in 0..ROWS {
        import.add(&key(i), &[b'v'; 50]).expect("the disk works");
    }
    import.finish(|_| {}).expect("the disk works");
    table
}

/// Erases ranges just behind each of `rows`, in which no key has a row.
fn erase_between(db: &Database, table: &Table, rows: impl IntoIterator<Item = u32>) {
    let mut batch = db.batch().durability(Durability::Buffered);
    for i in rows {
        batch.remove_range(table, [&key(i)[..], b"a"].concat()..[&key(i)[..], b"b"].concat());
    }
    batch.commit().expect("the disk works");
}

/// How many pages were looked at for `reason` so far, in memory or from disk.
fn looks(db: &Database, reason: Reason) -> u64 {
    let Pages { hits, faults, .. } = db.metrics().pages.of_reason(reason);
    hits + faults
}

fn scan(table: &Table, rows: std::ops::Range<u32>) -> usize {
    let mut range = table.range(key(rows.start)..key(rows.end));
    let mut count = 0;
    while range.next_row().expect("the disk works").is_some() {
        count += 1;
    }
    count
}

#[test]
fn a_range_that_no_range_erase_touches_costs_one_look_more_for_each_source_that_has_some() {
    for in_memory in [false, true] {
        let [without, with] = [false, true].map(|erased| {
            let db = open(&SimDisk::new(1), 64 << 20, patient());
            let table = filled(&db);
            if erased {
                // All erases lie before or after what is read.
                erase_between(&db, &table, (0..ROWS / 4).chain(ROWS / 4 * 3..ROWS));
                if !in_memory {
                    db.flush().expect("the disk works");
                }
            }
            let of = |scan: &dyn Fn()| {
                scan();
                let before = looks(&db, Reason::Scan);
                scan();
                looks(&db, Reason::Scan) - before
            };
            let long = of(&|| assert_eq!(scan(&table, ROWS / 4 + 1..ROWS / 4 * 3) as u32, ROWS / 2 - 1));
            let short = of(&|| {
                for i in 0..100 {
                    let first = ROWS / 4 + 1 + i * 50;
                    assert_eq!(scan(&table, first..first + 10), 10);
                }
            });
            (long, short)
        });
        println!("long {} {}, 100 short {} {}", without.0, with.0, without.1, with.1);
        // The three more are the root or a node of the tree of range erases, and pages of range erases.
        assert!(with.0 <= without.0 + 3, "{} pages looked at, {} without range erases", with.0, without.0);
        assert!(with.1 <= without.1 + 300, "{} pages looked at, {} without range erases", with.1, without.1);
    }
}

#[test]
fn a_scan_looks_at_each_page_of_range_erases_once() {
    let db = open(&SimDisk::new(1), 64 << 20, patient());
    let table = filled(&db);
    erase_between(&db, &table, 0..ROWS);
    db.flush().expect("the disk works");
    for backward in [false, true] {
        let looks = || {
            let Pages { hits, faults, .. } = db.metrics().pages.pages(Reason::Scan, PageKind::RangeErase);
            hits + faults
        };
        let before = looks();
        let rows = if backward { table.iter().rev().count() } else { scan(&table, 0..ROWS) };
        assert_eq!(rows as u32, ROWS);
        let pages = table.stats().expect("it is there").range_erase_bytes / 4096;
        println!("{} looks at {pages} pages of range erases", looks() - before);
        assert!(looks() - before <= 3 * pages, "{} looks at {pages} pages", looks() - before);
    }
}

#[test]
fn what_a_range_erase_hides_in_older_files_is_not_read_by_a_scan() {
    for in_memory in [false, true] {
        let db = open(&SimDisk::new(1), 64 << 20, patient());
        let table = filled(&db);
        // While this snapshot sees the rows, the files must not be cut.
        let _snapshot = db.snapshot();
        table.remove_range(key(100)..key(ROWS - 100)).expect("the disk works");
        if !in_memory {
            db.flush().expect("the disk works");
        }
        for backward in [false, true] {
            let before = looks(&db, Reason::Scan);
            let rows = if backward { table.iter().rev().count() } else { table.iter().count() };
            assert_eq!(rows, 200);
            let looked = looks(&db, Reason::Scan) - before;
            assert!(looked < 40, "{looked} of some 300 pages were looked at");
        }
    }
}

#[test]
fn a_compaction_reads_each_page_of_range_erases_once() {
    for cache_bytes in [1 << 20, 64 << 20] {
        let db = open(&SimDisk::new(1), cache_bytes, patient());
        let table = filled(&db);
        let snapshot = db.snapshot();
        for part in 0..4 {
            erase_between(&db, &table, (0..ROWS).filter(|i| i % 4 == part));
            db.flush().expect("the disk works");
        }
        let before = db.metrics().pages.pages(Reason::Compaction, PageKind::RangeErase);
        let pages = table.stats().expect("it is there").range_erase_bytes / 4096;
        table.compact().expect("the disk works");
        let after = db.metrics().pages.pages(Reason::Compaction, PageKind::RangeErase);
        let looks = after.hits + after.faults - before.hits - before.faults;
        // Finding out which part of a file can be cut off takes a few looks at range erases, too.
        println!("{looks} looks at {pages} pages of range erases");
        assert!(looks <= 3 * pages, "{looks} looks at {pages} pages of range erases");
        drop(snapshot);
    }
}
