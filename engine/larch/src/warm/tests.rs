//! Tests which pages come into memory before readers ask for them: the right ones, and no more than there is room
//! for.

use crate::options::LevelOptions;
use crate::{Database, Error, Readable as _, Table, TableOptions};
use os::Machine;
use os::sim::SimDisk;
use os::sync::Arc;
use pages::{PageKind, Reason};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::ops::ControlFlow;

const ROWS: u32 = 20_000;

/// Options with which nothing is compacted unless the test asks for it.
fn levels() -> LevelOptions {
    LevelOptions { level0_files: 100, slow_files: 100, file_bytes: 256 << 10, ..LevelOptions::default() }
}

fn open(disk: &Arc<SimDisk>, cache_bytes: u64) -> Database {
    let machine = Machine::simulated_on(disk.clone(), 1);
    let builder = Database::builder("db").machine(machine).levels(levels()).cache_bytes(cache_bytes);
    builder.open().expect("the disk works")
}

fn options() -> TableOptions {
    TableOptions { page_bytes: 4096, node_bytes: 4096, ..TableOptions::default() }
}

fn key(row: u32) -> Vec<u8> {
    format!("row{row:07}").into_bytes()
}

/// Makes a table of [`ROWS`] rows of about 100 bytes in files of the deepest level.
fn fill(db: &Database, options: TableOptions) -> Table {
    let table = db.table_with("t", options).expect("the disk works");
    for row in 0..ROWS {
        table.insert(key(row), [b'v'; 90]).expect("the disk works");
    }
    db.compact().expect("the disk works");
    table
}

fn reads(db: &Database, reason: Reason) -> u64 {
    db.metrics().pages.of_reason(reason).faults
}

fn index_reads(db: &Database, reason: Reason) -> u64 {
    db.metrics().pages.pages(reason, PageKind::Index).faults
}

/// Reads some rows, the hot rows, often and the others seldom.
struct Workload {
    rng: StdRng,
    /// The first row of each stretch of neighbouring hot rows.
    hot: Vec<u32>,
    hot_rows: u32,
}

impl Workload {
    fn new(seed: u64, stretches: u32, hot_rows: u32) -> Self {
        let mut rng = StdRng::seed_from_u64(seed);
        let hot = (0..stretches).map(|_| rng.random_range(0..ROWS - hot_rows)).collect();
        Self { rng, hot, hot_rows }
    }

    fn hot_row(&mut self) -> u32 {
        let stretch = self.hot[self.rng.random_range(0..self.hot.len())];
        stretch + self.rng.random_range(0..self.hot_rows)
    }

    /// Makes `gets` calls of `get`, `hot_percent` percent of them for hot rows. Returns how many read nothing from
    /// disk.
    fn hits(&mut self, db: &Database, table: &Table, gets: u32, hot_percent: u32) -> u32 {
        let mut hits = 0;
        for _ in 0..gets {
            let row = if self.rng.random_range(0..100) < hot_percent {
                self.hot_row()
            } else {
                self.rng.random_range(0..ROWS)
            };
            let before = reads(db, Reason::Point);
            assert!(table.get(key(row)).expect("the disk works").is_some(), "row {row}");
            hits += u32::from(reads(db, Reason::Point) == before);
        }
        hits
    }
}

#[test]
fn a_point_workload_keeps_its_hit_rate_beside_compactions_of_all_its_files() {
    for seed in 0..6 {
        // Hot rows are clustered in the first case, and far from each other in the second.
        let (stretches, hot_rows) = [(60, 60), (150, 1)][seed as usize % 2];
        let (_, disk) = Machine::simulated(seed);
        let db = open(&disk, 1 << 20);
        let table = fill(&db, options());
        let mut workload = Workload::new(seed, stretches, hot_rows);
        workload.hits(&db, &table, 10_000, 90);
        for round in 0..3 {
            for _ in 0..1_000 {
                let row = workload.rng.random_range(0..ROWS);
                let bytes = workload.rng.random_range(60..120);
                table.insert(key(row), vec![b'w'; bytes]).expect("the disk works");
            }
            db.flush().expect("the disk works");
            workload.hits(&db, &table, 10_000, 90);
            let before = workload.hits(&db, &table, 2_000, 100);
            let read_by_compaction = reads(&db, Reason::Compaction);
            table.compact().expect("the disk works");
            assert!(reads(&db, Reason::Compaction) > read_by_compaction);
            let index = index_reads(&db, Reason::Point);
            let after = workload.hits(&db, &table, 2_000, 100);
            println!("seed {seed}, round {round}: {before} of 2000 gets hit, then {after}");
            assert!(after * 100 >= before * 95, "seed {seed}: {after} of 2000 gets hit, {before} before");
            assert_eq!(index_reads(&db, Reason::Point), index, "seed {seed}: nodes above hot rows are there");
        }
    }
}

#[test]
fn a_compaction_of_files_that_nobody_reads_brings_nothing() {
    let (_, disk) = Machine::simulated(1);
    let db = open(&disk, 1 << 20);
    let table = fill(&db, options());
    table.insert(key(7), "again").expect("the disk works");
    table.compact().expect("the disk works");
    let usage = db.cache().usage();
    assert_eq!(usage.used_bytes, 0, "{usage:?}");
}

#[test]
fn a_warm_range_is_read_without_the_disk() {
    let (_, disk) = Machine::simulated(1);
    let groups = vec!["a".to_owned(), "b".to_owned()];
    for index in [crate::options::PageIndexKind::Btree, crate::options::PageIndexKind::Flat] {
        let db = open(&disk, 4 << 20);
        let name = format!("{index:?}");
        let options = TableOptions { groups: groups.clone(), index, ..options() };
        let table = db.table_with(&name, options).expect("the disk works");
        for row in 0..4_000 {
            table.insert_parts(key(row), &[[b'a'; 60], [b'b'; 60]]).expect("the disk works");
        }
        db.compact().expect("the disk works");
        // The deepest level already has files. These rows go to one more file, whose keys are spread over all of
        // them.
        for row in (0..4_000).step_by(37) {
            table.insert_parts(key(row), &[[b'x'; 60], [b'y'; 60]]).expect("the disk works");
        }
        db.flush().expect("the disk works");
        let mut told = 0;
        let (low, high) = (key(1_000), key(2_000));
        let warmed = table.warm_with(low.clone()..high.clone(), u64::MAX, |at| {
            assert!(at.done >= told, "what is here grows");
            told = at.done;
        });
        let warmed = warmed.expect("the disk works");
        assert!(warmed.is_whole && warmed.page_reads > 0 && warmed.bytes == told, "{warmed:?}");
        assert!(warmed.page_reads < 200, "a quarter of the rows is about a quarter of the pages: {warmed:?}");
        let before = db.metrics().page_reads;
        let both = table.select(["a", "b"]).expect("it has these groups");
        assert_eq!(both.range(low.clone()..high.clone()).filter(|row| row.is_ok()).count(), 1_000);
        assert!(both.get(key(1_500)).expect("the disk works").is_some());
        assert_eq!(db.metrics().page_reads, before);
    }
}

#[test]
fn what_is_warmed_stays_within_its_limit_and_begins_with_the_index() {
    let (_, disk) = Machine::simulated(1);
    drop(fill(&open(&disk, 1 << 20), options()));
    let db = open(&disk, 1 << 20);
    let table = db.table("t").expect("it is there");
    let warmed = table.warm_with(.., 200 << 10, |_| {}).expect("the disk works");
    assert!(!warmed.is_whole && warmed.bytes <= 200 << 10, "{warmed:?}");
    let usage = db.cache().usage();
    assert!(usage.used_bytes <= 200 << 10 && usage.pinned_bytes == 0, "{usage:?}");
    let index = index_reads(&db, Reason::Point);
    for row in (0..ROWS).step_by(100) {
        table.get(key(row)).expect("the disk works");
    }
    assert_eq!(index_reads(&db, Reason::Point), index);
    // The callback can stop the loading at any time.
    let warmed = table.warm_with(.., u64::MAX, |_| ControlFlow::Break(()));
    assert!(matches!(warmed, Err(Error::Cancelled("loading pages"))), "{warmed:?}");
    // Without a limit from the caller, `warm` uses half of the cache.
    let warmed = table.warm(..).expect("the disk works");
    assert!(!warmed.is_whole && warmed.bytes <= 512 << 10, "{warmed:?}");
}

/// Makes a small table that is kept in memory and a large table that is not.
fn fill_small_and_large(db: &Database) -> (Table, Table) {
    let small = db.table_with("small", TableOptions { in_memory: true, ..options() }).expect("the disk works");
    for row in 0..1_000 {
        small.insert(key(row), [b's'; 90]).expect("the disk works");
    }
    let large = fill(db, options());
    (small, large)
}

fn read_all(table: &Table, rows: u32) {
    for row in 0..rows {
        assert!(table.get(key(row)).expect("the disk works").is_some(), "row {row}");
    }
}

#[test]
fn a_table_in_memory_stays_there_whatever_else_is_read() {
    let (_, disk) = Machine::simulated(1);
    let db = open(&disk, 1 << 20);
    let (small, large) = fill_small_and_large(&db);
    let check = |what: &str| {
        // Reading the large table evicts everything that can be evicted.
        assert_eq!(large.iter().count(), ROWS as usize);
        let mut rng = StdRng::seed_from_u64(1);
        for _ in 0..3_000 {
            large.get(key(rng.random_range(0..ROWS))).expect("the disk works");
        }
        let before = reads(&db, Reason::Point);
        read_all(&small, 1_000);
        assert_eq!(reads(&db, Reason::Point), before, "{what}");
        let metrics = db.metrics();
        assert!((100 << 10..=256 << 10).contains(&metrics.kept_bytes), "{what}: {}", metrics.kept_bytes);
    };
    check("its file was written");
    for row in 0..100 {
        small.insert(key(row * 10), [b'S'; 90]).expect("the disk works");
    }
    db.flush().expect("the disk works");
    check("another was flushed");
    small.compact().expect("the disk works");
    small.core().background.drive();
    check("both were merged");
    db.cache().set_budget_bytes(512 << 10);
    assert!(db.metrics().kept_bytes <= 128 << 10);
    db.cache().set_budget_bytes(1 << 20);
    small.alter(|options| options.in_memory = false).expect("the disk works");
    small.alter(|options| options.in_memory = true).expect("the disk works");
    small.core().background.drive();
    check("it is to be there again");
    drop(small);
    db.drop_table("small").expect("the disk works");
    assert_eq!(db.metrics().kept_bytes, 0);
}

#[test]
fn a_table_in_memory_comes_after_open_which_reads_nothing() {
    let (_, disk) = Machine::simulated(1);
    drop(fill_small_and_large(&open(&disk, 1 << 20)));
    let db = open(&disk, 1 << 20);
    assert_eq!(db.metrics().page_reads, 0);
    let small = db.table("small").expect("it is there");
    small.core().background.drive();
    let pages = db.metrics().pages;
    assert_eq!(
        (pages.total().faults, pages.of_reason(Reason::Point).faults),
        (pages.of_reason(Reason::Warm).faults, 0)
    );
    read_all(&small, 1_000);
    assert_eq!(reads(&db, Reason::Point), 0);
    assert!(db.cache().usage().used_bytes < 300 << 10, "nothing of the other table came");
}

#[test]
fn of_a_table_larger_than_its_share_the_index_stays_and_some_rows() {
    let (_, disk) = Machine::simulated(1);
    let db = open(&disk, 1 << 20);
    let table = fill(&db, TableOptions { in_memory: true, ..options() });
    table.core().background.drive();
    let share = 256 << 10;
    let mut rng = StdRng::seed_from_u64(1);
    for _ in 0..3 {
        let kept = db.metrics().kept_bytes;
        assert!((share / 2..=share).contains(&kept), "{kept}");
        let before = db.metrics().pages;
        for _ in 0..2_000 {
            table.get(key(rng.random_range(0..ROWS))).expect("the disk works");
        }
        let pages = db.metrics().pages.since(&before);
        assert_eq!(pages.index_reads(), 0);
        assert_eq!(pages.total().faults, pages.of_reason(Reason::Point).faults, "nobody brings it again and again");
    }
    db.cache().set_in_memory_bytes(0);
    assert_eq!(db.metrics().kept_bytes, 0);
    let before = reads(&db, Reason::Point);
    read_all(&table, 100);
    assert!(reads(&db, Reason::Point) <= before + 10);
}

/// Reads every hundredth row in both of its groups. Returns how many pages this reads.
fn reads_of_groups(db: &Database, table: &Table) -> u64 {
    let before = reads(db, Reason::Point);
    let both = table.select(["a", "b"]).expect("it has these groups");
    for row in (0..4_000).step_by(100) {
        assert!(both.get(key(row)).expect("the disk works").is_some(), "row {row}");
    }
    reads(db, Reason::Point) - before
}

#[test]
fn pages_of_column_groups_and_pages_used_once_are_passed_on_while_there_is_room() {
    for index in [crate::options::PageIndexKind::Btree, crate::options::PageIndexKind::Flat] {
        let (_, disk) = Machine::simulated(1);
        let db = open(&disk, 8 << 20);
        let groups = vec!["a".to_owned(), "b".to_owned()];
        let table = db.table_with("t", TableOptions { groups, index, ..options() }).expect("the disk works");
        for row in 0..4_000 {
            table.insert_parts(key(row), &[[b'a'; 60], [b'b'; 60]]).expect("the disk works");
        }
        db.compact().expect("the disk works");
        assert!(reads_of_groups(&db, &table) > 80, "{index:?}: a main page and one of the group for each row");
        for round in 0..3 {
            table.insert_parts(key(7), &[[b'x'; 60], [b'y'; 60]]).expect("the disk works");
            table.compact().expect("the disk works");
            assert_eq!(reads_of_groups(&db, &table), 0, "{index:?}, round {round}");
        }
    }
}

#[test]
fn what_was_loaded_and_not_read_is_not_loaded_again_for_ever() {
    let (_, disk) = Machine::simulated(1);
    let db = open(&disk, 16 << 20);
    let table = fill(&db, options());
    let write_some = || {
        for row in (0..ROWS).step_by(10) {
            table.insert(key(row), [b'w'; 90]).expect("the disk works");
        }
        db.flush().expect("the disk works");
    };
    read_all(&table, 10);
    read_all(&table, 10);
    for _ in 0..3 {
        write_some();
        table.compact().expect("the disk works");
    }
    let warm = reads(&db, Reason::Warm);
    write_some();
    assert_eq!(reads(&db, Reason::Warm), warm, "nobody has read it since");
}

#[test]
fn a_flush_loads_its_pages_if_its_table_is_read_and_there_is_room() {
    let (_, disk) = Machine::simulated(1);
    // The size of the cache, whether the table is read, and whether the flush should load pages.
    for (cache_bytes, is_read, loads) in [(16 << 20, true, true), (16 << 20, false, false), (1 << 20, true, false)] {
        let db = open(&disk, cache_bytes);
        let table = fill(&db, options());
        if is_read {
            read_all(&table, ROWS);
        }
        let used = db.cache().usage().used_bytes;
        for row in (0..ROWS).step_by(10) {
            table.insert(key(row), [b'w'; 90]).expect("the disk works");
        }
        db.flush().expect("the disk works");
        let (before, warm) = (reads(&db, Reason::Point), reads(&db, Reason::Warm));
        if loads {
            read_all(&table, ROWS);
            assert_eq!(reads(&db, Reason::Point), before);
            assert!(warm > 40, "the pages of 2,000 rows were loaded: {warm}");
        } else {
            assert!(warm < 20 && db.cache().usage().used_bytes <= used.max(cache_bytes), "{warm}");
        }
        db.drop_table("t").expect("the disk works");
    }
}

#[test]
fn pages_of_older_versions_are_passed_on_by_the_keys_of_their_rows() {
    let (_, disk) = Machine::simulated(1);
    let db = open(&disk, 8 << 20);
    let table = fill(&db, options());
    let snapshot = db.snapshot();
    let hot = 5_000..9_000;
    let write = |first: u8| {
        for row in 0..ROWS {
            table.insert(key(row), [first; 90]).expect("the disk works");
        }
        db.flush().expect("the disk works");
    };
    // A snapshot pins the older versions, so the compaction writes them into the history of the file.
    write(b'x');
    table.compact().expect("the disk works");
    let read = || {
        let before = reads(&db, Reason::Point);
        for row in hot.clone() {
            assert_eq!(snapshot.get(&table, key(row)).expect("the disk works").as_deref(), Some(&[b'v'; 90][..]));
        }
        reads(&db, Reason::Point) - before
    };
    let first = read();
    assert!(first > 150, "{first} pages have the rows and their older versions");
    assert_eq!(read(), 0, "all of them have room");
    write(b'y');
    table.compact().expect("the disk works");
    let after = read();
    assert!(after * 20 < first, "{after} pages were read again, {first} before");
}
