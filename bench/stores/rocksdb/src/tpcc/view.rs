//! A consistent view of a database.

use super::Db;
use super::families::{Families, parts_of};
use crate::broken;
use ::tpcc::encoding::{Decode, warehouse_key};
use ::tpcc::schema::{Customer, District, History, Item, NewOrder, Order, OrderLine, Stock, Table, Warehouse};
use ::tpcc::{Row, View};
use harness::Failure;
use rocksdb::{PrefixRange, ReadOptions, SnapshotWithThreadMode};

/// A snapshot of all tables.
pub struct Snapshot<'l> {
    families: Families<'l>,
    snapshot: SnapshotWithThreadMode<'l, Db>,
}

impl<'l> Snapshot<'l> {
    /// A snapshot of the database as it is now.
    pub fn new(db: &'l Db) -> Result<Self, Failure> {
        Ok(Self { families: Families::of(db)?, snapshot: db.snapshot() })
    }

    /// Calls `each` with the rows of `warehouse`, or with all rows if `warehouse` is 0.
    fn each_of<R: Decode + Default>(
        &self,
        table: Table,
        warehouse: u32,
        mut each: impl FnMut(&R) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut reads = ReadOptions::default();
        // A full scan should not evict other blocks from the cache.
        reads.fill_cache(false);
        if warehouse != 0 {
            let mut prefix = Vec::new();
            warehouse_key(warehouse, &mut prefix);
            reads.set_iterate_range(PrefixRange(prefix));
        }
        let mut found = self.snapshot.raw_iterator_cf_opt(self.families.table(table), reads);
        found.seek_to_first();
        let mut row = R::default();
        while let Some((key, value)) = found.item() {
            row.decode(key, parts_of(table, value)?)?;
            each(&row)?;
            found.next();
        }
        found.status().map_err(broken)
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
            Table::Warehouse => self.each_of::<Warehouse>(table, warehouse, |row| each(Row::Warehouse(row))),
            Table::District => self.each_of::<District>(table, warehouse, |row| each(Row::District(row))),
            Table::Customer => self.each_of::<Customer>(table, warehouse, |row| each(Row::Customer(row))),
            Table::History => self.each_of::<History>(table, warehouse, |row| each(Row::History(row))),
            Table::NewOrder => self.each_of::<NewOrder>(table, warehouse, |row| each(Row::NewOrder(row))),
            Table::Order => self.each_of::<Order>(table, warehouse, |row| each(Row::Order(row))),
            Table::OrderLine => self.each_of::<OrderLine>(table, warehouse, |row| each(Row::OrderLine(row))),
            Table::Item => self.each_of::<Item>(table, 0, |row| each(Row::Item(row))),
            Table::Stock => self.each_of::<Stock>(table, warehouse, |row| each(Row::Stock(row))),
        }
    }
}
