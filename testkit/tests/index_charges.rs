//! The limits of a read count only rows and data pages, not index pages. So the same read loads the same data pages,
//! whatever index the files have. A table's stats about its rows are also the same with every index.

use larch::options::{LevelOptions, PageIndexKind};
use larch::rows::AtMost;
use larch::stats::TableStats;
use larch::{Database, Table, TableOptions};
use os::Machine;
use os::sim::SimDisk;
use os::sync::Arc;

const ROWS: u32 = 6_000;
const GROUPS: [&str; 2] = ["hot", "cold"];

/// Which indexes the files have, how tall they are, and which one is read if a file has both.
#[derive(Clone, Copy, Debug)]
struct Shape {
    index: PageIndexKind,
    node_bytes: u32,
    prefer_flat: bool,
}

const SHAPES: [Shape; 5] = [
    Shape { index: PageIndexKind::Btree, node_bytes: 256, prefer_flat: false },
    Shape { index: PageIndexKind::Btree, node_bytes: 4096, prefer_flat: false },
    Shape { index: PageIndexKind::Flat, node_bytes: 4096, prefer_flat: false },
    Shape { index: PageIndexKind::Both, node_bytes: 256, prefer_flat: false },
    Shape { index: PageIndexKind::Both, node_bytes: 256, prefer_flat: true },
];

fn key(i: u32) -> Vec<u8> {
    format!("key {i:08}").into_bytes()
}

fn open(disk: &Arc<SimDisk>, shape: Shape) -> (Database, Table) {
    // Level 0 is never compacted.
    let levels = LevelOptions { level0_files: 1000, slow_files: 1000, ..LevelOptions::default() };
    let builder = Database::builder("db").machine(Machine::simulated_on(disk.clone(), 1)).levels(levels);
    let db = builder.prefer_flat_index(shape.prefer_flat).open().expect("the disk works");
    let Shape { index, node_bytes, .. } = shape;
    let groups = GROUPS.map(str::to_owned).to_vec();
    let options = TableOptions { page_bytes: 512, node_bytes, index, groups, ..Default::default() };
    let table = db.table_with("t", options).expect("the disk works");
    (db, table)
}

/// Rows in three files that overlap everywhere. Some rows are erased, some have older versions, and some have large
/// values.
fn filled(shape: Shape) -> Arc<SimDisk> {
    let disk = SimDisk::new(1);
    let (db, table) = open(&disk, shape);
    let mut snapshots = Vec::new();
    for file in 0..3 {
        let mut batch = db.batch();
        for i in (0..ROWS).filter(|i| i % 3 == file || i % 11 == 0) {
            match i % 97 {
                5 => batch.remove(&table, key(i)),
                6 => batch.insert_parts(&table, key(i), &[&[b'l'; 700][..], b"cold"]),
                _ => batch.insert_parts(&table, key(i), &[format!("hot {i}").as_bytes(), &[b'c'; 40]]),
            }
        }
        batch.commit().expect("the disk works");
        snapshots.push(db.snapshot());
        // The snapshots still need the old versions of these rows, so the flush puts them into the history of the
        // same file.
        let mut batch = db.batch();
        (0..ROWS).filter(|i| i % 40 == file).for_each(|i| batch.insert_parts(&table, key(i), &[&b"new"[..], b"new"]));
        batch.remove_range(&table, key(100 * file)..key(100 * file + 20));
        batch.commit().expect("the disk works");
        db.flush().expect("the disk works");
    }
    drop(snapshots);
    disk
}

/// How many data pages and index pages `read` reads, in this order.
fn reads(db: &Database, read: impl FnOnce()) -> (u64, u64) {
    let count = || {
        let pages = db.metrics().pages;
        (pages.data_reads(), pages.index_reads())
    };
    let before = count();
    read();
    let after = count();
    (after.0 - before.0, after.1 - before.1)
}

/// Runs `read` for every shape, from an empty cache. All shapes must give the same result, and may differ by at most
/// `slack` in the data pages that they read. Returns the number of data pages, and of index pages for each shape.
#[track_caller]
fn compare(disks: &[(Shape, Arc<SimDisk>)], slack: u64, read: impl Fn(&Table) -> Vec<Vec<u8>>) -> (u64, Vec<u64>) {
    let mut expected = None;
    let mut index_reads = Vec::new();
    for (shape, disk) in disks {
        let (db, table) = open(disk, *shape);
        let mut keys = Vec::new();
        let (data, index) = reads(&db, || keys = read(&table));
        let (expected_data, expected_keys) = expected.get_or_insert_with(|| (data, keys.clone()));
        assert_eq!(&keys, &*expected_keys, "{shape:?}");
        assert!(data.abs_diff(*expected_data) <= slack, "{shape:?}: {data} data pages, {expected_data} before");
        index_reads.push(index);
    }
    (expected.expect("there are shapes").0, index_reads)
}

fn disks() -> Vec<(Shape, Arc<SimDisk>)> {
    SHAPES.map(|shape| (shape, filled(shape))).to_vec()
}

fn rows_of(table: &Table, limit: u64, backward: bool) -> Vec<Vec<u8>> {
    let mut rows = table.select(GROUPS).expect("it has these groups").range(key(1_000)..).limit(limit);
    let mut keys = Vec::new();
    while let Some(row) = if backward { rows.next_back() } else { rows.next() } {
        keys.push(row.expect("the disk works").0.to_vec());
    }
    keys
}

#[test]
fn what_is_prefetched_within_a_limit_is_the_same_data_under_every_index() {
    let disks = disks();
    let mut data_reads = Vec::new();
    for limits in
        [1, 100, 2_000].map(AtMost::rows).into_iter().chain([1, 4 << 10, 64 << 10, 1 << 20].map(AtMost::bytes))
    {
        for backward in [false, true] {
            let (data, index) = compare(&disks, 0, |table| {
                let selection = table.select(GROUPS).expect("it has these groups");
                let range = key(1_000)..key(5_000);
                let done =
                    if backward { selection.prefetch_back(range, limits) } else { selection.prefetch(range, limits) };
                done.expect("the disk works");
                Vec::new()
            });
            // With a tall tree, a read takes several times as many index pages as with a flat list, and is charged
            // for none.
            assert!(index[0] > index[2], "{limits:?}: {index:?}");
            data_reads.push(data);
        }
    }
    // The limits of rows ascend, and so do those of bytes. With a higher limit, a forward read must read more pages.
    let forward: Vec<u64> = data_reads.iter().copied().step_by(2).collect();
    assert!(forward[0] < forward[1] && forward[1] < forward[2], "{forward:?}");
    assert!(forward[3] < forward[5] && forward[5] < forward[6], "{forward:?}");
}

#[test]
fn a_range_with_a_limit_gives_the_same_rows_by_the_same_data_pages_under_every_index() {
    let disks = disks();
    for limit in [1, 50, 1_500] {
        for backward in [false, true] {
            let (data, index) = compare(&disks, 0, |table| rows_of(table, limit, backward));
            assert!(data > 0 && index[0] > index[2], "{limit}: {index:?}");
        }
    }
}

#[test]
fn a_scan_with_readahead_reads_the_same_data_under_every_index() {
    let disks = disks();
    for backward in [false, true] {
        // Nodes end at different rows in each shape, so a readahead window may include some more pages.
        let (data, _) = compare(&disks, 10, |table| {
            let mut rows = table.select(GROUPS).expect("it has these groups").iter();
            let mut keys = Vec::new();
            while let Some(row) = if backward { rows.next_back() } else { rows.next() } {
                keys.push(row.expect("the disk works").0.to_vec());
            }
            keys
        });
        assert!(data > 500, "{data}");
    }
}

/// What a table's stats say about its rows and their memory, apart from its index.
fn of_rows(stats: &TableStats) -> impl PartialEq + std::fmt::Debug + use<> {
    let levels: Vec<(usize, u64, u64)> =
        stats.levels.iter().map(|level| (level.level, level.files, level.rows)).collect();
    (
        [stats.rows, stats.erased_rows, stats.history_rows, stats.user_bytes, stats.files],
        [stats.data_pages, stats.data_bytes, stats.group_bytes, stats.group_history_bytes],
        [stats.history_bytes, stats.value_bytes, stats.range_erase_bytes],
        [stats.memtable_rows, stats.memtable_bytes],
        stats.cached_history_bytes,
        stats.groups.clone(),
        levels,
    )
}

#[test]
fn a_table_is_reported_alike_under_every_index() {
    let disks = disks();
    let (mut expected, mut cached_data) = (None, None);
    for (shape, disk) in &disks {
        let (db, table) = open(disk, *shape);
        table.insert_parts("in memory", &["hot", "cold"]).expect("the disk works");
        let cold = table.stats().expect("the table is there");
        rows_of(&table, u64::MAX, false);
        let stats = table.stats().expect("the table is there");
        let said = (of_rows(&cold), of_rows(&stats));
        assert_eq!(said, *expected.get_or_insert_with(|| (of_rows(&cold), of_rows(&stats))), "{shape:?}");
        // A scan's readahead window may have included some more pages.
        let cached = *cached_data.get_or_insert(stats.cached_data_bytes);
        assert!(stats.cached_data_bytes.abs_diff(cached) <= cached / 50, "{shape:?}: {}", stats.cached_data_bytes);
        assert_eq!(cold.cached_data_bytes, 0, "{shape:?}");
        // Only the numbers for the index differ, on disk and in memory.
        assert_eq!(stats.index_bytes, stats.btree_bytes + stats.flat_bytes);
        assert!(stats.cached_index_bytes > 0 && stats.cached_data_bytes > cold.cached_data_bytes);
        let cached = stats.cached_index_bytes + stats.cached_data_bytes;
        let cached = cached + stats.cached_history_bytes + stats.cached_filter_bytes;
        assert_eq!(cached, db.cache().used_bytes(), "{shape:?}: all that is in memory of it is reported");
    }
}
