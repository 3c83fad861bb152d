//! A table, with the place and the version of its database, so that another process can find it.

use crate::databases::{Databases, MOVED_ON, Place, Shown};
use crate::failure::external;
use datafusion::common::{exec_err, plan_err};
use datafusion::error::Result;
use larch_datafusion::LarchTable;
use os::sync::Arc;
use serde::{Deserialize, Serialize};

/// The form in which a table is sent to another process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableSpec {
    pub place: Place,
    /// The name of the table in the database.
    pub table: String,
    /// The ids of the database and of the table in it. Names are not enough: a table may get the name of another
    /// table at the same version, and a directory may get another database.
    pub identity: (u64, u32),
    /// The columns of the table, as [`larch_datafusion::Columns`] writes them.
    pub columns: String,
}

/// A table of a database that other processes can find.
#[derive(Clone, Debug)]
pub struct PlacedTable {
    place: Place,
    table: LarchTable,
    /// The database, which counts what is read; `None` in the process that asks the query, because it reads no rows.
    shown: Option<Arc<Shown>>,
}

impl PlacedTable {
    /// The table for a query that other processes answer, which find its database at `database`.
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
            // The next query that asks for this place opens whatever database is there then.
            databases.forget(&place.database);
            return exec_err!("{} is another database for this process than for the one that asks", place.database);
        }
        if table.identity() != *identity {
            return exec_err!("table {name} of {}, as the query saw it, {MOVED_ON}; ask again", place.database);
        }
        Ok(Self { place: place.clone(), table, shown: Some(shown) })
    }

    /// The table in the form that is sent.
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

    /// The database, which counts what this process reads; `None` in the process that asks the query.
    pub fn shown(&self) -> Option<&Arc<Shown>> {
        self.shown.as_ref()
    }
}
