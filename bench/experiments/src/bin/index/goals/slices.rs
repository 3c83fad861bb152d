//! Measures the cost of removing most of a table and of cloning a table. Neither writes rows: tables then see slices
//! of files.

use crate::rows::{sequential_key, value};
use crate::{Extent, Result};
use experiments::outcome::Goal;
use harness::report::text::grouped;
use kit::Scratch;
use larch::stats::Metrics;
use larch::{Database, Readable, Table};
use os::Machine;
use std::path::Path;
use std::time::{Duration, Instant};

/// Most milliseconds that removing or cloning may take.
const MOST_MILLIS: f64 = 100.0;
/// Most bytes of the file of one range erase, which has a page and a footer but no data pages.
const MOST_ERASE_BYTES: u64 = 16 << 10;
/// Limit for the wait until files are cut into slices.
const PATIENCE: Duration = Duration::from_secs(60);

/// A key of 20 digits.
fn key(number: u64) -> [u8; 20] {
    *sequential_key(number).last_chunk().expect("a key has 24 bytes")
}

/// Bytes written by flushes, compactions and imports, but not to the log.
fn written(metrics: &Metrics) -> u64 {
    metrics.flush_bytes + metrics.compaction_bytes + metrics.import_bytes
}

/// Bytes of the SSTs in `directory`.
fn disk_bytes(directory: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().ends_with(".sst") {
            bytes += entry.metadata()?.len();
        }
    }
    Ok(bytes)
}

fn millis(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1e3
}

/// Imports a table, clones it, and removes nine tenths of the rows of both: first of the clone, without older
/// readers, then of the table itself, while a snapshot is open.
pub fn measure(scratch: &Scratch, extent: Extent) -> Result<Vec<Goal>> {
    let rows = extent.of(10_000_000);
    let (first, end) = (rows / 20, rows / 20 + rows / 10 * 9);
    let directory = scratch.join("database");
    let database = Database::open(&directory)?;
    let table = database.table("t")?;
    eprintln!("  importing {} rows", grouped(rows));
    let mut import = table.import()?;
    for number in 0..rows {
        import.add(&key(number), &value(number)[..100])?;
    }
    let imported = import.finish(|_| {})?;
    let mut lines = Vec::new();

    let before = database.metrics();
    let start = Instant::now();
    let clone = table.clone_as("clone")?;
    let cloned = millis(start);
    let after = database.metrics();
    if clone.stats()?.rows != rows || clone.get(key(rows - 1))?.is_none() {
        return Err("the clone has not the rows of its table".into());
    }
    let metric = if extent.quick { "clone of a table of 0.1 GB" } else { "clone of a table of 1 GB" };
    lines.push(
        Goal::in_words(metric, format!("< {MOST_MILLIS} ms"), format!("{cloned:.1} ms"), cloned < MOST_MILLIS).note(
            format!(
                "{} rows, {} bytes in {} files; a synced edit of the manifest",
                grouped(rows),
                grouped(imported.bytes),
                imported.files
            ),
        ),
    );
    let copied = written(&after) - written(&before);
    lines.push(Goal::in_words(
        metric,
        "no file copied",
        format!("{copied} bytes written, {} files before, {} after", before.files, after.files),
        (copied, before.files, before.file_bytes) == (0, after.files, after.file_bytes),
    ));

    eprintln!("  removing nine tenths of the clone");
    let before = database.metrics();
    let start = Instant::now();
    clone.remove_range(key(first)..key(end))?;
    check_ends(&clone, first, end)?;
    let seen = millis(start);
    let crossing = Instant::now();
    check_gap(&clone, first, end)?;
    let crossed = millis(crossing);
    let flushing = Instant::now();
    database.flush()?;
    let flushed = millis(flushing);
    while clone.stats()?.rows > rows / 5 {
        if flushing.elapsed() > PATIENCE {
            return Err("what was removed is not cut off the files".into());
        }
        Machine::real().clock.sleep(Duration::from_millis(1));
    }
    let cut = millis(flushing);
    let after = database.metrics();
    let crossing = Instant::now();
    check_gap(&clone, first, end)?;
    let crossed_slices = millis(crossing);
    let metric = if extent.quick { "remove_range of 90 % of 1 M rows" } else { "remove_range of 90 % of 10 M rows" };
    let all = seen + cut;
    lines.push(
        Goal::in_words(
            metric,
            format!("< {MOST_MILLIS} ms, commit, flush and slices"),
            format!("{all:.1} ms"),
            all < MOST_MILLIS,
        )
        .note(format!(
            "{seen:.1} ms until gets no longer saw the rows, commit synced; {flushed:.1} ms more until the erase was in a file, \
             {cut:.1} ms until the files were slices"
        ))
        .note(format!(
            "a reader going from the row before to the row after took {crossed:.1} ms while the erase was in memory, for it \
             passes over every row; {crossed_slices:.1} ms over slices"
        )),
    );
    let (flush_bytes, merged) =
        (after.flush_bytes - before.flush_bytes, after.compaction_bytes - before.compaction_bytes);
    let left = clone.count_exact(..)?;
    if left != rows - (end - first) {
        return Err(format!("{left} rows are left of {rows}").into());
    }
    let sees = clone.stats()?;
    lines.push(
        Goal::in_words(
            metric,
            "no data page written",
            format!("{merged} bytes by compactions, {flush_bytes} by the flush of the erase"),
            merged == 0 && flush_bytes <= MOST_ERASE_BYTES,
        )
        .note(format!(
            "the clone sees {} rows in {} files then, {} readable",
            grouped(sees.rows),
            sees.files,
            grouped(left)
        )),
    );
    drop(clone);
    database.drop_table("clone")?;

    eprintln!("  removing nine tenths of the table under a snapshot");
    let full = database.metrics().file_bytes;
    let snapshot = database.snapshot();
    table.remove_range(key(first)..key(end))?;
    check_ends(&table, first, end)?;
    eprintln!("  compacting it");
    table.compact()?;
    let held = (database.metrics().file_bytes, disk_bytes(&directory)?);
    let removed = (first + end) / 2;
    let is_seen = snapshot.get(&table, key(removed))?.as_deref() == Some(&value(removed)[..100]);
    drop(snapshot);
    eprintln!("  compacting it again, without the snapshot");
    let before = database.metrics();
    let start = Instant::now();
    table.compact()?;
    let took = millis(start);
    let after = database.metrics();
    let freed = (after.file_bytes, disk_bytes(&directory)?);
    let left = table.count_exact(..)?;
    if left != rows - (end - first) {
        return Err(format!("{left} rows are left of {rows}").into());
    }
    check_gap(&table, first, end)?;
    let least = full / 100 * 99;
    let most = full / 100 * 12;
    lines.push(
        Goal::in_words(
            metric,
            "space returned by the next compaction once no snapshot sees it, not before",
            format!(
                "{} bytes on disk, {} after a compaction under a snapshot, {} after one without",
                grouped(full),
                grouped(held.1),
                grouped(freed.1)
            ),
            is_seen && held.0 >= least && held.1 >= least && freed.0 <= most && freed.1 <= most,
        )
        .note(format!(
            "the snapshot {} a row that was removed; the last compaction wrote {} bytes in {took:.0} ms",
            if is_seen { "read" } else { "DID NOT READ" },
            grouped(after.compaction_bytes - before.compaction_bytes)
        )),
    );
    Ok(lines)
}

/// Checks that the rows at both ends of the removed range are gone and their outer neighbours are still there.
fn check_ends(table: &Table, first: u64, end: u64) -> Result<()> {
    for (number, is_there) in
        [(first - 1, true), (first, false), ((first + end) / 2, false), (end - 1, false), (end, true)]
    {
        if table.get(key(number))?.is_some() != is_there {
            return Err(format!("row {number} is {}", if is_there { "gone" } else { "still there" }).into());
        }
    }
    Ok(())
}

/// Checks that a range steps from the row before the removed range to the row after it.
fn check_gap(table: &Table, first: u64, end: u64) -> Result<()> {
    let mut range = table.range(key(first - 1)..);
    for number in [first - 1, end] {
        let row = range.next_row()?.ok_or("a row that was not removed is gone")?;
        if row.key() != key(number) {
            return Err("a row that was removed is still there, or one that was not is gone".into());
        }
    }
    Ok(())
}
