//! `larch warm`: reads the pages of a range of keys into memory. When the database is closed, it stores a list of
//! these pages.

use super::scan;
use crate::args::{Common, Warm};
use crate::database;
use crate::failure::Result;
use crate::output::Output;
use crate::size;
use serde::Serialize;

/// How much of the range is in memory now.
#[derive(Serialize)]
struct Report<'a> {
    table: &'a str,
    /// The memory that pages of the range take.
    bytes: u64,
    page_reads: u64,
    /// Whether all pages of the range are in memory.
    whole: bool,
}

/// Runs the command.
pub fn run(common: &Common, args: &Warm) -> Result<()> {
    let database = database::open_to_write(&args.dir, common)?;
    let table = database::table(&database, &args.dir, &args.table)?;
    let warmed = scan::range(&args.range, &database::layout(&table, &args.range.types)?)?
        .map(|range| table.warm(range))
        .transpose()?;
    drop(table);
    database.close()?;
    // A range without keys is completely in memory.
    let (bytes, page_reads, is_whole) =
        warmed.map_or((0, 0, true), |warmed| (warmed.bytes, warmed.page_reads, warmed.is_whole));
    let report = Report { table: &args.table, bytes, page_reads, whole: is_whole };
    let mut output = Output::new();
    if args.json {
        output.json(&report)?;
    } else {
        let (bytes, pages) = (size::bytes(bytes), size::of(page_reads, "page"));
        let rest = if is_whole { "all of it" } else { "and the rest has no room: raise --cache" };
        output.line(format!("{}: {bytes} in memory, {pages} read, {rest}", report.table))?;
    }
    output.finish()
}
