//! `larch count`: prints how many rows a table or a range of its keys has.

use super::scan;
use super::stats::range::Interval;
use crate::args::{Common, Count};
use crate::database;
use crate::failure::Result;
use crate::output::Output;
use larch::stats::Estimate;
use serde::Serialize;

/// A number of rows, in a form that is printed as JSON.
#[derive(Serialize)]
struct Report<'r> {
    /// Name of the table.
    table: &'r str,
    /// The interval that contains the number of rows. With `--exact`, both ends are this number.
    rows: Interval,
}

/// Runs the command.
pub fn run(common: &Common, args: &Count) -> Result<()> {
    let database = database::open(&args.dir, common)?;
    let table = database::table(&database, &args.dir, &args.table)?;
    let snapshot = database::snapshot(&database, &args.at)?;
    let rows = table.at(&snapshot)?;
    let range = scan::range(&args.range, &database::layout(&table, &args.range.types)?)?;
    let rows = match range {
        None => Estimate { low: 0, high: 0 },
        Some(range) if args.exact => {
            let rows = rows.count_exact(range)?;
            Estimate { low: rows, high: rows }
        }
        Some(range) => rows.count(range)?,
    };
    let mut output = Output::new();
    match (args.json, rows) {
        (true, rows) => output.json(&Report { table: table.name(), rows: rows.into() })?,
        // Scripts read this number, so it has no commas.
        (false, Estimate { low, high }) if low == high => output.line(low.to_string())?,
        (false, Estimate { low, high }) => output.line(format!("{low} to {high}"))?,
    }
    output.finish()
}
