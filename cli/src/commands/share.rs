//! `larch clone`, `larch split-off` and `larch rename-table`: make tables that see the files of another table,
//! without copying rows.

use crate::args::{At, CloneTable, Common, RenameTable, SplitOff};
use crate::database;
use crate::failure::{CommandFailure, Result};
use crate::interrupt::Interrupt;
use crate::output::Output;
use crate::progress::Progress;
use crate::size;
use larch::Table;
use serde::Serialize;

/// What the new table sees in files.
#[derive(Serialize)]
struct Report<'a> {
    table: &'a str,
    new: &'a str,
    /// The number of files of which the table sees all or some rows.
    files: u64,
    /// The number of newest row versions in these files, including erases.
    rows: u64,
    /// The bytes of the table's files, each file counted as a whole.
    file_bytes: u64,
}

/// Makes a second table with the rows of the first one.
pub fn clone(common: &Common, args: &CloneTable) -> Result<()> {
    let database = database::open_to_write(&args.dir, common)?;
    let table = database::table(&database, &args.dir, &args.table)?;
    let new = match &args.at {
        None => table.clone_as(&args.new)?,
        Some(_) => {
            let then = database::snapshot(&database, &At { at: args.at.clone() })?;
            let mut progress = Progress::endless("bytes written");
            let cloned = table.clone_at_with(&args.new, &then, progress.until(&Interrupt::caught()));
            drop(progress);
            cloned?
        }
    };
    let sees = if args.at.is_some() { "it sees" } else { "both see" };
    let report = report(&args.table, &new)?.print(args.json, "a clone of", sees);
    drop((table, new));
    database.close()?;
    report
}

/// Moves the rows from a key on to a new table.
pub fn split_off(common: &Common, args: &SplitOff) -> Result<()> {
    let database = database::open_to_write(&args.dir, common)?;
    let table = database::table(&database, &args.dir, &args.table)?;
    let layout = database::layout(&table, &args.types)?;
    let key = layout.bound_from_text(args.key.as_encoded_bytes()).map_err(CommandFailure::Usage)?;
    let report = report(&args.table, &table.split_off(key, &args.new)?)?.print(args.json, "split off", "it sees");
    drop(table);
    database.close()?;
    report
}

/// Gives a table another name.
pub fn rename(common: &Common, args: &RenameTable) -> Result<()> {
    let database = database::open_to_write(&args.dir, common)?;
    // The table is looked up first, because the error about a missing table is then the same as in other commands.
    database::table(&database, &args.dir, &args.table)?;
    let table = database.rename_table(&args.table, &args.new)?;
    let report = report(&args.table, &table)?.print(args.json, "until now", "it has");
    drop(table);
    database.close()?;
    report
}

fn report<'a>(table: &'a str, new: &'a Table) -> Result<Report<'a>> {
    let stats = new.stats()?;
    let (files, rows, file_bytes) = (stats.files, stats.rows, stats.file_bytes);
    Ok(Report { table, new: new.name(), files, rows, file_bytes })
}

impl Report<'_> {
    fn print(&self, json: bool, how: &str, who: &str) -> Result<()> {
        let mut output = Output::new();
        if json {
            output.json(self)?;
        } else {
            let Self { table, new, .. } = self;
            let (versions, files) = (size::of(self.rows, "version"), size::of(self.files, "file"));
            let bytes = size::bytes(self.file_bytes);
            output.line(format!("{new}: {how} {table}, {versions} in {files} of {bytes} that {who}"))?;
        }
        output.finish()
    }
}
