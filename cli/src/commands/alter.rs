//! `larch alter`: another way to keep a table in files, from here on.

use crate::args::{Alter, Common};
use crate::database;
use crate::failure::Result;
use crate::output::Output;
use crate::storage::Storage;
use serde::Serialize;

/// How the table was kept and how it is now.
#[derive(Serialize)]
struct Report<'a> {
    table: &'a str,
    before: Storage,
    after: Storage,
}

/// Runs the command.
pub fn run(common: &Common, args: &Alter) -> Result<()> {
    let database = database::open_to_write(&args.dir, common)?;
    let table = database::table(&database, &args.dir, &args.table)?;
    let before = Storage::from(&table.options());
    table.alter(|options| args.table_options.apply(options))?;
    let report = Report { table: &args.table, before, after: Storage::from(&table.options()) };
    drop(table);
    database.close()?;
    let mut output = Output::new();
    if args.json {
        output.json(&report)?;
    } else {
        output.line(format!("{}: was {}", report.table, report.before))?;
        output.line(format!("{}: now {}", report.table, report.after))?;
    }
    output.finish()
}
