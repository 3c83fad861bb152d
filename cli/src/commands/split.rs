//! `larch split`: finds keys that divide a table into parts of about equal size. A program can then read the parts
//! with several processes.

use super::stats::keys_between;
use super::stats::range::{Part, parts};
use crate::args::{Common, Split};
use crate::database;
use crate::failure::Result;
use crate::output::Output;
use crate::size;
use serde::Serialize;

/// The report in a form that is printed as JSON.
#[derive(Serialize)]
struct Report<'a> {
    /// The name of the table.
    table: &'a str,
    /// The parts in key order. The parts together contain all rows, and each row is in exactly one part.
    parts: &'a [Part],
}

/// Runs the command.
pub fn run(common: &Common, args: &Split) -> Result<()> {
    let database = database::open(&args.dir, common)?;
    let table = database::table(&database, &args.dir, &args.table)?;
    let layout = database::layout(&table, &args.types)?;
    let range = keys_between(&layout, args.from.as_deref(), args.to.as_deref())?;
    let points = table.split_points(range.clone(), args.parts)?;
    let points = points.into_iter().map(|point| (point.at, point.is_key)).collect();
    let parts = parts(&table, &layout, &range, points)?;
    let mut output = Output::new();
    if args.json {
        output.json(&Report { table: table.name(), parts: &parts })?;
    } else {
        print(&parts, &mut output)?;
    }
    output.finish()
}

/// Prints a line for each part: its rows, its bytes, and the key before which it stops. The key comes last because
/// it may have any length.
fn print(parts: &[Part], output: &mut Output) -> Result<()> {
    output.line(format!("{:>12}  {:>10}  before", "rows", "bytes"))?;
    for part in parts {
        let (rows, bytes) = (size::count(part.rows_about()), size::bytes(part.bytes_about()));
        output.write(|line| {
            line.extend_from_slice(format!("{rows:>12}  {bytes:>10}  ").as_bytes());
            line.extend_from_slice(part.to_text().unwrap_or(b"(the end)"));
            line.push(b'\n');
        })?;
    }
    Ok(())
}
