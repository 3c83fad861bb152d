//! What the same reads and writes move between memory and disk: pages and bytes of an operation, on the simulated
//! machine. One thread does all the work in a fixed order, so the counts are the same on every machine. This module
//! does not know the expected counts.

use crate::Result;
use crate::paths::{self, key, scattered, value};
use larch::options::LevelOptions;
use larch::stats::Metrics;
use larch::{Database, TableOptions};
use os::Machine;

/// Rows of the table that is read.
const ROWS: u64 = 100_000;
/// A quarter of the table's bytes, so that most reads need the disk.
const CACHE_BYTES: u64 = 3 << 20;
/// Gets, or short scans.
const PROBES: u64 = 2_000;
/// Rows of a short scan.
const SHORT_ROWS: usize = 50;
/// Rows that are written: twice as many as fit in the write buffer.
const WRITTEN_ROWS: u64 = 40_000;
const WRITE_BUFFER_BYTES: u64 = 2 << 20;

/// A name, and what it counts.
type Counter = (&'static str, fn(&Metrics) -> u64);

/// The counts of a thousand operations, by name.
pub fn count() -> Result<Vec<(&'static str, u64)>> {
    let (machine, _) = Machine::simulated(2);
    // The files of four flushes are merged, as they are by default.
    let levels = LevelOptions { level0_files: 4, ..LevelOptions::default() };
    let builder = Database::builder("db").machine(machine).cache_bytes(CACHE_BYTES);
    let db = builder.write_buffer_bytes(WRITE_BUFFER_BYTES).levels(levels).open()?;
    let table = |name| db.table_with(name, TableOptions { node_bytes: 4 << 10, ..TableOptions::default() });
    let (read, written) = (table("read")?, table("written")?);
    let mut counts = Vec::new();
    let mut measured = |operations, names: &[Counter], work: &mut dyn FnMut() -> Result<()>| {
        let before = db.metrics();
        work()?;
        let after = db.metrics();
        let count = |(name, of): &Counter| (*name, of(&after).saturating_sub(of(&before)) * 1_000 / operations);
        counts.extend(names.iter().map(count));
        Ok::<(), Box<dyn std::error::Error>>(())
    };
    measured(ROWS, &[("import, bytes written", |it| it.import_bytes)], &mut || paths::load(&read))?;
    measured(
        PROBES,
        &[
            ("get, page reads", |it| it.page_reads),
            ("get, index page reads", |it| it.index_page_reads),
            ("get, bytes read", |it| it.page_read_bytes),
        ],
        &mut || (0..PROBES).try_for_each(|i| read.get(key(scattered(i, ROWS))).map(drop).map_err(Into::into)),
    )?;
    measured(
        PROBES,
        &[
            ("scan of 50 rows, page reads", |it| it.page_reads),
            ("scan of 50 rows, bytes read", |it| it.page_read_bytes),
        ],
        &mut || {
            for i in 0..PROBES {
                for row in read.range(key(scattered(i, ROWS))..).take(SHORT_ROWS) {
                    row?;
                }
            }
            Ok(())
        },
    )?;
    measured(
        ROWS,
        &[("full scan, page reads", |it| it.page_reads), ("full scan, bytes read", |it| it.page_read_bytes)],
        &mut || read.iter().try_for_each(|row| row.map(drop).map_err(Into::into)),
    )?;
    measured(
        WRITTEN_ROWS,
        &[
            ("insert, log bytes", |it| it.log_bytes),
            ("insert, bytes of flushes", |it| it.flush_bytes),
            ("insert, bytes of compactions", |it| it.compaction_bytes),
        ],
        &mut || {
            for i in 0..WRITTEN_ROWS {
                written.insert(key(scattered(i, WRITTEN_ROWS)), value(i))?;
            }
            db.flush()?;
            written.compact()?;
            Ok(())
        },
    )?;
    Ok(counts)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_same_work_has_the_same_counts_and_none_is_zero() {
        let first = super::count().expect("it is counted");
        assert_eq!(first, super::count().expect("it is counted"));
        assert!(first.iter().all(|(_, count)| *count > 0), "{first:?}");
    }
}
