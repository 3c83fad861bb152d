//! A table with the place and the version of its database, by which another process can find it. It reads no row.

use crate::databases::{Databases, MOVED_ON, Place, Shown};
use crate::failure::external;
use datafusion::common::{exec_err, plan_err};
use datafusion::error::Result;
use larch_datafusion::LarchTable;
use os::sync::Arc;
use serde::{Deserialize, Serialize};

/// A table, as one process sends it to another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableSpec {
    pub place: Place,
    /// The name of the table in the database.
    pub table: String,
    /// The numbers of the database and of the table in it. Names are not enough: a table may get the name of another
    /// without a new version, and another database may be in the directory later.
    pub identity: (u64, u32),
    /// Its columns, as [`larch_datafusion::Columns`] writes them.
    pub columns: String,
}

/// A table of a database that other processes find.
#[derive(Clone, Debug)]
pub struct PlacedTable {
    place: Place,
    table: LarchTable,
    /// The counters of what is read; `None` in the process that asks, which reads nothing.
    shown: Option<Arc<Shown>>,
}

impl PlacedTable {
    /// The same table for a query that other processes answer; they find its database as `database`.
    pub fn new(database: &str, table: LarchTable) -> Self {
        let place = Place { database: database.to_owned(), version: table.version().0 };
        Self { place, table, shown: None }
    }

    /// The table that another process has sent.
    ///
    /// # Errors
    ///
    /// As [`Databases::at`]; the database has no such table.
    pub fn of_spec(spec: &TableSpec, databases: &Databases) -> Result<Self> {
        let TableSpec { place, table: name, identity, columns } = spec;
        let (shown, snapshot) = databases.at(place)?;
        let Some(table) = shown.database.existing_table(name).map_err(external)? else {
            return plan_err!("{} has no table {name} at version {}", place.database, place.version);
        };
        let columns = columns.parse().map_err(external)?;
        let table = LarchTable::new(&snapshot, &table, columns).map_err(external)?;
        if table.identity().0 != identity.0 {
            // The next query opens what is there now.
            databases.forget(&place.database);
            return exec_err!("{} is another database for this process than for the one that asks", place.database);
        }
        if table.identity() != *identity {
            return exec_err!("table {name} of {}, as the query saw it, {MOVED_ON}; ask again", place.database);
        }
        Ok(Self { place: place.clone(), table, shown: Some(shown) })
    }

    /// What is sent of it.
    pub fn spec(&self) -> TableSpec {
        let table = &self.table;
        let (place, name, columns) = (self.place.clone(), table.name().to_owned(), table.columns().to_string());
        TableSpec { place, table: name, identity: table.identity(), columns }
    }

    /// Where it is.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// The table, as this process reads it.
    pub fn table(&self) -> &LarchTable {
        &self.table
    }

    /// Who counts what is read.
    pub fn shown(&self) -> Option<&Arc<Shown>> {
        self.shown.as_ref()
    }
}
