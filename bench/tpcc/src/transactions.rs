//! Carries out the five transactions (clauses 2.4.2, 2.5.2, 2.6.2, 2.7.4 and 2.8.2), row by row, on engines inside
//! the process. This module does not know how a transaction begins, commits or is repeated. It reads and writes
//! rows through [`Rows`], and returns how the transaction should end.

use crate::input::{self, Input, Who};
use crate::schema::{
    Cents, Customer, DISTRICTS, District, History, Item, Micros, NewOrder, Order, OrderLine, Stock, Table, Warehouse,
};
use crate::screen::Screen;
use crate::text::Text;
use harness::{Failure, Outcome};
use std::ops::RangeInclusive;

/// A district of a warehouse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DistrictId {
    pub warehouse: u32,
    pub district: u32,
}

/// The columns of a customer that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Columns {
    /// The names, the credit, the discount, and what the customer owes and has paid.
    Account,
    /// All columns.
    All,
}

/// The rows of a database as a transaction sees them. If a row is missing, a function that reads it fails, unless
/// the function's description says otherwise.
pub trait Rows {
    /// Reads a warehouse.
    fn warehouse(&mut self, warehouse: u32, row: &mut Warehouse) -> Result<(), Failure>;
    /// Writes a warehouse.
    fn put_warehouse(&mut self, row: &Warehouse) -> Result<(), Failure>;
    /// Adds a payment to what a warehouse got in this year. The warehouse was read into `row`.
    fn pay_warehouse(&mut self, row: &mut Warehouse, amount: Cents) -> Result<(), Failure> {
        row.year_to_date += amount;
        self.put_warehouse(row)
    }
    /// Reads a district.
    fn district(&mut self, of: DistrictId, row: &mut District) -> Result<(), Failure>;
    /// Writes a district.
    fn put_district(&mut self, row: &District) -> Result<(), Failure>;
    /// Adds a payment to what a district got in this year. The district was read into `row`.
    fn pay_district(&mut self, row: &mut District, amount: Cents) -> Result<(), Failure> {
        row.year_to_date += amount;
        self.put_district(row)
    }
    /// Reads these columns of a customer.
    fn customer(&mut self, of: DistrictId, customer: u32, columns: Columns, row: &mut Customer) -> Result<(), Failure>;
    /// The numbers of all customers with the last name `last`, in the order of their first names.
    fn customers_by_name(&mut self, of: DistrictId, last: &Text<16>, customers: &mut Vec<u32>) -> Result<(), Failure>;
    /// Writes all columns of a customer.
    fn put_customer(&mut self, row: &Customer) -> Result<(), Failure>;
    /// Adds a payment. `unique` distinguishes this payment from other payments that the same customer makes at the
    /// same time.
    fn add_history(&mut self, row: &History, unique: u64) -> Result<(), Failure>;
    /// The least number of the undelivered orders, or `None` if all orders are delivered.
    fn oldest_new_order(&mut self, of: DistrictId) -> Result<Option<u32>, Failure>;
    /// Adds an undelivered order.
    fn add_new_order(&mut self, row: &NewOrder) -> Result<(), Failure>;
    /// Removes the order from the undelivered orders.
    fn remove_new_order(&mut self, row: &NewOrder) -> Result<(), Failure>;
    /// Reads an order.
    fn order(&mut self, of: DistrictId, order: u32, row: &mut Order) -> Result<(), Failure>;
    /// Reads a customer's newest order, which has the greatest number. Returns `false` if the customer has no order.
    fn newest_order(&mut self, of: DistrictId, customer: u32, row: &mut Order) -> Result<bool, Failure>;
    /// Writes an order.
    fn put_order(&mut self, row: &Order) -> Result<(), Failure>;
    /// Reads the lines of orders, in key order.
    fn order_lines(
        &mut self,
        of: DistrictId,
        orders: RangeInclusive<u32>,
        lines: &mut Vec<OrderLine>,
    ) -> Result<(), Failure>;
    /// Adds a line of an order.
    fn add_order_line(&mut self, row: &OrderLine) -> Result<(), Failure>;
    /// Writes all lines of an order, which were all delivered at the same time.
    fn put_delivered(&mut self, lines: &[OrderLine]) -> Result<(), Failure>;
    /// Reads items. An item that does not exist becomes a row with the number 0.
    fn items(&mut self, items: &[u32], rows: &mut Vec<Item>) -> Result<(), Failure>;
    /// Reads the stocks for the pairs in `of`. Each pair is a warehouse and an item.
    fn stocks(&mut self, of: &[(u32, u32)], rows: &mut Vec<Stock>) -> Result<(), Failure>;
    /// Writes the stock of an item.
    fn put_stock(&mut self, row: &Stock) -> Result<(), Failure>;
    /// Reads the quantity of each item that a warehouse has.
    fn quantities(&mut self, warehouse: u32, items: &[u32], quantities: &mut Vec<i32>) -> Result<(), Failure>;
}

/// How a transaction wants to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// The transaction is to be committed.
    Commit,
    /// The transaction is to be rolled back, because an item does not exist.
    RollBack,
}

impl Wish {
    /// The outcome that the client gets if the transaction ends as it wishes.
    pub fn outcome(self) -> Outcome {
        match self {
            Self::Commit => Outcome::Ok,
            Self::RollBack => Outcome::RolledBack,
        }
    }
}

/// Carries out transactions. Keeps the buffers for rows, so that only the first transactions allocate memory.
#[derive(Debug, Default)]
pub struct Work {
    warehouse: Warehouse,
    district: District,
    customer: Customer,
    order: Order,
    items: Vec<Item>,
    stocks: Vec<Stock>,
    lines: Vec<OrderLine>,
    numbers: Vec<u32>,
    places: Vec<(u32, u32)>,
    quantities: Vec<i32>,
}

impl Work {
    /// Carries out the transaction that `input` describes. Writes what the terminal shows to `screen`.
    pub fn run<R: Rows>(&mut self, rows: &mut R, input: &Input, screen: &mut Screen) -> Result<Wish, Failure> {
        screen.clear();
        match input {
            Input::NewOrder(input) => return self.new_order(rows, input, screen),
            Input::Payment(input) => self.payment(rows, input, screen)?,
            Input::OrderStatus(input) => self.order_status(rows, input, screen)?,
            Input::Delivery(input) => self.delivery(rows, input, screen)?,
            Input::StockLevel(input) => self.stock_level(rows, input, screen)?,
        }
        Ok(Wish::Commit)
    }

    fn new_order<R: Rows>(
        &mut self,
        rows: &mut R,
        input: &input::NewOrder,
        screen: &mut Screen,
    ) -> Result<Wish, Failure> {
        let of = DistrictId { warehouse: input.warehouse, district: input.district };
        let Self { warehouse, district, customer, order, items, stocks, numbers, places, .. } = self;
        rows.warehouse(of.warehouse, warehouse)?;
        rows.district(of, district)?;
        rows.customer(of, input.customer, Columns::Account, customer)?;
        let number = district.next_order;
        district.next_order += 1;
        rows.put_district(district)?;
        *order = Order {
            warehouse: of.warehouse,
            district: of.district,
            order: number,
            customer: input.customer,
            entered: input.entered,
            carrier: None,
            lines: input.lines().len() as u32,
            is_all_local: input.is_all_local(),
        };
        rows.put_order(order)?;
        rows.add_new_order(&NewOrder { warehouse: of.warehouse, district: of.district, order: number })?;

        numbers.clear();
        numbers.extend(input.lines().iter().map(|line| line.item));
        rows.items(numbers, items)?;
        places.clear();
        let known = input.lines().iter().zip(&*items).filter(|(_, item)| item.item != 0);
        places.extend(known.map(|(line, _)| (line.supplied_by, line.item)));
        rows.stocks(places, stocks)?;
        screen.number(number.into());
        screen.text(customer.last.as_bytes());
        screen.number(customer.has_good_credit.into());
        let (mut sum, mut wish) = (0, Wish::Commit);
        for (at, (line, item)) in input.lines().iter().zip(&*items).enumerate() {
            if item.item == 0 {
                screen.text(NO_SUCH_ITEM);
                // This is the last line of the order. The changes for the lines before it have been made, and are
                // rolled back with the transaction (clause 2.4.2.3).
                wish = Wish::RollBack;
                break;
            }
            // Two lines may ask for the same item from the same warehouse; then both lines change the same row.
            let first = places.iter().position(|place| *place == places[at]).expect("it is among them");
            let stock = &mut stocks[first];
            take(stock, line.quantity, line.supplied_by != of.warehouse);
            let amount = Cents::from(line.quantity) * item.price;
            sum += amount;
            let is_brand = has_original(&item.data) && has_original(&stock.data);
            rows.add_order_line(&OrderLine {
                warehouse: of.warehouse,
                district: of.district,
                order: number,
                line: at as u32 + 1,
                item: line.item,
                supplied_by: line.supplied_by,
                delivered: None,
                quantity: line.quantity,
                amount,
                district_info: stock.districts[of.district as usize - 1].clone(),
            })?;
            screen.text(item.name.as_bytes());
            screen.number(stock.quantity.into());
            screen.number(is_brand.into());
            screen.number(item.price);
            screen.number(amount);
        }
        for (at, place) in places.iter().enumerate() {
            if places[..at].iter().all(|before| before != place) {
                rows.put_stock(&stocks[at])?;
            }
        }
        if wish == Wish::Commit {
            screen.number(total(sum, customer.discount, warehouse.tax + district.tax));
        }
        Ok(wish)
    }

    fn payment<R: Rows>(&mut self, rows: &mut R, input: &input::Payment, screen: &mut Screen) -> Result<(), Failure> {
        let of = DistrictId { warehouse: input.warehouse, district: input.district };
        let home = DistrictId { warehouse: input.customer_warehouse, district: input.customer_district };
        let Self { warehouse, district, customer, numbers, .. } = self;
        rows.warehouse(of.warehouse, warehouse)?;
        rows.pay_warehouse(warehouse, input.amount)?;
        rows.district(of, district)?;
        rows.pay_district(district, input.amount)?;

        let number = found(rows, home, &input.customer, numbers)?;
        rows.customer(home, number, Columns::All, customer)?;
        pay(customer, of, input.amount);
        rows.put_customer(customer)?;
        let history = History {
            customer_warehouse: home.warehouse,
            customer_district: home.district,
            customer: number,
            warehouse: of.warehouse,
            district: of.district,
            date: input.paid,
            amount: input.amount,
            data: purpose(warehouse, district),
        };
        rows.add_history(&history, input.unique)?;
        for address in [&warehouse.address, &district.address, &customer.address] {
            screen.text(address.street_1.as_bytes());
            screen.text(address.city.as_bytes());
            screen.text(address.zip.as_bytes());
        }
        screen.number(number.into());
        screen.text(customer.first.as_bytes());
        screen.text(customer.last.as_bytes());
        screen.number(customer.discount.into());
        screen.number(customer.balance);
        if !customer.has_good_credit {
            let data = customer.data.as_bytes();
            screen.text(&data[..data.len().min(200)]);
        }
        Ok(())
    }

    fn order_status<R: Rows>(
        &mut self,
        rows: &mut R,
        input: &input::OrderStatus,
        screen: &mut Screen,
    ) -> Result<(), Failure> {
        let of = DistrictId { warehouse: input.warehouse, district: input.district };
        let Self { customer, order, lines, numbers, .. } = self;
        let number = found(rows, of, &input.customer, numbers)?;
        rows.customer(of, number, Columns::Account, customer)?;
        screen.number(number.into());
        screen.text(customer.first.as_bytes());
        screen.text(customer.last.as_bytes());
        screen.number(customer.balance);
        if !rows.newest_order(of, number, order)? {
            return Err(wrong(format!("customer {number} of {of:?} has no order")));
        }
        screen.number(order.order.into());
        screen.number(order.carrier.unwrap_or(0).into());
        rows.order_lines(of, order.order..=order.order, lines)?;
        for line in lines {
            screen.number(line.item.into());
            screen.number(line.supplied_by.into());
            screen.number(line.quantity.into());
            screen.number(line.amount);
            screen.number(line.delivered.is_some().into());
        }
        Ok(())
    }

    fn delivery<R: Rows>(&mut self, rows: &mut R, input: &input::Delivery, screen: &mut Screen) -> Result<(), Failure> {
        let Self { customer, order, lines, .. } = self;
        for district in 1..=DISTRICTS {
            let of = DistrictId { warehouse: input.warehouse, district };
            let Some(number) = rows.oldest_new_order(of)? else {
                screen.number(0);
                continue;
            };
            rows.remove_new_order(&NewOrder { warehouse: of.warehouse, district, order: number })?;
            rows.order(of, number, order)?;
            order.carrier = Some(input.carrier);
            rows.put_order(order)?;
            rows.order_lines(of, number..=number, lines)?;
            let mut sum = 0;
            for line in lines.iter_mut() {
                sum += line.amount;
                line.delivered = Some(input.delivered);
            }
            rows.put_delivered(lines)?;
            rows.customer(of, order.customer, Columns::All, customer)?;
            customer.balance += sum;
            customer.deliveries += 1;
            rows.put_customer(customer)?;
            screen.number(number.into());
        }
        Ok(())
    }

    fn stock_level<R: Rows>(
        &mut self,
        rows: &mut R,
        input: &input::StockLevel,
        screen: &mut Screen,
    ) -> Result<(), Failure> {
        let of = DistrictId { warehouse: input.warehouse, district: input.district };
        let Self { district, lines, numbers, quantities, .. } = self;
        rows.district(of, district)?;
        let next = district.next_order;
        rows.order_lines(of, next.saturating_sub(20)..=next.saturating_sub(1), lines)?;
        numbers.clear();
        numbers.extend(lines.iter().map(|line| line.item));
        numbers.sort_unstable();
        numbers.dedup();
        rows.quantities(of.warehouse, numbers, quantities)?;
        let low = quantities.iter().filter(|quantity| **quantity < input.threshold).count();
        screen.number(low as i64);
        Ok(())
    }
}

/// What the screen shows for an item that does not exist.
pub const NO_SUCH_ITEM: &[u8] = b"Item number is not valid";

/// The failure of a transaction that read rows with wrong contents.
#[cold]
pub fn wrong(text: impl Into<String>) -> Failure {
    Failure::request("wrong_rows", text)
}

/// The failure of a transaction that did not find a row of `table`, although this row must exist.
#[cold]
pub fn missing(table: Table) -> Failure {
    wrong(format!("a row of {} is missing", table.name()))
}

/// The number of a customer who is given by number or by name.
fn found<R: Rows>(rows: &mut R, of: DistrictId, customer: &Who, numbers: &mut Vec<u32>) -> Result<u32, Failure> {
    match customer {
        Who::Number(number) => Ok(*number),
        Who::LastName(last) => {
            rows.customers_by_name(of, last, numbers)?;
            // If n customers have the name, takes the customer at position n/2, rounded up. Positions are counted
            // from 1.
            let middle = numbers.len().div_ceil(2);
            let number = middle.checked_sub(1).and_then(|at| numbers.get(at));
            number.copied().ok_or_else(|| wrong(format!("no customer of {of:?} has the name {last:?}")))
        }
    }
}

/// Takes items from a stock.
pub fn take(stock: &mut Stock, quantity: u32, is_remote: bool) {
    let quantity_i32 = quantity.cast_signed();
    stock.quantity -= if stock.quantity >= quantity_i32 + 10 { quantity_i32 } else { quantity_i32 - 91 };
    stock.sold += u64::from(quantity);
    stock.orders += 1;
    stock.remote_orders += u32::from(is_remote);
}

/// Books a customer's payment, which is made in the district `of`.
pub fn pay(customer: &mut Customer, of: DistrictId, amount: Cents) {
    customer.balance -= amount;
    customer.paid_in_year += amount;
    customer.payments += 1;
    if !customer.has_good_credit {
        let Customer { customer: number, district, warehouse, .. } = *customer;
        let cents = format!("{}.{:02}", amount / 100, amount % 100);
        let mut data =
            format!("{number} {district} {warehouse} {} {} {cents}|", of.district, of.warehouse).into_bytes();
        data.extend_from_slice(customer.data.as_bytes());
        data.truncate(Text::<500>::MOST);
        customer.data.set(&data);
    }
}

/// The text that a payment's row in the history table gets.
pub fn purpose(warehouse: &Warehouse, district: &District) -> Text<24> {
    let mut text = Text::EMPTY;
    let (first, last) = (warehouse.name.as_bytes(), district.name.as_bytes());
    let bytes = text.resized(first.len() + 4 + last.len());
    bytes[..first.len()].copy_from_slice(first);
    bytes[first.len()..first.len() + 4].fill(b' ');
    bytes[first.len() + 4..].copy_from_slice(last);
    text
}

/// The price of an order after discount and taxes. Discount and taxes are in ten-thousandths, and the result is
/// rounded down to cents.
pub fn total(sum: Cents, discount: u32, taxes: u32) -> Cents {
    let exact = i128::from(sum) * (10_000 - i128::from(discount)) * (10_000 + i128::from(taxes));
    (exact / 100_000_000) as Cents
}

/// Whether the data contain `ORIGINAL`. If so, the item is not a copy.
pub fn has_original(data: &Text<50>) -> bool {
    data.as_bytes().windows(8).any(|window| window == b"ORIGINAL")
}

/// The time now.
#[allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "orders have the time of the machine")]
pub fn now() -> Micros {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    since.as_micros() as Micros
}
