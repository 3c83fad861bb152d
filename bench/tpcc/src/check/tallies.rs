//! Sums for each district and for the warehouse. Conditions 1, 2, 3, 4, 8, 9 and 11 compare these sums.

use crate::check::scope::Scope;
use crate::check::words::{Dollars, Sum};
use crate::schema::{Cents, DISTRICTS, FIRST_NEW_ORDER};
use std::array;

/// The sums over the rows of a district.
#[derive(Debug, Default)]
pub struct Tally {
    /// The row of the district, or `None` if the row is missing.
    pub row: Option<DistrictRow>,
    /// The sum of payments.
    pub paid: Sum,
    pub orders: u64,
    pub newest_order: u32,
    /// The number of lines that all orders together claim to have.
    pub promised_lines: u64,
    pub lines: u64,
    pub new_orders: u64,
    pub oldest_new_order: u32,
    pub newest_new_order: u32,
    /// The number of deliveries that all customers together claim to have had.
    pub deliveries: u64,
}

/// The values in the row of a district.
#[derive(Clone, Copy, Debug)]
pub struct DistrictRow {
    pub year_to_date: Cents,
    pub next_order: u32,
}

/// The sums over the rows of a warehouse.
#[derive(Debug)]
pub struct Tallies {
    /// The value in the row of the warehouse, or `None` if the row is missing.
    pub year_to_date: Option<Cents>,
    pub districts: [Tally; DISTRICTS as usize],
}

impl Tallies {
    /// The sums before anything has been read.
    pub fn new() -> Self {
        Self { year_to_date: None, districts: array::from_fn(|_| Tally::default()) }
    }

    /// Judges the warehouse. All its rows must have been read.
    pub fn judge(&self, scope: &mut Scope<'_>) {
        let warehouse = scope.warehouse;
        if let Some(year_to_date) = self.year_to_date.map(Sum::from) {
            let is = Dollars(year_to_date);
            let rows = self.districts.iter().filter_map(|district| district.row);
            let districts: Sum = rows.map(|row| Sum::from(row.year_to_date)).sum();
            if year_to_date != districts {
                let sum = Dollars(districts);
                scope
                    .find(1, format_args!("warehouse {warehouse}: W_YTD is {is}, but D_YTD of its districts is {sum}"));
            }
            let paid: Sum = self.districts.iter().map(|district| district.paid).sum();
            if year_to_date != paid {
                let paid = Dollars(paid);
                scope.find(8, format_args!("warehouse {warehouse}: W_YTD is {is}, but its payments are {paid}"));
            }
        } else {
            scope.find(0, format_args!("warehouse {warehouse}: it has no row"));
        }
        for (place, district) in self.districts.iter().enumerate() {
            district.judge(scope, place);
        }
    }
}

impl Tally {
    fn judge(&self, scope: &mut Scope<'_>, place: usize) {
        let name = scope.place(place);
        if let Some(DistrictRow { year_to_date, next_order }) = self.row {
            let newest = self.newest_order;
            if u64::from(next_order) != u64::from(newest) + 1 {
                let text = format_args!("{name}: D_NEXT_O_ID is {next_order}, but the newest order is {newest}");
                scope.find(2, text);
            }
            let newest = self.newest_new_order;
            if self.new_orders > 0 && u64::from(next_order) != u64::from(newest) + 1 {
                let text = format_args!("{name}: D_NEXT_O_ID is {next_order}, but the newest new order is {newest}");
                scope.find(2, text);
            }
            if Sum::from(year_to_date) != self.paid {
                let (is, paid) = (Dollars(year_to_date.into()), Dollars(self.paid));
                scope.find(9, format_args!("{name}: D_YTD is {is}, but its payments are {paid}"));
            }
        } else {
            scope.find(0, format_args!("{name}: it has no row"));
        }
        let (oldest, newest, rows) = (self.oldest_new_order, self.newest_new_order, self.new_orders);
        let span = u64::from(newest.saturating_sub(oldest)) + 1;
        if rows > 0 && span != rows {
            scope.find(
                3,
                format_args!("{name}: it has {rows} new orders, but from {oldest} to {newest} there are {span}"),
            );
        }
        let (promised, lines) = (self.promised_lines, self.lines);
        if promised != lines {
            scope.find(4, format_args!("{name}: O_OL_CNT adds up to {promised}, but it has {lines} order lines"));
        }
        let delivered = self.orders.saturating_sub(self.new_orders);
        let should_be = u64::from(FIRST_NEW_ORDER - 1) + self.deliveries;
        if self.orders < self.new_orders || delivered != should_be {
            let orders = self.orders;
            scope.find(
                11,
                format_args!(
                    "{name}: it has {orders} orders and {rows} new orders, \
                     but C_DELIVERY_CNT says that {should_be} are delivered"
                ),
            );
        }
    }
}
