//! `larch split`: where to cut a table in parts of about equal size, for programs that read it with several processes.

use super::stats::keys_between;
use super::stats::range::{Part, parts};
use crate::args::{Common, Split};
use crate::database;
use crate::failure::Result;
use crate::output::Output;
use crate::size;
use serde::Serialize;

/// What a machine reads.
#[derive(Serialize)]
struct Report<'a> {
    /// Name of the table.
    table: &'a str,
    /// The parts in order: together all rows, none in two.
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

/// Prints a line for each part: rows, bytes and the key before which the part stops. The key is last because it may
/// have any length.
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
