//! `larch diff` prints the rows in which two versions of a table, or two tables, differ. `larch revert` goes back to
//! one of them.

use super::scan;
use crate::args::{self, At, Common};
use crate::database;
use crate::failure::{CommandFailure, Result};
use crate::output::{Output, Printer};
use crate::size;
use larch::past::Difference;
use larch::{Database, Snapshot};
use serde::Serialize;
use serde_json::value::RawValue;

/// A row that differs.
#[derive(Serialize)]
struct Listed {
    key: Box<RawValue>,
    before: Option<Box<RawValue>>,
    after: Option<Box<RawValue>>,
}

/// What was reverted.
#[derive(Serialize)]
struct Report<'r> {
    table: &'r str,
    rows: u64,
    /// The newest version after that.
    version: u64,
}

fn version(database: &Database, text: Option<&String>) -> Result<Snapshot> {
    database::snapshot(database, &At { at: text.cloned() })
}

/// Runs `larch diff`.
pub fn diff(common: &Common, args: &args::Diff) -> Result<()> {
    let database = database::open(&args.dir, common)?;
    let table = database::table(&database, &args.dir, &args.table)?;
    let layout = database::layout(&table, &args.range.types)?;
    let before = version(&database, args.before.as_ref())?;
    let of_other = args.with.as_ref().map(|dir| database::open(dir, common)).transpose()?;
    let (other, other_dir) = (of_other.as_ref().unwrap_or(&database), args.with.as_ref().unwrap_or(&args.dir));
    let after = version(other, args.after.as_ref())?;
    let other = database::table(other, other_dir, args.with_table.as_ref().unwrap_or(&args.table))?;
    let (mut output, mut printer) = (Output::new(), Printer::new(&layout));
    let Some(range) = scan::range(&args.range, &layout)? else { return output.finish() };
    for difference in table.diff_with(&before, &other, &after, range)? {
        let Difference { key, before, after, .. } = difference?;
        if args.json {
            let mut line = Vec::new();
            printer.key_json(&key, &mut line);
            let mut row = |parts: Option<Vec<Vec<u8>>>| {
                let printed = parts.map(|parts| {
                    let mut line = Vec::new();
                    printer.json(&key, &parts, &mut line);
                    raw(&line)
                });
                printed.transpose()
            };
            output.json(&Listed { before: row(before)?, after: row(after)?, key: raw(&line)? })?;
            continue;
        }
        for (sign, parts) in [(b'-', before), (b'+', after)] {
            let Some(parts) = parts else { continue };
            output.write(|line| {
                line.extend_from_slice(&[sign, b'\t']);
                printer.tsv(&key, &parts, line);
            })?;
        }
    }
    output.finish()
}

/// A line of JSON as a value of a report.
pub fn raw(json: &[u8]) -> Result<Box<RawValue>> {
    let text = String::from_utf8_lossy(json.trim_ascii_end()).into_owned();
    RawValue::from_string(text).map_err(|error| CommandFailure::Input(format!("a row is no JSON: {error}")))
}

/// Runs `larch revert`.
pub fn revert(common: &Common, args: &args::Revert) -> Result<()> {
    let database = database::open_to_write(&args.dir, common)?;
    let table = database::table(&database, &args.dir, &args.table)?;
    let range = scan::range(&args.range, &database::layout(&table, &args.range.types)?)?;
    let then = version(&database, Some(&args.when))?;
    let rows = range.map_or(Ok(0), |range| table.revert(&then, range))?;
    let report = Report { table: table.name(), rows, version: database.version().0 };
    let mut output = Output::new();
    match args.json {
        true => output.json(&report)?,
        false => output.line(format!("{} changed: version {}", size::of(rows, "row"), size::count(report.version)))?,
    }
    drop((then, table));
    database.close()?;
    output.finish()
}
