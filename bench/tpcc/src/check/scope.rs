//! A warehouse that is being read: the source of its rows, and its findings.

use crate::check::findings::Findings;
use crate::check::ledger::Ledger;
use crate::check::loaded::Loaded;
use crate::check::words::Place;
use crate::database::{Row, View};
use crate::schema::{DISTRICTS, Table};
use harness::Failure;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

/// The kind of failure of a check that was told to stop.
pub const INTERRUPTED: &str = "interrupted";

/// Reads the rows of a database until somebody stops the check.
pub struct Source<'c> {
    pub view: &'c dyn View,
    /// Set if the caller wants the check to stop.
    pub stop: &'c AtomicBool,
    /// Set if another thread has failed.
    pub halt: &'c AtomicBool,
}

impl Source<'_> {
    fn go_on(&self) -> Result<(), Failure> {
        match self.stop.load(Ordering::Relaxed) || self.halt.load(Ordering::Relaxed) {
            true => Err(Failure::request(INTERRUPTED, "the check was interrupted")),
            false => Ok(()),
        }
    }

    fn rows(
        &self,
        table: Table,
        warehouse: u32,
        each: &mut dyn FnMut(Row<'_>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        self.view.rows(table, warehouse, &mut |row| {
            self.go_on()?;
            each(row)
        })?;
        self.go_on()
    }
}

/// The results of reading one warehouse.
#[derive(Debug)]
pub struct Outcome {
    /// The number of the warehouse, or 0 for the items.
    pub warehouse: u32,
    /// The number of rows in each table, in the order of [`Table::ALL`].
    pub rows: [u64; Table::ALL.len()],
    pub findings: Findings,
    pub ledger: Ledger,
}

/// A warehouse that is being read.
pub struct Scope<'c> {
    /// The number of the warehouse, or 0 for the items.
    pub warehouse: u32,
    /// The number of warehouses in the database.
    pub warehouses: u32,
    pub loaded: Loaded<'c>,
    pub ledger: Ledger,
    source: &'c Source<'c>,
    findings: Findings,
    rows: [u64; Table::ALL.len()],
}

impl<'c> Scope<'c> {
    /// A warehouse before any of its rows is read.
    pub fn new(source: &'c Source<'c>, loaded: Loaded<'c>, warehouse: u32, warehouses: u32) -> Self {
        let (ledger, findings) = (Ledger::default(), Findings::default());
        Self { warehouse, warehouses, loaded, ledger, source, findings, rows: [0; Table::ALL.len()] }
    }

    /// The results of reading the warehouse.
    pub fn into_outcome(self) -> Outcome {
        let Self { warehouse, rows, findings, ledger, .. } = self;
        Outcome { warehouse, rows, findings, ledger }
    }

    /// Passes all rows of a table to `each`.
    pub fn read(
        &mut self,
        table: Table,
        each: &mut dyn FnMut(&mut Self, Row<'_>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        self.source.rows(table, self.warehouse, &mut |row| {
            self.rows[table as usize] += 1;
            each(self, row)
        })
    }

    /// Adds a finding.
    #[cold]
    pub fn find(&mut self, condition: u8, text: fmt::Arguments<'_>) {
        self.findings.add(self.warehouse, condition, text);
    }

    /// Adds a finding if a row differs from the loaded row.
    pub fn compare(&mut self, what: fmt::Arguments<'_>, difference: Option<String>) {
        if let Some(difference) = difference {
            self.find(0, format_args!("{what} is not as it was loaded: {difference}"));
        }
    }

    /// Whether a row belongs to this warehouse. If it does not, a finding is added.
    pub fn is_here(&mut self, table: Table, warehouse: u32) -> bool {
        let is_here = warehouse == self.warehouse;
        if !is_here {
            let (name, here) = (table.name(), self.warehouse);
            self.find(
                0,
                format_args!("warehouse {here}: a row of {name} says that it belongs to warehouse {warehouse}"),
            );
        }
        is_here
    }

    /// The place of a row's district among the districts of the warehouse, counted from 0. If there is no such
    /// district, a finding is added.
    pub fn district(&mut self, table: Table, warehouse: u32, district: u32) -> Option<usize> {
        if !self.is_here(table, warehouse) {
            return None;
        }
        let place = district.checked_sub(1).filter(|place| *place < DISTRICTS);
        if place.is_none() {
            let name = table.name();
            self.find(
                0,
                format_args!("warehouse {warehouse}: a row of {name} has district {district}, which cannot be"),
            );
        }
        place.map(|place| place as usize)
    }

    /// Whether `key` comes after `last`, the key of the previous row. If so, sets `last` to `key`. Otherwise adds a
    /// finding.
    pub fn is_next<K: Ord>(&mut self, last: &mut Option<K>, key: K, what: fmt::Arguments<'_>) -> bool {
        let is_next = last.as_ref().is_none_or(|last| *last < key);
        if is_next {
            *last = Some(key);
        } else {
            self.find(0, format_args!("{what} is there twice or not in the order of the keys"));
        }
        is_next
    }

    /// Compares the number of rows in a table with the number that it must have.
    pub fn judge_rows(&mut self, table: Table) {
        let (rows, should_be) = (self.rows[table as usize], u64::from(table.rows()));
        if rows != should_be {
            let (warehouse, name) = (self.warehouse, table.name());
            self.find(
                0,
                format_args!("warehouse {warehouse}: it has {rows} rows of {name}, but there must be {should_be}"),
            );
        }
    }

    /// The words for the district at a place in the warehouse.
    pub fn place(&self, district: usize) -> Place {
        Place::of(self.warehouse, district as u32 + 1)
    }
}

/// The failure if the database returned `row` when it was asked for rows of `table`, which is another table.
#[cold]
pub fn stray(table: Table, row: &Row<'_>) -> Failure {
    Failure::request("wrong_rows", format!("the database was asked for rows of {} and gave {row:?}", table.name()))
}
