//! One thread's transactions. Each reads at a snapshot, and its commit fails if another transaction has written one
//! of its keys since. RocksDB checks this by looking up, among the rows in memory, each key that the transaction
//! wrote or read by `get_for_update`.
//!
//! This check makes the five transactions serializable. A writing transaction also writes all rows that it reads and
//! that others may change: districts, stock, orders with their lines, and the customers that pay or get a delivery.
//! From other rows it reads only columns that never change: items, names, a warehouse's tax, a customer's discount.
//! The exception is a delivery that finds no order in a district: it reads the district, which each new order
//! writes, by `get_for_update`. So when a writing transaction commits, nothing that it has read has changed since
//! its snapshot. Transactions that only read see their snapshot, the state between two commits.

use super::families::{Families, Family, parts_of, value_of};
use super::{Db, RocksDb};
use crate::broken;
use ::tpcc::encoding::{
    self, Decode, Scratch, customer_entry, district_key, item_key, name_key, number_of, numbered_key, stock_key,
    warehouse_key,
};
use ::tpcc::in_turn::{self, Engine, reads_only};
use ::tpcc::oldest::Oldest;
use ::tpcc::schema::{Customer, District, History, Item, NewOrder, Order, OrderLine, Stock, Table, Warehouse};
use ::tpcc::transactions::{Columns, DistrictId, Rows, missing};
use ::tpcc::{Form, Row, Text};
use harness::{Clock, Failure, Flights};
use rocksdb::{
    DBPinnableSlice, DBRawIteratorWithThreadMode, OptimisticTransactionOptions, PrefixRange, ReadOptions, Transaction,
    WriteOptions,
};
use std::ops::RangeInclusive;

/// A session on `rocksdb`.
pub fn session<'l>(rocksdb: &'l RocksDb, form: &Form, clock: Clock) -> Result<Box<dyn Flights + 'l>, Failure> {
    let mut options = OptimisticTransactionOptions::default();
    options.set_snapshot(true);
    let transactions = Transactions {
        db: &rocksdb.db,
        families: Families::of(&rocksdb.db)?,
        options,
        writes: rocksdb.writes(),
        kept: Kept::default(),
    };
    // A commit blocks, so a thread has only one transaction under way.
    Ok(in_turn::session(transactions, form, 1, clock))
}

struct Transactions<'l> {
    db: &'l Db,
    families: Families<'l>,
    options: OptimisticTransactionOptions,
    writes: WriteOptions,
    kept: Kept,
}

/// Buffers and state that a session keeps between transactions.
#[derive(Default)]
struct Kept {
    /// Read options with the snapshot of the current transaction.
    reads: ReadOptions,
    scratch: Scratch,
    /// Buffer for the value of a row of two parts.
    joined: Vec<u8>,
    oldest: Oldest,
}

impl<'l> Engine for Transactions<'l> {
    type Open<'e>
        = Open<'e>
    where
        Self: 'e;

    fn begin(&mut self, transaction: ::tpcc::Transaction) -> Result<Open<'_>, Failure> {
        let tx = self.db.transaction_opt(&self.writes, &self.options);
        // The snapshot is owned by the transaction and lives as long as it does.
        self.kept.reads.set_snapshot(&tx.snapshot());
        Ok(Open { tx, reads_only: reads_only(transaction), families: &self.families, kept: &mut self.kept })
    }

    fn commit(open: Open<'_>) -> Result<(), Failure> {
        // Even a commit without writes would sync the log.
        if open.reads_only { Ok(()) } else { open.tx.commit().map_err(broken) }
    }
}

/// An open transaction.
struct Open<'e> {
    tx: Transaction<'e, Db>,
    reads_only: bool,
    families: &'e Families<'e>,
    kept: &'e mut Kept,
}

impl Open<'_> {
    fn value(&self, table: Table, key: &[u8]) -> Result<Option<DBPinnableSlice<'_>>, Failure> {
        self.tx.get_pinned_cf_opt(self.families.table(table), key, &self.kept.reads).map_err(broken)
    }

    fn get<R: Decode>(&mut self, table: Table, row: &mut R, fill: impl FnOnce(&mut Vec<u8>)) -> Result<(), Failure> {
        let key = self.kept.scratch.key(fill);
        let found = self.tx.get_pinned_cf_opt(self.families.table(table), key, &self.kept.reads).map_err(broken)?;
        row.decode(key, parts_of(table, &found.ok_or_else(|| missing(table))?)?)
    }

    fn put(&mut self, table: Table, row: Row<'_>, unique: u64) -> Result<(), Failure> {
        let Kept { scratch: Scratch { encoded, .. }, joined, .. } = &mut *self.kept;
        encoded.set(row, unique);
        let value = value_of(encoded, joined);
        self.tx.put_cf(self.families.table(table), encoded.key(), value).map_err(broken)
    }

    /// An iterator over the rows within `bounds`, not positioned yet.
    fn range(
        &self,
        family: &Family<'_>,
        bounds: impl rocksdb::IterateBounds,
    ) -> DBRawIteratorWithThreadMode<'_, Transaction<'_, Db>> {
        let mut reads = ReadOptions::default();
        reads.set_snapshot(&self.tx.snapshot());
        reads.set_iterate_range(bounds);
        self.tx.raw_iterator_cf_opt(family, reads)
    }
}

/// Returns the key that `fill` writes, as an owned bound.
fn key_of(fill: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut key = Vec::new();
    fill(&mut key);
    key
}

impl Rows for Open<'_> {
    fn warehouse(&mut self, warehouse: u32, row: &mut Warehouse) -> Result<(), Failure> {
        self.get(Table::Warehouse, row, |key| warehouse_key(warehouse, key))
    }

    fn put_warehouse(&mut self, row: &Warehouse) -> Result<(), Failure> {
        self.put(Table::Warehouse, Row::Warehouse(row), 0)
    }

    fn district(&mut self, of: DistrictId, row: &mut District) -> Result<(), Failure> {
        self.get(Table::District, row, |key| district_key(of, key))
    }

    fn put_district(&mut self, row: &District) -> Result<(), Failure> {
        self.put(Table::District, Row::District(row), 0)
    }

    fn customer(&mut self, of: DistrictId, customer: u32, columns: Columns, row: &mut Customer) -> Result<(), Failure> {
        let key = self.kept.scratch.key(|key| numbered_key(of, customer, key));
        let family = self.families.table(Table::Customer);
        let found = self.tx.get_pinned_cf_opt(family, key, &self.kept.reads).map_err(broken)?;
        let found = found.ok_or_else(|| missing(Table::Customer))?;
        let count = match columns {
            Columns::Account => 1,
            Columns::All => encoding::PARTS,
        };
        row.decode(key, parts_of(Table::Customer, &found)?.take(count))
    }

    fn customers_by_name(&mut self, of: DistrictId, last: &Text<16>, customers: &mut Vec<u32>) -> Result<(), Failure> {
        customers.clear();
        let prefix = key_of(|key| name_key(of, last, key));
        let mut entries = self.range(&self.families.customers_by_name, PrefixRange(prefix));
        entries.seek_to_first();
        while let Some(entry) = entries.key() {
            customers.push(number_of(entry)?);
            entries.next();
        }
        entries.status().map_err(broken)
    }

    fn put_customer(&mut self, row: &Customer) -> Result<(), Failure> {
        // Names never change, so the index by name need not change either.
        self.put(Table::Customer, Row::Customer(row), 0)
    }

    fn add_history(&mut self, row: &History, unique: u64) -> Result<(), Failure> {
        self.put(Table::History, Row::History(row), unique)
    }

    fn oldest_new_order(&mut self, of: DistrictId) -> Result<Option<u32>, Failure> {
        let known = self.kept.oldest.least(of);
        let bounds = key_of(|key| numbered_key(of, known, key))..key_of(|key| numbered_key(of, u32::MAX, key));
        let mut orders = self.range(self.families.table(Table::NewOrder), bounds);
        orders.seek_to_first();
        let oldest = orders.key().map(number_of).transpose()?;
        orders.status().map_err(broken)?;
        drop(orders);
        match oldest {
            Some(order) => self.kept.oldest.note(of, order),
            None => {
                // "No order" is outdated by a new order, which writes the district. So this reads the district for
                // update.
                let key = self.kept.scratch.key(|key| district_key(of, key));
                let family = self.families.table(Table::District);
                self.tx.get_pinned_for_update_cf_opt(family, key, true, &self.kept.reads).map_err(broken)?;
            }
        }
        Ok(oldest)
    }

    fn add_new_order(&mut self, row: &NewOrder) -> Result<(), Failure> {
        self.put(Table::NewOrder, Row::NewOrder(row), 0)
    }

    fn remove_new_order(&mut self, row: &NewOrder) -> Result<(), Failure> {
        let of = DistrictId { warehouse: row.warehouse, district: row.district };
        let key = self.kept.scratch.key(|key| numbered_key(of, row.order, key));
        self.tx.delete_cf(self.families.table(Table::NewOrder), key).map_err(broken)
    }

    fn order(&mut self, of: DistrictId, order: u32, row: &mut Order) -> Result<(), Failure> {
        self.get(Table::Order, row, |key| numbered_key(of, order, key))
    }

    fn newest_order(&mut self, of: DistrictId, customer: u32, row: &mut Order) -> Result<bool, Failure> {
        let prefix = key_of(|key| numbered_key(of, customer, key));
        let mut entries = self.range(&self.families.orders_by_customer, PrefixRange(prefix));
        entries.seek_to_last();
        let newest = entries.key().map(number_of).transpose()?;
        entries.status().map_err(broken)?;
        drop(entries);
        match newest {
            Some(order) => self.order(of, order, row).map(|()| true),
            None => Ok(false),
        }
    }

    fn put_order(&mut self, row: &Order) -> Result<(), Failure> {
        // An order without a carrier is new, so it needs an index entry.
        if row.carrier.is_none() {
            let entry = self.kept.scratch.key(|entry| customer_entry(row, entry));
            self.tx.put_cf(&self.families.orders_by_customer, entry, b"").map_err(broken)?;
        }
        self.put(Table::Order, Row::Order(row), 0)
    }

    fn order_lines(
        &mut self,
        of: DistrictId,
        orders: RangeInclusive<u32>,
        lines: &mut Vec<OrderLine>,
    ) -> Result<(), Failure> {
        let bound = |order| key_of(|key| numbered_key(of, order, key));
        let mut count = 0;
        let bounds = bound(*orders.start())..bound(orders.end() + 1);
        let mut found = self.range(self.families.table(Table::OrderLine), bounds);
        found.seek_to_first();
        while let Some((key, value)) = found.item() {
            if lines.len() == count {
                lines.push(OrderLine::default());
            }
            lines[count].decode(key, parts_of(Table::OrderLine, value)?)?;
            count += 1;
            found.next();
        }
        lines.truncate(count);
        found.status().map_err(broken)
    }

    fn add_order_line(&mut self, row: &OrderLine) -> Result<(), Failure> {
        self.put(Table::OrderLine, Row::OrderLine(row), 0)
    }

    fn put_delivered(&mut self, lines: &[OrderLine]) -> Result<(), Failure> {
        lines.iter().try_for_each(|line| self.put(Table::OrderLine, Row::OrderLine(line), 0))
    }

    fn items(&mut self, items: &[u32], rows: &mut Vec<Item>) -> Result<(), Failure> {
        rows.resize_with(items.len(), Item::default);
        for (item, row) in items.iter().zip(rows) {
            let key = key_of(|key| item_key(*item, key));
            match self.value(Table::Item, &key)? {
                Some(value) => row.decode(&key, parts_of(Table::Item, &value)?)?,
                None => row.item = 0,
            }
        }
        Ok(())
    }

    fn stocks(&mut self, of: &[(u32, u32)], rows: &mut Vec<Stock>) -> Result<(), Failure> {
        rows.resize_with(of.len(), Stock::default);
        for (&(warehouse, item), row) in of.iter().zip(rows) {
            self.get(Table::Stock, row, |key| stock_key(warehouse, item, key))?;
        }
        Ok(())
    }

    fn put_stock(&mut self, row: &Stock) -> Result<(), Failure> {
        self.put(Table::Stock, Row::Stock(row), 0)
    }

    fn quantities(&mut self, warehouse: u32, items: &[u32], quantities: &mut Vec<i32>) -> Result<(), Failure> {
        quantities.clear();
        let mut stock = Stock::default();
        for item in items {
            let key = key_of(|key| stock_key(warehouse, *item, key));
            let found = self.value(Table::Stock, &key)?.ok_or_else(|| missing(Table::Stock))?;
            stock.decode(&key, parts_of(Table::Stock, &found)?.take(1))?;
            quantities.push(stock.quantity);
        }
        Ok(())
    }
}
