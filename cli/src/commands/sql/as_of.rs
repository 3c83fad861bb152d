//! Tables of `larch sql` as a snapshot shows them, and the function `as_of`: a table as it was, by the name, the version or the time that `--at` takes.
//!
//! ```sql
//! SELECT now.id FROM people now LEFT JOIN as_of('people', 'monday') then ON now.id = then.id WHERE then.id IS NULL
//! ```

use crate::args::At;
use crate::database;
use crate::failure::{CommandFailure, Result};
use crate::layout::columns;
use datafusion::catalog::{TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::{ScalarValue, plan_datafusion_err, plan_err};
use datafusion::logical_expr::Expr;
use larch::{Database, Snapshot, Table};
use larch_datafusion::{BadColumns, LarchTable};
use std::path::PathBuf;
use std::sync::Arc;

/// The name of the function.
pub const NAME: &str = "as_of";

/// The function, for the tables of a database.
#[derive(Debug)]
pub struct AsOf {
    pub database: Database,
    /// The directory of the database, for messages.
    pub directory: PathBuf,
}

impl AsOf {
    fn provide(&self, table: &str, when: &str) -> Result<Arc<dyn TableProvider>> {
        let table = database::table(&self.database, &self.directory, table)?;
        let snapshot = database::snapshot(&self.database, &At { at: Some(when.to_owned()) })?;
        Ok(Arc::new(table_at(&snapshot, &table)?))
    }
}

impl TableFunctionImpl for AsOf {
    fn call_with_args(
        &self,
        arguments: TableFunctionArgs<'_, '_>,
    ) -> datafusion::error::Result<Arc<dyn TableProvider>> {
        let texts: Vec<String> = arguments.exprs().iter().filter_map(text).collect();
        let [table, when] = &texts[..] else {
            return plan_err!(
                "{NAME} takes the name of a table and a name, a version or a time, as in {NAME}('people', '10m')"
            );
        };
        self.provide(table, when).map_err(|failure| plan_datafusion_err!("{NAME}('{table}', '{when}'): {failure}"))
    }
}

/// The text of a constant.
fn text(argument: &Expr) -> Option<String> {
    let Expr::Literal(value, _) = argument else { return None };
    match value {
        ScalarValue::Int64(Some(number)) => Some(number.to_string()),
        ScalarValue::UInt64(Some(number)) => Some(number.to_string()),
        value => value.try_as_str().flatten().map(str::to_owned),
    }
}

/// A table as a snapshot shows it, with the columns with which it was imported.
pub fn table_at(snapshot: &Snapshot, table: &Table) -> Result<LarchTable> {
    let of_import = |bad: BadColumns| CommandFailure::Input(format!("table {}: {bad}", table.name()));
    match columns_of(table)? {
        None => Ok(LarchTable::of(snapshot, table)),
        Some(columns) => LarchTable::new(snapshot, table, columns.parse().map_err(of_import)?).map_err(of_import),
    }
}

/// The columns of a table in the language of `docs/guide/sql.md`, or `None` if the table was not made by `larch import`.
///
/// # Errors
///
/// Returns [`CommandFailure::Input`] if the description of the table is damaged.
fn columns_of(table: &Table) -> Result<Option<String>> {
    Ok(database::schema(table)?.map(|schema| columns::declared(&schema)))
}
