//! `larch ingest`: takes built files into a table, all of them or none.

use super::import::filled_table;
use crate::args::{Common, Ingest};
use crate::database;
use crate::failure::{CommandFailure, Result};
use crate::interrupt::Interrupt;
use crate::new_database::{with_database, with_table};
use crate::output::Output;
use crate::progress::Progress;
use crate::schema::Schema;
use crate::size;
use larch::Table;
use larch::bulk::{BuiltFiles, IngestOptions};
use os::Machine;
use serde::Serialize;

/// What was taken in.
#[derive(Serialize)]
struct Report<'r> {
    table: &'r str,
    rows: u64,
    files: u64,
    bytes: u64,
    copied_bytes: u64,
    /// The bytes of the files that got second names and were not read to verify them.
    unread_bytes: u64,
    /// The version at which the rows were taken in. It is missing if no files were taken in.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<u64>,
    /// Directories that should have been removed but still exist, each with the reason.
    not_removed: Vec<String>,
    seconds: f64,
}

/// Runs the command.
pub fn run(common: &Common, args: &Ingest) -> Result<()> {
    let clock = Machine::real().clock;
    let started = clock.now();
    // The built files are opened first, so that no database is made if they cannot be opened.
    let built = args.from.iter().map(BuiltFiles::at).collect::<larch::Result<Vec<_>>>()?;
    let done = with_database(&args.dir, common, |database| {
        let fits = |table: &Table| {
            let (theirs, ours) = (built[0].options(), table.options());
            theirs.metadata == ours.metadata && theirs.groups == ours.groups
        };
        let table = match database.existing_table(&args.table)? {
            // A table without rows may have been made for another kind of rows.
            Some(table) if !fits(&table) => filled_table(database, &args.table)?,
            existing => existing,
        };
        match table {
            Some(table) => take_in(args, &table, &built),
            None => with_table(database, &args.table, built[0].options().clone(), |table| take_in(args, table, &built)),
        }
    })?;
    let time = clock.now().saturating_sub(started);
    let report = Report {
        table: &args.table,
        rows: done.rows,
        files: done.files,
        bytes: done.bytes,
        copied_bytes: done.copied_bytes,
        unread_bytes: done.unread_bytes,
        version: done.version.map(|version| version.0),
        not_removed: done.not_removed.iter().map(|(path, why)| format!("{}: {why}", path.display())).collect(),
        seconds: time.as_secs_f64(),
    };
    let mut output = Output::new();
    if args.json {
        output.json(&report)?;
        return output.finish();
    }
    let directories = args.from.len() as u64;
    let directories = if directories == 1 { "1 directory".to_owned() } else { format!("{directories} directories") };
    output.line(format!(
        "table {} took in {} of {directories}: {} of {}, {} of it copied, in {}",
        report.table,
        size::of(report.rows, "row"),
        size::of(report.files, "file"),
        size::bytes(report.bytes),
        size::bytes(report.copied_bytes),
        size::seconds(time)
    ))?;
    if report.unread_bytes > 0 {
        output.line(format!(
            "{} of it was not read, and would be taken in damaged, too; larch check {} {} reads it, and --verify does so before",
            size::bytes(report.unread_bytes),
            args.dir.display(),
            args.table
        ))?;
    }
    for left in &report.not_removed {
        output.line(format!("the table has its files, and it could not be removed: {left}"))?;
    }
    output.finish()
}

fn take_in(args: &Ingest, table: &Table, built: &[BuiltFiles]) -> Result<larch::bulk::IngestReport> {
    for (files, directory) in built.iter().zip(&args.from) {
        let (theirs, ours) = (files.options(), table.options());
        if theirs.metadata == ours.metadata {
            continue;
        }
        let schema = |of: &larch::TableOptions| Schema::from_metadata(&args.table, &of.metadata, &of.groups);
        let described =
            |of| -> Result<String> { Ok(database::rows_of(of, schema(of).map_err(CommandFailure::Input)?.as_ref())) };
        return Err(CommandFailure::Input(format!(
            "table {} holds {}, but the files in {} hold {}; take them into another table, or build them with --like {} {}; nothing \
             was taken in",
            args.table,
            described(&ours)?,
            directory.display(),
            described(theirs)?,
            args.dir.display(),
            args.table
        )));
    }
    let mut progress = Progress::bytes(if args.verify { "verifying and copying" } else { "copying" }, 0);
    let options = IngestOptions { verify: args.verify, remove: args.remove };
    let interrupt = Interrupt::caught();
    Ok(table.ingest_with(&args.from, options, progress.until(&interrupt))?)
}
