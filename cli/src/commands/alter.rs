//! `larch alter`: changes how a table is kept in files that are written from now on.

use crate::args::{Alter, Common};
use crate::database;
use crate::failure::{CommandFailure, Result};
use crate::output::Output;
use crate::storage::Storage;
use larch::Table;
use serde::Serialize;

/// How the table was kept before, and how it is kept now.
#[derive(Serialize)]
struct Report<'a> {
    table: &'a str,
    before: Storage,
    after: Storage,
    /// The types of the fields in keys, if the table is raw and declares these types.
    #[serde(skip_serializing_if = "Option::is_none")]
    key_types: Option<String>,
}

/// Runs the command.
pub fn run(common: &Common, args: &Alter) -> Result<()> {
    let database = database::open_to_write(&args.dir, common)?;
    let table = database::table(&database, &args.dir, &args.table)?;
    let before = Storage::from(&table.options());
    if args.types.key_types.is_some() {
        declares_key_types(&table)?;
    }
    let mut applied = Ok(());
    table.alter(|options| {
        applied = args.table_options.apply(options);
        if applied.is_ok() && args.types.key_types.is_some() {
            options.metadata = args.types.to_metadata();
        }
    })?;
    applied?;
    let key_types = database::declared_key_types(&table).map(|fields| fields.to_string());
    let report = Report { table: &args.table, before, after: Storage::from(&table.options()), key_types };
    drop(table);
    database.close()?;
    let mut output = Output::new();
    if args.json {
        output.json(&report)?;
    } else {
        output.line(format!("{}: was {}", report.table, report.before))?;
        output.line(format!("{}: now {}", report.table, report.after))?;
        if let (Some(key_types), Some(_)) = (&report.key_types, &args.types.key_types) {
            output.line(format!("{}: keys are of {key_types}", report.table))?;
        }
    }
    output.finish()
}

/// Fails if the table has metadata that is not a declaration of key types.
fn declares_key_types(table: &Table) -> Result<()> {
    let wrong = |why: &str| Err(CommandFailure::Usage(format!("--key-types: {why}")));
    if database::schema(table)?.is_some() {
        return wrong("the table has columns, which say what its keys are; leave it out");
    }
    if !table.options().metadata.is_empty() && database::declared_key_types(table).is_none() {
        return wrong("a program keeps metadata of its own with the table; say --key-types to each command instead");
    }
    Ok(())
}
