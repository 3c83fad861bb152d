//! Checks what filters promise, in page reads: a look-up of an absent key reads almost nothing, and one of a present
//! key no more than without filters.

use larch::options::{FilterKind, Filters, LevelOptions};
use larch::stats::PageKind;
use larch::{Database, Table, TableOptions};
use os::Machine;
use os::sim::SimDisk;
use os::sync::Arc;
use rand::rngs::Xoshiro256PlusPlus;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};

const ROWS: u32 = 40_000;

/// The key of row `i`. Rows with odd numbers do not exist. The keys of each group of 16 rows share their first 8
/// bytes.
fn key(i: u32) -> Vec<u8> {
    format!("{:08}-{:02}", i / 32, i % 32).into_bytes()
}

fn builder(disk: &Arc<SimDisk>, cache_bytes: u64) -> larch::Builder {
    // Small levels. No file reaches the length at which it would be cut, so filters cannot change where a file ends.
    let levels =
        LevelOptions { level0_files: 4, slow_files: 100, base_bytes: 256 << 10, growth: 4, ..Default::default() };
    Database::builder("db").machine(Machine::simulated_on(disk.clone(), 1)).cache_bytes(cache_bytes).levels(levels)
}

/// A table with 40,000 rows in the deepest level. In the middle level and in level 0, each file overwrites some
/// hundreds of these keys and erases some.
fn layered(filters: Filters) -> Arc<SimDisk> {
    let disk = SimDisk::new(1);
    let db = builder(&disk, 4 << 20).open().expect("the disk works");
    let options = TableOptions { filters, filter_prefix_bytes: 8, page_bytes: 4 << 10, ..TableOptions::default() };
    let table = db.table_with("t", options).expect("the disk works");
    let mut import = table.import().expect("the disk works");
    (0..ROWS).for_each(|i| import.add(&key(2 * i), &[b'v'; 100]).expect("the disk works"));
    import.finish(|_| {}).expect("the disk works");
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(2);
    for flush in 0..7 {
        for _ in 0..700 {
            table.insert(key(2 * rng.random_range(0..ROWS)), [b'n'; 100]).expect("the disk works");
        }
        table.remove(key(2 * flush)).expect("the disk works");
        db.flush().expect("the disk works");
    }
    db.close().expect("the disk works");
    disk
}

fn levels(table: &Table) -> Vec<(usize, u64)> {
    let stats = table.stats().expect("the table is there");
    stats.levels.iter().map(|level| (level.level, level.files)).collect()
}

fn none() -> Filters {
    Filters::all(FilterKind::None)
}

/// Looks up `count` random keys, odd ones if `absent` is set and even ones otherwise. Returns the number of page
/// reads.
fn read(db: &Database, table: &Table, rng: &mut Xoshiro256PlusPlus, count: u32, absent: bool) -> u64 {
    let before = db.metrics().page_reads;
    for _ in 0..count {
        let i = rng.random_range(7..ROWS);
        let found = table.get(key(2 * i + u32::from(absent))).expect("the disk works");
        assert_eq!(found.is_some(), !absent);
    }
    db.metrics().page_reads - before
}

#[test]
fn absent_keys_read_next_to_nothing_once_filters_are_there() {
    for filters in [Filters::default(), Filters::all(FilterKind::Bits12), Filters::all(FilterKind::Bits20)] {
        let db = builder(&layered(filters), 640 << 10).open().expect("the disk works");
        let table = db.table("t").expect("the disk works");
        let shape = levels(&table);
        assert!(shape.len() >= 3 && shape[0].1 > 1, "{shape:?}");
        let stats = table.stats().expect("the table is there");
        assert!(stats.data_bytes > 4 << 20 && stats.filter_bytes < 300 << 10, "{stats:?}");
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
        let cold = read(&db, &table, &mut rng, 20_000, true);
        let warm = read(&db, &table, &mut rng, 20_000, true);
        let metrics = db.metrics();
        println!("{filters}: {cold} pages at first, then {warm} for 20,000 keys; {shape:?}");
        assert!(warm <= 200, "{filters}: {warm} pages for 20,000 absent keys");
        assert!(cold < 3_000, "{filters}: {cold} pages until filters were there");
        assert!(metrics.cached_filter_bytes > 0 && metrics.cached_filter_bytes <= 2 * stats.filter_bytes);

        let keys: Vec<Vec<u8>> = (0..20_000).map(|i| key(4 * i + 1)).collect();
        assert!(table.multi_get(&keys).expect("the disk works").iter().all(Option::is_none));
        let together = db.metrics().page_reads - metrics.page_reads;
        assert!(together <= 200, "{filters}: {together} pages for 20,000 absent keys together");
    }
}

#[test]
fn keys_together_read_no_older_file_than_the_one_that_has_them_once_filters_are_there() {
    let disk = layered(Filters::default());
    let db = builder(&disk, 640 << 10).open().expect("the disk works");
    let table = db.table("t").expect("the disk works");
    let upper = table.range(..).filter_map(|row| {
        let (key, value) = row.expect("the disk works");
        (value[0] == b'n').then(|| key.to_vec())
    });
    let mut upper: Vec<Vec<u8>> = upper.collect();
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(5);
    upper.shuffle(&mut rng);
    // Brings the filters and the deepest level's data pages into memory, but not the data pages of the upper levels.
    read(&db, &table, &mut rng, 20_000, true);
    let (together, apart) = upper.split_at(upper.len() / 2);
    let mut pages = [0, 0];
    for (together, apart) in together.chunks(50).zip(apart.chunks(50)) {
        let before = db.metrics().page_reads;
        assert!(table.multi_get(together).expect("the disk works").iter().all(Option::is_some));
        pages[0] += db.metrics().page_reads - before;
        read(&db, &table, &mut rng, 300, false);
        let before = db.metrics().page_reads;
        apart.iter().for_each(|key| assert!(table.get(key).expect("the disk works").is_some()));
        pages[1] += db.metrics().page_reads - before;
        read(&db, &table, &mut rng, 300, false);
    }
    println!("{} keys together and as many apart: {pages:?} pages", together.len());
    assert!(pages[1] > 300, "pages of upper levels are missing: {pages:?}");
    assert!(pages[0] * 100 <= pages[1] * 110, "{pages:?}");
}

#[test]
fn present_keys_read_no_more_with_filters_than_without() {
    let disks = [Filters::default(), none()].map(layered);
    let sizes_kib = [64, 100, 200, 400, 800, 1_000, 1_200, 1_400, 1_600, 1_800, 2_048, 2_300, 3_072, 4_096, 8_192];
    for cache_bytes in sizes_kib.map(|kib: u64| kib << 10) {
        let [with, without] = disks.each_ref().map(|disk| {
            let db = builder(disk, cache_bytes).open().expect("the disk works");
            let table = db.table("t").expect("the disk works");
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(4);
            let pages = [2_000, 10_000, 10_000].map(|count| read(&db, &table, &mut rng, count, false));
            (pages, db.metrics().pages.of_kind(PageKind::Filter).faults)
        });
        println!("{cache_bytes} bytes: {with:?} with, {without:?} without");
        // In a small cache, filters save up to three of four page reads, because the upper levels' pages do not stay
        // in memory. In a large cache these pages stay, and filters save almost nothing.
        let all = |pages: [u64; 3]| pages.iter().sum::<u64>();
        let limit = if cache_bytes < 600 << 10 { 80 } else { 101 };
        assert!(all(with.0) * 100 <= all(without.0) * limit, "{cache_bytes} bytes: {with:?} with, {without:?} without");
        assert!(cache_bytes < 2 << 20 || with.1 == 0, "{cache_bytes} bytes: {with:?}");
        assert_eq!(without.1, 0);
    }
}

#[test]
fn in_one_run_present_keys_read_the_same_with_filters_and_without() {
    let disks = [Filters::default(), none()].map(|filters| {
        let disk = layered(filters);
        let db = builder(&disk, 4 << 20).open().expect("the disk works");
        db.table("t").expect("the disk works").compact().expect("the disk works");
        db.close().expect("the disk works");
        disk
    });
    for cache_bytes in [60 << 10, 200 << 10, 1 << 20, 16 << 20] {
        let [with, without] = disks.each_ref().map(|disk| {
            let db = builder(disk, cache_bytes).open().expect("the disk works");
            let table = db.table("t").expect("the disk works");
            assert_eq!(levels(&table).len(), 1);
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(5);
            read(&db, &table, &mut rng, 10_000, false)
        });
        assert_eq!(with, without, "{cache_bytes} bytes");
    }
}

#[test]
fn ranges_of_absent_prefixes_open_no_file_once_filters_are_there() {
    // Only every other group of rows exists. An absent group lies between two present ones, so only a filter can
    // tell that it is absent.
    let prefix = |i: u32| format!("{i:08}");
    let counts = [Filters::all(FilterKind::Bits20), none()].map(|filters| {
        let disk = SimDisk::new(1);
        let db = builder(&disk, 800 << 10).open().expect("the disk works");
        let options = TableOptions { filters, filter_prefix_bytes: 8, page_bytes: 4 << 10, ..TableOptions::default() };
        let table = db.table_with("t", options).expect("the disk works");
        let mut import = table.import().expect("the disk works");
        for i in 0..ROWS {
            import.add(format!("{}-{}", prefix(i / 4 * 2), i % 4).as_bytes(), &[b'v'; 100]).expect("the disk works");
        }
        import.finish(|_| {}).expect("the disk works");
        for i in 0..1_000 {
            table.insert(format!("{}-new", prefix(i * 20)), "new").expect("the disk works");
        }
        db.flush().expect("the disk works");
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(6);
        let mut scan = |count: u32, absent: bool| {
            let before = db.metrics().page_reads;
            for _ in 0..count {
                let group = rng.random_range(0..ROWS / 4) * 2 + u32::from(absent);
                let range = || table.range(prefix(group)..format!("{}~", prefix(group)));
                let rows = range().collect::<larch::Result<Vec<_>>>().expect("the disk works").len();
                let new = if group.is_multiple_of(20) { 1 } else { 0 };
                assert_eq!(rows, if absent { 0 } else { 4 + new });
                let last = range().next_back().transpose();
                assert_eq!(last.expect("the disk works").is_some(), !absent);
            }
            db.metrics().page_reads - before
        };
        [scan(2_000, false), scan(4_000, true), scan(5_000, true)]
    });
    println!("{counts:?}");
    let [with, without] = counts;
    assert!(with[2] <= 50 && without[2] > 1_000, "{with:?} with filters, {without:?} without");
    assert!(with[0] <= without[0] && with[1] <= without[1], "{with:?} with filters, {without:?} without");
}

#[test]
fn in_memory_absent_keys_bring_filters_and_use_no_rows_after_that() {
    let disk = layered(Filters::default());
    let stats = {
        let db = builder(&disk, 4 << 20).open().expect("the disk works");
        db.table("t").expect("the disk works").stats().expect("the table is there")
    };
    // The first cache has room for everything, the second one for all rows and hardly anything else.
    for (cache_bytes, has_room) in [(16 << 20, true), (stats.data_bytes + (500 << 10), false)] {
        let (machine, _, reads) = Machine::simulated_with_reads(1);
        let machine = Machine { disk: disk.clone(), ..machine };
        let db = builder(&disk, cache_bytes).machine(machine).open().expect("the disk works");
        let table = db.table("t").expect("the disk works");
        assert!(table.range(..).count() > 30_000, "and all rows are in memory now");
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
        let mut look = |count: u32| {
            let before = db.metrics().pages;
            for _ in 0..count {
                let key = key(2 * rng.random_range(7..ROWS) + 1);
                assert!(table.get(key).expect("the disk works").is_none());
                while reads.step() {}
            }
            let used = db.metrics().pages.since(&before);
            (used.of_kind(PageKind::Data), used.of_kind(PageKind::Filter).faults)
        };
        let (rows, filters) = look(20_000);
        println!("{cache_bytes} bytes: {rows:?}, {filters} pages of filters");
        assert_eq!(filters > 0, has_room);
        let (rows, filters) = look(20_000);
        println!("then {rows:?}, {filters} pages of filters");
        if has_room {
            assert_eq!((rows.faults, filters), (0, 0));
            assert!(rows.hits < 20_000 / 100, "{} pages of rows for 20,000 absent keys", rows.hits);
        }
    }
}
