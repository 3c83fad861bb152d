//! Terminals decide which transactions are asked for, at which time, and with which input. Each terminal has a home
//! warehouse and a home district. A terminal takes 40 bytes, so even a hundred thousand terminals take little
//! memory.

use crate::input::{Input, Ticket, Transaction};
use crate::random::Stream;
use crate::rules::{Rules, Shares};
use crate::schema::DISTRICTS;
use harness::{Client, Extra, Failure, Harm, Kind, Next, Outcome, Reply, Request, Since, Wait, Workload};
use std::ops::RangeInclusive;

#[cfg(test)]
mod tests;

/// What terminals count, in addition to the times of transactions.
pub const COUNTS: [&str; 11] = [
    "order lines",
    "order lines of other warehouses",
    "payments of customers of other warehouses",
    "payments by last name",
    "order statuses by last name",
    "districts without an order to deliver",
    "new attempts of NewOrder",
    "new attempts of Payment",
    "new attempts of OrderStatus",
    "new attempts of Delivery",
    "new attempts of StockLevel",
];

/// The index of the first count of new attempts in [`COUNTS`]. The counts of new attempts are in the order of
/// [`Transaction::ALL`].
pub const ATTEMPTS: usize = 6;

/// The terminals of a run.
#[derive(Clone, Debug)]
pub struct Terminals<'r> {
    /// The rules by which they work.
    pub rules: &'r Rules,
    /// The warehouses to which the terminals belong.
    pub warehouses: RangeInclusive<u32>,
    /// The seed of the terminals' random numbers.
    pub seed: u64,
}

impl<'r> Workload for Terminals<'r> {
    type Client = Terminal<'r>;

    fn kinds(&self) -> &'static [&'static str] {
        &Transaction::NAMES
    }

    fn counts(&self) -> &'static [&'static str] {
        &COUNTS
    }

    fn client(&self, number: usize, _: usize) -> Terminal<'r> {
        let (first, last) = (*self.warehouses.start(), *self.warehouses.end());
        let (number, warehouses) = (number as u64, u64::from(last - first) + 1);
        // Terminals with consecutive numbers begin one after the other. Therefore they get different warehouses.
        let warehouse = first + (number % warehouses) as u32;
        let mut stream = Stream::of(self.seed, &[u64::from(warehouse), number / warehouses]);
        let ticket = Ticket {
            seed: 0,
            warehouse,
            district: (number / warehouses % u64::from(DISTRICTS)) as u8 + 1,
            transaction: Transaction::NewOrder,
            is_even: self.rules.mode.is_even(),
        };
        Terminal {
            rules: self.rules,
            random: stream.word(),
            ticket: ticket.to_bytes(),
            last: None,
            attempts: 0,
            deck: [0; 5],
        }
    }
}

/// A terminal.
#[derive(Clone, Debug)]
pub struct Terminal<'r> {
    rules: &'r Rules,
    /// The state from which the terminal's next random numbers are drawn.
    random: u64,
    /// The ticket of the current transaction.
    ticket: [u8; Ticket::BYTES],
    /// The previous transaction.
    last: Option<Transaction>,
    /// How many times the current transaction was tried.
    attempts: u8,
    /// The cards that are left in the deck.
    deck: Shares,
}

const _: () = assert!(size_of::<Terminal<'static>>() <= 48);

/// How many times a transaction is tried in all if it conflicts.
const MOST_ATTEMPTS: u8 = 20;
/// The wait before a retry is a random part of a bound (Brooker, *Exponential backoff and jitter*, 2015). The bound
/// is twice the first constant after the first attempt, doubles with each attempt, and never exceeds the second
/// constant.
const FIRST_BOUND_NANOS: u64 = 500_000;
const LAST_BOUND_NANOS: u64 = 50_000_000;

/// A terminal begins at a random moment within the first 1000 s of its life, in which it works through about two
/// decks.
const FIRST_NANOS: u64 = 1_000_000_000_000;

impl Terminal<'_> {
    /// A stream of random numbers that were not drawn before.
    fn stream(&mut self) -> Stream {
        let mut stream = Stream::of(self.random, &[]);
        self.random = stream.word();
        stream
    }

    /// Picks a random moment in the terminal's life, and returns how long the terminal waits from then until its
    /// next transaction. So terminals do not begin together, but are spread from the start as they are later in the
    /// run.
    fn first_wait(&mut self) -> Wait {
        let mut stream = self.stream();
        let mut left = if self.rules.mode.waits() { stream.word() % FIRST_NANOS } else { 0 };
        let mut nanos = self.rules.keying(self.ticket().transaction);
        while nanos < left {
            left -= nanos;
            let last = self.ticket().transaction;
            self.begin();
            nanos = self.rules.thinking(last, &mut stream) + self.rules.keying(self.ticket().transaction);
        }
        self.last = Some(self.ticket().transaction);
        Wait { nanos: nanos - left, since: Since::Served }
    }

    fn ticket(&self) -> Ticket {
        Ticket::from_bytes(&self.ticket).expect("a terminal keeps a ticket")
    }

    /// Counts facts about the input of the transaction and about the screen.
    fn count(&self, reply: &Reply, extra: &mut Extra<'_>) {
        match self.ticket().draw(&self.rules.drawing, 0) {
            Input::NewOrder(order) => {
                let remote = order.lines().iter().filter(|line| line.supplied_by != order.warehouse).count();
                extra.count(0, order.lines().len() as u64);
                extra.count(1, remote as u64);
            }
            Input::Payment(payment) => {
                extra.count(2, u64::from(payment.customer_warehouse != payment.warehouse));
                extra.count(3, payment.customer.is_name().into());
            }
            Input::OrderStatus(status) => extra.count(4, status.customer.is_name().into()),
            Input::Delivery(_) => {
                let screen = reply.record().get(0).unwrap_or_default();
                let none = screen.chunks_exact(8).filter(|number| **number == [0; 8]).count();
                extra.count(5, none as u64);
            }
            Input::StockLevel(_) => {}
        }
    }
}

impl Client for Terminal<'_> {
    fn begin(&mut self) -> bool {
        let mut stream = self.stream();
        let transaction = self.rules.next(&mut stream, &mut self.deck);
        let mut ticket = Ticket { seed: stream.word(), transaction, ..self.ticket() };
        if !self.rules.mode.has_own_district() {
            ticket.district = stream.between(1, DISTRICTS) as u8;
        }
        (self.ticket, self.attempts) = (ticket.to_bytes(), 0);
        true
    }

    fn wait(&mut self) -> Wait {
        let next = self.ticket().transaction;
        let Some(last) = self.last.replace(next) else { return self.first_wait() };
        let mut stream = self.stream();
        let thinking = self.rules.thinking(last, &mut stream);
        let is_deferred = last == Transaction::Delivery && self.rules.mode.defers_delivery();
        let since = if is_deferred { Since::Due } else { Since::Served };
        Wait { nanos: thinking + self.rules.keying(next), since }
    }

    fn request(&mut self) -> (Kind, Request<'_>) {
        self.attempts += 1;
        (Kind(self.ticket().transaction as u8), Request::Transaction(&self.ticket))
    }

    fn served(&mut self, result: Result<Outcome, &Failure>, reply: &Reply, extra: &mut Extra<'_>) -> Next {
        match result {
            Ok(_) => {
                self.count(reply, extra);
                Next::Done
            }
            Err(failure) if failure.harm == Harm::Again && self.attempts < MOST_ATTEMPTS => {
                extra.retry();
                extra.count(ATTEMPTS + self.ticket().transaction as usize, 1);
                let bound = FIRST_BOUND_NANOS.saturating_mul(1 << self.attempts.min(32)).min(LAST_BOUND_NANOS);
                Next::Wait(self.stream().word() % bound)
            }
            Err(_) => Next::Failed,
        }
    }
}
