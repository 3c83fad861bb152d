//! Imports rows in any order, reads them while the memory has a fixed limit, and shows what uses the memory.
//!
//! ```text
//! cargo run -p larch-db --example bulk_import
//! ```

use larch::Database;
use std::error::Error;

const MIB: u64 = 1 << 20;
const ROWS: u64 = 300_000;

/// Turns each number into another number that looks random. Keys that are made from these numbers are not in
/// order. No key comes twice.
fn scattered(number: u64) -> u64 {
    number.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

fn main() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let builder = Database::builder(directory.path()).cache_bytes(2 * MIB).write_buffer_bytes(8 * MIB);
    // The engine reports what it does in the background.
    let db = builder.on_event(|event| println!("event: {event}")).open()?;
    let readings = db.table("readings")?;

    // Nothing is visible before `finish`. If the import is dropped and not finished, the table stays as it was.
    let mut import = readings.import()?;
    for number in 0..ROWS {
        import.add(&scattered(number).to_be_bytes(), format!("reading {number:92}").as_bytes())?;
    }
    assert_eq!(readings.iter().count(), 0);
    let report = import.finish(|_| {})?;
    println!("{} rows in {} runs, {} files, {} MiB", report.rows, report.runs, report.files, report.bytes / MIB);
    assert_eq!(report.rows, ROWS);

    // Index pages are in the cache like all other pages, so the size of the cache limits all memory for pages.
    for number in (0..ROWS).step_by(30) {
        assert!(readings.get(scattered(number).to_be_bytes())?.is_some());
    }
    let (metrics, stats) = (db.metrics(), readings.stats()?);
    println!("data {} KiB, index {} KiB", stats.data_bytes >> 10, stats.index_bytes >> 10);
    println!("{} pages read, {} found in memory", metrics.page_reads, metrics.page_hits);
    for (owner, bytes) in metrics.memory().owners() {
        println!("  {owner:16} {:>6} KiB", bytes >> 10);
    }
    assert!(metrics.cache.used_bytes <= 2 * MIB);
    assert!(stats.index_bytes * 100 < stats.data_bytes);
    Ok(())
}
