//! A database that does nothing. A run on this database shows how much time it takes to make rows, and how much
//! time terminals take without a database.

#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a benchmark's threads are the machine's")]

use crate::database::{Database, Form, Loader, Part, Row, Setup, TpccScheme, View};
use crate::input::{Drawing, Input, Ticket};
use crate::schema::Table;
use crate::transactions::now;
use harness::{
    Clock, Counter, Failure, Flights, Outcome, Reply, Request, Served, Session, Setting, Store, StoreUse, Target,
};
use std::hint::black_box;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The scheme `noop:`. The input of each transaction is drawn, and then nothing is done with it.
pub const SCHEME: TpccScheme = TpccScheme { name: "noop", open, simulate: None };

fn open(target: &Target, setup: &Setup) -> Result<Box<dyn Database>, Failure> {
    target.options()?.finish()?;
    Ok(Box::new(Noop { form: Mutex::default(), depth: setup.connections.unwrap_or(usize::MAX) }))
}

/// A database that accepts everything and stores nothing.
#[derive(Debug)]
pub struct Noop {
    form: Mutex<Option<Form>>,
    depth: usize,
}

impl Default for Noop {
    /// A database that can have any number of transactions under way.
    fn default() -> Self {
        Self { form: Mutex::default(), depth: usize::MAX }
    }
}

impl Noop {
    fn known(&self) -> Option<Form> {
        *self.form.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for Noop {
    fn settings(&self) -> Vec<Setting> {
        vec![Setting::new("engine", "none: transactions are drawn and forgotten")]
    }

    fn session(&self, clock: Clock) -> Result<Session<'_>, Failure> {
        let form =
            self.known().ok_or_else(|| Failure::session("no_store", "there is no database: make it with init"))?;
        let (answered, reply) = (Vec::new(), Reply::new());
        let (drawing, depth) = (Drawing::of(&form), self.depth);
        Ok(Session::Flights(Box::new(Draws { drawing, depth, clock, answered, reply })))
    }

    fn is_empty(&self) -> Result<bool, Failure> {
        Ok(true)
    }

    fn counters(&self) -> Vec<Counter> {
        Vec::new()
    }

    fn used(&self) -> StoreUse {
        StoreUse::InProcess
    }

    fn settle(&self) -> Result<(), Failure> {
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        Ok(())
    }
}

impl Database for Noop {
    fn create(&self, form: &Form) -> Result<(), Failure> {
        *self.form.lock().unwrap_or_else(PoisonError::into_inner) = Some(*form);
        Ok(())
    }

    fn form(&self) -> Result<Option<Form>, Failure> {
        Ok(self.known())
    }

    fn part_loader(&self, _: &Part) -> Result<Box<dyn Loader + '_>, Failure> {
        Ok(Box::new(Forget))
    }

    fn is_loaded(&self, _: &Part) -> Result<bool, Failure> {
        Ok(false)
    }

    fn make_indexes(&self) -> Result<(), Failure> {
        Ok(())
    }

    fn view(&self) -> Result<Box<dyn View + '_>, Failure> {
        Ok(Box::new(Forget))
    }

    fn clean(&self) -> Result<(), Failure> {
        *self.form.lock().unwrap_or_else(PoisonError::into_inner) = None;
        Ok(())
    }
}

struct Forget;

impl Loader for Forget {
    fn row(&mut self, row: Row<'_>) -> Result<(), Failure> {
        // Without this line, the compiler would not make the row at all, because nothing uses it.
        black_box(row);
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<(), Failure> {
        Ok(())
    }
}

impl View for Forget {
    fn rows(&self, _: Table, _: u32, _: &mut dyn FnMut(Row<'_>) -> Result<(), Failure>) -> Result<(), Failure> {
        Ok(())
    }
}

/// Draws the input of each transaction and does nothing with it.
struct Draws {
    drawing: Drawing,
    depth: usize,
    clock: Clock,
    /// The answered transactions: the slot of each, the times at which it began and ended, and its outcome.
    answered: Vec<(u32, u64, u64, Outcome)>,
    reply: Reply,
}

impl Flights for Draws {
    fn depth(&self) -> usize {
        self.depth
    }

    fn start(&mut self, slot: u32, request: &Request<'_>) -> Result<(), Failure> {
        let sent = self.clock.nanos();
        let ticket = Ticket::of(request)?;
        let outcome = match black_box(ticket.draw(&self.drawing, now())) {
            Input::NewOrder(order) if order.is_rolled_back() => Outcome::RolledBack,
            _ => Outcome::Ok,
        };
        self.answered.push((slot, sent, self.clock.nanos(), outcome));
        Ok(())
    }

    fn wait(&mut self, until: Option<u64>, served: &mut dyn FnMut(Served<'_>)) -> Result<(), Failure> {
        if let (true, Some(until)) = (self.answered.is_empty(), until) {
            sleep(Duration::from_nanos(until.saturating_sub(self.clock.nanos())));
        }
        for (slot, sent, at, outcome) in self.answered.drain(..) {
            served(Served { slot, sent, served: at, result: Ok(outcome), reply: &self.reply });
        }
        Ok(())
    }
}

fn sleep(time: Duration) {
    std::thread::park_timeout(time);
}
