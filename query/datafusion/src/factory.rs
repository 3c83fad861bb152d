//! `CREATE EXTERNAL TABLE … STORED AS LARCH`: makes a table of a database available with the columns that the
//! statement declares.
//!
//! ```sql
//! CREATE EXTERNAL TABLE cities STORED AS LARCH LOCATION 'cities'
//! OPTIONS ('columns' 'key.tuple(number u32), value.json(name string, people u64)')
//! ```
//!
//! `LOCATION` is the name of the table in the database. Without the option `columns`, the table has the columns that
//! its metadata declares.

use crate::error::external;
use crate::table::LarchTable;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider, TableProviderFactory};
use datafusion::common::plan_err;
use datafusion::error::Result;
use datafusion::logical_expr::CreateExternalTable;
use larch::{Database, Snapshot};
use std::fmt;
use std::sync::Arc;

/// The word for Larch after `STORED AS`.
pub const FORMAT: &str = "LARCH";

/// The name of the option `columns`, to which DataFusion adds `format.`.
const COLUMNS: &str = "format.columns";

/// Makes a session's table provider for a table.
pub type Provide = Arc<dyn Fn(LarchTable) -> Arc<dyn TableProvider> + Send + Sync>;

/// Makes the tables of a database available to statements.
pub struct LarchFactory {
    database: Database,
    snapshot: Snapshot,
    provide: Provide,
}

impl LarchFactory {
    /// A factory for the tables of `database`, as they are in `snapshot`.
    pub fn new(database: &Database, snapshot: &Snapshot) -> Self {
        Self::with(database, snapshot, Arc::new(|table| Arc::new(table)))
    }

    /// A factory for a session. `provide` makes the table provider for each table.
    pub fn with(database: &Database, snapshot: &Snapshot, provide: Provide) -> Self {
        Self { database: database.clone(), snapshot: snapshot.clone(), provide }
    }
}

impl fmt::Debug for LarchFactory {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { database, snapshot, provide: _ } = self;
        out.debug_struct("LarchFactory").field("database", database).field("snapshot", snapshot).finish_non_exhaustive()
    }
}

#[async_trait]
impl TableProviderFactory for LarchFactory {
    async fn create(&self, _: &dyn Session, statement: &CreateExternalTable) -> Result<Arc<dyn TableProvider>> {
        let [location] = &statement.locations[..] else {
            return plan_err!("LOCATION is the name of one table of the database, as in LOCATION 'cities'");
        };
        if !statement.schema.fields().is_empty() || !statement.table_partition_cols.is_empty() {
            return plan_err!(
                "the columns of {} are not listed in brackets; write them as OPTIONS ('columns' 'key.tuple(number u32), …')",
                statement.name
            );
        }
        if let Some(other) = statement.options.keys().find(|key| *key != COLUMNS) {
            let other = other.strip_prefix("format.").unwrap_or(other);
            return plan_err!("a table of Larch has no option {other}; there is 'columns' alone");
        }
        let Some(table) = self.database.existing_table(location).map_err(external)? else {
            return plan_err!("the database has no table {location}; it has {}", self.database.tables().join(", "));
        };
        let table = match statement.options.get(COLUMNS) {
            None => LarchTable::of(&self.snapshot, &table),
            Some(columns) => {
                let columns = columns.parse().map_err(external)?;
                LarchTable::new(&self.snapshot, &table, columns).map_err(external)?
            }
        };
        Ok((self.provide)(table))
    }
}
