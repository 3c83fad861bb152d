//! A read of a range whose end is known must take one round of reads for each level of the index. One round covers
//! all files and all column groups.

use kit::Scratch;
use larch::options::{LevelOptions, PageIndexKind};
use larch::rows::AtMost;
use larch::stats::PageKind;
use larch::{Compression, Database, Durability, Table, TableOptions};
use os::Machine;
use os::sim::SimDisk;
use os::sync::Arc;
use std::path::Path;

const ROWS: u32 = 20_000;
const FILES: u32 = 4;
const GROUPS: [&str; 3] = ["hot", "warm", "cold"];

fn key(i: u32) -> Vec<u8> {
    format!("key {i:08}").into_bytes()
}

fn open(disk: &Arc<SimDisk>) -> Database {
    // Level 0 is never compacted.
    let levels = LevelOptions { level0_files: 1000, slow_files: 1000, ..LevelOptions::default() };
    let builder = Database::builder("db").machine(Machine::simulated_on(disk.clone(), 1));
    builder.levels(levels).open().expect("the disk works")
}

/// Writes rows to four files that overlap everywhere.
fn four_files(index: PageIndexKind) -> Arc<SimDisk> {
    let disk = SimDisk::new(1);
    let db = open(&disk);
    let groups = GROUPS.map(str::to_owned).to_vec();
    let options = TableOptions { page_bytes: 1 << 10, node_bytes: 256, index, groups, ..TableOptions::default() };
    let table = db.table_with("t", options).expect("the disk works");
    for file in 0..FILES {
        for start in (0..ROWS).step_by(1000) {
            let mut batch = db.batch();
            for i in (start..start + 1000).filter(|i| i % FILES == file) {
                let hot = format!("hot {i}");
                batch.insert_parts(&table, key(i), &[hot.as_bytes(), &[b'w'; 40], &[b'c'; 100]]);
            }
            batch.commit().expect("the disk works");
        }
        db.flush().expect("the disk works");
    }
    assert_eq!(table.stats().expect("the disk works").levels[0].files, u64::from(FILES));
    db.close().expect("the disk works");
    disk
}

/// The rounds of reads and the page reads so far.
fn counts(db: &Database) -> (u64, u64) {
    let metrics = db.metrics();
    (metrics.pages.all_rounds(), metrics.page_reads)
}

/// Reads 1,000 rows from the middle of the table, with all parts. Returns the rounds and the page reads that this
/// took.
fn read_thousand(db: &Database, table: &Table, limit: Option<u64>, backward: bool) -> (u64, u64) {
    let (from, to) = (key(7_000), key(8_000));
    let before = counts(db);
    let mut rows = table.select(GROUPS).expect("it has these groups").range(from..to);
    if let Some(limit) = limit {
        rows = rows.limit(limit);
    }
    let mut found: Vec<u32> = Vec::new();
    while let Some(row) = if backward { rows.next_back() } else { rows.next() } {
        let (key, parts) = row.expect("the disk works");
        let i: u32 = std::str::from_utf8(&key[4..]).expect("digits").parse().expect("digits");
        assert_eq!((&parts[0][..], &parts[2][..]), (format!("hot {i}").as_bytes(), &[b'c'; 100][..]));
        found.push(i);
    }
    let expected: Vec<u32> = if backward { (7_000..8_000).rev().collect() } else { (7_000..8_000).collect() };
    assert_eq!(found, expected);
    let after = counts(db);
    (after.0 - before.0, after.1 - before.1)
}

#[test]
fn a_range_of_a_thousand_rows_over_four_files_and_three_groups_takes_as_many_rounds_as_the_index_is_high() {
    for index in [PageIndexKind::Btree, PageIndexKind::Flat] {
        let disk = four_files(index);
        for backward in [false, true] {
            let db = open(&disk);
            let table = db.table("t").expect("it is there");
            let height = u64::from(table.stats().expect("the disk works").index_height);
            assert!(height >= if index == PageIndexKind::Flat { 1 } else { 3 });
            // A descent takes one round for each level. The main tree needs one, or two if the range begins or ends
            // at the border of a page, and the trees of the groups then need one together.
            let bound = 2 * (height + 1) + (height + 1);

            let (rounds, reads) = read_thousand(&db, &table, Some(1_000), backward);
            println!("{index:?}, height {height}: {rounds} rounds of at most {bound} with a limit, {reads} page reads");
            assert!(rounds <= bound, "{rounds} rounds");
            drop(table);
            db.close().expect("the disk works");

            let db = open(&disk);
            let table = db.table("t").expect("it is there");
            let (slow_rounds, slow_reads) = read_thousand(&db, &table, None, backward);
            println!("{slow_rounds} rounds without, {slow_reads} page reads");
            assert!(slow_rounds > rounds);
            assert!(reads <= slow_reads, "nothing is read in vain: {reads} page reads, {slow_reads} without a limit");
        }
    }
}

#[test]
fn after_a_prefetch_nothing_is_read() {
    for index in [PageIndexKind::Btree, PageIndexKind::Flat, PageIndexKind::Both] {
        let disk = four_files(index);
        for backward in [false, true] {
            let db = open(&disk);
            let table = db.table("t").expect("it is there");
            let range = key(7_000)..key(8_000);
            let (limits, height) = (AtMost::ALL, u64::from(table.stats().expect("the disk works").index_height));
            let done = match backward {
                true => table.prefetch_back(range, limits),
                false => table.prefetch(range, limits),
            };
            let done = done.expect("the disk works");
            assert!(done.rounds <= 3 * (height + 1), "{done:?}");
            assert_eq!(read_thousand(&db, &table, None, backward), (0, 0), "{index:?}");
        }
    }
}

/// Writes rows to four files of level 0, of which later ones erase or replace some rows of earlier ones, also by
/// range erases.
fn four_files_with_erases(directory: &Path, rows: u32) {
    let levels = LevelOptions { level0_files: 1000, slow_files: 1000, ..LevelOptions::default() };
    let builder = Database::builder(directory).durability(Durability::Buffered).levels(levels);
    let db = builder.open().expect("the disk works");
    let groups = ["hot", "cold"].map(str::to_owned).to_vec();
    let options = TableOptions { page_bytes: 1 << 10, index: PageIndexKind::Both, groups, ..TableOptions::default() };
    let table = db.table_with("t", options).expect("the disk works");
    for file in 0..FILES {
        let mut batch = db.batch();
        for i in (0..rows).filter(|i| i % FILES == file || i % 10 == file) {
            batch.insert_parts(&table, key(i), &[&b"hot"[..], &[b'c'; 100]]);
        }
        (0..rows).filter(|i| i % 13 == file).for_each(|i| batch.remove(&table, key(i)));
        let snapshot = db.snapshot();
        batch.commit().expect("the disk works");
        table.remove_range(key(rows / 8 * file)..key(rows / 8 * file + 100)).expect("the disk works");
        db.flush().expect("the disk works");
        drop(snapshot);
    }
    drop(table);
    db.close().expect("the disk works");
}

/// Uses the real disk, where other threads read the pages.
#[test]
fn a_range_that_was_prefetched_in_any_way_reads_nothing_more() {
    let rows = 20_000;
    let scratch = Scratch::new("prefetched");
    four_files_with_erases(scratch.path(), rows);
    let groups: [&[&str]; 4] = [&["hot"], &["cold"], &["hot", "cold"], &[]];
    let (mut prefetched, mut found) = (0, 0);
    for (prefer_flat, backward) in [(false, false), (false, true), (true, false), (true, true)] {
        for groups in groups {
            for limit in [Some(1), Some(50), Some(1000), None] {
                for i in 0..4 {
                    // A new cache for each read. A prefetch may fill a quarter of it, which is enough for the
                    // longest range here.
                    let builder = Database::builder(scratch.path()).read_only(true).cache_bytes(64 << 20);
                    let db = builder.prefer_flat_index(prefer_flat).open().expect("the disk works");
                    let table = db.existing_table("t").expect("the disk works").expect("it was made");
                    let rows_of = table.select(groups).expect("it has these groups");
                    let from = i * 4_900;
                    let range = key(from)..key(from + 1_500);
                    let limits = limit.map_or(AtMost::ALL, AtMost::rows);
                    let done = match backward {
                        true => rows_of.prefetch_back(range.clone(), limits),
                        false => rows_of.prefetch(range.clone(), limits),
                    };
                    done.expect("the disk works");
                    let before = counts(&db);
                    prefetched += before.1;
                    let mut range = rows_of.range(range);
                    for _ in 0..limit.unwrap_or(u64::MAX) {
                        let row = if backward { range.next_row_back() } else { range.next_row() };
                        let Some(_) = row.expect("the disk works") else { break };
                        found += 1;
                    }
                    let what =
                        format!("{groups:?}, flat {prefer_flat}, backward {backward}, limit {limit:?}, from {from}");
                    assert_eq!(counts(&db), before, "{what}");
                }
            }
        }
    }
    println!("{found} rows after {prefetched} pages");
    assert!(prefetched > 0 && found > 0);
}

#[test]
fn a_prefetch_of_one_group_reads_no_page_of_the_others() {
    let disk = four_files(PageIndexKind::Btree);
    let db = open(&disk);
    let table = db.table("t").expect("it is there");
    table.select(["hot"]).expect("it is there").prefetch(key(0)..key(3_000), AtMost::ALL).expect("the disk works");
    let group_pages = || db.metrics().cached_bytes(PageKind::Group);
    assert_eq!(group_pages(), 0);
    table.select(["cold"]).expect("it is there").prefetch(key(0)..key(3_000), AtMost::ALL).expect("the disk works");
    assert!(group_pages() >= 3_000 * 100);
}

/// A mistake that YDB once made (#53139): its precharge did not respect the size of the memory and filled all of it.
#[test]
fn a_prefetch_larger_than_the_cache_stays_within_a_quarter_of_it() {
    let disk = four_files(PageIndexKind::Btree);
    let cache_bytes = 1 << 20;
    let db = Database::builder("db").machine(Machine::simulated_on(disk, 1)).cache_bytes(cache_bytes).open();
    let db = db.expect("the disk works");
    let table = db.table("t").expect("it is there");
    table.prefetch(.., AtMost::ALL).expect("the disk works");
    let used = db.metrics().cache.used_bytes;
    assert!(used <= cache_bytes / 2 && used >= cache_bytes / 8, "{used} bytes of {cache_bytes}");
    assert_eq!(table.select(GROUPS).expect("it has them").iter().count(), ROWS as usize);
}

/// A table of many small files, opened again with nothing in memory.
fn imported(options: TableOptions, cache_bytes: u64, rows: u32, parts: &[Vec<u8>]) -> (Arc<SimDisk>, Database, Table) {
    let disk = SimDisk::new(1);
    let levels = LevelOptions { file_bytes: 256 << 10, ..LevelOptions::default() };
    let open = || {
        let builder = Database::builder("db").machine(Machine::simulated_on(disk.clone(), 1));
        builder.levels(levels).write_buffer_bytes(1 << 20).cache_bytes(cache_bytes).open().expect("the disk works")
    };
    let db = open();
    let table = db.table_with("t", options).expect("the disk works");
    let mut import = table.import().expect("the disk works");
    for i in 0..rows {
        import.add_parts(&key(i), parts).expect("the disk works");
    }
    import.finish(|_| {}).expect("the disk works");
    drop(table);
    db.close().expect("the disk works");
    let db = open();
    let table = db.table("t").expect("it is there");
    (disk, db, table)
}

#[test]
fn a_prefetch_leaves_what_is_read_first_in_memory_whatever_its_pages_are_like() {
    let groups = |names: &[&str]| TableOptions {
        groups: names.iter().map(|&name| name.to_owned()).collect(),
        ..TableOptions::default()
    };
    let packed = |compression| TableOptions { compression, ..TableOptions::default() };
    let cache_bytes = 4 << 20;
    for (name, options, rows, parts) in [
        ("plain", TableOptions::default(), 100_000, vec![vec![b'v'; 100]]),
        ("a wide group", groups(&["hot", "wide"]), 12_000, vec![b"x".to_vec(), vec![b'w'; 2_000]]),
        ("values outside", groups(&["hot", "wide"]), 2_000, vec![b"x".to_vec(), vec![b'w'; 8_000]]),
        ("packed pages", packed(Compression::Lz4), 100_000, vec![vec![b'w'; 500]]),
        ("pages packed by zstd", packed(Compression::ZSTD), 100_000, vec![vec![b'w'; 500]]),
    ] {
        let names = options.groups.clone();
        let (_disk, db, table) = imported(options, cache_bytes, rows, &parts);
        let done = table.prefetch(.., AtMost::ALL).expect("the disk works");
        let used = db.metrics().cache.used_bytes;
        println!("{name}: {done:?}, {used} bytes in memory");
        assert!(used <= cache_bytes * 3 / 8, "{name}: {used} bytes of {cache_bytes} are in memory");
        assert!(done.rounds <= 12, "{name}: {done:?}");
        let before = counts(&db);
        // The prefetch expects large compressed values to grow much when they are unpacked, so it loads only a few.
        let wanted = if parts.iter().any(|part| part.len() > 4_096) { 6 } else { 100 };
        let first = match names.is_empty() {
            true => table.iter().take(wanted).count(),
            false => table.select(names).expect("it has them").iter().take(wanted).count(),
        };
        assert_eq!((first, counts(&db)), (wanted, before), "{name}");
    }
}

#[test]
fn a_range_looks_at_no_more_than_the_key_behind_it() {
    let disk = SimDisk::new(1);
    let db = open(&disk);
    let options =
        TableOptions { page_bytes: 1 << 10, groups: GROUPS.map(str::to_owned).to_vec(), ..TableOptions::default() };
    let table = db.table_with("t", options).expect("the disk works");
    let snapshot = db.snapshot();
    for i in 0..3_000 {
        table.insert_parts(key(i), &[b"hot", &b"warm"[..], b"cold"]).expect("the disk works");
    }
    let all = db.snapshot();
    for i in 100..2_900 {
        table.remove(key(i)).expect("the disk works");
    }
    db.flush().expect("the disk works");
    let pages = |backward: bool| {
        let db = open(&disk);
        let table = db.table("t").expect("it is there");
        let mut rows = table.select(GROUPS).expect("it has them").range(key(50)..key(100));
        let mut others = table.select(GROUPS).expect("it has them").range(key(2_900)..key(2_950));
        let count = if backward { others.by_ref().rev().count() } else { rows.by_ref().count() };
        assert_eq!(count, 50);
        db.metrics().page_reads
    };
    drop((snapshot, all, table));
    db.close().expect("the disk works");
    for backward in [false, true] {
        let reads = pages(backward);
        assert!(reads <= 24, "{reads} pages for 50 rows beside 2,800 erased ones");
    }
}
