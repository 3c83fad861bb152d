//! Checks promises by counting: the allocations of a cached read, the page reads of a point read, and the reads of
//! opening a database.

#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "the time of an open is printed, not judged")]

use kit::allocations::{Counting, Thread};
use larch::options::{LevelOptions, PageIndexKind};
use larch::stats::Reason;
use larch::{Compression, Database, Readable, Table, TableOptions};
use os::sim::{DiskCounts, SimDisk};
use os::sync::Arc;
use os::{Access, Disk, Machine};
use pages::{Admit, PageCache, Session, retry};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use sst::{
    BuildOptions, GroupCursor, PartCursor, RowKind, RowPlace, Seek, Sst, SstBuilder, SstCursor, TreeCursor, TreeKind,
    Version,
};
use std::path::Path;
use std::time::Instant;

#[global_allocator]
static COUNTING: Counting<Thread> = Counting::new();

const DIRECTORY: &str = "db";

/// A builder on a new machine with the same disk.
fn builder(disk: &Arc<SimDisk>) -> larch::Builder {
    Database::builder(DIRECTORY).machine(Machine::simulated_on(disk.clone(), 1))
}

fn key(i: u32) -> Vec<u8> {
    format!("key {i:08}").into_bytes()
}

/// Imports the rows 0, 2, 4, … into one file with a tall tree.
fn import(table: &Table, rows: u32) {
    let mut import = table.import().expect("the disk works");
    for i in 0..rows {
        import.add(&key(2 * i), &[b'v'; 100]).expect("the disk works");
    }
    import.finish(|_| {}).expect("the disk works");
}

/// Imports 20,000 rows with `options` and closes the database.
fn imported(options: TableOptions) -> Arc<SimDisk> {
    let disk = SimDisk::new(1);
    let db = builder(&disk).open().expect("the disk works");
    import(&db.table_with("t", options).expect("the disk works"), 20_000);
    db.close().expect("the disk works");
    disk
}

fn all_kinds() -> [TableOptions; 4] {
    let options = TableOptions { page_bytes: 1 << 10, node_bytes: 4 << 10, ..TableOptions::default() };
    [
        options.clone(),
        TableOptions { index: PageIndexKind::Both, compression: Compression::Lz4, ..options.clone() },
        TableOptions { compression: Compression::ZSTD, ..options.clone() },
        TableOptions { index: PageIndexKind::Flat, ..options },
    ]
}

/// Input and output of all SSTs.
fn sst_counts(disk: &SimDisk) -> DiskCounts {
    let entries = disk.list(Path::new(DIRECTORY)).expect("the disk works");
    let ssts = entries.iter().filter(|entry| entry.name.ends_with(".sst"));
    ssts.fold(DiskCounts::default(), |sum, entry| {
        let counts = disk.counts_of(Path::new(DIRECTORY).join(&entry.name));
        DiskCounts { reads: sum.reads + counts.reads, read_bytes: sum.read_bytes + counts.read_bytes, ..sum }
    })
}

#[test]
fn cached_point_reads_do_not_allocate() {
    let disk = SimDisk::new(1);
    let db = builder(&disk).open().expect("the disk works");
    let table = db.table("t").expect("the disk works");
    import(&table, 20_000);
    table.insert("in memory", "a value").expect("the disk works");
    let in_file = key(2 * 777);
    let read_all = || {
        for _ in 0..100 {
            let value = table.get(&in_file).expect("the disk works").expect("it was imported");
            assert_eq!(value[..], [b'v'; 100]);
            assert!(table.get("in memory").expect("the disk works").is_some());
            assert!(table.get("key 00000003").expect("the disk works").is_none());
            assert!(table.contains_key(&in_file).expect("the disk works"));
        }
    };
    assert!(Thread::count(read_all) > 0, "a cold read allocates, and the allocator counts");
    assert_eq!(Thread::count(read_all), 0);
}

#[test]
fn a_row_in_parts_is_written_with_one_allocation_more_than_a_whole_one() {
    let db = builder(&SimDisk::new(1)).open().expect("the disk works");
    let groups = ["a", "b", "c"].map(str::to_owned).to_vec();
    let split = db.table_with("split", TableOptions { groups, ..TableOptions::default() }).expect("the disk works");
    let whole = db.table("whole").expect("the disk works");
    let value = [b'v'; 120];
    // The first pass warms up.
    for _ in 0..2 {
        let of_whole = Thread::count(|| (0..1000).for_each(|i| whole.insert(key(i), value).expect("the disk works")));
        let parts = [&value[..10], &value[10..50], &value[50..]];
        let of_parts = Thread::count(|| (0..1000).for_each(|i| split.insert_parts(key(i), &parts).expect("it works")));
        // A whole row is no batch; parts are put together in one. The log's file grows now and then.
        assert!(of_parts <= of_whole + 1000 + 20, "{of_parts} allocations for parts, {of_whole} for whole values");
    }
}

#[test]
fn cursors_and_reads_through_them_of_what_is_in_memory_do_not_allocate() {
    let (disk, path, rows) = (SimDisk::new(1), Path::new("1.sst"), 2_000_u32);
    let file = disk.open(path, Access::Create).expect("the disk is empty");
    let options = BuildOptions { page_bytes: 1 << 10, max_node_children: 8, groups: 2, ..BuildOptions::default() };
    let mut builder = SstBuilder::new(file, path.into(), 7, options);
    for i in 0..rows {
        let parts = [&b"hot"[..], &[b'w'; 40], &[b'c'; 100]];
        for version in [Version(9), Version(5)] {
            builder.add(&i.to_be_bytes(), version, RowKind::Put, &parts).expect("there is room");
        }
    }
    let meta = builder.finish().expect("there is room");
    let cache = PageCache::new(64 << 20, 4, sst::validate);
    let file = cache.register(path, meta.file_id, disk);
    let sst = Arc::new(Sst::new(file, meta, 0, false));

    let made = Thread::count(|| {
        let tree = |kind: TreeKind| *sst.meta.tree(kind).expect("it has rows");
        drop(SstCursor::new(sst.clone()));
        drop(GroupCursor::new(sst.clone(), 2));
        drop(TreeCursor::<sst::format::data_page::Layout>::new(
            &sst.file,
            TreeKind::Main,
            tree(TreeKind::Main),
            false,
            5..100,
        ));
        drop(PartCursor::new(&sst.file, TreeKind::Group(1), tree(TreeKind::Group(1)), false, 0..u64::MAX));
    });
    assert_eq!(made, 1, "creating cursors allocates the place in the history alone");

    let session = Session::new(&cache, Reason::Point, Admit::Keep);
    let mut cursor = SstCursor::new(sst.clone());
    let mut read_all = || {
        for i in (0..rows).step_by(37) {
            let key = i.to_be_bytes();
            for at in [Version(9), Version(5)] {
                let row =
                    retry(&session, || sst.get(&session, &key, at)).expect("the disk works").expect("it is there");
                let part = retry(&session, || sst.part(&session, 2, row.place)).expect("the disk works");
                assert_eq!(part.inline(), Some(&[b'c'; 100][..]));
            }
            assert!(retry(&session, || cursor.seek(&session, &key, Seek::Exact)).expect("the disk works"));
            for _ in 0..30 {
                if retry(&session, || cursor.next(&session)).expect("the disk works") {
                    assert!(matches!(cursor.newest().map(|row| row.place), Some(RowPlace::Newest(_))));
                }
            }
        }
    };
    assert!(Thread::count(&mut read_all) > 0, "what is read from disk is allocated, and the allocator counts");
    assert_eq!(Thread::count(&mut read_all), 0);
}

/// The table has files in two levels, versions that only a snapshot sees, and rows in memory. Some keys come after all
/// keys of the newer files.
#[test]
fn the_seeks_of_a_cursor_after_its_first_ones_do_not_allocate() {
    let levels = LevelOptions { file_bytes: 64 << 10, ..LevelOptions::default() };
    let db = builder(&SimDisk::new(1)).levels(levels).open().expect("the disk works");
    let table = db.table("t").expect("the disk works");
    import(&table, 20_000);
    let snapshot = db.snapshot();
    for i in (0..10_000).step_by(3) {
        table.insert(key(2 * i), [b'n'; 100]).expect("the disk works");
    }
    db.flush().expect("the disk works");
    for i in (0..10_000).step_by(7) {
        table.insert(key(2 * i), [b'm'; 100]).expect("the disk works");
    }
    let cursors = [
        ("all", table.cursor()),
        ("a range", table.cursor_in(key(1_000)..key(35_000))),
        ("a snapshot", snapshot.cursor(&table)),
    ];
    for (name, mut cursor) in cursors {
        let mut seek_all = || {
            for i in 0..300 {
                let to = key(2_000 + i * 977 % 32_000);
                assert!(cursor.seek(&to).expect("the disk works"));
                assert!(cursor.seek_back(&to).expect("the disk works") && cursor.value().is_some());
                assert!(cursor.seek(&to).expect("the disk works"));
            }
        };
        assert!(Thread::count(&mut seek_all) > 0, "what is read first is allocated, and the allocator counts");
        let keys = Thread::count(|| (0..300).for_each(|i| drop(key(i))));
        assert_eq!(Thread::count(&mut seek_all), keys, "a cursor over {name}");
    }
}

#[test]
fn a_cold_point_read_costs_at_most_height_and_one_page_reads() {
    for options in all_kinds() {
        let is_flat = options.index == PageIndexKind::Flat;
        let disk = imported(TableOptions { node_bytes: 384, ..options });
        for i in [0, 7_777, 19_999] {
            let db = builder(&disk).open().expect("the disk works");
            let table = db.table("t").expect("the disk works");
            let stats = table.stats().expect("the table is there");
            assert_eq!(stats.files, 1, "one file, so that pages can be counted");
            let height = u64::from(stats.index_height);
            assert!(is_flat || height >= 3, "a tree of {height} levels is worth counting");
            assert!(table.contains_key(key(2 * i)).expect("the disk works"));
            assert_eq!(db.metrics().page_reads, height + 1);
        }
    }
}

#[test]
fn a_point_read_with_a_warm_index_costs_one_page_read() {
    for options in all_kinds() {
        let disk = imported(options);
        // The cache has room for a quarter of the rows, and for many indexes of this size.
        let db = builder(&disk).cache_bytes(2 << 20).open().expect("the disk works");
        let table = db.table("t").expect("the disk works");
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        let mut page_reads = || {
            let before = db.metrics().page_reads;
            assert!(table.contains_key(key(2 * rng.random_range(0..20_000))).expect("the disk works"));
            db.metrics().page_reads - before
        };
        for _ in 0..2000 {
            page_reads();
        }
        let reads: Vec<u64> = (0..2000).map(|_| page_reads()).collect();
        assert!(reads.iter().all(|&reads| reads <= 1), "the index stays in memory");
        let cold = reads.iter().sum::<u64>();
        assert!(cold > 1000, "most of the data does not: {cold} of 2000 reads went to the disk");
    }
}

#[test]
fn opening_after_a_clean_close_reads_no_page_and_opens_no_sst() {
    let disk = SimDisk::new(1);
    let levels = LevelOptions { file_bytes: 4 << 10, ..LevelOptions::default() };
    let db = builder(&disk).levels(levels).open().expect("the disk works");
    for name in ["a", "b", "c"] {
        import(&db.table(name).expect("the disk works"), 2000);
    }
    db.close().expect("the disk works");

    let before = sst_counts(&disk);
    let db = builder(&disk).levels(levels).open().expect("the disk works");
    assert_eq!(db.tables(), ["a", "b", "c"]);
    assert!(db.metrics().files > 10);
    assert_eq!(sst_counts(&disk), before);
    assert_eq!((db.metrics().page_reads, db.metrics().cache.open_files), (0, 0));
    assert!(db.table("b").and_then(|b| b.contains_key(key(0))).expect("the disk works"));
    assert_eq!(db.metrics().cache.open_files, 1);
}

#[test]
fn opening_16_000_files_reads_the_manifest_once_and_nothing_else() {
    const FILES: u64 = 16_000;
    let disk = SimDisk::new(1);
    // Each file ends after its first page, and each page has one row.
    let levels = LevelOptions { file_bytes: 1, ..LevelOptions::default() };
    let db = builder(&disk).levels(levels).open().expect("the disk works");
    let options = TableOptions { page_bytes: 256, ..TableOptions::default() };
    let table = db.table_with("t", options).expect("the disk works");
    let mut rows = table.import().expect("the disk works");
    for i in 0..FILES as u32 {
        rows.add(&key(i), &[b'v'; 200]).expect("the disk works");
    }
    let report = rows.finish(|_| {}).expect("the disk works");
    assert_eq!(report.files, FILES);
    drop(table);
    db.close().expect("the disk works");

    let entries = disk.list(Path::new(DIRECTORY)).expect("the disk works");
    let others = entries.iter().filter(|entry| !entry.name.ends_with(".sst"));
    let other_bytes: u64 = others.map(|entry| entry.bytes).sum();
    let (before, ssts_before) = (disk.counts(), sst_counts(&disk));
    let start = Instant::now();
    let db = builder(&disk).levels(levels).open().expect("the disk works");
    println!("opened {} files in {:?}", report.files, start.elapsed());
    let after = disk.counts();
    assert_eq!(db.metrics().files, report.files);
    assert_eq!(sst_counts(&disk), ssts_before, "no SST is read");
    // Logs are read in windows of 1 MiB. A record that crosses the end of its window is read again from its start.
    let read_bytes = after.read_bytes - before.read_bytes;
    assert!(read_bytes <= other_bytes + (1 << 20), "{read_bytes} bytes read of {other_bytes} that are not in SSTs");
    // Opening writes a new manifest with the same files, and the header of a new log.
    assert!(after.write_bytes - before.write_bytes <= 2 * other_bytes, "and written once");
    assert!(after.syncs - before.syncs < 20);
}

#[test]
fn a_range_opens_no_file_beyond_its_bounds() {
    let disk = SimDisk::new(1);
    // Each file ends after its first page, so the table has a dozen files of a few dozen rows.
    let levels = LevelOptions { file_bytes: 1, ..LevelOptions::default() };
    let open = || builder(&disk).levels(levels).open().expect("the disk works");
    let db = open();
    let options = TableOptions { page_bytes: 4 << 10, ..TableOptions::default() };
    import(&db.table_with("t", options).expect("the disk works"), 400);
    db.close().expect("the disk works");

    // Finds the first key of each file: a file is one page, so a new file begins where a scan reads another page.
    let db = open();
    let table = db.table("t").expect("the disk works");
    let mut firsts = Vec::new();
    let mut rows = table.iter();
    while let Some(row) = rows.next_row().expect("the disk works") {
        let key = row.key().to_vec();
        if db.metrics().cache.open_files > firsts.len() {
            firsts.push(key);
        }
    }
    let files = db.metrics().files;
    assert!(files > 8 && firsts.len() as u64 == files, "{} of {files} files", firsts.len());
    drop((rows, table, db));

    let check = |low: &[u8], high: &[u8], rows: usize, expected: u64| {
        for backward in [false, true] {
            let db = open();
            let table = db.table("t").expect("the disk works");
            // This file of level 0 lies beyond the range, so a read of the range must not touch it.
            table.insert("zzz", "far away").expect("the disk works");
            db.flush().expect("the disk works");
            let range = table.range(low..high);
            let found = if backward { range.rev().count() } else { range.count() };
            assert_eq!((found, db.metrics().page_reads), (rows, expected), "backward: {backward}");
            table.remove("zzz").expect("the disk works");
            db.close().expect("the disk works");
        }
    };
    let rows_between = |a: usize, b: usize| {
        let number = |key: &[u8]| std::str::from_utf8(&key[4..]).expect("digits").parse::<usize>().expect("digits");
        (number(&firsts[b]) - number(&firsts[a])) / 2
    };
    check(&firsts[0], &firsts[1], rows_between(0, 1), 1);
    check(&firsts[3], &firsts[5], rows_between(3, 5), 2);
    // This range ends just after the first key of the next file, which must be read, too.
    check(&firsts[3], &[&firsts[4][..], b"\0"].concat(), rows_between(3, 4) + 1, 2);
    check(b"a", &firsts[1], rows_between(0, 1), 1);
    check(b"", b"b", 0, 0);
}

/// Imports the even keys twice and then writes some odd keys: three files that overlap, the oldest one the largest.
fn overlapping() -> Arc<SimDisk> {
    let disk = SimDisk::new(1);
    let db = builder(&disk).open().expect("the disk works");
    let options = TableOptions { node_bytes: 384, ..all_kinds()[0].clone() };
    let table = db.table_with("t", options).expect("the disk works");
    import(&table, 20_000);
    for step in [5, 7] {
        let mut batch = db.batch();
        for i in (0..20_000).step_by(step) {
            batch.insert(&table, key(2 * i + 1), [step as u8; 100]);
        }
        batch.commit().expect("the disk works");
        db.flush().expect("the disk works");
    }
    assert_eq!(db.metrics().files, 3);
    db.close().expect("the disk works");
    disk
}

#[test]
fn many_cold_keys_take_as_many_rounds_as_the_longest_way_has_pages() {
    let disk = overlapping();
    let open = || builder(&disk).open().expect("the disk works");
    // Each of these keys is in the oldest file or in none, so even reads of single keys must look into all files.
    let keys = (0..64).map(|i| (i % 8 == 3, i * 7919 % 20_000));
    let keys = keys.map(|(absent, i)| key(2 * i + u32::from(absent && i % 5 != 0 && i % 7 != 0)));
    let keys: Vec<Vec<u8>> = keys.collect();
    let db = open();
    let table = db.table("t").expect("the disk works");
    let height = u64::from(table.stats().expect("the table is there").index_height);
    let one_by_one: Vec<_> = keys.iter().map(|key| table.get(key).expect("the disk works")).collect();
    let pages = db.metrics().page_reads;
    let found = one_by_one.iter().flatten().count();
    assert!(height >= 3 && found >= 56, "{found} found, height {height}");
    drop((table, db));

    let db = open();
    let table = db.table("t").expect("the disk works");
    let together = table.multi_get(&keys).expect("the disk works");
    assert!(together.iter().map(Option::as_deref).eq(one_by_one.iter().map(Option::as_deref)));
    assert_eq!(db.metrics().page_reads, pages, "each page once");
    assert_eq!(db.metrics().pages.rounds(Reason::Point), height + 1);
    let again = Thread::count(|| assert_eq!(table.multi_get(&keys).expect("the disk works").len(), keys.len()));
    assert!(again < 64, "{again} allocations for 64 keys in memory");
    assert_eq!((db.metrics().page_reads, db.metrics().pages.rounds(Reason::Point)), (pages, height + 1));
}

#[test]
fn a_newer_answer_in_memory_spares_the_older_files() {
    let disk = overlapping();
    let db = builder(&disk).open().expect("the disk works");
    let table = db.table("t").expect("the disk works");
    let keys: Vec<Vec<u8>> = (0..100).map(|i| key(2 * i)).collect();
    for key in &keys[..50] {
        table.insert(key, "new").expect("the disk works");
    }
    table.remove_range(&keys[50][..]..&keys[99][..]).expect("the disk works");
    let found = table.multi_get(&keys[..99]).expect("the disk works");
    assert_eq!(found.iter().flatten().filter(|value| ***value == *b"new").count(), 50);
    assert_eq!((found.iter().flatten().count(), db.metrics().page_reads), (50, 0));
    assert!(table.multi_get(&keys[99..]).expect("the disk works")[0].is_some());
    assert!(db.metrics().page_reads > 0);
}
