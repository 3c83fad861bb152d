//! A consistent view of a database. Only one thread at a time can use a connection, so each processor gets one. No
//! writer commits while their transactions begin, so all of them read the same state.

use super::Sqlite;
use super::columns::{self, Found};
use crate::sqlite::broken;
use ::tpcc::columns::Columns;
use ::tpcc::{ReadRows, Row, Table, TableRow};
use harness::Failure;
use rusqlite::{Connection, TransactionBehavior};
use std::sync::{Condvar, Mutex, PoisonError};

/// Connections that read the same state.
pub struct Readers {
    idle: Mutex<Vec<Connection>>,
    returned: Condvar,
}

impl Readers {
    /// A view of the database as it is now.
    pub fn new(sqlite: &Sqlite) -> Result<Self, Failure> {
        let count = std::thread::available_parallelism().map_or(1, usize::from);
        let _turn = sqlite.turn();
        // The writers' lock keeps out the writers of this process, and the immediate transaction those of other
        // processes.
        let mut control = sqlite.connection();
        let _lock = control.transaction_with_behavior(TransactionBehavior::Immediate).map_err(broken)?;
        let mut idle = Vec::with_capacity(count);
        for _ in 0..count {
            let connection = sqlite.connect()?;
            // A transaction's snapshot is taken by its first read.
            connection.execute_batch("BEGIN; SELECT count(*) FROM tpcc").map_err(broken)?;
            idle.push(connection);
        }
        Ok(Self { idle: Mutex::new(idle), returned: Condvar::new() })
    }

    fn take(&self) -> Connection {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let idle = self.returned.wait_while(idle, |idle| idle.is_empty());
        idle.unwrap_or_else(PoisonError::into_inner).pop().expect("it was waited for one")
    }

    fn put_back(&self, connection: Connection) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
        self.returned.notify_one();
    }
}

impl ReadRows for Readers {
    fn read<R: TableRow>(
        &self,
        table: Table,
        warehouse: u32,
        each: &mut dyn FnMut(Row<'_>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let connection = self.take();
        let done = each_of::<R>(&connection, table, warehouse, each);
        self.put_back(connection);
        done
    }
}

fn each_of<R: TableRow>(
    connection: &Connection,
    table: Table,
    warehouse: u32,
    each: &mut dyn FnMut(Row<'_>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut statement = connection.prepare_cached(&columns::select_all(table)).map_err(broken)?;
    if table != Table::Item {
        statement.raw_bind_parameter(1, warehouse).map_err(broken)?;
    }
    let mut found = statement.raw_query();
    let mut row = R::default();
    while let Some(columns) = found.next().map_err(broken)? {
        Columns::read(&mut row, &mut Found::of(columns))?;
        each(row.as_row())?;
    }
    Ok(())
}
