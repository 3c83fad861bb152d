//! The items, and the stock that a warehouse has of each item.

use crate::check::ledger::Supply;
use crate::check::scope::{Outcome, Scope, stray};
use crate::database::Row;
use crate::schema::{ITEMS, Stock, Table};
use harness::Failure;
use std::fmt;

/// Reads the items, which belong to no warehouse.
pub fn read_items(mut scope: Scope<'_>) -> Result<Outcome, Failure> {
    let mut missing = Missing::new();
    scope.read(Table::Item, &mut |scope, row| {
        let Row::Item(row) = row else { return Err(stray(Table::Item, &row)) };
        let what = format_args!("item {}", row.item);
        if missing.take(scope, row.item, what) {
            scope.compare(what, scope.loaded.item(row));
        }
        Ok(())
    })?;
    missing.judge(&mut scope, format_args!("item"));
    Ok(scope.into_outcome())
}

/// Reads the stock of a warehouse.
pub fn read_stock(scope: &mut Scope<'_>) -> Result<(), Failure> {
    let warehouse = scope.warehouse;
    let mut missing = Missing::new();
    let mut supply = Supply::default();
    scope.read(Table::Stock, &mut |scope, row| {
        let Row::Stock(row) = row else { return Err(stray(Table::Stock, &row)) };
        let Stock { item, sold, orders, remote_orders, .. } = *row;
        let what = format_args!("stock of item {item} of warehouse {warehouse}");
        if scope.is_here(Table::Stock, row.warehouse) && missing.take(scope, item, what) {
            supply.add(&Supply { lines: orders.into(), remote_lines: remote_orders.into(), quantity: sold.into() });
            scope.compare(what, scope.loaded.stock(row));
        }
        Ok(())
    })?;
    missing.judge(scope, format_args!("warehouse {warehouse}: stock of item"));
    scope.ledger.stock_of(warehouse, &supply);
    Ok(())
}

/// Finds out which items are missing. All items must be there, in ascending order.
struct Missing {
    last: Option<u32>,
    /// The first missing item.
    first: Option<u32>,
    count: u32,
}

impl Missing {
    fn new() -> Self {
        Self { last: None, first: None, count: 0 }
    }

    /// Takes the next existing item. Returns `false` if `item` is too small or too large to be the number of an
    /// item.
    fn take(&mut self, scope: &mut Scope<'_>, item: u32, what: fmt::Arguments<'_>) -> bool {
        if !(1..=ITEMS).contains(&item) {
            scope.find(0, format_args!("{what}: there can be no such number"));
            return false;
        }
        let before = self.last.unwrap_or(0);
        let is_next = scope.is_next(&mut self.last, item, what);
        if is_next {
            self.skip(before, item);
        }
        is_next
    }

    /// Notes that `item` follows `before`, so all items between these two are missing.
    fn skip(&mut self, before: u32, item: u32) {
        let skipped = item - before - 1;
        if skipped > 0 {
            self.first.get_or_insert(before + 1);
            self.count += skipped;
        }
    }

    fn judge(mut self, scope: &mut Scope<'_>, what: fmt::Arguments<'_>) {
        self.skip(self.last.unwrap_or(0), ITEMS + 1);
        if let Some(first) = self.first {
            let count = self.count;
            scope.find(0, format_args!("{what} {first} is not there: {count} of {ITEMS} are missing"));
        }
    }
}
