//! What is asked of a database that TPC-C runs on. It is a [`Store`] of the harness, whose sessions answer
//! [`Request::Transaction`](harness::Request::Transaction) alone, with a [`Ticket`](crate::Ticket). So the harness
//! runs, measures and reports TPC-C as any other workload.

use crate::schema::{Customer, District, History, Item, Micros, NewOrder, Order, OrderLine, Stock, Table, Warehouse};
use harness::{Failure, Opening, Store, Target};
use std::ops::RangeInclusive;

/// A kind of database that can be opened.
#[derive(Clone, Copy)]
pub struct Scheme {
    /// What stands before the colon of a target.
    pub name: &'static str,
    /// Opens it.
    pub open: Open,
    /// Opens what makes the same round trips and changes nothing, to show what the client costs by itself. It is made
    /// with [`Database::create`] and forgotten when it is closed. `None`: it has no round trips, or nothing makes them.
    pub simulate: Option<Open>,
}

/// Opens a database. Its tables are made by [`Database::create`].
pub type Open = fn(&Target, &Setup) -> Result<Box<dyn Database>, Failure>;

/// How a database is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setup {
    /// What may become of it.
    pub opening: Opening,
    /// Transactions that each thread may have under way; over a network, connections. `None`: as the database has it.
    pub connections: Option<usize>,
}

/// What a database of TPC-C was made with. It is kept in the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    /// Warehouses, at least 1.
    pub warehouses: u32,
    /// What the rows are drawn from.
    pub seed: u64,
    /// The time that rows of the beginning have.
    pub loaded: Micros,
}

/// Rows that are loaded together: those of a table that belong to these warehouses. Items belong to none, and are
/// loaded as a part of `0..=0`.
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
    /// Its bytes: numbers as 4 or 8, texts as they are.
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
    /// Makes the tables, all empty, and keeps `form`. There must be none.
    fn create(&self, form: &Form) -> Result<(), Failure>;

    /// What it was made with; `None`: it was not made.
    fn form(&self) -> Result<Option<Form>, Failure>;

    /// Loads a part. The rows come in the order of their keys, payments in that of district and customer. What is
    /// loaded takes effect with [`Loader::finish`], and then [`Database::is_loaded`] says so, after a crash, too.
    fn part_loader(&self, part: &Part) -> Result<Box<dyn Loader + '_>, Failure>;

    /// Whether a part was loaded whole.
    fn is_loaded(&self, part: &Part) -> Result<bool, Failure>;

    /// Makes what is made when all rows are there, such as secondary indexes. What is made already stays.
    fn make_indexes(&self) -> Result<(), Failure>;

    /// The database as it is now, for any number of threads to read.
    fn view(&self) -> Result<Box<dyn View + '_>, Failure>;

    /// Removes all that [`Database::create`] has made.
    fn clean(&self) -> Result<(), Failure>;
}

/// Takes the rows of a part.
pub trait Loader {
    /// Takes the next row.
    fn row(&mut self, row: Row<'_>) -> Result<(), Failure>;

    /// Makes all rows take effect.
    fn finish(self: Box<Self>) -> Result<(), Failure>;
}

/// A database at one moment.
pub trait View: Sync {
    /// Gives all rows of `table` that belong to `warehouse` to `each`, in the order of their keys. Payments belong to
    /// the warehouse that was paid, and come in any order, unless nothing ran since they were loaded. Items are those
    /// of warehouse 0.
    fn rows(
        &self,
        table: Table,
        warehouse: u32,
        each: &mut dyn FnMut(Row<'_>) -> Result<(), Failure>,
    ) -> Result<(), Failure>;
}

/// The failure of who opens a database that [`Database::create`] has not made.
#[cold]
pub fn not_made() -> Failure {
    Failure::session("no_store", "the database was not made: use init and import first")
}

/// The failure of who runs transactions before [`Database::make_indexes`] has made the index `name`.
#[cold]
pub fn no_index(name: &str) -> Failure {
    Failure::session("no_index", format!("the index {name} is missing: end the import first"))
}
