//! A table, with the place and the version of its database, so that another process can find it. This module reads
//! no rows.

use crate::databases::{Databases, MOVED_ON, Place, Shown};
use crate::failure::external;
use datafusion::common::{exec_err, plan_err};
use datafusion::error::Result;
use larch_datafusion::LarchTable;
use os::sync::Arc;
use serde::{Deserialize, Serialize};

/// A table in the form in which one process sends it to another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableSpec {
    pub place: Place,
    /// The name of the table in the database.
    pub table: String,
    /// The number of the database, and the number of the table in it. Names are not enough. A table may get the
    /// name of another table while the version stays the same. And another database may later be in the same
    /// directory.
    pub identity: (u64, u32),
    /// The columns of the table, as [`larch_datafusion::Columns`] writes them.
    pub columns: String,
}

/// A table of a database that other processes can find.
#[derive(Clone, Debug)]
pub struct PlacedTable {
    place: Place,
    table: LarchTable,
    /// The database with the counters of what is read; `None` in the process that asks the query, because it reads
    /// no rows.
    shown: Option<Arc<Shown>>,
}

impl PlacedTable {
    /// The table for a query that other processes answer. The other processes find its database at the place
    /// `database`.
    pub fn new(database: &str, table: LarchTable) -> Self {
        let place = Place { database: database.to_owned(), version: table.version().0 };
        Self { place, table, shown: None }
    }

    /// Finds the table that another process has sent.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Databases::at`], or an error if the database has no such table.
    pub fn of_spec(spec: &TableSpec, databases: &Databases) -> Result<Self> {
        let TableSpec { place, table: name, identity, columns } = spec;
        let (shown, snapshot) = databases.at(place)?;
        let Some(table) = shown.database.existing_table(name).map_err(external)? else {
            return plan_err!("{} has no table {name} at version {}", place.database, place.version);
        };
        let columns = columns.parse().map_err(external)?;
        let table = LarchTable::new(&snapshot, &table, columns).map_err(external)?;
        if table.identity().0 != identity.0 {
            // The next query that asks for this place opens the database that is there then.
            databases.forget(&place.database);
            return exec_err!("{} is another database for this process than for the one that asks", place.database);
        }
        if table.identity() != *identity {
            return exec_err!("table {name} of {}, as the query saw it, {MOVED_ON}; ask again", place.database);
        }
        Ok(Self { place: place.clone(), table, shown: Some(shown) })
    }

    /// The form of the table that is sent.
    pub fn spec(&self) -> TableSpec {
        let table = &self.table;
        let (place, name, columns) = (self.place.clone(), table.name().to_owned(), table.columns().to_string());
        TableSpec { place, table: name, identity: table.identity(), columns }
    }

    /// The place and the version of the database.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// The table, which this process can scan.
    pub fn table(&self) -> &LarchTable {
        &self.table
    }

    /// The database that counts what this process reads of the table. `None` in the process that asks the query.
    pub fn shown(&self) -> Option<&Arc<Shown>> {
        self.shown.as_ref()
    }
}
