//! The nine tables and their rows (clause 1.3).
//!
//! Warehouses, districts, customers, items and orders are numbered from 1. The place of a row in its table is its
//! position among the rows of its warehouse in key order, counted from 0.

use crate::text::Text;

/// The number of districts in a warehouse.
pub const DISTRICTS: u32 = 10;
/// The number of customers in a district.
pub const CUSTOMERS: u32 = 3000;
/// The number of different items. Each warehouse has a stock of every item.
pub const ITEMS: u32 = 100_000;
/// The initial number of orders in a district.
pub const ORDERS: u32 = 3000;
/// The number of the first initial order that is not delivered.
pub const FIRST_NEW_ORDER: u32 = 2101;
/// The most lines that an order can have.
pub const MOST_LINES: u32 = 15;

/// One of the nine tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Table {
    Warehouse,
    District,
    Customer,
    History,
    NewOrder,
    Order,
    OrderLine,
    Item,
    Stock,
}

impl Table {
    /// All tables, in the order of clause 1.3.1.
    pub const ALL: [Self; 9] = [
        Self::Warehouse,
        Self::District,
        Self::Customer,
        Self::History,
        Self::NewOrder,
        Self::Order,
        Self::OrderLine,
        Self::Item,
        Self::Stock,
    ];

    /// The name of the table in a database.
    pub fn name(self) -> &'static str {
        match self {
            Self::Warehouse => "warehouse",
            Self::District => "district",
            Self::Customer => "customer",
            Self::History => "history",
            Self::NewOrder => "new_order",
            // `order` is a keyword of SQL, so the table of orders has another name.
            Self::Order => "orders",
            Self::OrderLine => "order_line",
            Self::Item => "item",
            Self::Stock => "stock",
        }
    }

    /// The initial number of rows for one warehouse. Items are an exception, because all warehouses share one table
    /// of items. The number of order lines is approximate, because an order has 5 to 15 lines.
    pub fn rows(self) -> u32 {
        match self {
            Self::Warehouse => 1,
            Self::District => DISTRICTS,
            Self::Customer | Self::History => DISTRICTS * CUSTOMERS,
            Self::NewOrder => DISTRICTS * (ORDERS + 1 - FIRST_NEW_ORDER),
            Self::Order => DISTRICTS * ORDERS,
            Self::OrderLine => DISTRICTS * ORDERS * 10,
            Self::Item | Self::Stock => ITEMS,
        }
    }
}

impl Table {
    /// The approximate number of bytes in a row.
    pub fn row_bytes(self) -> u64 {
        match self {
            Self::Warehouse | Self::District => 96,
            Self::Customer => 560,
            Self::History => 54,
            Self::NewOrder => 12,
            Self::Order => 32,
            Self::OrderLine => 68,
            Self::Item => 76,
            Self::Stock => 306,
        }
    }
}

/// An amount of money, in cents.
pub type Cents = i64;
/// A time, in microseconds since 1970.
pub type Micros = i64;

/// The address of a warehouse, a district or a customer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Address {
    pub street_1: Text<20>,
    pub street_2: Text<20>,
    pub city: Text<20>,
    pub state: Text<2>,
    pub zip: Text<9>,
}

impl Address {
    /// The number of bytes in the address.
    pub fn bytes(&self) -> usize {
        let Self { street_1, street_2, city, state, zip } = self;
        let streets = street_1.as_bytes().len() + street_2.as_bytes().len();
        streets + city.as_bytes().len() + state.as_bytes().len() + zip.as_bytes().len()
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Warehouse {
    pub warehouse: u32,
    pub name: Text<10>,
    pub address: Address,
    /// The tax rate, in ten-thousandths.
    pub tax: u32,
    pub year_to_date: Cents,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct District {
    pub warehouse: u32,
    pub district: u32,
    pub name: Text<10>,
    pub address: Address,
    /// The tax rate, in ten-thousandths.
    pub tax: u32,
    pub year_to_date: Cents,
    pub next_order: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Customer {
    pub warehouse: u32,
    pub district: u32,
    pub customer: u32,
    pub first: Text<16>,
    pub middle: Text<2>,
    pub last: Text<16>,
    pub address: Address,
    pub phone: Text<16>,
    pub since: Micros,
    /// Whether the customer's credit is good (`GC`). Otherwise it is bad (`BC`).
    pub has_good_credit: bool,
    pub credit_limit: Cents,
    /// The discount, in ten-thousandths.
    pub discount: u32,
    pub balance: Cents,
    pub paid_in_year: Cents,
    pub payments: u32,
    pub deliveries: u32,
    pub data: Text<500>,
}

/// A payment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    pub customer_warehouse: u32,
    pub customer_district: u32,
    pub customer: u32,
    pub warehouse: u32,
    pub district: u32,
    pub date: Micros,
    pub amount: Cents,
    pub data: Text<24>,
}

/// An order that is not delivered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewOrder {
    pub warehouse: u32,
    pub district: u32,
    pub order: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Order {
    pub warehouse: u32,
    pub district: u32,
    pub order: u32,
    pub customer: u32,
    pub entered: Micros,
    /// `None` until the order is delivered.
    pub carrier: Option<u32>,
    pub lines: u32,
    /// Whether the order's own warehouse supplies all lines.
    pub is_all_local: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OrderLine {
    pub warehouse: u32,
    pub district: u32,
    pub order: u32,
    pub line: u32,
    pub item: u32,
    pub supplied_by: u32,
    pub delivered: Option<Micros>,
    pub quantity: u32,
    pub amount: Cents,
    pub district_info: Text<24>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Item {
    pub item: u32,
    pub image: u32,
    pub name: Text<24>,
    pub price: Cents,
    pub data: Text<50>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stock {
    pub warehouse: u32,
    pub item: u32,
    pub quantity: i32,
    /// For each district, the text that the stock puts into an order line of this district.
    pub districts: [Text<24>; DISTRICTS as usize],
    pub sold: u64,
    pub orders: u32,
    pub remote_orders: u32,
    pub data: Text<50>,
}
