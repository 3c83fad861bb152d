//! A snapshot of the database for any number of threads. A reading thread takes an idle connection and gives it back
//! when it is done. All connections read the same snapshot, which the first one took.

use super::columns::Taken;
use super::tables;
use crate::postgres::address::Address;
use crate::postgres::connection::Connection;
use crate::postgres::dialect::{Dialect, Moment};
use crate::postgres::error::Error;
use crate::postgres::wire::{self, Malformed, SYNC, Statement, Values};
use ::tpcc::columns::Columns;
use ::tpcc::{ReadRows, Row, Table, TableRow};
use harness::Failure;
use postgres_protocol::message::backend;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A snapshot of all tables.
pub struct Snapshot<'a> {
    address: &'a Address,
    /// The SQL that begins a transaction in the snapshot.
    begin: String,
    /// Keeps the snapshot alive.
    _first: Connection,
    /// Connections that no thread uses.
    idle: Mutex<Vec<Connection>>,
    /// The statements that select the rows of a warehouse, one for each table.
    rows: [Statement; 9],
}

impl<'a> Snapshot<'a> {
    /// A snapshot of the database as it is now.
    ///
    /// # Errors
    ///
    /// Fails if the server cannot be reached, or if it cannot keep a snapshot.
    pub fn new(address: &'a Address, dialect: &Dialect) -> Result<Self, Error> {
        const BEGIN: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
        let mut first = Connection::open(address)?;
        let begin = match dialect.moment {
            Moment::ExportedSnapshot => {
                first.query(BEGIN)?;
                let snapshot = first.value("SELECT pg_export_snapshot()")?;
                format!("{BEGIN}; SET TRANSACTION SNAPSHOT '{snapshot}'")
            }
            Moment::SystemTime => {
                let time = first.value("SELECT cluster_logical_timestamp()")?;
                format!("BEGIN; SET TRANSACTION AS OF SYSTEM TIME '{time}'")
            }
            Moment::None => BEGIN.to_owned(),
        };
        let rows = Table::ALL.map(|table| Statement::new(table.name(), 1));
        Ok(Self { address, begin, _first: first, idle: Mutex::default(), rows })
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn connection(&self) -> Result<Connection, Error> {
        if let Some(idle) = self.idle().pop() {
            return Ok(idle);
        }
        let mut connection = Connection::open(self.address)?;
        connection.query(&self.begin)?;
        let statements = Table::ALL.map(|table| (table.name(), tables::rows(table)));
        connection.prepare(statements.iter().map(|(name, sql)| (*name, sql.as_str())))?;
        Ok(connection)
    }
}

impl ReadRows for Snapshot<'_> {
    /// Closes the connection if that fails.
    fn read<R: TableRow>(
        &self,
        table: Table,
        warehouse: u32,
        each: &mut dyn FnMut(Row<'_>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut connection = self.connection()?;
        let mut binding = self.rows[table as usize].bind(&mut connection.outbox);
        binding.integer(warehouse.cast_signed());
        binding.finish();
        connection.outbox.extend_from_slice(&SYNC);
        connection.flush()?;
        let mut row = R::default();
        loop {
            let frame = connection.wait()?;
            match frame.tag {
                backend::DATA_ROW_TAG => {
                    if let Err(Malformed(what)) =
                        Values::new(frame.body).and_then(|mut values| Columns::read(&mut row, &mut Taken(&mut values)))
                    {
                        return Err(connection.protocol(what).into());
                    }
                    each(row.as_row())?;
                }
                backend::ERROR_RESPONSE_TAG => {
                    let error = wire::server_error(frame.body);
                    return Err(connection.refused(error).into());
                }
                backend::READY_FOR_QUERY_TAG => break,
                _ => {}
            }
        }
        self.idle().push(connection);
        Ok(())
    }
}
