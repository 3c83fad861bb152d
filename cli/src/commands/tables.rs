//! `larch tables`: which tables there are and what their rows are made of.

use crate::args::{Common, Inspect};
use crate::database;
use crate::failure::Result;
use crate::output::Output;
use crate::schema::Schema;
use crate::storage::Storage;
use serde::Serialize;

/// What a table is made of.
#[derive(Serialize)]
struct Description<'t> {
    table: &'t str,
    #[serde(flatten)]
    storage: Storage,
    /// Names of the groups that rows are split in.
    groups: Vec<String>,
    /// Missing if rows are raw keys and values.
    #[serde(skip_serializing_if = "Option::is_none")]
    rows: Option<Schema>,
}

/// Runs the command.
pub fn run(common: &Common, args: &Inspect) -> Result<()> {
    let database = database::open(&args.dir, common)?;
    let mut output = Output::new();
    for table in database::tables(&database, &args.dir, args.table.as_deref())? {
        let options = table.options();
        let description = Description {
            table: table.name(),
            storage: Storage::from(&options),
            groups: options.groups,
            rows: database::schema(&table)?,
        };
        if args.json { output.json(&description)? } else { output.line(text(&description))? }
    }
    output.finish()
}

fn text(table: &Description<'_>) -> String {
    let rows = database::rows(table.rows.as_ref(), &table.groups);
    format!("{}: {rows}; {}", table.table, table.storage)
}
