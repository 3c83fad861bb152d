//! Statistics about ranges must be true without reading the rows. An interval must contain the number that a scan
//! finds, and a number that is called exact must be exact. The parts of a split must make up the whole. No call may
//! look at more pages than was promised.

#![allow(clippy::disallowed_methods, reason = "parts of a range are read in threads of the machine")]

use larch::options::{LevelOptions, PageIndexKind};
use larch::stats::{Metric, PageKind, Reason, Resolution};
use larch::{Compression, Database, Key, Reader, Snapshot, Table, TableOptions};
use os::Machine;
use os::sim::SimDisk;
use os::sync::Arc;
use rand::rngs::Xoshiro256PlusPlus;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use std::ops::Bound;
use testkit::options::TinyOptions;
use testkit::touched::Touched;

type Keys = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// A random history of one table, between whose steps tests ask for statistics.
struct History {
    rng: Xoshiro256PlusPlus,
    db: Database,
    table: Table,
    parts: usize,
    /// The number of different keys.
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

    /// Draws a key. Some are longer than the bounds of files can be.
    fn key(&mut self) -> Vec<u8> {
        let i = self.rng.random_range(0..self.keys);
        let middle =
            if i % 7 == 0 { "-a-common-middle-that-is-longer-than-what-a-bound-of-a-file-may-have-" } else { "" };
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
                // Never erases everything.
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
        import.finish(|_| {}).expect("the disk works");
    }

    /// Asks for all statistics, at the newest version and at a snapshot.
    fn check(&mut self) {
        let snapshot = self.snapshots.choose(&mut self.rng).cloned();
        self.check_at(None);
        if snapshot.is_some() {
            self.check_at(snapshot.as_ref());
        }
    }

    fn check_at(&mut self, snapshot: Option<&Snapshot>) {
        let statistics = match snapshot {
            Some(snapshot) => self.table.at(snapshot).expect("it is of this database"),
            None => (*self.table).clone(),
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

    fn check_range(&mut self, statistics: &Reader<'static>, range: &Keys, keys: &[Key]) {
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
            let (low, high) = statistics.nth_between(range.clone(), n).expect("the disk works");
            if let Some(found) = found {
                assert!(low.as_ref().is_none_or(|low| *low.at <= *found), "row {n} is {found:?}, before {low:?}");
                assert!(high.as_ref().is_none_or(|high| *found < *high.at), "row {n} is {found:?}, after {high:?}");
            }
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
    for seed in 0..24 {
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

/// A table with ten files that do not overlap, each with 2,000 rows in small pages.
fn ten_files(index: PageIndexKind) -> (Arc<SimDisk>, Database, Table) {
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

/// How many index nodes and how many other pages `ask` looked at, in memory or from disk.
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
    for index in [PageIndexKind::Btree, PageIndexKind::Flat, PageIndexKind::Both] {
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
            // With all pages in memory, each counts once.
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
        let (nodes, others) = asked(&db, || assert!(table.count(..).expect("the disk works").is_exact()));
        assert_eq!((nodes, others), (0, 0), "the manifest knows whole files");
        let size = table.size(..).expect("the disk works");
        assert!(size.is_exact() && size.contains(stats.data_bytes), "{size:?}");
    }
}

#[test]
fn nth_reads_a_few_pages_of_one_file_and_finds_what_a_scan_counts() {
    let (_disk, db, table) = ten_files(PageIndexKind::Btree);
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(2);
    for _ in 0..200 {
        let (a, b) = (rng.random_range(0..10 * FILE_ROWS), rng.random_range(0..10 * FILE_ROWS));
        let (low, high) = (a.min(b), a.max(b) + 1);
        let n = rng.random_range(0..high - low);
        let mut found = None;
        let touched = Touched::by(&db, || {
            found = table.nth(key(low)..key(high), n.into()).expect("the disk works");
        });
        let (nth, value) = found.expect("there are more rows");
        assert_eq!((&nth[..], &value[..]), (&key(low + n)[..], &[b'v'; 50][..]));
        // The data pages at both ends of the range and that of the row, some of them perhaps twice.
        assert!(touched.of(PageKind::Data).reads <= 5, "{touched:?}");
    }
    let (_, others) = asked(&db, || {
        let (low, high) = table.nth_between(.., 7_000).expect("the disk works");
        let (low, high) = (low.expect("far from the start"), high.expect("far from the end"));
        assert!(*low.at <= *key(7_000) && *key(6_600) < *low.at, "{low:?}");
        assert!(*key(7_000) < *high.at && *high.at < *key(7_400), "{high:?}");
    });
    assert_eq!(others, 0, "no data page");
    assert!(table.nth(.., u64::from(10 * FILE_ROWS)).expect("the disk works").is_none());
}

#[test]
fn rows_in_memory_are_counted_exactly_and_few_of_them_leave_a_file_uncertain_by_as_many() {
    let (_disk, db, table) = ten_files(PageIndexKind::Btree);
    let rows = u64::from(10 * FILE_ROWS);
    for i in 0..5 {
        // Each pass replaces one row, adds one and removes one.
        table.insert(key(i * 3_000), "new").expect("the disk works");
        table.insert([&key(i * 3_000 + 1)[..], b"+"].concat(), "new").expect("the disk works");
        table.remove(key(i * 3_000 + 2)).expect("the disk works");
    }
    let estimate = table.count(..).expect("the disk works");
    assert!(estimate.contains(rows) && estimate.width() <= 15, "{estimate:?} of {rows} rows");
    let mut count = 0;
    let touched = Touched::by(&db, || count = table.count_exact(..).expect("the disk works"));
    assert_eq!(count, rows);
    // The three rows of a pass are neighbours and need the same pages.
    assert!(touched.of(PageKind::Data).reads <= 5 * 2, "{touched:?}");

    let alone = db.table("alone").expect("the disk works");
    for i in 0..100 {
        alone.insert(key(i), "v").expect("the disk works");
    }
    alone.remove(key(7)).expect("the disk works");
    alone.remove_range(key(10)..key(20)).expect("the disk works");
    let estimate = alone.count(..).expect("the disk works");
    assert!(estimate.is_exact() && estimate.contains(89), "{estimate:?}");
    assert!(alone.size(..).expect("the disk works").is_exact());
}

#[test]
fn what_is_erased_in_one_go_in_memory_is_not_counted_in_files() {
    let (_disk, _db, table) = ten_files(PageIndexKind::Btree);
    table.remove_range(key(1_000)..key(15_000)).expect("the disk works");
    let estimate = table.count(..).expect("the disk works");
    assert!(estimate.contains(6_000) && estimate.width() < 100, "{estimate:?}");
    let inside = table.count(key(2_000)..key(14_000)).expect("the disk works");
    assert!(inside.is_exact() && inside.contains(0), "{inside:?}");
    assert_eq!(table.count_exact(..).expect("the disk works"), 6_000);
    let (nth, _) = table.nth(.., 1_000).expect("the disk works").expect("there are more rows");
    assert_eq!(nth[..], key(15_000));
}

#[test]
fn parts_of_a_split_are_even_and_are_read_in_threads() {
    let (_disk, db, table) = ten_files(PageIndexKind::Both);
    // Overwrites every third row, partly in files and partly in memory. The parts of the split must have about the
    // same number of stored bytes.
    for i in (0..10 * FILE_ROWS).step_by(3) {
        table.insert(key(i), [b'w'; 50]).expect("the disk works");
        if i == 15_000 {
            db.flush().expect("the disk works");
        }
    }
    let all: Vec<_> = table.iter().map(|row| row.expect("the disk works")).collect();
    let snapshot = db.snapshot();
    for parts in [1, 2, 3, 8, 16] {
        let ranges = larch::Readable::range(&snapshot, &table, ..).split(parts).expect("the disk works");
        assert_eq!(ranges.len(), parts);
        let readers: Vec<_> = ranges
            .into_iter()
            .map(|range| std::thread::spawn(move || range.collect::<Result<Vec<_>, _>>().expect("the disk works")))
            .collect();
        let read: Vec<_> = readers.into_iter().map(|reader| reader.join().expect("it does not panic")).collect();
        let rows: Vec<usize> = read.iter().map(Vec::len).collect();
        println!("{rows:?}");
        let points = table.split_points(.., parts as u64).expect("the disk works");
        let edges: Vec<Vec<u8>> = points.into_iter().map(|point| point.at).collect();
        let starts = std::iter::once(Vec::new()).chain(edges.iter().cloned());
        let ends = edges.iter().cloned().chain([b"z".to_vec()]);
        let bytes: Vec<u64> =
            starts.zip(ends).map(|(start, end)| table.size(start..end).expect("it works").middle()).collect();
        let average = bytes.iter().sum::<u64>() / parts as u64;
        let uneven = bytes.iter().map(|bytes| bytes.abs_diff(average)).max().unwrap_or(0);
        assert!(uneven <= average / 5, "{bytes:?}");
        let joined: Vec<_> = read.into_iter().flatten().collect();
        assert!(
            joined.iter().map(|(key, value)| (key, &value[..])).eq(all.iter().map(|(key, value)| (key, &value[..])))
        );
    }
    let range = table.iter().limit(7).split(3).expect("the disk works");
    assert_eq!(range.len(), 1, "a limit is not shared");
    let mut begun = table.iter();
    for _ in 0..5_000 {
        begun.next().expect("there are more").expect("the disk works");
    }
    let left = begun.split(4).expect("the disk works").into_iter().flatten().count();
    assert_eq!(left, all.len() - 5_000, "what was read is not read again");
}

#[test]
fn a_sample_is_spread_over_all_rows() {
    let (_disk, db, table) = ten_files(PageIndexKind::Btree);
    for i in 0..100 {
        table.insert([&key(i * 200)[..], b"+"].concat(), "in memory").expect("the disk works");
    }
    let mut sample = Vec::new();
    let touched = Touched::by(&db, || sample = table.sample(.., 200, 3).expect("the disk works"));
    assert_eq!(sample.len(), 200);
    assert!(touched.of(PageKind::Data).reads <= 200, "{touched:?}");
    for decile in 0..10 {
        let here = key(decile * FILE_ROWS)..key((decile + 1) * FILE_ROWS);
        let count = sample.iter().filter(|sampled| here.contains(&sampled.to_vec())).count();
        assert!((15..=25).contains(&count), "{count} of 200 keys in a tenth of the rows");
    }
    let other = table.sample(.., 200, 4).expect("the disk works");
    assert_ne!(sample, other, "seeds differ");
    assert!(table.sample(.., 0, 1).expect("the disk works").is_empty());
}

#[test]
fn overlapping_files_are_told_apart_where_they_only_touch() {
    let disk = SimDisk::new(1);
    let levels = LevelOptions { level0_files: 100, slow_files: 200, ..LevelOptions::default() };
    let builder = Database::builder("db").machine(Machine::simulated_on(disk, 1)).levels(levels);
    let db = builder.open().expect("the disk works");
    let options = TableOptions { page_bytes: 1 << 10, node_bytes: 1 << 10, ..TableOptions::default() };
    let table = db.table_with("t", options).expect("the disk works");
    for file in 0..8 {
        let mut batch = db.batch();
        // The first two hundred of these rows are also in the previous file.
        for i in 0..FILE_ROWS {
            batch.insert(&table, key(file * (FILE_ROWS - 200) + i), [b'v'; 50]);
        }
        batch.commit().expect("it fits");
        db.flush().expect("the disk works");
    }
    let rows = u64::from(8 * FILE_ROWS - 7 * 200);
    let (nodes, others) = asked(&db, || {
        let estimate = table.count(..).expect("the disk works");
        assert!(estimate.contains(rows), "{estimate:?} of {rows}");
        assert!(estimate.width() < 7 * (200 + 4 * 20), "{estimate:?}: what is in two files, and the pages around");
    });
    assert_eq!(others, 0);
    let height = u64::from(table.stats().expect("it is there").index_height);
    assert!(nodes <= 8 * 3 * 2 * height, "{nodes} nodes");
    let touched = Touched::by(&db, || assert_eq!(table.count_exact(..).expect("the disk works"), rows));
    let pages = table.stats().expect("it is there").data_pages;
    assert!(
        touched.of(PageKind::Data).reads < pages / 3,
        "{touched:?} of {pages}: only what is in two files is merged"
    );
}
