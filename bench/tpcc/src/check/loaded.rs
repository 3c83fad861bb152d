//! Checks that rows are still as the import loaded them, by making each row again and comparing the two.

use crate::population::Population;
use crate::random::Permutation;
use crate::schema::{
    Customer, DISTRICTS, District, FIRST_NEW_ORDER, History, Item, NewOrder, ORDERS, Order, OrderLine, Stock, Warehouse,
};
use std::fmt::Debug;

/// What has happened to a database since it was loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    /// Nothing: every row is as it was loaded. Payments are read in the order of districts and customers.
    Import,
    /// Transactions have run.
    Run,
}

/// The rows of a warehouse as the import has loaded them. Each function compares a row and returns a text that
/// says how the row differs from the loaded row. If transactions have run since the import, only items are
/// compared, because only items may never change.
pub struct Loaded<'p> {
    population: &'p Population,
    after: After,
    /// For each district, the customers of its orders. It is empty after a run.
    customers: Vec<Permutation>,
    /// The order, as it was loaded, of the line that was compared last.
    order: Order,
}

/// The text about a row that was not loaded at all.
const NOT_LOADED: &str = "an import has none of this number";

impl<'p> Loaded<'p> {
    /// The expected rows of a warehouse.
    pub fn new(population: &'p Population, after: After, warehouse: u32) -> Self {
        let customers = match after {
            After::Import => {
                (1..=DISTRICTS).map(|district| population.customers_of_orders(warehouse, district)).collect()
            }
            After::Run => Vec::new(),
        };
        Self { population, after, customers, order: Order::default() }
    }

    /// Whether every row must be as it was loaded.
    pub fn is_all(&self) -> bool {
        self.after == After::Import
    }

    /// Compares an item. Its number must be valid.
    pub fn item(&self, row: &Item) -> Option<String> {
        let mut loaded = Item::default();
        self.population.item(row.item, &mut loaded);
        difference(row, &loaded)
    }

    /// Compares a warehouse.
    pub fn warehouse(&self, row: &Warehouse) -> Option<String> {
        self.compare(row, |loaded| self.population.warehouse(row.warehouse, loaded))
    }

    /// Compares a district.
    pub fn district(&self, row: &District) -> Option<String> {
        self.compare(row, |loaded| self.population.district(row.warehouse, row.district, loaded))
    }

    /// Compares a customer.
    pub fn customer(&self, row: &Customer) -> Option<String> {
        self.compare(row, |loaded| self.population.customer(row.warehouse, row.district, row.customer, loaded))
    }

    /// Compares a payment.
    pub fn history(&self, row: &History) -> Option<String> {
        self.compare(row, |loaded| self.population.history(row.warehouse, row.district, row.customer, loaded))
    }

    /// Compares a stock.
    pub fn stock(&self, row: &Stock) -> Option<String> {
        self.compare(row, |loaded| self.population.stock(row.warehouse, row.item, loaded))
    }

    /// Compares an order that is not delivered. The row of such an order contains only the number of the order.
    pub fn new_order(&self, row: &NewOrder) -> Option<String> {
        let is_loaded = !self.is_all() || (FIRST_NEW_ORDER..=ORDERS).contains(&row.order);
        (!is_loaded).then(|| NOT_LOADED.into())
    }

    /// Compares an order. Its district must be valid.
    pub fn order(&self, row: &Order) -> Option<String> {
        if !self.is_all() {
            return None;
        }
        if !(1..=ORDERS).contains(&row.order) {
            return Some(NOT_LOADED.into());
        }
        difference(row, &self.loaded_order(row.warehouse, row.district, row.order))
    }

    /// Compares an order line. Its district must be valid.
    pub fn order_line(&mut self, row: &OrderLine) -> Option<String> {
        if !self.is_all() {
            return None;
        }
        if !(1..=ORDERS).contains(&row.order) {
            return Some(NOT_LOADED.into());
        }
        if (self.order.district, self.order.order) != (row.district, row.order) {
            self.order = self.loaded_order(row.warehouse, row.district, row.order);
        }
        if !(1..=self.order.lines).contains(&row.line) {
            return Some(NOT_LOADED.into());
        }
        self.compare(row, |loaded| self.population.order_line(&self.order, row.line, loaded))
    }

    fn loaded_order(&self, warehouse: u32, district: u32, order: u32) -> Order {
        let mut loaded = Order::default();
        let customers = &self.customers[district as usize - 1];
        self.population.order(warehouse, district, order, customers, &mut loaded);
        loaded
    }

    fn compare<R: Default + PartialEq + Debug>(&self, row: &R, make: impl FnOnce(&mut R)) -> Option<String> {
        if !self.is_all() {
            return None;
        }
        let mut loaded = R::default();
        make(&mut loaded);
        difference(row, &loaded)
    }
}

/// A text about the first column in which the rows differ.
fn difference<R: PartialEq + Debug>(row: &R, loaded: &R) -> Option<String> {
    if row == loaded {
        return None;
    }
    let (row, loaded) = (format!("{row:?}"), format!("{loaded:?}"));
    let mut columns = row.split(", ").zip(loaded.split(", "));
    // Rows whose columns all look the same do not count as different.
    let (is, should_be) = columns.find(|(is, should_be)| is != should_be)?;
    let column = |text: &str| text.trim_end_matches([' ', '}', ']']).to_owned();
    Some(format!("it has {}, but {} was loaded", column(is), column(should_be)))
}
