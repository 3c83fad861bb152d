//! The interface of a database on which TPC-C runs. It is a [`Store`] of the harness, whose sessions answer only
//! [`Request::Transaction`](harness::Request::Transaction), with a [`Ticket`](crate::Ticket). Therefore the harness
//! can run, measure and report TPC-C like any other workload.

use crate::schema::{Customer, District, History, Item, Micros, NewOrder, Order, OrderLine, Stock, Table, Warehouse};
use harness::{Failure, Opening, Store, Target};
use std::ops::RangeInclusive;

/// A kind of database that can be opened.
#[derive(Clone, Copy)]
pub struct TpccScheme {
    /// The text before the colon of a target.
    pub name: &'static str,
    /// Opens such a database.
    pub open: Open,
    /// Opens a simulation of the database. It makes the same round trips to a server as the database but changes
    /// nothing, which shows what the client itself costs. A simulation is made with [`Database::create`], and
    /// forgotten when it is closed. `None` if the database makes no round trips to a server, or if it has no
    /// simulation.
    pub simulate: Option<Open>,
}

/// Opens a database. Its tables are made by [`Database::create`].
pub type Open = fn(&Target, &Setup) -> Result<Box<dyn Database>, Failure>;

/// How a database is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setup {
    /// What may happen to an existing database.
    pub opening: Opening,
    /// How many transactions each thread may have under way. Over a network, this is the number of connections. If
    /// it is `None`, the database chooses the number.
    pub connections: Option<usize>,
}

/// The parameters with which a database of TPC-C was made. The database stores them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    /// The number of warehouses, which is at least 1.
    pub warehouses: u32,
    /// The seed from which the rows are drawn.
    pub seed: u64,
    /// The time in the rows of the initial population.
    pub loaded: Micros,
}

/// Rows that are loaded together: the rows of one table that belong to certain warehouses. Items belong to no
/// warehouse, and are loaded as a part of `0..=0`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The table.
    pub table: Table,
    /// The warehouses.
    pub warehouses: RangeInclusive<u32>,
}

/// A row of any table.
#[derive(Clone, Copy, Debug)]
pub enum Row<'r> {
    /// See [`Table::Warehouse`].
    Warehouse(&'r Warehouse),
    /// See [`Table::District`].
    District(&'r District),
    /// See [`Table::Customer`].
    Customer(&'r Customer),
    /// See [`Table::History`].
    History(&'r History),
    /// See [`Table::NewOrder`].
    NewOrder(&'r NewOrder),
    /// See [`Table::Order`].
    Order(&'r Order),
    /// See [`Table::OrderLine`].
    OrderLine(&'r OrderLine),
    /// See [`Table::Item`].
    Item(&'r Item),
    /// See [`Table::Stock`].
    Stock(&'r Stock),
}

impl Row<'_> {
    /// The number of bytes in the row: 4 or 8 for a number, and the length of a text.
    #[inline]
    pub fn bytes(&self) -> u64 {
        let bytes = match self {
            Row::Warehouse(row) => 16 + row.name.as_bytes().len() + row.address.bytes(),
            Row::District(row) => 24 + row.name.as_bytes().len() + row.address.bytes(),
            Row::Customer(row) => {
                let texts = row.first.as_bytes().len() + row.middle.as_bytes().len() + row.last.as_bytes().len();
                let more = row.phone.as_bytes().len() + row.data.as_bytes().len();
                61 + texts + row.address.bytes() + more
            }
            Row::History(row) => 36 + row.data.as_bytes().len(),
            Row::NewOrder(_) => 12,
            Row::Order(_) => 33,
            Row::OrderLine(row) => 44 + row.district_info.as_bytes().len(),
            Row::Item(row) => 16 + row.name.as_bytes().len() + row.data.as_bytes().len(),
            Row::Stock(row) => {
                28 + row.districts.iter().map(|info| info.as_bytes().len()).sum::<usize>() + row.data.as_bytes().len()
            }
        };
        bytes as u64
    }
}

/// A database of TPC-C.
pub trait Database: Store {
    /// Makes the tables, all empty, and stores `form`. The tables must not exist yet.
    fn create(&self, form: &Form) -> Result<(), Failure>;

    /// What the database was made with, or `None` if it was not made.
    fn form(&self) -> Result<Option<Form>, Failure>;

    /// Loads a part. The rows come in key order, except for payments, which come in the order of district and
    /// customer. The rows become part of the database when [`Loader::finish`] is called. From then on,
    /// [`Database::is_loaded`] is true for the part, even after a crash.
    fn part_loader(&self, part: &Part) -> Result<Box<dyn Loader + '_>, Failure>;

    /// Whether the whole part was loaded.
    fn is_loaded(&self, part: &Part) -> Result<bool, Failure>;

    /// Makes everything that needs all rows to be loaded, such as secondary indexes. An index that exists already
    /// stays as it is.
    fn make_indexes(&self) -> Result<(), Failure>;

    /// The state of the database at the moment of the call. Any number of threads can read this state.
    fn view(&self) -> Result<Box<dyn View + '_>, Failure>;

    /// Removes everything that [`Database::create`] has made.
    fn clean(&self) -> Result<(), Failure>;
}

/// Takes the rows of a part.
pub trait Loader {
    /// Takes the next row.
    fn row(&mut self, row: Row<'_>) -> Result<(), Failure>;

    /// Makes the rows part of the database.
    fn finish(self: Box<Self>) -> Result<(), Failure>;
}

/// A database at one moment.
pub trait View: Sync {
    /// Passes all rows of `table` that belong to `warehouse` to `each`, in key order. A payment belongs to the
    /// warehouse to which it was paid. If transactions have run since the load, payments may come in any order.
    /// Items are read as rows of warehouse 0.
    fn rows(
        &self,
        table: Table,
        warehouse: u32,
        each: &mut dyn FnMut(Row<'_>) -> Result<(), Failure>,
    ) -> Result<(), Failure>;
}

/// The failure if a database is opened that [`Database::create`] has not made.
#[cold]
pub fn not_made() -> Failure {
    Failure::session("no_store", "the database was not made: use init and import first")
}

/// The failure if transactions are run before [`Database::make_indexes`] has made the index `name`.
#[cold]
pub fn no_index(name: &str) -> Failure {
    Failure::session("no_index", format!("the index {name} is missing: end the import first"))
}
