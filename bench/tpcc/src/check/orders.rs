//! The orders of a warehouse, their lines, and the orders that are not delivered: conditions 5, 6 and 7. The keys of
//! all three tables begin with district and order, so the other two can be merged with the orders as they are read.

use crate::check::accounts::Accounts;
use crate::check::ledger::Supply;
use crate::check::scope::{Scope, stray};
use crate::check::tallies::Tallies;
use crate::check::words::Place;
use crate::database::Row;
use crate::schema::{NewOrder, ORDERS, Order, OrderLine, Table};
use harness::Failure;
use std::cmp::Ordering;

/// What is kept for each order. It takes 32 bytes.
#[derive(Debug)]
struct Entry {
    district: u32,
    order: u32,
    /// The place of the order's customer, if the customer exists.
    customer: Option<u32>,
    /// The number of lines that the order claims to have.
    promised_lines: u32,
    lines: u32,
    /// The number of lines whose number is their position in the order, counted from 1.
    numbered_lines: u32,
    is_delivered: bool,
    is_new: bool,
}

/// The orders of a warehouse.
#[derive(Debug)]
pub struct Orders {
    entries: Vec<Entry>,
}

impl Orders {
    /// Reads the orders.
    pub fn read(scope: &mut Scope<'_>, tallies: &mut Tallies, accounts: &Accounts) -> Result<Self, Failure> {
        let mut entries = Vec::with_capacity(Table::Order.rows() as usize);
        let mut last = None;
        scope.read(Table::Order, &mut |scope, row| {
            let Row::Order(row) = row else { return Err(stray(Table::Order, &row)) };
            let Order { warehouse, district, order, customer, .. } = *row;
            let Some(place) = scope.district(Table::Order, warehouse, district) else { return Ok(()) };
            let name = Place::of(warehouse, district);
            let what = format_args!("order {order} of {name}");
            if !scope.is_next(&mut last, (district, order), what) {
                return Ok(());
            }
            let tally = &mut tallies.districts[place];
            let before = tally.newest_order;
            if u64::from(order) != u64::from(before) + 1 {
                scope.find(0, format_args!("{name}: order {order} follows order {before}: orders have no gaps"));
            }
            tally.orders += 1;
            tally.newest_order = order;
            tally.promised_lines += u64::from(row.lines);
            let account = accounts.find(district, customer);
            if account.is_none() {
                scope.find(0, format_args!("{what} is by customer {customer}, who is not there"));
            }
            scope.compare(what, scope.loaded.order(row));
            entries.push(Entry {
                district,
                order,
                customer: account,
                promised_lines: row.lines,
                lines: 0,
                numbered_lines: 0,
                is_delivered: row.carrier.is_some(),
                is_new: false,
            });
            Ok(())
        })?;
        Ok(Self { entries })
    }

    /// Reads the table of orders that are not delivered.
    pub fn read_new(&mut self, scope: &mut Scope<'_>, tallies: &mut Tallies) -> Result<(), Failure> {
        let (mut last, mut merge) = (None, Merge::default());
        scope.read(Table::NewOrder, &mut |scope, row| {
            let Row::NewOrder(row) = row else { return Err(stray(Table::NewOrder, &row)) };
            let NewOrder { warehouse, district, order } = *row;
            let Some(place) = scope.district(Table::NewOrder, warehouse, district) else { return Ok(()) };
            let what = format_args!("new order {order} of {}", Place::of(warehouse, district));
            if !scope.is_next(&mut last, (district, order), what) {
                return Ok(());
            }
            let tally = &mut tallies.districts[place];
            if tally.new_orders == 0 {
                tally.oldest_new_order = order;
            }
            tally.new_orders += 1;
            tally.newest_new_order = order;
            match merge.find(&mut self.entries, district, order) {
                Some(entry) => entry.is_new = true,
                None => scope.find(0, format_args!("{what} is not among the orders")),
            }
            scope.compare(what, scope.loaded.new_order(row));
            Ok(())
        })
    }

    /// Reads the lines of orders.
    pub fn read_lines(
        &mut self,
        scope: &mut Scope<'_>,
        tallies: &mut Tallies,
        accounts: &mut Accounts,
    ) -> Result<(), Failure> {
        let (mut last, mut merge) = (None, Merge::default());
        let mut own = Supply::default();
        scope.read(Table::OrderLine, &mut |scope, row| {
            let Row::OrderLine(row) = row else { return Err(stray(Table::OrderLine, &row)) };
            let OrderLine { warehouse, district, order, line, .. } = *row;
            let Some(place) = scope.district(Table::OrderLine, warehouse, district) else { return Ok(()) };
            let what = format_args!("line {line} of order {order} of {}", Place::of(warehouse, district));
            if !scope.is_next(&mut last, (district, order, line), what) {
                return Ok(());
            }
            tallies.districts[place].lines += 1;
            match merge.find(&mut self.entries, district, order) {
                Some(entry) => entry.take(scope, row, accounts),
                None => scope.find(0, format_args!("{what} is of an order that is not there")),
            }
            supply(scope, row, &mut own);
            let difference = scope.loaded.order_line(row);
            scope.compare(what, difference);
            Ok(())
        })?;
        scope.ledger.supplied_by(scope.warehouse, &own);
        Ok(())
    }

    /// Judges all orders. Their lines must have been read.
    pub fn judge(&self, scope: &mut Scope<'_>) {
        for entry in &self.entries {
            let Entry { district, order, promised_lines, lines, numbered_lines, is_delivered, is_new, .. } = *entry;
            let name = Place::of(scope.warehouse, district);
            match (is_delivered, is_new) {
                (true, true) => {
                    scope.find(5, format_args!("order {order} of {name} has a carrier, but is a new order, too"))
                }
                (false, false) => {
                    scope.find(5, format_args!("order {order} of {name} has no carrier, but is no new order"))
                }
                (true, false) | (false, true) => {}
            }
            if lines != promised_lines {
                scope.find(
                    6,
                    format_args!("order {order} of {name}: O_OL_CNT is {promised_lines}, but it has {lines} lines"),
                );
            } else if numbered_lines != lines {
                scope.find(6, format_args!("order {order} of {name}: its lines are not numbered from 1 to {lines}"));
            }
        }
    }
}

impl Entry {
    /// Takes a line of the order.
    fn take(&mut self, scope: &mut Scope<'_>, row: &OrderLine, accounts: &mut Accounts) {
        let OrderLine { warehouse, district, order, line, .. } = *row;
        self.lines += 1;
        self.numbered_lines += u32::from(line == self.lines);
        if let Some(customer) = self.customer
            && row.delivered.is_some()
        {
            accounts.deliver(customer, row.amount);
        }
        if row.delivered.is_some() != self.is_delivered {
            let with = |is: bool| if is { "a" } else { "no" };
            let (delivery, carrier) = (with(row.delivered.is_some()), with(self.is_delivered));
            let name = Place::of(warehouse, district);
            scope.find(
                7,
                format_args!(
                    "line {line} of order {order} of {name} has {delivery} delivery date, \
                     but the order has {carrier} carrier"
                ),
            );
        }
    }
}

/// If the order line was entered after the import, adds its items to what the supplying warehouse has supplied.
/// `own` is the supply of this warehouse.
fn supply(scope: &mut Scope<'_>, row: &OrderLine, own: &mut Supply) {
    let OrderLine { warehouse, district, order, line, supplied_by, .. } = *row;
    if !(1..=scope.warehouses).contains(&supplied_by) {
        let name = Place::of(warehouse, district);
        scope.find(
            0,
            format_args!(
                "line {line} of order {order} of {name} is supplied by warehouse {supplied_by}, which is not there"
            ),
        );
    } else if order > ORDERS {
        let is_remote = supplied_by != warehouse;
        let supply = Supply { lines: 1, remote_lines: is_remote.into(), quantity: row.quantity.into() };
        match is_remote {
            true => scope.ledger.supplied_by(supplied_by, &supply),
            false => own.add(&supply),
        }
    }
}

/// Finds orders by keys. The keys must come in ascending order.
#[derive(Debug, Default)]
struct Merge {
    at: usize,
}

impl Merge {
    fn find<'e>(&mut self, entries: &'e mut [Entry], district: u32, order: u32) -> Option<&'e mut Entry> {
        while let Some(entry) = entries.get(self.at) {
            match (entry.district, entry.order).cmp(&(district, order)) {
                Ordering::Less => self.at += 1,
                Ordering::Equal => return entries.get_mut(self.at),
                Ordering::Greater => return None,
            }
        }
        None
    }
}
