//! Carries out one thread's transactions on an engine in this process whose calls wait. Each transaction is carried
//! out when it is started, so transactions run one after the other.
//!
//! On an engine that makes each transaction durable separately, a session has only one transaction under way. On an
//! engine that makes several durable at once, a session has as many under way, and answers them together. A
//! transaction that conflicts is retried not here but by its terminal, so that others can run in between.

use crate::database::Form;
use crate::input::{Drawing, Ticket, Transaction};
use crate::screen::Screen;
use crate::transactions::{Rows, Wish, Work, now};
use harness::{Clock, Failure, Flights, Outcome, Reply, Request, Served};
use std::time::Duration;

/// One thread's access to an engine.
pub trait Engine {
    /// The rows as a transaction sees them. If this value is dropped without a commit, the transaction is rolled
    /// back.
    type Open<'e>: Rows
    where
        Self: 'e;

    /// Begins a transaction for `transaction`.
    ///
    /// # Errors
    ///
    /// Fails if the transaction cannot begin.
    fn begin(&mut self, transaction: Transaction) -> Result<Self::Open<'_>, Failure>;

    /// Commits the changes of a transaction.
    ///
    /// # Errors
    ///
    /// Fails with the harm [`Again`](harness::Harm::Again) if the transaction conflicts with others. Also fails if
    /// the changes cannot be written. In both cases, the transaction is rolled back.
    fn commit(open: Self::Open<'_>) -> Result<(), Failure>;

    /// Makes all committed transactions durable.
    ///
    /// # Errors
    ///
    /// Fails if the transactions cannot be written. None of them may then take effect.
    fn make_durable(&mut self) -> Result<(), Failure> {
        Ok(())
    }
}

/// Whether `transaction` only reads.
pub fn reads_only(transaction: Transaction) -> bool {
    matches!(transaction, Transaction::OrderStatus | Transaction::StockLevel)
}

/// A session on `engine` that can have `depth` transactions under way, but at least one.
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
    /// The transactions that were carried out but are not durable yet.
    answered: Vec<Answered>,
    work: Work,
    screen: Screen,
    /// Screens that can be reused.
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
