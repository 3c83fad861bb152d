//! A database of two warehouses in memory. All tests share its tables; a test that changes a table makes a copy of
//! it.

use crate::database::{Form, Row, View};
use crate::population::Population;
use crate::schema::{
    CUSTOMERS, Cents, Customer, DISTRICTS, District, History, ITEMS, Item, NewOrder, ORDERS, Order, OrderLine, Stock,
    Table, Warehouse,
};
use crate::transactions::{self, DistrictId};
use harness::Failure;
use std::sync::{Arc, OnceLock};

/// What the database was made with.
pub const FORM: Form = Form { warehouses: 2, seed: 42, loaded: 1_700_000_000_000_000 };

/// The rows of each warehouse.
#[derive(Clone)]
pub struct Rows {
    pub items: Arc<Vec<Item>>,
    pub warehouses: [Arc<Vec<Warehouse>>; 2],
    pub districts: [Arc<Vec<District>>; 2],
    pub customers: [Arc<Vec<Customer>>; 2],
    pub histories: [Arc<Vec<History>>; 2],
    pub new_orders: [Arc<Vec<NewOrder>>; 2],
    pub orders: [Arc<Vec<Order>>; 2],
    pub order_lines: [Arc<Vec<OrderLine>>; 2],
    pub stocks: [Arc<Vec<Stock>>; 2],
}

/// Makes `count` rows, numbered from 1.
fn made<R: Default>(count: u32, make: impl Fn(u32, &mut R)) -> Vec<R> {
    let one = |number| {
        let mut row = R::default();
        make(number, &mut row);
        row
    };
    (1..=count).map(one).collect()
}

/// For each of the two warehouses, makes the rows of all its districts.
fn of_districts<R>(make: impl Fn(u32, u32) -> Vec<R>) -> [Arc<Vec<R>>; 2] {
    [1, 2].map(|warehouse| Arc::new((1..=DISTRICTS).flat_map(|district| make(warehouse, district)).collect()))
}

/// How many order lines a district has after the import.
pub fn lines(warehouse: u32, district: u32) -> usize {
    let rows = Rows::loaded();
    rows.order_lines[warehouse as usize - 1].iter().filter(|row| row.district == district).count()
}

impl Rows {
    /// The rows as they are after the import.
    pub fn loaded() -> Self {
        static LOADED: OnceLock<Rows> = OnceLock::new();
        LOADED.get_or_init(Self::load).clone()
    }

    fn load() -> Self {
        let population = Population::new(FORM.seed, FORM.loaded);
        let orders = of_districts(|warehouse, district| {
            let customers = population.customers_of_orders(warehouse, district);
            made(ORDERS, |number, row| population.order(warehouse, district, number, &customers, row))
        });
        Self {
            items: Arc::new(made(ITEMS, |number, row| population.item(number, row))),
            warehouses: [1, 2].map(|number| Arc::new(made(1, |_, row| population.warehouse(number, row)))),
            districts: [1, 2].map(|of| Arc::new(made(DISTRICTS, |number, row| population.district(of, number, row)))),
            customers: of_districts(|warehouse, district| {
                made(CUSTOMERS, |number, row| population.customer(warehouse, district, number, row))
            }),
            histories: of_districts(|warehouse, district| {
                made(CUSTOMERS, |number, row| population.history(warehouse, district, number, row))
            }),
            new_orders: [0, 1].map(|at: usize| Arc::new(orders[at].iter().filter_map(Population::new_order).collect())),
            order_lines: [0, 1].map(|at: usize| {
                let lines = orders[at]
                    .iter()
                    .flat_map(|order| made(order.lines, |number, row| population.order_line(order, number, row)));
                Arc::new(lines.collect())
            }),
            orders,
            stocks: [1, 2].map(|of| Arc::new(made(ITEMS, |number, row| population.stock(of, number, row)))),
        }
    }

    pub fn items(&mut self) -> &mut Vec<Item> {
        Arc::make_mut(&mut self.items)
    }

    pub fn warehouses(&mut self, warehouse: u32) -> &mut Vec<Warehouse> {
        Arc::make_mut(&mut self.warehouses[warehouse as usize - 1])
    }

    pub fn districts(&mut self, warehouse: u32) -> &mut Vec<District> {
        Arc::make_mut(&mut self.districts[warehouse as usize - 1])
    }

    pub fn customers(&mut self, warehouse: u32) -> &mut Vec<Customer> {
        Arc::make_mut(&mut self.customers[warehouse as usize - 1])
    }

    pub fn histories(&mut self, warehouse: u32) -> &mut Vec<History> {
        Arc::make_mut(&mut self.histories[warehouse as usize - 1])
    }

    pub fn new_orders(&mut self, warehouse: u32) -> &mut Vec<NewOrder> {
        Arc::make_mut(&mut self.new_orders[warehouse as usize - 1])
    }

    pub fn orders(&mut self, warehouse: u32) -> &mut Vec<Order> {
        Arc::make_mut(&mut self.orders[warehouse as usize - 1])
    }

    pub fn order_lines(&mut self, warehouse: u32) -> &mut Vec<OrderLine> {
        Arc::make_mut(&mut self.order_lines[warehouse as usize - 1])
    }

    pub fn stocks(&mut self, warehouse: u32) -> &mut Vec<Stock> {
        Arc::make_mut(&mut self.stocks[warehouse as usize - 1])
    }

    pub fn warehouse(&mut self, warehouse: u32) -> &mut Warehouse {
        &mut self.warehouses(warehouse)[0]
    }

    pub fn district(&mut self, warehouse: u32, district: u32) -> &mut District {
        &mut self.districts(warehouse)[district as usize - 1]
    }

    pub fn customer(&mut self, warehouse: u32, district: u32, customer: u32) -> &mut Customer {
        &mut self.customers(warehouse)[((district - 1) * CUSTOMERS + customer - 1) as usize]
    }

    pub fn stock(&mut self, warehouse: u32, item: u32) -> &mut Stock {
        &mut self.stocks(warehouse)[item as usize - 1]
    }

    /// A customer's first payment to the customer's own warehouse.
    pub fn history(&mut self, warehouse: u32, district: u32, customer: u32) -> &mut History {
        let rows = self.histories(warehouse).iter_mut();
        let is_it = |row: &History| (row.customer_district, row.customer) == (district, customer);
        rows.into_iter().find(|row| is_it(row)).expect("each customer has paid")
    }

    pub fn order(&mut self, warehouse: u32, district: u32, order: u32) -> &mut Order {
        let rows = self.orders(warehouse);
        let at = rows.binary_search_by_key(&(district, order), |row| (row.district, row.order));
        &mut rows[at.expect("the order is there")]
    }

    pub fn order_line(&mut self, warehouse: u32, district: u32, order: u32, line: u32) -> &mut OrderLine {
        let rows = self.order_lines(warehouse);
        let at = rows.binary_search_by_key(&(district, order, line), |row| (row.district, row.order, row.line));
        &mut rows[at.expect("the line is there")]
    }

    /// Removes all rows of a warehouse.
    pub fn clear(&mut self, warehouse: u32) {
        self.warehouses(warehouse).clear();
        self.districts(warehouse).clear();
        self.customers(warehouse).clear();
        self.histories(warehouse).clear();
        self.new_orders(warehouse).clear();
        self.orders(warehouse).clear();
        self.order_lines(warehouse).clear();
        self.stocks(warehouse).clear();
    }

    /// Enters an order, as a transaction would. Each of `lines` consists of an item, the warehouse that supplies
    /// the item, and a quantity.
    pub fn enter(&mut self, warehouse: u32, district: u32, customer: u32, lines: &[(u32, u32, u32)]) {
        let row = self.district(warehouse, district);
        let order = row.next_order;
        row.next_order += 1;
        let row = Order {
            warehouse,
            district,
            order,
            customer,
            entered: FORM.loaded + 1,
            carrier: None,
            lines: lines.len() as u32,
            is_all_local: lines.iter().all(|(_, supplied_by, _)| *supplied_by == warehouse),
        };
        let rows = self.orders(warehouse);
        rows.insert(rows.partition_point(|row| (row.district, row.order) < (district, order)), row);
        let rows = self.new_orders(warehouse);
        let at = rows.partition_point(|row| (row.district, row.order) < (district, order));
        rows.insert(at, NewOrder { warehouse, district, order });
        for (line, (item, supplied_by, quantity)) in (1..).zip(lines) {
            transactions::take(self.stock(*supplied_by, *item), *quantity, *supplied_by != warehouse);
            let row = OrderLine {
                warehouse,
                district,
                order,
                line,
                item: *item,
                supplied_by: *supplied_by,
                delivered: None,
                quantity: *quantity,
                amount: Cents::from(*quantity) * self.items[*item as usize - 1].price,
                district_info: self.stock(*supplied_by, *item).districts[district as usize - 1].clone(),
            };
            let rows = self.order_lines(warehouse);
            let at = rows.partition_point(|row| (row.district, row.order, row.line) < (district, order, line));
            rows.insert(at, row);
        }
    }

    /// Enters a payment of a customer to a district of a warehouse. The customer is named by warehouse, district
    /// and number.
    pub fn pay(&mut self, to: (u32, u32), from: (u32, u32, u32), amount: Cents) {
        let of = DistrictId { warehouse: to.0, district: to.1 };
        self.warehouse(of.warehouse).year_to_date += amount;
        self.district(of.warehouse, of.district).year_to_date += amount;
        transactions::pay(self.customer(from.0, from.1, from.2), of, amount);
        self.histories(of.warehouse).push(History {
            customer_warehouse: from.0,
            customer_district: from.1,
            customer: from.2,
            warehouse: of.warehouse,
            district: of.district,
            date: FORM.loaded + 1,
            amount,
            ..History::default()
        });
    }

    /// Delivers the oldest new order of a district.
    pub fn deliver(&mut self, warehouse: u32, district: u32) {
        let rows = self.new_orders(warehouse);
        let at = rows.iter().position(|row| row.district == district).expect("there is a new order");
        let order = rows.remove(at).order;
        let row = self.order(warehouse, district, order);
        row.carrier = Some(10);
        let (customer, lines) = (row.customer, row.lines);
        let mut sum = 0;
        for line in 1..=lines {
            let row = self.order_line(warehouse, district, order, line);
            row.delivered = Some(FORM.loaded + 2);
            sum += row.amount;
        }
        let row = self.customer(warehouse, district, customer);
        row.balance += sum;
        row.deliveries += 1;
    }
}

impl View for Rows {
    fn rows(
        &self,
        table: Table,
        warehouse: u32,
        each: &mut dyn FnMut(Row<'_>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let at = warehouse as usize;
        match table {
            Table::Item => self.items.iter().try_for_each(|row| each(Row::Item(row))),
            Table::Warehouse => self.warehouses[at - 1].iter().try_for_each(|row| each(Row::Warehouse(row))),
            Table::District => self.districts[at - 1].iter().try_for_each(|row| each(Row::District(row))),
            Table::Customer => self.customers[at - 1].iter().try_for_each(|row| each(Row::Customer(row))),
            Table::History => self.histories[at - 1].iter().try_for_each(|row| each(Row::History(row))),
            Table::NewOrder => self.new_orders[at - 1].iter().try_for_each(|row| each(Row::NewOrder(row))),
            Table::Order => self.orders[at - 1].iter().try_for_each(|row| each(Row::Order(row))),
            Table::OrderLine => self.order_lines[at - 1].iter().try_for_each(|row| each(Row::OrderLine(row))),
            Table::Stock => self.stocks[at - 1].iter().try_for_each(|row| each(Row::Stock(row))),
        }
    }
}
