//! Makes the initial rows of a database (clause 4.3.3.1). Each row depends only on the seed, the time of the load,
//! and the place of the row. Therefore rows can be made in any order and by any number of threads, and every
//! database gets the same rows.

use crate::random::{Constants, Permutation, Stream, last_name};
use crate::schema::{
    Address, CUSTOMERS, Cents, Customer, District, FIRST_NEW_ORDER, History, ITEMS, Item, Micros, NewOrder, ORDERS,
    Order, OrderLine, Stock, Table, Warehouse,
};
use crate::text::Text;

#[cfg(test)]
mod tests;

/// The initial population of a database.
#[derive(Clone, Debug)]
pub struct Population {
    seed: u64,
    constants: Constants,
    /// The time at which all orders were entered and all customers were registered.
    loaded: Micros,
}

/// One dollar, in cents.
const DOLLAR: Cents = 100;

/// The data of one item in ten and of one stock in ten contain this text.
const ORIGINAL: &[u8] = b"ORIGINAL";

impl Population {
    /// The population that follows from a seed and from the time at which the database is loaded.
    pub fn new(seed: u64, loaded: Micros) -> Self {
        Self { seed, constants: Constants::of(seed), loaded }
    }

    /// The constants with which transactions draw skewed numbers.
    pub fn constants(&self) -> &Constants {
        &self.constants
    }

    /// The random stream of a row.
    #[inline]
    fn stream(&self, table: Table, warehouse: u32, row: u32) -> Stream {
        Stream::of(self.seed, &[table as u64 + 1, u64::from(warehouse) << 32 | u64::from(row)])
    }

    /// Item `item`, from 1 to [`ITEMS`].
    pub fn item(&self, item: u32, row: &mut Item) {
        let stream = &mut self.stream(Table::Item, 0, item);
        row.item = item;
        row.image = stream.between(1, 10_000);
        stream.letters(14, 24, &mut row.name);
        row.price = stream.between(100, 10_000).into();
        data(stream, &mut row.data);
    }

    /// Warehouse `warehouse`, from 1.
    pub fn warehouse(&self, warehouse: u32, row: &mut Warehouse) {
        let stream = &mut self.stream(Table::Warehouse, warehouse, 0);
        row.warehouse = warehouse;
        stream.letters(6, 10, &mut row.name);
        address(stream, &mut row.address);
        row.tax = stream.between(0, 2000);
        row.year_to_date = 300_000 * DOLLAR;
    }

    /// The stock of `item` in `warehouse`.
    pub fn stock(&self, warehouse: u32, item: u32, row: &mut Stock) {
        let stream = &mut self.stream(Table::Stock, warehouse, item);
        (row.warehouse, row.item) = (warehouse, item);
        row.quantity = stream.between(10, 100).cast_signed();
        row.districts.iter_mut().for_each(|info| stream.letters(24, 24, info));
        (row.sold, row.orders, row.remote_orders) = (0, 0, 0);
        data(stream, &mut row.data);
    }

    /// District `district` of `warehouse`, from 1 to 10.
    pub fn district(&self, warehouse: u32, district: u32, row: &mut District) {
        let stream = &mut self.stream(Table::District, warehouse, district);
        (row.warehouse, row.district) = (warehouse, district);
        stream.letters(6, 10, &mut row.name);
        address(stream, &mut row.address);
        row.tax = stream.between(0, 2000);
        row.year_to_date = 30_000 * DOLLAR;
        row.next_order = ORDERS + 1;
    }

    /// Customer `customer` of a district, from 1 to [`CUSTOMERS`].
    pub fn customer(&self, warehouse: u32, district: u32, customer: u32, row: &mut Customer) {
        let stream = &mut self.stream(Table::Customer, warehouse, place(district, customer));
        (row.warehouse, row.district, row.customer) = (warehouse, district, customer);
        // The first thousand customers of a district have all thousand last names, each of them once.
        let name = match customer {
            1..=1000 => customer - 1,
            _ => stream.skewed(self.constants.last_name_loaded, 0, 999),
        };
        row.last = last_name(name);
        row.middle.set(b"OE");
        stream.letters(8, 16, &mut row.first);
        address(stream, &mut row.address);
        stream.digits(row.phone.resized(16));
        row.since = self.loaded;
        row.has_good_credit = !stream.one_in(10);
        row.credit_limit = 50_000 * DOLLAR;
        row.discount = stream.between(0, 5000);
        row.balance = -10 * DOLLAR;
        row.paid_in_year = 10 * DOLLAR;
        (row.payments, row.deliveries) = (1, 0);
        stream.letters(300, 500, &mut row.data);
    }

    /// The one payment that the customer has made.
    pub fn history(&self, warehouse: u32, district: u32, customer: u32, row: &mut History) {
        let stream = &mut self.stream(Table::History, warehouse, place(district, customer));
        (row.customer_warehouse, row.customer_district, row.customer) = (warehouse, district, customer);
        (row.warehouse, row.district) = (warehouse, district);
        row.date = self.loaded;
        row.amount = 10 * DOLLAR;
        stream.letters(12, 24, &mut row.data);
    }

    /// The customers of a district, in the order in which their orders are numbered. Each customer has one order.
    pub fn customers_of_orders(&self, warehouse: u32, district: u32) -> Permutation {
        const { assert!(Permutation::COUNT == CUSTOMERS && CUSTOMERS == ORDERS) };
        Permutation::draw(&mut self.stream(Table::Order, warehouse, place(district, 0)))
    }

    /// Order `order` of a district, from 1 to [`ORDERS`]. `customers` gives the customer of each order.
    pub fn order(&self, warehouse: u32, district: u32, order: u32, customers: &Permutation, row: &mut Order) {
        let stream = &mut self.stream(Table::Order, warehouse, place(district, order));
        (row.warehouse, row.district, row.order) = (warehouse, district, order);
        row.customer = customers.of(order - 1) + 1;
        row.entered = self.loaded;
        row.lines = stream.between(5, 15);
        row.carrier = (order < FIRST_NEW_ORDER).then(|| stream.between(1, 10));
        row.is_all_local = true;
    }

    /// Line `line` of `order`. Lines are numbered from 1.
    pub fn order_line(&self, order: &Order, line: u32, row: &mut OrderLine) {
        let stream = &mut Stream::of(
            self.seed,
            &[
                Table::OrderLine as u64 + 1,
                u64::from(order.warehouse) << 32 | u64::from(place(order.district, order.order)),
                u64::from(line),
            ],
        );
        (row.warehouse, row.district, row.order, row.line) = (order.warehouse, order.district, order.order, line);
        row.item = stream.between(1, ITEMS);
        row.supplied_by = order.warehouse;
        let is_delivered = order.order < FIRST_NEW_ORDER;
        row.delivered = is_delivered.then_some(order.entered);
        row.quantity = 5;
        row.amount = if is_delivered { 0 } else { stream.between(1, 999_999).into() };
        stream.letters(24, 24, &mut row.district_info);
    }

    /// The row that says that `order` is not delivered, or `None` if `order` is delivered.
    pub fn new_order(order: &Order) -> Option<NewOrder> {
        let Order { warehouse, district, order, .. } = *order;
        (order >= FIRST_NEW_ORDER).then_some(NewOrder { warehouse, district, order })
    }
}

/// A number that identifies a customer or an order within its warehouse.
fn place(district: u32, number: u32) -> u32 {
    district << 16 | number
}

fn address(stream: &mut Stream, address: &mut Address) {
    stream.letters(10, 20, &mut address.street_1);
    stream.letters(10, 20, &mut address.street_2);
    stream.letters(10, 20, &mut address.city);
    stream.letters(2, 2, &mut address.state);
    // Clause 4.3.2.7: the code has four random digits and then five ones.
    let zip = address.zip.resized(9);
    stream.digits(&mut zip[..4]);
    zip[4..].fill(b'1');
}

/// A text of 26 to 50 bytes. The text of one row in ten contains `ORIGINAL`.
fn data(stream: &mut Stream, text: &mut Text<50>) {
    stream.letters(26, 50, text);
    if stream.one_in(10) {
        let len = text.as_bytes().len();
        let at = stream.between(0, (len - ORIGINAL.len()) as u32) as usize;
        text.resized(len)[at..at + ORIGINAL.len()].copy_from_slice(ORIGINAL);
    }
}
