//! `larch tables`: which tables there are and what their rows are made of.

use crate::args::{Common, Inspect};
use crate::database;
use crate::failure::Result;
use crate::output::Output;
use crate::schema::Schema;
use crate::size;
use serde::Serialize;

/// What a table was made with.
#[derive(Serialize)]
struct Description<'t> {
    table: &'t str,
    page_bytes: u32,
    node_bytes: u32,
    index: String,
    compression: String,
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
            page_bytes: options.page_bytes,
            node_bytes: options.node_bytes,
            index: format!("{:?}", options.index).to_lowercase(),
            compression: format!("{:?}", options.compression).to_lowercase(),
            rows: database::schema(&table)?,
        };
        if args.json { output.json(&description)? } else { output.line(text(&description))? }
    }
    output.finish()
}

fn text(table: &Description<'_>) -> String {
    let rows = table.rows.as_ref().map_or("raw keys and values".to_string(), Schema::to_string);
    format!(
        "{}: {rows}; pages of {}, nodes of {}, index {}, compression {}",
        table.table,
        size::bytes(table.page_bytes.into()),
        size::bytes(table.node_bytes.into()),
        table.index,
        table.compression
    )
}
