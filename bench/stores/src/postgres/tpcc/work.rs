//! A transaction under way on a connection. This module decides which statements go out together, parses their rows,
//! and fills the terminal's screen. It uses no socket. Transactions reuse the memory of their predecessors and so
//! allocate nothing.

use super::columns::{MICROS_2000, bytes, int, long, optional_int, signed_int, text};
use super::options::Form;
use super::statements::{ITEM_IS_MISSING, Kind, Statements};
use crate::postgres::error::SqlState;
use crate::postgres::wire::{Malformed, SYNC, Values};
use ::tpcc::Text;
use ::tpcc::input::{self, Input, InputLine, NO_ITEM, Who};
use ::tpcc::schema::{Cents, DISTRICTS, MOST_LINES};
use ::tpcc::screen::Screen;
use ::tpcc::transactions::{NO_SUCH_ITEM, total, wrong};
use harness::{Failure, Outcome};
use std::io::Write as _;

const LINES: usize = MOST_LINES as usize;

/// A transaction.
pub struct Work {
    input: Input,
    state: State,
}

/// How far the transaction has come, and its results so far.
struct State {
    /// The statements of the current round trip, in the order of their answers.
    steps: Vec<Kind>,
    /// Index of the step that is being answered.
    at: usize,
    /// Whether the last round trip is under way.
    is_last: bool,
    /// Whether the server has rolled the new order back, as it must if an item is missing.
    is_rolled_back: bool,
    /// Rows that came from the statement that must return rows.
    rows: u32,
    order: Entered,
    /// The order lines in the order in which their stocks are locked. It is the same for all orders, so orders
    /// cannot deadlock.
    sorted: [u8; LINES],
    /// For each line, the number of earlier lines with the same stock, because one statement changes a stock only
    /// once.
    turns: [u8; LINES],
    /// The server's answer for each line whose item exists.
    found: [Option<Found>; LINES],
    /// The order delivered in each district.
    delivered: [u32; DISTRICTS as usize],
    /// The description of a payment, which goes into the data of a customer with bad credit.
    note: Vec<u8>,
    /// What the terminal shows.
    screen: Screen,
}

/// The server's answer about a new order.
#[derive(Clone, Debug, Default)]
struct Entered {
    number: u32,
    taxes: u32,
    discount: u32,
    last: Text<16>,
    has_good_credit: bool,
}

/// The server's answer about an order line.
#[derive(Clone, Debug)]
struct Found {
    quantity: i32,
    district_info: Text<24>,
    is_brand: bool,
    price: Cents,
    name: Text<24>,
}

/// What comes after a round trip.
pub enum Next {
    /// Another round trip, whose messages are in the outbox.
    Round,
    /// Nothing: the transaction is over.
    Done(Outcome),
}

impl Default for Work {
    /// A transaction that was not begun.
    fn default() -> Self {
        let input = Input::Delivery(input::Delivery { warehouse: 0, carrier: 0, delivered: 0 });
        let state = State {
            steps: Vec::with_capacity(2 + LINES),
            at: 0,
            is_last: true,
            is_rolled_back: false,
            rows: 0,
            order: Entered::default(),
            sorted: [0; LINES],
            turns: [0; LINES],
            found: [const { None }; LINES],
            delivered: [0; DISTRICTS as usize],
            note: Vec::new(),
            screen: Screen::default(),
        };
        Self { input, state }
    }
}

impl Work {
    /// Begins the transaction that `input` describes: appends the messages of its first round trip to `out`.
    pub fn begin(&mut self, input: Input, statements: &Statements, out: &mut Vec<u8>) {
        let Self { input: kept, state } = self;
        *kept = input;
        state.steps.clear();
        (state.at, state.rows) = (0, 0);
        (state.is_last, state.is_rolled_back) = (true, false);
        state.screen.clear();
        match kept {
            Input::NewOrder(input) if statements.form == Form::Functions => {
                state.put_function(input, statements, out);
                state.put(Kind::NewOrderEnd, statements, out);
            }
            Input::NewOrder(input) => {
                state.is_last = false;
                state.put(Kind::Begin, statements, out);
                state.put_stock(input, statements, out);
            }
            Input::Payment(input) => state.put_payment(input, statements, out),
            Input::OrderStatus(input) => {
                state.put(Kind::BeginReading, statements, out);
                state.put_status(input, statements, out);
                state.put(Kind::Commit, statements, out);
            }
            Input::Delivery(input) => state.put_delivery(input, statements, out),
            Input::StockLevel(input) => {
                state.put(Kind::BeginReading, statements, out);
                state.put_level(input, statements, out);
                state.put(Kind::Commit, statements, out);
            }
        }
        out.extend_from_slice(&SYNC);
    }

    /// Parses a row of the statement that is being answered.
    pub fn row(&mut self, body: &[u8]) -> Result<(), Malformed> {
        let (state, values) = (&mut self.state, &mut Values::new(body)?);
        let kind = state.steps.get(state.at).ok_or(Malformed("a row of nothing"))?;
        match kind {
            Kind::District => state.take_order(values),
            Kind::Stock => match &self.input {
                Input::NewOrder(input) => state.take_stock(input, values),
                _ => Err(Malformed("a stock that was not asked for")),
            },
            Kind::NewOrder => {
                state.take_order(values)?;
                let at = int(values)?.wrapping_sub(1) as usize;
                let quantity = signed_int(values)?;
                state.take_line(at, quantity, &Text::EMPTY, values)
            }
            Kind::PaymentByNumber | Kind::PaymentByName => state.take_payment(values),
            Kind::StatusByNumber | Kind::StatusByName => state.take_status(values),
            Kind::Delivery => {
                let (district, order) = (int(values)?, int(values)?);
                let to = (district as usize).checked_sub(1).and_then(|at| state.delivered.get_mut(at));
                *to.ok_or(Malformed("a delivery in a district that no warehouse has"))? = order;
                Ok(())
            }
            Kind::Level => {
                state.rows += 1;
                state.screen.number(long(values)?);
                Ok(())
            }
            // A lock's row only shows that it is held. In a simulation, the statement of an order returns a
            // meaningless row, too.
            Kind::DeliveryLock | Kind::Order | Kind::NewOrderEnd => Ok(()),
            Kind::Begin | Kind::BeginReading | Kind::Commit | Kind::RollBack => {
                Err(Malformed("a row of a statement that gives none"))
            }
        }
    }

    /// Goes to the next statement, after the current one was answered.
    #[inline]
    pub fn answered(&mut self) -> Result<(), Malformed> {
        self.state.at += 1;
        if self.state.at > self.state.steps.len() { Err(Malformed("an answer to nothing")) } else { Ok(()) }
    }

    /// Whether the current statement is meant to fail with the error `refused`.
    pub fn wants(&mut self, refused: SqlState) -> bool {
        let is_end = self.state.steps.get(self.state.at) == Some(&Kind::NewOrderEnd);
        self.state.is_rolled_back = is_end && refused == ITEM_IS_MISSING;
        self.state.is_rolled_back
    }

    /// Handles the end of a round trip without errors.
    pub fn next(&mut self, statements: &Statements, out: &mut Vec<u8>) -> Result<Next, Failure> {
        let state = &mut self.state;
        match &self.input {
            Input::NewOrder(input) if !state.is_last => {
                let is_complete = state.show_order(input)?;
                state.steps.clear();
                (state.at, state.is_last, state.is_rolled_back) = (0, true, !is_complete);
                state.put_order(input, statements, out);
                state.put(if is_complete { Kind::Commit } else { Kind::RollBack }, statements, out);
                out.extend_from_slice(&SYNC);
                return Ok(Next::Round);
            }
            Input::NewOrder(input) => {
                if statements.form == Form::Functions && state.show_order(input)? == state.is_rolled_back {
                    return Err(wrong("an order was not rolled back as it should be"));
                }
                return Ok(Next::Done(if state.is_rolled_back { Outcome::RolledBack } else { Outcome::Ok }));
            }
            Input::Delivery(_) => state.show_delivery(),
            Input::Payment(_) | Input::OrderStatus(_) | Input::StockLevel(_) if state.rows == 0 => {
                return Err(wrong("a row that the transaction needs is missing"));
            }
            Input::Payment(_) | Input::OrderStatus(_) | Input::StockLevel(_) => {}
        }
        Ok(Next::Done(Outcome::Ok))
    }

    /// Appends the messages of a rollback to `out`, for errors after which the server has not rolled back by itself.
    pub fn roll_back(&mut self, statements: &Statements, out: &mut Vec<u8>) {
        let state = &mut self.state;
        state.steps.clear();
        state.at = 0;
        state.put(Kind::RollBack, statements, out);
        out.extend_from_slice(&SYNC);
    }

    /// What the terminal shows.
    pub fn screen(&self) -> &Screen {
        &self.state.screen
    }
}

impl State {
    /// Appends a statement without parameters to `out`.
    fn put(&mut self, kind: Kind, statements: &Statements, out: &mut Vec<u8>) {
        statements.bind(kind, out).finish();
        self.steps.push(kind);
    }

    fn put_stock(&mut self, input: &input::NewOrder, statements: &Statements, out: &mut Vec<u8>) {
        let mut binding = statements.bind(Kind::District, out);
        binding.integer(input.warehouse.cast_signed());
        binding.integer(input.district.cast_signed());
        binding.integer(input.customer.cast_signed());
        binding.finish();
        self.steps.push(Kind::District);

        let lines = input.lines();
        let count = lines.len();
        self.found[..count].fill(None);
        for (at, sorted) in self.sorted[..count].iter_mut().enumerate() {
            *sorted = at as u8;
        }
        let stock_of = |at: &u8| (lines[usize::from(*at)].supplied_by, lines[usize::from(*at)].item, *at);
        self.sorted[..count].sort_unstable_by_key(stock_of);
        let mut turns = 0;
        for at in 0..count {
            let is_same = |before: &usize| place(&lines[*before]) == place(&lines[at]);
            self.turns[at] = (0..at).filter(is_same).count() as u8;
            turns = turns.max(self.turns[at] + 1);
        }
        for turn in 0..turns {
            let mut columns = [[0_i32; LINES]; 3];
            let mut put = 0;
            for at in self.sorted[..count].iter().map(|at| usize::from(*at)).filter(|at| self.turns[*at] == turn) {
                let InputLine { supplied_by, item, quantity } = lines[at];
                for (column, value) in columns.iter_mut().zip([supplied_by, item, quantity]) {
                    column[put] = value.cast_signed();
                }
                put += 1;
            }
            let mut binding = statements.bind(Kind::Stock, out);
            binding.integer(input.warehouse.cast_signed());
            binding.integer(input.district.cast_signed());
            columns.iter().for_each(|column| binding.integers(&column[..put]));
            binding.finish();
            self.steps.push(Kind::Stock);
        }
    }

    fn put_function(&mut self, input: &input::NewOrder, statements: &Statements, out: &mut Vec<u8>) {
        let lines = input.lines();
        self.found[..lines.len()].fill(None);
        let mut binding = statements.bind(Kind::NewOrder, out);
        binding.integer(input.warehouse.cast_signed());
        binding.integer(input.district.cast_signed());
        binding.integer(input.customer.cast_signed());
        binding.number(input.entered - MICROS_2000);
        binding.integer(input.is_all_local().into());
        for value in
            [|line: &InputLine| line.supplied_by, |line: &InputLine| line.item, |line: &InputLine| line.quantity]
        {
            let mut column = [0; LINES];
            for (to, line) in column.iter_mut().zip(lines) {
                *to = value(line).cast_signed();
            }
            binding.integers(&column[..lines.len()]);
        }
        binding.finish();
        self.steps.push(Kind::NewOrder);
    }

    /// Appends the statement that inserts the order to `out`, with only those lines whose items exist.
    fn put_order(&mut self, input: &input::NewOrder, statements: &Statements, out: &mut Vec<u8>) {
        let mut columns = [[0_i32; LINES]; 4];
        let mut amounts = [0_i64; LINES];
        let mut infos = [b"".as_slice(); LINES];
        let mut count = 0;
        for (at, (line, found)) in input.lines().iter().zip(&self.found).enumerate() {
            let Some(found) = found else { continue };
            for (column, value) in columns.iter_mut().zip([at as u32 + 1, line.item, line.supplied_by, line.quantity]) {
                column[count] = value.cast_signed();
            }
            amounts[count] = Cents::from(line.quantity) * found.price;
            infos[count] = found.district_info.as_bytes();
            count += 1;
        }
        let mut binding = statements.bind(Kind::Order, out);
        binding.integer(input.warehouse.cast_signed());
        binding.integer(input.district.cast_signed());
        binding.integer(self.order.number.cast_signed());
        binding.integer(input.customer.cast_signed());
        binding.number(input.entered - MICROS_2000);
        binding.integer(input.lines().len() as i32);
        binding.integer(input.is_all_local().into());
        columns.iter().for_each(|column| binding.integers(&column[..count]));
        binding.numbers(&amounts[..count]);
        binding.texts(infos[..count].iter().copied());
        binding.finish();
        self.steps.push(Kind::Order);
    }

    fn put_payment(&mut self, input: &input::Payment, statements: &Statements, out: &mut Vec<u8>) {
        let kind = if input.customer.is_name() { Kind::PaymentByName } else { Kind::PaymentByNumber };
        self.note.clear();
        let (district, warehouse, amount) = (input.district, input.warehouse, input.amount);
        write!(self.note, " {district} {warehouse} {}.{:02}|", amount / 100, amount % 100).expect("memory takes all");
        let mut binding = statements.bind(kind, out);
        binding.integer(warehouse.cast_signed());
        binding.integer(district.cast_signed());
        binding.number(amount);
        binding.integer(input.customer_warehouse.cast_signed());
        binding.integer(input.customer_district.cast_signed());
        match &input.customer {
            Who::Number(number) => binding.integer(number.cast_signed()),
            Who::LastName(name) => binding.bytes(name.as_bytes()),
        }
        binding.number(input.paid - MICROS_2000);
        binding.bytes(&self.note);
        binding.finish();
        self.steps.push(kind);
    }

    fn put_status(&mut self, input: &input::OrderStatus, statements: &Statements, out: &mut Vec<u8>) {
        let kind = if input.customer.is_name() { Kind::StatusByName } else { Kind::StatusByNumber };
        let mut binding = statements.bind(kind, out);
        binding.integer(input.warehouse.cast_signed());
        binding.integer(input.district.cast_signed());
        match &input.customer {
            Who::Number(number) => binding.integer(number.cast_signed()),
            Who::LastName(name) => binding.bytes(name.as_bytes()),
        }
        binding.finish();
        self.steps.push(kind);
    }

    fn put_delivery(&mut self, input: &input::Delivery, statements: &Statements, out: &mut Vec<u8>) {
        let input::Delivery { warehouse, carrier, delivered } = *input;
        self.delivered = [0; DISTRICTS as usize];
        let locks = statements.has(Kind::DeliveryLock);
        if locks {
            self.put(Kind::Begin, statements, out);
            let mut binding = statements.bind(Kind::DeliveryLock, out);
            binding.integer(warehouse.cast_signed());
            binding.finish();
            self.steps.push(Kind::DeliveryLock);
        }
        let mut binding = statements.bind(Kind::Delivery, out);
        binding.integer(warehouse.cast_signed());
        binding.integer(carrier.cast_signed());
        binding.number(delivered - MICROS_2000);
        binding.finish();
        self.steps.push(Kind::Delivery);
        if locks {
            self.put(Kind::Commit, statements, out);
        }
    }

    fn put_level(&mut self, input: &input::StockLevel, statements: &Statements, out: &mut Vec<u8>) {
        let mut binding = statements.bind(Kind::Level, out);
        binding.integer(input.warehouse.cast_signed());
        binding.integer(input.district.cast_signed());
        binding.integer(input.threshold);
        binding.finish();
        self.steps.push(Kind::Level);
    }

    fn take_order(&mut self, values: &mut Values<'_>) -> Result<(), Malformed> {
        self.rows += 1;
        self.order.number = int(values)?;
        self.order.taxes = int(values)?.wrapping_add(int(values)?);
        self.order.discount = int(values)?;
        text(values, &mut self.order.last)?;
        self.order.has_good_credit = bytes(values)? == b"GC";
        Ok(())
    }

    fn take_stock(&mut self, input: &input::NewOrder, values: &mut Values<'_>) -> Result<(), Malformed> {
        let of = (int(values)?, int(values)?);
        let turn = self.steps[..self.at].iter().filter(|kind| **kind == Kind::Stock).count();
        let is_it = |at: &usize| place(&input.lines()[*at]) == of && usize::from(self.turns[*at]) == turn;
        let at = (0..input.lines().len()).find(is_it).ok_or(Malformed("a stock that was not asked for"))?;
        let quantity = signed_int(values)?;
        let mut info = Text::EMPTY;
        text(values, &mut info)?;
        self.take_line(at, quantity, &info, values)
    }

    /// Parses the columns of an order line that statements and functions have in common.
    fn take_line(
        &mut self,
        at: usize,
        quantity: i32,
        info: &Text<24>,
        values: &mut Values<'_>,
    ) -> Result<(), Malformed> {
        let is_brand = flag(values)?;
        let price = long(values)?;
        let mut name = Text::EMPTY;
        text(values, &mut name)?;
        let to = self.found.get_mut(at).ok_or(Malformed("a line that no order has"))?;
        *to = Some(Found { quantity, district_info: info.clone(), is_brand, price, name });
        Ok(())
    }

    fn take_payment(&mut self, values: &mut Values<'_>) -> Result<(), Malformed> {
        self.rows += 1;
        for _ in 0..9 {
            self.screen.text(bytes(values)?);
        }
        self.screen.number(long(values)?);
        self.screen.text(bytes(values)?);
        self.screen.text(bytes(values)?);
        self.screen.number(long(values)?);
        self.screen.number(long(values)?);
        if let Some(seen) = values.value()? {
            self.screen.text(seen);
        }
        Ok(())
    }

    fn take_status(&mut self, values: &mut Values<'_>) -> Result<(), Malformed> {
        self.rows += 1;
        let (number, first, last, balance) = (long(values)?, bytes(values)?, bytes(values)?, long(values)?);
        let (order, carrier) = (long(values)?, optional_int(values)?);
        if self.rows == 1 {
            self.screen.number(number);
            self.screen.text(first);
            self.screen.text(last);
            self.screen.number(balance);
            self.screen.number(order);
            self.screen.number(carrier.unwrap_or(0).into());
        }
        for _ in 0..4 {
            self.screen.number(long(values)?);
        }
        self.screen.number(values.value()?.is_some().into());
        Ok(())
    }

    /// Fills the screen with a new order. Returns whether all its items exist.
    fn show_order(&mut self, input: &input::NewOrder) -> Result<bool, Failure> {
        if self.rows == 0 {
            return Err(wrong("the warehouse, the district or the customer of an order is missing"));
        }
        let Entered { number, taxes, discount, last, has_good_credit } = &self.order;
        self.screen.number((*number).into());
        self.screen.text(last.as_bytes());
        self.screen.number((*has_good_credit).into());
        let mut sum = 0;
        for (line, found) in input.lines().iter().zip(&self.found) {
            let Some(found) = found else {
                if line.item != NO_ITEM {
                    return Err(wrong(format!("item {} or its stock is missing", line.item)));
                }
                self.screen.text(NO_SUCH_ITEM);
                return Ok(false);
            };
            let amount = Cents::from(line.quantity) * found.price;
            sum += amount;
            self.screen.text(found.name.as_bytes());
            self.screen.number(found.quantity.into());
            self.screen.number(found.is_brand.into());
            self.screen.number(found.price);
            self.screen.number(amount);
        }
        self.screen.number(total(sum, *discount, *taxes));
        Ok(true)
    }

    fn show_delivery(&mut self) {
        self.delivered.iter().for_each(|order| self.screen.number((*order).into()));
    }
}

/// The stock of a line, as (warehouse, item).
fn place(line: &InputLine) -> (u32, u32) {
    (line.supplied_by, line.item)
}

fn flag(values: &mut Values<'_>) -> Result<bool, Malformed> {
    match bytes(values)? {
        [0] => Ok(false),
        [1] => Ok(true),
        _ => Err(Malformed("a truth value that is neither true nor false")),
    }
}
