//! One thread's transactions on an engine that is called within the process and whose calls wait: they are carried out
//! one after the other, where they are started.
//!
//! A session of an engine that makes each transaction durable by itself has one under way. One whose engine makes
//! several durable at once has as many, and answers them together. A transaction that conflicts is not tried again
//! here: its terminal does that, so that others go on meanwhile.

use crate::database::Form;
use crate::input::{Drawing, Ticket, Transaction};
use crate::screen::Screen;
use crate::transactions::{Rows, Wish, Work, now};
use harness::{Clock, Failure, Flights, Outcome, Reply, Request, Served};
use std::time::Duration;

/// One thread's way to an engine.
pub trait Engine {
    /// The rows as a transaction sees them. One that is dropped is rolled back.
    type Open<'e>: Rows
    where
        Self: 'e;

    /// Begins a transaction that is to carry out `transaction`.
    ///
    /// # Errors
    ///
    /// If it cannot begin.
    fn begin(&mut self, transaction: Transaction) -> Result<Self::Open<'_>, Failure>;

    /// Commits what was done in a transaction.
    ///
    /// # Errors
    ///
    /// If it conflicts with others, with the harm [`Again`](harness::Harm::Again), or cannot be written. Then it is
    /// rolled back.
    fn commit(open: Self::Open<'_>) -> Result<(), Failure>;

    /// Makes durable what was committed and is not durable yet.
    ///
    /// # Errors
    ///
    /// If it cannot be written. Then none of it may be there.
    fn make_durable(&mut self) -> Result<(), Failure> {
        Ok(())
    }
}

/// Whether `transaction` reads only.
pub fn reads_only(transaction: Transaction) -> bool {
    matches!(transaction, Transaction::OrderStatus | Transaction::StockLevel)
}

/// A session on `engine` that has `depth` transactions under way, at least 1.
pub fn session<'e, E: Engine + 'e>(engine: E, form: &Form, depth: usize, clock: Clock) -> Box<dyn Flights + 'e> {
    Box::new(InTurn {
        engine,
        drawing: Drawing::of(form),
        depth: depth.max(1),
        clock,
        answered: Vec::new(),
        work: Work::default(),
        screen: Screen::default(),
        spare: Vec::new(),
        reply: Reply::new(),
    })
}

struct InTurn<E> {
    engine: E,
    drawing: Drawing,
    depth: usize,
    clock: Clock,
    /// The transactions that were carried out and are not durable yet.
    answered: Vec<Answered>,
    work: Work,
    screen: Screen,
    /// Screens that are used again.
    spare: Vec<Screen>,
    reply: Reply,
}

/// A transaction that was carried out.
struct Answered {
    slot: u32,
    sent: u64,
    result: Result<Outcome, Failure>,
    screen: Screen,
}

impl<E: Engine> InTurn<E> {
    fn carry_out(&mut self, request: &Request<'_>) -> Result<Outcome, Failure> {
        let ticket = Ticket::of(request)?;
        let input = ticket.draw(&self.drawing, now());
        let mut open = self.engine.begin(ticket.transaction)?;
        let wish = self.work.run(&mut open, &input, &mut self.screen)?;
        if wish == Wish::Commit {
            E::commit(open)?;
        }
        Ok(wish.outcome())
    }
}

impl<E: Engine> Flights for InTurn<E> {
    fn depth(&self) -> usize {
        self.depth
    }

    fn start(&mut self, slot: u32, request: &Request<'_>) -> Result<(), Failure> {
        let sent = self.clock.nanos();
        let result = self.carry_out(request);
        let spare = self.spare.pop().unwrap_or_default();
        let screen = std::mem::replace(&mut self.screen, spare);
        self.answered.push(Answered { slot, sent, result, screen });
        Ok(())
    }

    fn wait(&mut self, until: Option<u64>, served: &mut dyn FnMut(Served<'_>)) -> Result<(), Failure> {
        if self.answered.is_empty() {
            if let Some(until) = until {
                std::thread::park_timeout(Duration::from_nanos(until.saturating_sub(self.clock.nanos())));
            }
            return Ok(());
        }
        let durable = self.engine.make_durable();
        let now = self.clock.nanos();
        for Answered { slot, sent, result, screen } in self.answered.drain(..) {
            let result = match (result, &durable) {
                (Ok(_), Err(failure)) => Err(failure.clone()),
                (result, _) => result,
            };
            screen.show(&mut self.reply);
            served(Served { slot, sent, served: now, result, reply: &self.reply });
            self.spare.push(screen);
        }
        Ok(())
    }
}
