//! Loads a part, and notes that it is loaded, in one transaction. Parts load one after the other, because SQLite
//! allows one writer at a time.

use super::{Sqlite, columns};
use crate::sqlite::broken;
use ::tpcc::{Loader, Part, Row};
use harness::Failure;
use rusqlite::Connection;
use std::sync::MutexGuard;

/// Loads the rows of one part.
pub struct PartLoader<'l> {
    // Fields drop in this order: closing the connection rolls its transaction back, then the writers' lock is
    // released.
    connection: Connection,
    part: Part,
    insert: String,
    rows: u64,
    _turn: MutexGuard<'l, ()>,
}

impl<'l> PartLoader<'l> {
    /// A loader of `part`.
    pub fn new(sqlite: &'l Sqlite, part: &Part) -> Result<Self, Failure> {
        let connection = sqlite.connect()?;
        let turn = sqlite.turn();
        connection.execute_batch("BEGIN IMMEDIATE").map_err(broken)?;
        Ok(Self { connection, part: part.clone(), insert: columns::insert(part.table), rows: 0, _turn: turn })
    }
}

impl Loader for PartLoader<'_> {
    fn row(&mut self, row: Row<'_>) -> Result<(), Failure> {
        self.rows += 1;
        let mut statement = self.connection.prepare_cached(&self.insert).map_err(broken)?;
        columns::run_insert(&mut statement, row, self.rows)
    }

    fn finish(self: Box<Self>) -> Result<(), Failure> {
        let (table, first, last) = (self.part.table, *self.part.warehouses.start(), *self.part.warehouses.end());
        let note = "INSERT INTO tpcc_parts VALUES (?, ?, ?)";
        self.connection.execute(note, (table.name(), first, last)).map_err(broken)?;
        self.connection.execute_batch("COMMIT").map_err(broken)
    }
}
