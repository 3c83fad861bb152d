//! The inputs of the five transactions that terminals ask for (clauses 2.4.1, 2.5.1, 2.6.1, 2.7.1 and 2.8.1).
//!
//! A [`Ticket`] stands for an input. The ticket contains the state that the terminal's random numbers had before
//! the input was drawn. A ticket takes 15 bytes; an input would take about two hundred bytes. The code that
//! carries out the transaction draws the input from the ticket again. Therefore terminals need no buffers, and a
//! repeated transaction has the same input.

use crate::database::Form;
use crate::random::{Constants, Stream, last_name};
use crate::schema::{CUSTOMERS, Cents, DISTRICTS, ITEMS, MOST_LINES, Micros};
use crate::text::Text;
use harness::request::no_transactions;
use harness::{Failure, Request};

#[cfg(test)]
mod tests;

/// One of the five transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Transaction {
    /// An order is entered.
    NewOrder,
    /// A customer pays.
    Payment,
    /// A customer asks for the customer's newest order.
    OrderStatus,
    /// The oldest order of each district is delivered.
    Delivery,
    /// Looks at the items of the newest orders of a district, and counts the items whose stock is low.
    StockLevel,
}

impl Transaction {
    /// All transactions, in the order of their numbers.
    pub const ALL: [Self; 5] = [Self::NewOrder, Self::Payment, Self::OrderStatus, Self::Delivery, Self::StockLevel];

    /// The names of the transactions in a report.
    pub const NAMES: [&str; 5] = ["NewOrder", "Payment", "OrderStatus", "Delivery", "StockLevel"];
}

/// What is needed to draw the inputs for a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drawing {
    /// The constants for skewed numbers.
    pub constants: Constants,
    /// The number of warehouses.
    pub warehouses: u32,
}

impl Drawing {
    /// Computes what is needed to draw the inputs for a database that was made with `form`.
    pub fn of(form: &Form) -> Self {
        Self { constants: Constants::of(form.seed), warehouses: form.warehouses }
    }
}

/// An input that is not drawn yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// The state of the random numbers from which the input is drawn.
    pub seed: u64,
    /// The warehouse of the terminal.
    pub warehouse: u32,
    /// The district in which the terminal asks for the level of stocks.
    pub district: u8,
    /// The transaction that the terminal asks for.
    pub transaction: Transaction,
    /// Whether customers and items are drawn evenly, as in HammerDB. Otherwise they are drawn as the specification
    /// says.
    pub is_even: bool,
}

impl Ticket {
    /// The number of bytes of an encoded ticket.
    pub const BYTES: usize = 15;

    /// The ticket as bytes, for a request.
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..8].copy_from_slice(&self.seed.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.warehouse.to_le_bytes());
        bytes[12] = self.district;
        bytes[13] = self.transaction as u8;
        bytes[14] = self.is_even.into();
        bytes
    }

    /// Decodes the ticket of a request.
    ///
    /// # Errors
    ///
    /// Fails if the request is not for a transaction, or not for a transaction of TPC-C.
    pub fn of(request: &Request<'_>) -> Result<Self, Failure> {
        let Request::Transaction(ticket) = request else { return Err(no_transactions()) };
        Self::from_bytes(ticket).ok_or_else(|| Failure::request("not_a_ticket", "a request is not a ticket"))
    }

    /// Decodes a ticket from its bytes; `None` if they are not a ticket.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; Self::BYTES] = bytes.try_into().ok()?;
        Some(Self {
            seed: u64::from_le_bytes(*bytes.first_chunk()?),
            warehouse: u32::from_le_bytes(*bytes[8..].first_chunk()?),
            district: bytes[12],
            transaction: *Transaction::ALL.get(usize::from(bytes[13]))?,
            is_even: bytes[14] == 1,
        })
    }

    /// Draws the input. `now` is the time at which the transaction was asked for.
    pub fn draw(&self, drawing: &Drawing, now: Micros) -> Input {
        let even = |drawing: &Drawing| Drawing { constants: drawing.constants.even(), ..*drawing };
        let drawing = if self.is_even { &even(drawing) } else { drawing };
        let stream = &mut Stream::of(self.seed, &[]);
        match self.transaction {
            Transaction::NewOrder => Input::NewOrder(self.new_order(stream, drawing, now)),
            Transaction::Payment => Input::Payment(self.payment(stream, drawing, now)),
            Transaction::OrderStatus => Input::OrderStatus(OrderStatus {
                warehouse: self.warehouse,
                district: stream.between(1, DISTRICTS),
                customer: Who::draw(stream, &drawing.constants),
            }),
            Transaction::Delivery => {
                Input::Delivery(Delivery { warehouse: self.warehouse, carrier: stream.between(1, 10), delivered: now })
            }
            Transaction::StockLevel => Input::StockLevel(StockLevel {
                warehouse: self.warehouse,
                district: self.district.into(),
                threshold: stream.between(10, 20).cast_signed(),
            }),
        }
    }

    fn new_order(&self, stream: &mut Stream, drawing: &Drawing, now: Micros) -> NewOrder {
        let mut order = NewOrder {
            warehouse: self.warehouse,
            district: stream.between(1, DISTRICTS),
            customer: stream.skewed(drawing.constants.customer, 1, CUSTOMERS),
            entered: now,
            count: stream.between(5, MOST_LINES),
            lines: [InputLine::default(); MOST_LINES as usize],
        };
        let is_rolled_back = stream.one_in(100);
        let count = order.count as usize;
        for line in &mut order.lines[..count] {
            let item = stream.skewed(drawing.constants.item, 1, ITEMS);
            let is_remote = drawing.warehouses > 1 && stream.one_in(100);
            let supplied_by =
                if is_remote { other(stream, self.warehouse, drawing.warehouses) } else { self.warehouse };
            *line = InputLine { item, supplied_by, quantity: stream.between(1, 10) };
        }
        if is_rolled_back {
            order.lines[count - 1].item = NO_ITEM;
        }
        order
    }

    fn payment(&self, stream: &mut Stream, drawing: &Drawing, now: Micros) -> Payment {
        let district = stream.between(1, DISTRICTS);
        let is_remote = drawing.warehouses > 1 && stream.between(1, 100) > 85;
        let (customer_warehouse, customer_district) = match is_remote {
            true => (other(stream, self.warehouse, drawing.warehouses), stream.between(1, DISTRICTS)),
            false => (self.warehouse, district),
        };
        Payment {
            warehouse: self.warehouse,
            district,
            customer_warehouse,
            customer_district,
            customer: Who::draw(stream, &drawing.constants),
            amount: stream.between(100, 500_000).into(),
            paid: now,
            unique: stream.word(),
        }
    }
}

/// A warehouse other than `home`, from 1 to `warehouses`.
fn other(stream: &mut Stream, home: u32, warehouses: u32) -> u32 {
    let drawn = stream.between(1, warehouses - 1);
    drawn + u32::from(drawn >= home)
}

/// The number of an item that does not exist. One order in a hundred asks for this item.
pub const NO_ITEM: u32 = ITEMS + 1;

/// What a transaction has to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// See [`Transaction::NewOrder`].
    NewOrder(NewOrder),
    /// See [`Transaction::Payment`].
    Payment(Payment),
    /// See [`Transaction::OrderStatus`].
    OrderStatus(OrderStatus),
    /// See [`Transaction::Delivery`].
    Delivery(Delivery),
    /// See [`Transaction::StockLevel`].
    StockLevel(StockLevel),
}

/// An order that is to be entered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewOrder {
    pub warehouse: u32,
    pub district: u32,
    pub customer: u32,
    pub entered: Micros,
    count: u32,
    lines: [InputLine; MOST_LINES as usize],
}

impl NewOrder {
    /// The lines of the order. An order has 5 to 15 lines.
    #[inline]
    pub fn lines(&self) -> &[InputLine] {
        &self.lines[..self.count as usize]
    }

    /// Whether the order must be rolled back, because one of its items does not exist.
    pub fn is_rolled_back(&self) -> bool {
        self.lines().iter().any(|line| line.item == NO_ITEM)
    }

    /// Whether the order's own warehouse supplies all lines.
    pub fn is_all_local(&self) -> bool {
        self.lines().iter().all(|line| line.supplied_by == self.warehouse)
    }
}

/// A line of an order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InputLine {
    pub item: u32,
    pub supplied_by: u32,
    pub quantity: u32,
}

/// A payment of a customer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payment {
    pub warehouse: u32,
    pub district: u32,
    pub customer_warehouse: u32,
    pub customer_district: u32,
    pub customer: Who,
    pub amount: Cents,
    pub paid: Micros,
    /// Distinguishes this payment's row in the history table from those of the customer's other payments.
    pub unique: u64,
}

/// A request for the newest order of a customer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderStatus {
    pub warehouse: u32,
    pub district: u32,
    pub customer: Who,
}

/// A request to deliver the oldest orders of a warehouse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    pub warehouse: u32,
    pub carrier: u32,
    pub delivered: Micros,
}

/// A request for the number of items whose stock is below a threshold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StockLevel {
    pub warehouse: u32,
    pub district: u32,
    pub threshold: i32,
}

/// How a customer is named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Who {
    /// By number.
    Number(u32),
    /// By last name. If several customers have this name, they are ordered by first name, and the customer in the
    /// middle of this order is chosen.
    LastName(Text<16>),
}

impl Who {
    fn draw(stream: &mut Stream, constants: &Constants) -> Self {
        match stream.between(1, 100) {
            1..=60 => Self::LastName(last_name(stream.skewed(constants.last_name, 0, 999))),
            _ => Self::Number(stream.skewed(constants.customer, 1, CUSTOMERS)),
        }
    }

    /// Whether the customer is named by last name.
    pub fn is_name(&self) -> bool {
        matches!(self, Self::LastName(_))
    }
}
