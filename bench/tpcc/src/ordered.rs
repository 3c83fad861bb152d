//! TPC-C on an ordered store: an engine in this process that keeps rows as bytes, sorted by key, and has transactions.
//! The store gives its transactions as [`Ordered`]; [`RowsOf`] makes the rows of TPC-C of it, with the keys and values
//! of [`encoding`]. This module does not know how a transaction begins or is repeated.

#[cfg(test)]
mod tests;

use crate::database::Row;
use crate::encoding::{
    self, Decode, Encoded, Parts, Quantity, Scratch, customer_entry, district_key, item_key, name_key, number_of,
    numbered_key, stock_key, warehouse_key,
};
use crate::oldest::Oldest;
use crate::schema::{Cents, Customer, District, History, Item, NewOrder, Order, OrderLine, Stock, Table, Warehouse};
use crate::text::Text;
use crate::transactions::{Columns, DistrictId, Rows, missing};
use harness::Failure;
use std::ops::{Range, RangeInclusive};

/// An index that TPC-C needs beside the keys of the tables. An entry ends with the number of its row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Index {
    /// Customers by district, last name and first name.
    CustomersByName,
    /// Orders by district and customer.
    OrdersByCustomer,
}

impl Index {
    /// All indexes.
    pub const ALL: [Self; 2] = [Self::CustomersByName, Self::OrdersByCustomer];

    /// The name of the index.
    pub fn name(self) -> &'static str {
        match self {
            Self::CustomersByName => "customers_by_name",
            Self::OrdersByCustomer => "orders_by_customer",
        }
    }

    /// The table whose rows the index finds.
    pub fn table(self) -> Table {
        match self {
            Self::CustomersByName => Table::Customer,
            Self::OrdersByCustomer => Table::Order,
        }
    }

    /// Declares the index, for a store that maintains indexes by itself.
    pub fn declaration(self) -> &'static str {
        match self {
            Self::CustomersByName => encoding::CUSTOMERS_BY_NAME,
            Self::OrdersByCustomer => encoding::ORDERS_BY_CUSTOMER,
        }
    }
}

/// A transaction of an ordered store. If it is dropped without a commit, it is rolled back. Every function fails if
/// the store does.
pub trait Ordered {
    /// What a commit returns.
    type Committed;

    /// Reads these parts of the row `key` into `row`. Returns `false` if the store has no such row.
    fn get<R: Decode>(&mut self, table: Table, parts: Parts, key: &[u8], row: &mut R) -> Result<bool, Failure>;

    /// Reads these parts of the rows `keys` into `rows`, which has as many. Calls `none` with each row that the store
    /// does not have.
    fn get_many<R: Decode>(
        &mut self,
        table: Table,
        parts: Parts,
        keys: &[Vec<u8>],
        rows: &mut [R],
        mut none: impl FnMut(&mut R) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        for (key, row) in keys.iter().zip(rows) {
            if !self.get(table, parts, key, row)? {
                none(row)?;
            }
        }
        Ok(())
    }

    /// Writes a row.
    fn put(&mut self, table: Table, row: &Encoded) -> Result<(), Failure>;

    /// Removes a row.
    fn delete(&mut self, table: Table, key: &[u8]) -> Result<(), Failure>;

    /// Calls `each` with key and value of the first `most` rows within `keys`, in key order. `table` is one whose
    /// values have one part.
    fn range(
        &mut self,
        table: Table,
        keys: Range<Vec<u8>>,
        most: u64,
        each: impl FnMut(&[u8], &[u8]) -> Result<(), Failure>,
    ) -> Result<(), Failure>;

    /// Calls `each` with the entries of an index that begin with `prefix`, in their order. What it gets of an entry
    /// ends with the number of the row.
    fn entries(
        &mut self,
        index: Index,
        prefix: Vec<u8>,
        each: impl FnMut(&[u8]) -> Result<(), Failure>,
    ) -> Result<(), Failure>;

    /// The number of the row of the last entry that begins with `prefix`.
    fn last_entry(&mut self, index: Index, prefix: Vec<u8>) -> Result<Option<u32>, Failure>;

    /// Adds the entry that `fill` writes to an index. A store that maintains its indexes by itself does nothing here.
    fn add_entry(&mut self, _: Index, _fill: impl FnOnce(&mut Vec<u8>)) -> Result<(), Failure> {
        Ok(())
    }

    /// Makes the commit fail if another transaction writes the row `key` before it. A store whose transactions are
    /// serializable by themselves does nothing here, because the transaction has read the row's surroundings.
    fn depend_on(&mut self, _: Table, _key: &[u8]) -> Result<(), Failure> {
        Ok(())
    }

    /// Whether the store keeps the sums of the year apart from the rows of warehouses and districts.
    fn keeps_year_apart(&self) -> bool {
        false
    }

    /// Adds to the sum of the year of the warehouse or district `key` without reading it. Only a store that keeps these
    /// sums apart from the rows is asked to.
    fn add_to_year(&mut self, _key: &[u8], _amount: Cents) -> Result<(), Failure> {
        unreachable!("the sums are in the rows")
    }

    /// Commits the transaction. Fails with the harm [`Again`](harness::Harm::Again) if it conflicts with others.
    fn commit(self) -> Result<Self::Committed, Failure>;
}

/// What a session keeps from one transaction to the next: buffers, and where it has found undelivered orders.
#[derive(Debug, Default)]
pub struct Kept {
    scratch: Scratch,
    quantities: Vec<Quantity>,
    oldest: Oldest,
}

/// The rows of TPC-C as a transaction of an ordered store sees them.
pub struct RowsOf<'k, S> {
    /// The transaction.
    pub store: S,
    kept: &'k mut Kept,
}

impl<'k, S: Ordered> RowsOf<'k, S> {
    /// The rows as `store` sees them.
    pub fn new(store: S, kept: &'k mut Kept) -> Self {
        Self { store, kept }
    }

    fn get<R: Decode>(
        &mut self,
        table: Table,
        parts: Parts,
        row: &mut R,
        fill: impl FnOnce(&mut Vec<u8>),
    ) -> Result<(), Failure> {
        match self.store.get(table, parts, self.kept.scratch.key(fill), row)? {
            true => Ok(()),
            false => Err(missing(table)),
        }
    }

    fn put(&mut self, table: Table, row: Row<'_>, unique: u64) -> Result<(), Failure> {
        self.kept.scratch.encoded.set(row, unique);
        self.store.put(table, &self.kept.scratch.encoded)
    }
}

/// The keys from that of the order `first` of a district up to that of the order `end`, which is not among them.
fn orders(of: DistrictId, first: u32, end: u32) -> Range<Vec<u8>> {
    let bound = |order| key_of(|key| numbered_key(of, order, key));
    bound(first)..bound(end)
}

/// The key that `fill` writes, to be kept by the store.
fn key_of(fill: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut key = Vec::new();
    fill(&mut key);
    key
}

impl<S: Ordered> Rows for RowsOf<'_, S> {
    fn warehouse(&mut self, warehouse: u32, row: &mut Warehouse) -> Result<(), Failure> {
        self.get(Table::Warehouse, Parts::All, row, |key| warehouse_key(warehouse, key))
    }

    fn put_warehouse(&mut self, row: &Warehouse) -> Result<(), Failure> {
        self.put(Table::Warehouse, Row::Warehouse(row), 0)
    }

    fn pay_warehouse(&mut self, row: &mut Warehouse, amount: Cents) -> Result<(), Failure> {
        if self.store.keeps_year_apart() {
            return self.store.add_to_year(self.kept.scratch.key(|key| warehouse_key(row.warehouse, key)), amount);
        }
        row.year_to_date += amount;
        self.put_warehouse(row)
    }

    fn district(&mut self, of: DistrictId, row: &mut District) -> Result<(), Failure> {
        self.get(Table::District, Parts::All, row, |key| district_key(of, key))
    }

    fn put_district(&mut self, row: &District) -> Result<(), Failure> {
        self.put(Table::District, Row::District(row), 0)
    }

    fn pay_district(&mut self, row: &mut District, amount: Cents) -> Result<(), Failure> {
        if self.store.keeps_year_apart() {
            let of = DistrictId { warehouse: row.warehouse, district: row.district };
            return self.store.add_to_year(self.kept.scratch.key(|key| district_key(of, key)), amount);
        }
        row.year_to_date += amount;
        self.put_district(row)
    }

    fn customer(&mut self, of: DistrictId, customer: u32, columns: Columns, row: &mut Customer) -> Result<(), Failure> {
        let parts = match columns {
            Columns::Account => Parts::First,
            Columns::All => Parts::All,
        };
        self.get(Table::Customer, parts, row, |key| numbered_key(of, customer, key))
    }

    fn customers_by_name(&mut self, of: DistrictId, last: &Text<16>, customers: &mut Vec<u32>) -> Result<(), Failure> {
        customers.clear();
        self.store.entries(Index::CustomersByName, key_of(|key| name_key(of, last, key)), |entry| {
            customers.push(number_of(entry)?);
            Ok(())
        })
    }

    fn put_customer(&mut self, row: &Customer) -> Result<(), Failure> {
        // Names never change, so the index by name need not change either.
        self.put(Table::Customer, Row::Customer(row), 0)
    }

    fn add_history(&mut self, row: &History, unique: u64) -> Result<(), Failure> {
        self.put(Table::History, Row::History(row), unique)
    }

    fn oldest_new_order(&mut self, of: DistrictId) -> Result<Option<u32>, Failure> {
        let mut oldest = None;
        let keys = orders(of, self.kept.oldest.least(of), u32::MAX);
        self.store.range(Table::NewOrder, keys, 1, |key, _| {
            oldest = Some(number_of(key)?);
            Ok(())
        })?;
        match oldest {
            Some(order) => self.kept.oldest.note(of, order),
            // That there is no order is no longer true after a new order, which writes the district.
            None => self.store.depend_on(Table::District, self.kept.scratch.key(|key| district_key(of, key)))?,
        }
        Ok(oldest)
    }

    fn add_new_order(&mut self, row: &NewOrder) -> Result<(), Failure> {
        self.put(Table::NewOrder, Row::NewOrder(row), 0)
    }

    fn remove_new_order(&mut self, row: &NewOrder) -> Result<(), Failure> {
        let of = DistrictId { warehouse: row.warehouse, district: row.district };
        self.store.delete(Table::NewOrder, self.kept.scratch.key(|key| numbered_key(of, row.order, key)))
    }

    fn order(&mut self, of: DistrictId, order: u32, row: &mut Order) -> Result<(), Failure> {
        self.get(Table::Order, Parts::All, row, |key| numbered_key(of, order, key))
    }

    fn newest_order(&mut self, of: DistrictId, customer: u32, row: &mut Order) -> Result<bool, Failure> {
        let prefix = key_of(|key| numbered_key(of, customer, key));
        match self.store.last_entry(Index::OrdersByCustomer, prefix)? {
            Some(order) => self.order(of, order, row).map(|()| true),
            None => Ok(false),
        }
    }

    fn put_order(&mut self, row: &Order) -> Result<(), Failure> {
        // An order without a carrier is new.
        if row.carrier.is_none() {
            self.store.add_entry(Index::OrdersByCustomer, |entry| customer_entry(row, entry))?;
        }
        self.put(Table::Order, Row::Order(row), 0)
    }

    fn order_lines(
        &mut self,
        of: DistrictId,
        numbers: RangeInclusive<u32>,
        lines: &mut Vec<OrderLine>,
    ) -> Result<(), Failure> {
        let mut count = 0;
        let keys = orders(of, *numbers.start(), numbers.end() + 1);
        self.store.range(Table::OrderLine, keys, u64::MAX, |key, value| {
            if lines.len() == count {
                lines.push(OrderLine::default());
            }
            lines[count].decode(key, [value])?;
            count += 1;
            Ok(())
        })?;
        lines.truncate(count);
        Ok(())
    }

    fn add_order_line(&mut self, row: &OrderLine) -> Result<(), Failure> {
        self.put(Table::OrderLine, Row::OrderLine(row), 0)
    }

    fn put_delivered(&mut self, lines: &[OrderLine]) -> Result<(), Failure> {
        lines.iter().try_for_each(|line| self.put(Table::OrderLine, Row::OrderLine(line), 0))
    }

    fn items(&mut self, items: &[u32], rows: &mut Vec<Item>) -> Result<(), Failure> {
        let keys = self.kept.scratch.keys(items.len(), |at, key| item_key(items[at], key));
        rows.resize_with(items.len(), Item::default);
        self.store.get_many(Table::Item, Parts::All, keys, rows, |row| {
            row.item = 0;
            Ok(())
        })
    }

    fn stocks(&mut self, of: &[(u32, u32)], rows: &mut Vec<Stock>) -> Result<(), Failure> {
        let keys = self.kept.scratch.keys(of.len(), |at, key| stock_key(of[at].0, of[at].1, key));
        rows.resize_with(of.len(), Stock::default);
        self.store.get_many(Table::Stock, Parts::All, keys, rows, |_| Err(missing(Table::Stock)))
    }

    fn put_stock(&mut self, row: &Stock) -> Result<(), Failure> {
        self.put(Table::Stock, Row::Stock(row), 0)
    }

    fn quantities(&mut self, warehouse: u32, items: &[u32], quantities: &mut Vec<i32>) -> Result<(), Failure> {
        let Kept { scratch, quantities: rows, .. } = &mut *self.kept;
        let keys = scratch.keys(items.len(), |at, key| stock_key(warehouse, items[at], key));
        rows.resize_with(items.len(), Quantity::default);
        self.store.get_many(Table::Stock, Parts::First, keys, rows, |_| Err(missing(Table::Stock)))?;
        quantities.clear();
        quantities.extend(rows.iter().map(|row| row.0));
        Ok(())
    }
}
