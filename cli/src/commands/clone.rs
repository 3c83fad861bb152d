//! `larch clone`: a second table with the rows of a first, without copying them.

use crate::args::{CloneTable, Common};
use crate::database;
use crate::failure::Result;
use crate::output::Output;
use crate::size;
use serde::Serialize;

/// What the new table sees.
#[derive(Serialize)]
struct Report<'a> {
    table: &'a str,
    new: &'a str,
    files: u64,
    rows: u64,
    file_bytes: u64,
}

/// Runs the command.
pub fn run(common: &Common, args: &CloneTable) -> Result<()> {
    let database = database::open_to_write(&args.dir, common)?;
    let table = database::table(&database, &args.dir, &args.table)?;
    let stats = table.clone_as(&args.new)?.stats()?;
    let (files, rows, file_bytes) = (stats.files, stats.rows, stats.file_bytes);
    let report = Report { table: &args.table, new: &args.new, files, rows, file_bytes };
    drop(table);
    database.close()?;
    let mut output = Output::new();
    if args.json {
        output.json(&report)?;
    } else {
        let Report { table, new, .. } = report;
        let (rows, files, bytes) = (size::of(rows, "row"), size::of(files, "file"), size::bytes(file_bytes));
        output.line(format!("{new}: a clone of {table}, {rows} in {files} of {bytes} that both see"))?;
    }
    output.finish()
}
