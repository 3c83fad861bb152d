//! `larch tables` lists the tables and describes their rows. `larch create-table` makes a table, and `larch
//! drop-table` removes one.

use crate::args::{Common, CreateTable, DropTable, Inspect};
use crate::colours::{self, HEADING};
use crate::database;
use crate::escape::shown_name;
use crate::failure::Result;
use crate::new_database::with_database;
use crate::output::Output;
use crate::schema::Schema;
use crate::storage::Storage;
use serde::Serialize;

/// The description of a table.
#[derive(Serialize)]
struct Description<'t> {
    table: &'t str,
    #[serde(flatten)]
    storage: Storage,
    /// The names of the groups into which rows are split.
    groups: Vec<String>,
    /// The schema of the rows. It is missing if rows are raw keys and values.
    #[serde(skip_serializing_if = "Option::is_none")]
    rows: Option<Schema>,
    /// The types of the fields in keys, if the table is raw and declares these types.
    #[serde(skip_serializing_if = "Option::is_none")]
    key_types: Option<String>,
}

/// Runs the command.
pub fn run(common: &Common, args: &Inspect) -> Result<()> {
    let database = database::open(&args.dir, common)?;
    let mut output = Output::new();
    for table in database::tables(&database, &args.dir, args.table.as_deref())? {
        let options = table.options();
        let key_types = database::declared_key_types(&table).map(|fields| fields.to_string());
        let description = Description {
            table: table.name(),
            storage: Storage::from(&options),
            groups: options.groups,
            rows: database::schema(&table)?,
            key_types,
        };
        if args.json {
            output.json(&description)?;
        } else {
            let rows = database::rows(&table, description.rows.as_ref());
            let name = colours::styled(HEADING, &shown_name(description.table));
            output.line(format!("{name}: {rows}; {}", description.storage))?;
        }
    }
    output.finish()
}

/// Makes a table of raw keys and values.
pub fn create(common: &Common, args: &CreateTable) -> Result<()> {
    let mut options = database::raw_options(&args.types);
    args.table_options.apply_to_new(&mut options)?;
    with_database(&args.dir, common, |database| {
        if database.existing_table(&args.table)?.is_some() {
            return Err(larch::Error::TableExists(args.table.clone()).into());
        }
        database.table_with(&args.table, options)?;
        Ok(())
    })
}

/// Removes a table, which must exist.
pub fn drop_table(common: &Common, args: &DropTable) -> Result<()> {
    let database = database::open_to_write(&args.dir, common)?;
    // The table is looked up first, because the error about a missing table is then the same as in other commands.
    database::table(&database, &args.dir, &args.table)?;
    database.drop_table(&args.table)?;
    Ok(database.close()?)
}
