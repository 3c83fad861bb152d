//! Measures how many pages a get reads in a table of several levels, with and without filters, and with a cache that
//! is smaller than the data.

use crate::rows::{random, sequential_key, value};
use crate::{Extent, Result};
use experiments::outcome::Goal;
use harness::report::text::grouped;
use kit::Scratch;
use larch::options::{FilterKind, Filters, LevelOptions};
use larch::stats::PageKind;
use larch::{Database, Durability, Table, TableOptions};
use std::path::{Path, PathBuf};

/// Number of level-0 files.
const FLUSHES: u64 = 6;
/// The first seed of the flushes. Gets use other seeds, or they would look for exactly the rows of one flush.
const FLUSH_SEED: u64 = 100;
/// Most pages that a get of an absent key may read on average.
const MOST_ABSENT: f64 = 0.01;
/// Gets for warming up, and as many again while page reads are counted. A quick run makes [`QUICK_GETS`].
const GETS: u64 = 40_000;
const QUICK_GETS: u64 = 10_000;

/// The key of row `number`. Its successor is absent.
fn key(number: u64) -> [u8; 24] {
    sequential_key(number * 2)
}

fn absent_key(number: u64) -> [u8; 24] {
    sequential_key(number * 2 + 1)
}

/// Builds a table of one level with all keys, one above it with a twelfth of them, and level-0 files with a
/// hundredth each. Compactions do not change it, so tables with and without filters differ in nothing else.
fn build(directory: &Path, rows: u64, filters: Filters) -> Result<()> {
    let levels =
        LevelOptions { level0_files: 1000, slow_files: 1000, base_bytes: rows * 20, ..LevelOptions::default() };
    let database = Database::builder(directory).durability(Durability::Buffered).levels(levels).open()?;
    let table = database.table_with("t", TableOptions { filters, ..TableOptions::default() })?;
    for step in [1, 12] {
        let mut import = table.import()?;
        for number in (0..rows).step_by(step) {
            import.add(&key(number), &value(number))?;
        }
        import.finish(|_| {})?;
    }
    for flush in 0..FLUSHES {
        for i in 0..rows / 100 {
            let number = random(FLUSH_SEED + flush, i, rows);
            table.insert(key(number), value(number))?;
        }
        database.flush()?;
    }
    database.close()?;
    Ok(())
}

/// Makes `gets` random gets. Returns how many pages they read, and how many of these were filter pages.
fn reads(database: &Database, table: &Table, seed: u64, gets: u64, rows: u64, is_absent: bool) -> Result<(u64, u64)> {
    let before = database.metrics();
    for i in 0..gets {
        let number = random(seed, i, rows);
        let found = table.get(if is_absent { absent_key(number) } else { key(number) })?;
        let expected = value(number);
        if found.as_deref() != (!is_absent).then_some(&expected[..]) {
            return Err(format!("row {number} was not found as it was written").into());
        }
    }
    let after = database.metrics();
    let read = after.pages.since(&before.pages);
    Ok((read.total().faults, read.of_kind(PageKind::Filter).faults))
}

/// Measures two read-only databases with the same rows in the same places.
pub fn measure(scratch: &Scratch, extent: Extent) -> Result<Vec<Goal>> {
    let (rows, gets) = (extent.of(1_000_000), if extent.quick { QUICK_GETS } else { GETS });
    let directories: [PathBuf; 2] = [scratch.join("with"), scratch.join("without")];
    for (directory, filters) in directories.iter().zip([Filters::default(), Filters::all(FilterKind::None)]) {
        eprintln!("  building {} rows, filters {filters}", grouped(rows));
        build(directory, rows, filters)?;
    }
    let open = |directory: &Path, cache_bytes: u64| -> Result<(Database, Table)> {
        let database = Database::builder(directory).read_only(true).cache_bytes(cache_bytes).open()?;
        let table = database.existing_table("t")?.ok_or("the table is gone")?;
        Ok((database, table))
    };
    let (database, table) = open(&directories[0], 1 << 20)?;
    let (stats, without) = (table.stats()?, open(&directories[1], 1 << 20)?.1.stats()?);
    drop((database, table));
    let shape = |stats: &larch::stats::TableStats| -> Vec<(usize, u64)> {
        stats.levels.iter().map(|level| (level.level, level.rows)).collect()
    };
    if shape(&stats) != shape(&without) || stats.levels.len() < 3 || without.filter_bytes != 0 {
        return Err(format!("levels of {:?} and {:?}", shape(&stats), shape(&without)).into());
    }
    let levels: Vec<String> = stats.levels.iter().map(|level| format!("{}: {}", level.level, level.files)).collect();
    let data = format!(
        "{} rows, files by level {}; {} bytes of data, {} of filters, {} of index",
        grouped(rows),
        levels.join(", "),
        grouped(stats.data_bytes),
        grouped(stats.filter_bytes),
        grouped(stats.index_bytes)
    );

    // Room for twice the filters and indexes, and for a twentieth of the data.
    let cache_bytes = 2 * (stats.filter_bytes + stats.index_bytes) + stats.data_bytes / 20;
    eprintln!("  absent keys");
    let mut absent = Vec::new();
    for directory in &directories {
        let (database, table) = open(directory, cache_bytes)?;
        let cold = reads(&database, &table, 1, gets, rows, true)?;
        let warm = reads(&database, &table, 2, gets, rows, true)?;
        absent.push((cold, warm, database.metrics().cached_filter_bytes));
    }
    let (cold, warm, resident) = absent[0];
    let a_key = |pages: u64| pages as f64 / gets as f64;
    let mut lines = vec![
        Goal::in_words(
            "page reads of an absent key, filters resident",
            format!("<= {MOST_ABSENT}"),
            format!("{:.5}", a_key(warm.0)),
            // The goal does not require all filter pages in the cache: a filter page is never read if the rows it
            // covers stay in memory.
            a_key(warm.0) <= MOST_ABSENT,
        )
        .note(data)
        .note(format!(
            "{} gets, a cache of {} bytes, {} of it filters: {} pages read, {} without filters; in as many gets before, \
             while filters came, {}, of these {} of filters",
            grouped(gets),
            grouped(cache_bytes),
            grouped(resident),
            grouped(warm.0),
            grouped(absent[1].1.0),
            grouped(cold.0),
            grouped(cold.1)
        )),
    ];
    for part in [40, 10, 4] {
        let cache_bytes = stats.data_bytes / part;
        eprintln!("  present keys, a cache of {} bytes", grouped(cache_bytes));
        let mut present = Vec::new();
        for directory in &directories {
            let (database, table) = open(directory, cache_bytes)?;
            reads(&database, &table, 3, gets, rows, false)?;
            present.push(reads(&database, &table, 4, gets, rows, false)?);
        }
        let [with, without] = present[..] else { return Err("two databases were read".into()) };
        lines.push(
            Goal::in_words(
                "page reads of a present key",
                "with filters <= without",
                format!("{:.3} with, {:.3} without", a_key(with.0), a_key(without.0)),
                with.0 <= without.0,
            )
            .note(format!(
                "a cache of {} bytes, 1/{part} of the data; {} gets after as many: {} pages, of these {} of filters, and {}",
                grouped(cache_bytes),
                grouped(gets),
                grouped(with.0),
                grouped(with.1),
                grouped(without.0)
            )),
        );
    }
    Ok(lines)
}
