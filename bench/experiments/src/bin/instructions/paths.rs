//! The hot paths and the data they run on. This module does not know the expected counts.

use crate::Result;
use kit::callgrind::counted_region;
use larch::options::LevelOptions;
use larch::{Cursor, Database, MergeOp, Range, Readable, Table, TableOptions};
use os::Machine;
use std::hint::black_box;
use std::ops::ControlFlow;

/// Rows of the table in one file.
const ROWS: u64 = 100_000;
/// Rows in each of four files whose key ranges overlap.
const OVERLAPPING_ROWS: u64 = 10_000;
/// Rows of the table in which about every tenth page has newer rows in another file.
const CLUSTERED_ROWS: u64 = 40_000;
/// Rows that a path writes and then flushes.
const WRITTEN_ROWS: u64 = 20_000;
/// Gets or seeks of one path.
const PROBES: u64 = 1_000;
/// Rows of a short scan.
const SHORT_ROWS: u64 = 50;
/// Keys of one `multi_get`, and rows of one batch.
const TOGETHER: u64 = 16;

/// One path.
pub struct Path {
    pub name: &'static str,
    /// How often the path runs its operation.
    pub operations: u64,
    run: fn(&Tables) -> Result<u64>,
    /// Whether the path runs once before its instructions are counted, because then it finds what a second run finds.
    repeats: bool,
}

/// All paths, in the order in which they run.
pub const ALL: [Path; 29] = [
    Path { name: "get", operations: PROBES, run: |tables| get(&tables.one, ROWS, 0), repeats: true },
    Path {
        name: "get, four files",
        operations: PROBES,
        run: |tables| get(&tables.four, 4 * OVERLAPPING_ROWS, 0),
        repeats: true,
    },
    Path { name: "transaction of a get", operations: PROBES, run: transact_get, repeats: true },
    Path { name: "multi_get of 16, a key", operations: PROBES / TOGETHER * TOGETHER, run: multi_get, repeats: true },
    Path { name: "scan of 50 rows", operations: PROBES, run: short_scans, repeats: true },
    Path { name: "full scan, a row", operations: ROWS, run: |tables| scan(&tables.one), repeats: true },
    Path { name: "scan of 50 rows, lent", operations: PROBES, run: short_scans_lent, repeats: true },
    Path { name: "full scan, lent, a row", operations: ROWS, run: |tables| scan_lent(&tables.one), repeats: true },
    Path { name: "scan of 50 rows, handed over", operations: PROBES, run: short_scans_handed_over, repeats: true },
    Path {
        name: "full scan, batches of values, a row",
        operations: ROWS,
        run: |tables| batches(tables.one.iter()),
        repeats: true,
    },
    Path {
        name: "full scan, handed over, a row",
        operations: ROWS,
        run: |tables| handed_over(tables.one.iter()),
        repeats: true,
    },
    Path { name: "full walk of a cursor, a row", operations: ROWS, run: |tables| walk(&tables.one), repeats: true },
    Path {
        name: "cursor seek",
        operations: PROBES,
        run: |tables| seeks(tables, |cursor, key| cursor.seek(key)),
        repeats: true,
    },
    Path {
        name: "cursor seek back",
        operations: PROBES,
        run: |tables| seeks(tables, |cursor, key| cursor.seek_back(key)),
        repeats: true,
    },
    Path { name: "first row of a new range", operations: PROBES, run: first_rows, repeats: true },
    // A filter is consulted only where earlier look-ups found nothing, so this path runs after the other reads of
    // this table.
    Path { name: "get, absent", operations: PROBES, run: |tables| get(&tables.one, ROWS, 1), repeats: true },
    Path {
        name: "full scan, four files, a row",
        operations: 4 * OVERLAPPING_ROWS,
        run: |tables| scan(&tables.four),
        repeats: true,
    },
    Path {
        name: "full scan, four files, batches of values, a row",
        operations: 4 * OVERLAPPING_ROWS,
        run: |tables| batches(tables.four.iter()),
        repeats: true,
    },
    Path {
        name: "full scan, four files, lent, a row",
        operations: 4 * OVERLAPPING_ROWS,
        run: |tables| scan_lent(&tables.four),
        repeats: true,
    },
    Path {
        name: "full walk of a cursor, four files, a row",
        operations: 4 * OVERLAPPING_ROWS,
        run: |tables| walk(&tables.four),
        repeats: true,
    },
    Path { name: "insert", operations: WRITTEN_ROWS, run: |tables| insert(tables, 1), repeats: false },
    Path {
        name: "batch of 16, a row",
        operations: WRITTEN_ROWS,
        run: |tables| insert(tables, TOGETHER),
        repeats: false,
    },
    Path {
        name: "get, in memory",
        operations: PROBES,
        run: |tables| get(&tables.written, WRITTEN_ROWS, 0),
        repeats: true,
    },
    Path { name: "flush, a row", operations: 2 * WRITTEN_ROWS, run: flush, repeats: false },
    Path { name: "compaction, a row", operations: 4 * OVERLAPPING_ROWS, run: compact, repeats: false },
    Path { name: "compaction of clusters, a row", operations: CLUSTERED_ROWS, run: compact_clusters, repeats: false },
    Path { name: "import, a row", operations: ROWS, run: import, repeats: false },
    // Runs last, because it overwrites rows that other paths read.
    Path { name: "transaction of a get and an insert", operations: WRITTEN_ROWS, run: transact, repeats: false },
    // The first run makes the counters.
    Path { name: "merge, a row", operations: WRITTEN_ROWS, run: merge, repeats: true },
];

struct Tables {
    db: Database,
    /// One file.
    one: Table,
    /// Four level-0 files with interleaved keys.
    four: Table,
    /// One file with all rows, and a level-0 file with newer rows in clusters of neighbouring keys.
    clustered: Table,
    /// The table for inserts.
    written: Table,
    /// The table for imports.
    imported: Table,
    /// The table for counters.
    counters: Table,
}

/// Runs each path once in the region that valgrind counts.
pub fn run_all() -> Result<()> {
    let (machine, _) = Machine::simulated(1);
    // Nothing is flushed or compacted before a path asks for it.
    let levels = LevelOptions { level0_files: 100, slow_files: 200, ..LevelOptions::default() };
    let builder = Database::builder("db").machine(machine).cache_bytes(256 << 20).write_buffer_bytes(64 << 20);
    let db = builder.levels(levels).open()?;
    let options = || TableOptions { node_bytes: 4 << 10, ..TableOptions::default() };
    let table = |name| db.table_with(name, options());
    let tables = Tables {
        one: table("one")?,
        four: table("four")?,
        clustered: table("clustered")?,
        written: table("written")?,
        imported: table("imported")?,
        counters: table("counters")?,
        db: db.clone(),
    };
    load(&tables.one)?;
    // A machine without threads does not load the filter in the background, so this loads it, too.
    tables.one.warm(..)?;
    for part in 0..4 {
        for i in 0..OVERLAPPING_ROWS {
            tables.four.insert(key(4 * scattered(i, OVERLAPPING_ROWS) + part), value(i))?;
        }
        db.flush()?;
    }
    (0..CLUSTERED_ROWS).try_for_each(|i| tables.clustered.insert(key(i), value(i)))?;
    tables.clustered.compact()?;
    for first in (0..CLUSTERED_ROWS).step_by(1000) {
        (first..first + 10).try_for_each(|i| tables.clustered.insert(key(i), value(i + 1)))?;
    }
    db.flush()?;
    for path in ALL {
        if path.repeats {
            (path.run)(&tables)?;
        }
        let mut outcome = Ok(0);
        counted_region(&mut || outcome = (path.run)(&tables));
        if outcome? == 0 {
            return Err(format!("{}: nothing was done", path.name).into());
        }
    }
    Ok(())
}

/// A random-looking permutation of `0..rows`.
pub fn scattered(i: u64, rows: u64) -> u64 {
    // The factor is a prime that divides none of the row counts here.
    i * 7_368_787 % rows
}

pub fn key(i: u64) -> [u8; 20] {
    let mut key = *b"user0000000000000000";
    let mut rest = i;
    for digit in key[4..].iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    key
}

pub fn value(i: u64) -> [u8; 100] {
    let mut value = [b'v'; 100];
    value[..8].copy_from_slice(&i.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_le_bytes());
    value
}

/// Imports [`ROWS`] rows in key order. Making their keys and values is part of the count.
pub fn load(table: &Table) -> Result<()> {
    let mut import = table.import()?;
    for i in 0..ROWS {
        import.add(&key(i), &value(i))?;
    }
    import.finish(|_| {})?;
    Ok(())
}

fn get(table: &Table, rows: u64, after: u8) -> Result<u64> {
    let mut bytes = 0;
    for i in 0..PROBES {
        let mut key = key(scattered(i, rows));
        key[19] += 16 * after;
        bytes += table.get(key)?.map_or(1, |value| value.len() as u64);
    }
    Ok(bytes)
}

fn multi_get(tables: &Tables) -> Result<u64> {
    let mut bytes = 0;
    for start in 0..PROBES / TOGETHER {
        let keys = (0..TOGETHER).map(|i| key(scattered(start * TOGETHER + i, ROWS)));
        bytes += tables.one.multi_get(keys)?.iter().flatten().map(|value| value.len() as u64).sum::<u64>();
    }
    Ok(bytes)
}

fn short_scans(tables: &Tables) -> Result<u64> {
    let mut bytes = 0;
    for i in 0..PROBES {
        for row in tables.one.range(key(scattered(i, ROWS))..).take(SHORT_ROWS as usize) {
            bytes += row?.1.len() as u64;
        }
    }
    Ok(bytes)
}

fn scan(table: &Table) -> Result<u64> {
    let mut bytes = 0;
    for row in table.iter() {
        bytes += black_box(row?).1.len() as u64;
    }
    Ok(bytes)
}

/// Like [`scan`], but reads rows in place without copying them.
fn scan_lent(table: &Table) -> Result<u64> {
    lent(table.iter())
}

fn short_scans_lent(tables: &Tables) -> Result<u64> {
    let mut bytes = 0;
    for i in 0..PROBES {
        bytes += lent(tables.one.range(key(scattered(i, ROWS))..).limit(SHORT_ROWS))?;
    }
    Ok(bytes)
}

fn lent(mut rows: Range) -> Result<u64> {
    let mut bytes = 0;
    while let Some(row) = rows.next_row()? {
        bytes += black_box(row.key()).len() as u64;
        bytes += row.inline_value().map_or(0, |value| black_box(value).len() as u64);
    }
    Ok(bytes)
}

fn short_scans_handed_over(tables: &Tables) -> Result<u64> {
    let mut bytes = 0;
    for i in 0..PROBES {
        bytes += handed_over(tables.one.range(key(scattered(i, ROWS))..).limit(SHORT_ROWS))?;
    }
    Ok(bytes)
}

fn handed_over(mut rows: Range) -> Result<u64> {
    let mut bytes = 0;
    let end = rows.for_each_row(|row| {
        bytes += black_box(row.key()).len() as u64;
        bytes += row.inline_value().map_or(0, |value| black_box(value).len() as u64);
        ControlFlow::<()>::Continue(())
    })?;
    assert!(end.is_continue(), "nothing breaks it");
    Ok(bytes)
}

/// Like [`handed_over`], but by batches, and without looking at keys.
fn batches(mut rows: Range) -> Result<u64> {
    let mut bytes = 0;
    while let Some(batch) = rows.next_batch(usize::MAX)? {
        let values = batch.inline_parts(0).expect("values of a hundred bytes lie in their pages");
        bytes += values.map(|value| black_box(value).len() as u64).sum::<u64>();
    }
    Ok(bytes)
}

/// Like [`scan_lent`], but uses a cursor.
fn walk(table: &Table) -> Result<u64> {
    let (mut cursor, mut bytes) = (table.cursor(), 0);
    while cursor.next()? {
        let (key, value) = cursor.key_value().expect("it is at a row");
        bytes += black_box(key).len() as u64 + black_box(value).len() as u64;
    }
    Ok(bytes)
}

/// Seeks of one cursor.
fn seeks(tables: &Tables, seek: fn(&mut Cursor, [u8; 20]) -> larch::Result<bool>) -> Result<u64> {
    let (mut cursor, mut bytes) = (tables.one.cursor(), 0);
    for i in 0..PROBES {
        seek(&mut cursor, key(scattered(i, ROWS)))?;
        bytes += black_box(cursor.value()).map_or(0, |value| value.len() as u64);
    }
    Ok(bytes)
}

/// Like [`seeks`], but with a new range for each.
fn first_rows(tables: &Tables) -> Result<u64> {
    let mut bytes = 0;
    for i in 0..PROBES {
        let mut rows = tables.one.range(key(scattered(i, ROWS))..);
        let row = rows.next_row()?;
        bytes += row.and_then(|row| row.inline_value().map(|value| black_box(value).len() as u64)).unwrap_or(0);
    }
    Ok(bytes)
}

/// Inserts rows in batches of `together`. Single rows and batches have different keys.
fn insert(tables: &Tables, together: u64) -> Result<u64> {
    let table = &tables.written;
    if together == 1 {
        for i in 0..WRITTEN_ROWS {
            table.insert(key(scattered(i, WRITTEN_ROWS)), value(i))?;
        }
        return Ok(WRITTEN_ROWS);
    }
    for start in (0..WRITTEN_ROWS).step_by(together as usize) {
        let mut batch = tables.db.batch();
        for i in start..start + together {
            batch.insert(table, key(WRITTEN_ROWS + scattered(i, WRITTEN_ROWS)), value(i));
        }
        batch.commit()?;
    }
    Ok(WRITTEN_ROWS)
}

/// Adds to each counter once.
fn merge(tables: &Tables) -> Result<u64> {
    for i in 0..WRITTEN_ROWS {
        tables.counters.merge(key(scattered(i, WRITTEN_ROWS)), MergeOp::Add(1))?;
    }
    Ok(WRITTEN_ROWS)
}

/// Like [`get`], but makes each get in its own transaction.
fn transact_get(tables: &Tables) -> Result<u64> {
    let mut bytes = 0;
    for i in 0..PROBES {
        let tx = tables.db.begin()?;
        bytes += tx.get(&tables.one, key(scattered(i, ROWS)))?.map_or(1, |value| value.len() as u64);
        tx.commit()??;
    }
    Ok(bytes)
}

/// Runs transactions, each of which reads a row and writes a row.
fn transact(tables: &Tables) -> Result<u64> {
    let mut bytes = 0;
    for i in 0..WRITTEN_ROWS {
        let mut tx = tables.db.begin()?;
        bytes += tx.get(&tables.one, key(scattered(i, ROWS)))?.map_or(1, |value| value.len() as u64);
        tx.insert(&tables.written, key(scattered(i, WRITTEN_ROWS)), value(i))?;
        tx.commit()??;
    }
    Ok(bytes)
}

fn flush(tables: &Tables) -> Result<u64> {
    tables.db.flush()?;
    Ok(tables.written.stats()?.data_bytes)
}

fn compact(tables: &Tables) -> Result<u64> {
    tables.four.compact()?;
    Ok(tables.four.stats()?.data_bytes)
}

fn compact_clusters(tables: &Tables) -> Result<u64> {
    tables.clustered.compact()?;
    Ok(tables.clustered.stats()?.data_bytes)
}

fn import(tables: &Tables) -> Result<u64> {
    load(&tables.imported)?;
    Ok(ROWS)
}
