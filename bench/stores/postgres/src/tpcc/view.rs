//! A snapshot of the database for any number of threads. A reading thread takes an idle connection and gives it back
//! when it is done. All connections read the same snapshot, which the first one took.

use super::columns::Take;
use super::dialect::{Dialect, Moment};
use super::tables;
use crate::address::Address;
use crate::connection::Connection;
use crate::error::Error;
use crate::wire::{self, Malformed, SYNC, Statement, Values};
use ::tpcc::schema::{Customer, District, History, Item, NewOrder, Order, OrderLine, Stock, Table, Warehouse};
use ::tpcc::{Row, View};
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

    /// Calls `each` with the rows of `warehouse` in `table`. Closes the connection if that fails.
    fn read<R: Take + Default>(
        &self,
        table: Table,
        warehouse: u32,
        mut each: impl FnMut(&R) -> Result<(), Failure>,
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
                    if let Err(Malformed(what)) = Values::new(frame.body).and_then(|mut values| row.take(&mut values)) {
                        return Err(connection.protocol(what).into());
                    }
                    each(&row)?;
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

impl View for Snapshot<'_> {
    fn rows(
        &self,
        table: Table,
        warehouse: u32,
        each: &mut dyn FnMut(Row<'_>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        match table {
            Table::Warehouse => self.read::<Warehouse>(table, warehouse, |row| each(Row::Warehouse(row))),
            Table::District => self.read::<District>(table, warehouse, |row| each(Row::District(row))),
            Table::Customer => self.read::<Customer>(table, warehouse, |row| each(Row::Customer(row))),
            Table::History => self.read::<History>(table, warehouse, |row| each(Row::History(row))),
            Table::NewOrder => self.read::<NewOrder>(table, warehouse, |row| each(Row::NewOrder(row))),
            Table::Order => self.read::<Order>(table, warehouse, |row| each(Row::Order(row))),
            Table::OrderLine => self.read::<OrderLine>(table, warehouse, |row| each(Row::OrderLine(row))),
            Table::Item => self.read::<Item>(table, 0, |row| each(Row::Item(row))),
            Table::Stock => self.read::<Stock>(table, warehouse, |row| each(Row::Stock(row))),
        }
    }
}
