//! What is said of ranges without reading them is true: intervals hold what a scan finds, what is called exact is, parts
//! of a split are the whole; and it costs what was promised, counted in pages.

use larch::os::Machine;
use larch::os::sim::SimDisk;
use larch::os::sync::Arc;
use larch::{
    Compression, Database, IndexKind, Key, LevelOptions, Metric, PageKind, Reason, Resolution, Snapshot, Statistics,
    Table, TableOptions,
};
use rand::rngs::Xoshiro256PlusPlus;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use std::ops::Bound;
use testkit::options::TinyOptions;
use testkit::touched::Touched;

type Keys = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// A random history of one table, and what is asked of it meanwhile.
struct History {
    rng: Xoshiro256PlusPlus,
    db: Database,
    table: Table,
    parts: usize,
    /// Keys are drawn from so many.
    keys: u32,
    snapshots: Vec<Snapshot>,
}

impl History {
    fn new(seed: u64) -> Self {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut options = TinyOptions::of(seed);
        options.write_buffer_bytes *= *[1, 8].choose(&mut rng).expect("there are two");
        let machine = Machine::simulated_on(SimDisk::new(seed), seed);
        let db = options.builder("db").machine(machine).open().expect("the disk works");
        let table_options = options.tables.choose(&mut rng).expect("there are three").clone();
        let parts = table_options.groups.len().max(1);
        let table = db.table_with("t", table_options).expect("the disk works");
        let keys = *[20, 200, 2000].choose(&mut rng).expect("there are three");
        Self { rng, db, table, parts, keys, snapshots: Vec::new() }
    }

    /// Keys of several lengths, some longer than the bounds of files are.
    fn key(&mut self) -> Vec<u8> {
        let i = self.rng.random_range(0..self.keys);
        let middle = if i % 7 == 0 {
            "-a-common-middle-that-is-longer-than-what-a-bound-of-a-file-may-have-".repeat(1)
        } else {
            String::new()
        };
        format!("{:02}{middle}{i:05}", i / 100).into_bytes()
    }

    fn keys_between(&mut self) -> Keys {
        let (a, b) = (self.key(), self.key());
        let (low, high) = if a < b { (a, b) } else { (b, a) };
        let mut bound = |key| match self.rng.random_range(0..5) {
            0 => Bound::Unbounded,
            1 | 2 => Bound::Excluded(key),
            _ => Bound::Included(key),
        };
        (bound(low), bound(high))
    }

    fn step(&mut self) {
        match self.rng.random_range(0..1000) {
            0..500 => {
                let key = self.key();
                let parts: Vec<Vec<u8>> = (0..self.parts).map(|_| vec![b'v'; self.rng.random_range(0..60)]).collect();
                self.table.insert_parts(key, &parts).expect("the disk works");
            }
            500..740 => {
                let key = self.key();
                self.table.remove(key).expect("the disk works");
            }
            740..760 => {
                let keys = self.keys_between();
                // Seldom everything.
                if keys.0 != Bound::Unbounded && keys.1 != Bound::Unbounded {
                    self.table.remove_range(keys).expect("the disk works");
                }
            }
            760..900 => self.insert_neighbours(),
            900..920 => self.import(),
            920..960 => self.db.flush().expect("the disk works"),
            960..963 => self.table.compact().expect("the disk works"),
            963..980 => self.snapshots.push(self.db.snapshot()),
            _ => {
                if !self.snapshots.is_empty() {
                    let i = self.rng.random_range(0..self.snapshots.len());
                    self.snapshots.swap_remove(i);
                }
            }
        }
    }

    fn insert_neighbours(&mut self) {
        let start = self.rng.random_range(0..self.keys);
        let mut batch = self.db.batch();
        for i in start..start + 8 {
            let parts = vec![vec![b'n'; 20]; self.parts];
            batch.insert_parts(&self.table, format!("{:02}{i:05}", i / 100), &parts);
        }
        batch.commit().expect("it fits");
    }

    fn import(&mut self) {
        let start = self.rng.random_range(0..self.keys);
        let mut import = self.table.import().expect("the disk works");
        for i in start..start + 40 {
            let parts = vec![vec![b'i'; 20]; self.parts];
            import.add_parts(&format!("{:02}{i:05}", i / 100).into_bytes(), &parts).expect("the disk works");
        }
        import.finish(&mut |_, _| {}).expect("the disk works");
    }

    /// Asks all there is to ask, now and of a snapshot.
    fn check(&mut self) {
        let snapshot = self.snapshots.choose(&mut self.rng).cloned();
        self.check_at(None);
        if snapshot.is_some() {
            self.check_at(snapshot.as_ref());
        }
    }

    fn check_at(&mut self, snapshot: Option<&Snapshot>) {
        let statistics = match snapshot {
            Some(snapshot) => self.table.statistics().at(snapshot).expect("it is of this database"),
            None => self.table.statistics(),
        };
        let selection = self.table.select([""; 0]).expect("no group is named");
        let selection = match snapshot {
            Some(snapshot) => selection.at(snapshot).expect("it is of this database"),
            None => selection,
        };
        for i in 0..6 {
            let range = if i == 0 { (Bound::Unbounded, Bound::Unbounded) } else { self.keys_between() };
            let scanned = selection.range(range.clone());
            let keys: Vec<Key> = scanned.map(|row| row.expect("the disk works").0).collect();
            self.check_range(&statistics, &range, &keys);

            let parts = self.rng.random_range(1..9);
            let split = selection.range(range.clone()).split(parts).expect("the disk works");
            assert!((1..=parts).contains(&split.len()), "{} of {parts} parts", split.len());
            let joined: Vec<Key> = split.into_iter().flatten().map(|row| row.expect("the disk works").0).collect();
            assert_eq!(joined, keys, "the parts of {range:?} are the range");
        }
    }

    fn check_range(&mut self, statistics: &Statistics, range: &Keys, keys: &[Key]) {
        let count = keys.len() as u64;
        let estimate = statistics.count(range.clone()).expect("the disk works");
        assert!(estimate.contains(count), "{count} rows between {range:?} are not in {estimate:?}");
        assert_eq!(statistics.count_exact(range.clone()).expect("the disk works"), count, "rows between {range:?}");
        let stats = statistics.range_stats(range.clone()).expect("the disk works");
        assert_eq!(stats.rows, estimate);
        let stored = stats.stored_rows.high + stats.memory_rows;
        assert!(count <= stored, "{count} rows are more than the {stored} stored");
        let size = statistics.size(range.clone()).expect("the disk works");
        assert_eq!(size.high, stats.file_bytes.high + stats.memory_bytes);

        for n in [0, self.rng.random_range(0..count.max(1)), count.saturating_sub(1), count] {
            let found = statistics.nth_key(range.clone(), n).expect("the disk works");
            assert_eq!(found.as_ref(), keys.get(n as usize), "row {n} of {range:?}");
        }

        let wanted = self.rng.random_range(0..20);
        let sample = statistics.sample(range.clone(), wanted, 7).expect("the disk works");
        assert_eq!(sample, statistics.sample(range.clone(), wanted, 7).expect("the disk works"));
        assert!(sample.len() as u64 <= wanted && sample.is_sorted());
        assert!(sample.iter().all(|key| keys.binary_search(key).is_ok()), "a sample of {range:?} has other keys");

        for metric in [Metric::Rows, Metric::Bytes] {
            let buckets = self.rng.random_range(1..12);
            let histogram = statistics.histogram(range.clone(), metric, Resolution::Buckets(buckets));
            let histogram = histogram.expect("the disk works");
            let ends: Vec<&[u8]> =
                histogram.buckets.iter().filter_map(|bucket| Some(&*bucket.end.as_ref()?.at)).collect();
            assert!(ends.is_sorted_by(|a, b| a < b), "ends grow");
            assert!(histogram.buckets.iter().is_sorted_by(|a, b| a.value < b.value), "{histogram:?}");
            if metric == Metric::Rows {
                assert!(count <= histogram.total.high, "{count} rows are in {histogram:?}");
            }
        }
    }
}

#[test]
fn what_is_said_of_a_range_is_what_a_scan_finds() {
    for seed in 0..40 {
        println!("seed {seed}");
        let mut history = History::new(seed);
        for step in 0..400 {
            history.step();
            if step % 40 == 39 {
                history.check();
            }
        }
        history.snapshots.clear();
        history.table.compact().expect("the disk works");
        history.check();
    }
}

/// Ten files that do not overlap, of 2,000 rows each, of small pages.
fn ten_files(index: IndexKind) -> (Arc<SimDisk>, Database, Table) {
    let disk = SimDisk::new(1);
    let levels = LevelOptions { level0_files: 100, slow_files: 200, ..LevelOptions::default() };
    let builder = Database::builder("db").machine(Machine::simulated_on(disk.clone(), 1)).levels(levels);
    let db = builder.open().expect("the disk works");
    let options = TableOptions {
        page_bytes: 1 << 10,
        node_bytes: 1 << 10,
        compression: Compression::None,
        index,
        ..TableOptions::default()
    };
    let table = db.table_with("t", options).expect("the disk works");
    for file in 0..10 {
        let mut batch = db.batch();
        for i in 0..FILE_ROWS {
            batch.insert(&table, key(file * FILE_ROWS + i), [b'v'; 50]);
        }
        batch.commit().expect("it fits");
        db.flush().expect("the disk works");
    }
    assert_eq!(table.stats().expect("it is there").files, 10);
    (disk, db, table)
}

const FILE_ROWS: u32 = 2_000;

fn key(i: u32) -> Vec<u8> {
    format!("row {i:06}").into_bytes()
}

/// Pages that statistics asked for, found or read: index nodes, and all others.
fn asked(db: &Database, ask: impl FnOnce()) -> (u64, u64) {
    let of_kinds = |is_index: bool| {
        let pages = db.metrics().pages;
        let kinds =
            PageKind::ALL.into_iter().filter(|kind| matches!(kind, PageKind::Index | PageKind::Flat) == is_index);
        kinds.map(|kind| pages.pages(Reason::Statistics, kind)).map(|pages| pages.hits + pages.faults).sum::<u64>()
    };
    let before = (of_kinds(true), of_kinds(false));
    ask();
    (of_kinds(true) - before.0, of_kinds(false) - before.1)
}

#[test]
fn a_count_over_ten_files_reads_two_ways_down_a_file_and_is_right_to_two_pages() {
    for index in [IndexKind::Btree, IndexKind::Flat, IndexKind::Both] {
        let (_disk, db, table) = ten_files(index);
        let stats = table.stats().expect("it is there");
        let (height, page_rows) = (u64::from(stats.index_height), stats.rows.div_ceil(stats.data_pages) + 2);
        println!("{index:?}: height {height}, {page_rows} rows a page");
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        for _ in 0..500 {
            let (a, b) = (rng.random_range(0..10 * FILE_ROWS), rng.random_range(0..10 * FILE_ROWS));
            let (low, high) = (a.min(b), a.max(b));
            let mut estimate = None;
            let range = key(low)..key(high);
            // Found in memory each page counts once.
            table.count(range.clone()).expect("the disk works");
            let (nodes, others) = asked(&db, || estimate = Some(table.count(range.clone()).expect("the disk works")));
            let estimate = estimate.expect("it was asked");
            assert_eq!(others, 0, "no data page");
            assert!(nodes <= 2 * height, "{nodes} nodes for the two files with an end, {height} levels");
            assert!(estimate.contains(u64::from(high - low)), "{estimate:?}");
            assert!(estimate.width() <= 2 * page_rows, "{estimate:?}, pages have {page_rows} rows");

            let mut count = None;
            let touched = Touched::by(&db, || count = Some(table.count_exact(range.clone()).expect("the disk works")));
            assert_eq!(count, Some(u64::from(high - low)));
            let data = touched.of(PageKind::Data).reads;
            assert!(data <= 4, "{data} data pages of the two files with an end");
        }
        let (nodes, others) = asked(&db, || assert!(table.count::<&[u8]>(..).expect("the disk works").is_exact()));
        assert_eq!((nodes, others), (0, 0), "the manifest knows whole files");
        let size = table.size::<&[u8]>(..).expect("the disk works");
        assert!(size.is_exact() && size.contains(stats.data_bytes), "{size:?}");
    }
}
