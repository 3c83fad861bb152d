//! A consistent view of a database.

use super::Larch;
use crate::broken;
use ::tpcc::encoding::{self, Decode};
use ::tpcc::schema::{Customer, District, History, Item, NewOrder, Order, OrderLine, Stock, Table, Warehouse};
use ::tpcc::{Row, View};
use harness::Failure;
use larch::{Readable as _, Selection};
use rows::Tuple as _;
use std::ops::ControlFlow;

/// A snapshot of all tables.
pub struct Snapshot<'l> {
    larch: &'l Larch,
    snapshot: larch::Snapshot,
}

impl<'l> Snapshot<'l> {
    /// The database as it is now.
    pub fn new(larch: &'l Larch) -> Result<Self, Failure> {
        Ok(Self { larch, snapshot: larch.db.snapshot() })
    }

    /// Calls `each` with the rows of `warehouse`, or with all rows if `warehouse` is 0. For tables without column
    /// groups.
    fn plain<R: Decode + Default>(
        &self,
        table: Table,
        warehouse: u32,
        mut each: impl FnMut(&R) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let table = self.larch.table(table)?;
        let mut range = match warehouse {
            0 => self.snapshot.iter(&table),
            _ => self.snapshot.range(&table, (warehouse,).range()),
        };
        let mut row = R::default();
        let end = range.for_each_row(|found| {
            let decoded = found.value().map_err(broken).and_then(|value| row.decode(found.key(), [value.as_ref()]));
            match decoded.and_then(|()| each(&row)) {
                Ok(()) => ControlFlow::Continue(()),
                Err(failure) => ControlFlow::Break(failure),
            }
        });
        match end.map_err(broken)? {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(failure) => Err(failure),
        }
    }

    /// Calls `each` with the rows of `warehouse`. For tables with column groups.
    fn grouped<R: Decode + Default>(
        &self,
        table: Table,
        warehouse: u32,
        mut each: impl FnMut(&R) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let selection: Selection = self.larch.table(table)?.select(encoding::groups(table)).map_err(broken)?;
        let mut range = selection.at(&self.snapshot).map_err(broken)?.range((warehouse,).range());
        let mut row = R::default();
        while let Some(found) = range.next_row().map_err(broken)? {
            let parts = found.parts().map_err(broken)?;
            row.decode(found.key(), parts.iter().map(|part| &part[..]))?;
            each(&row)?;
        }
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
            Table::Warehouse => self.plain::<Warehouse>(table, warehouse, |row| each(Row::Warehouse(row))),
            Table::District => self.plain::<District>(table, warehouse, |row| each(Row::District(row))),
            Table::Customer => self.grouped::<Customer>(table, warehouse, |row| each(Row::Customer(row))),
            Table::History => self.plain::<History>(table, warehouse, |row| each(Row::History(row))),
            Table::NewOrder => self.plain::<NewOrder>(table, warehouse, |row| each(Row::NewOrder(row))),
            Table::Order => self.plain::<Order>(table, warehouse, |row| each(Row::Order(row))),
            Table::OrderLine => self.plain::<OrderLine>(table, warehouse, |row| each(Row::OrderLine(row))),
            Table::Item => self.plain::<Item>(table, 0, |row| each(Row::Item(row))),
            Table::Stock => self.grouped::<Stock>(table, warehouse, |row| each(Row::Stock(row))),
        }
    }
}
