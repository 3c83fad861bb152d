//! One thread's transactions: one at a time on each of its connections. The thread waits for all connections at
//! once, so it has as many transactions under way as it has connections.
//!
//! A transaction that conflicts with another is rolled back, and the session reports that a retry may succeed.
//! Before the retry, the transaction's terminal waits for a random part of a bound that doubles with each attempt;
//! meanwhile other terminals use the connection.

use super::statements::Statements;
use super::work::{Next, Work};
use crate::postgres::connection::Connection;
use crate::postgres::error::Error;
use crate::postgres::sockets::Sockets;
use crate::postgres::wire::{self, Malformed};
use ::tpcc::transactions::now;
use ::tpcc::{Drawing, Form, Ticket};
use harness::{Clock, Failure, Flights, Outcome, Reply, Request, Served};
use postgres_protocol::message::backend;
use std::time::Duration;

/// ReadyForQuery's transaction status if no transaction is open.
const IDLE: &[u8] = b"I";

/// A session over several connections.
pub struct Transactions<'s> {
    statements: &'s Statements,
    drawing: Drawing,
    clock: Clock,
    sockets: Sockets,
    /// The state of each connection.
    lines: Vec<ActiveTransaction>,
    /// Connections with nothing under way.
    idle: Vec<usize>,
    /// Connections whose transactions were started but not sent yet.
    unsent: Vec<usize>,
    reply: Reply,
    /// The failure that ended the session, if there was one.
    lost: Option<Failure>,
}

/// A transaction under way.
#[derive(Default)]
struct ActiveTransaction {
    slot: u32,
    sent: u64,
    work: Work,
    /// Why the transaction failed.
    failed: Option<Failure>,
}

impl<'s> Transactions<'s> {
    /// A session over connections on which the statements are prepared. `form` is the form of the database.
    ///
    /// # Errors
    ///
    /// Fails if the system cannot set up a wait for the connections.
    pub fn new(
        statements: &'s Statements,
        connections: Vec<Connection>,
        form: &Form,
        clock: Clock,
    ) -> Result<Self, Failure> {
        let count = connections.len();
        Ok(Self {
            statements,
            drawing: Drawing::of(form),
            clock,
            sockets: Sockets::new(connections)?,
            lines: (0..count).map(|_| ActiveTransaction::default()).collect(),
            idle: (0..count).rev().collect(),
            unsent: Vec::with_capacity(count),
            reply: Reply::new(),
            lost: None,
        })
    }

    /// Sends the transactions that were started.
    fn flush(&mut self) -> Result<(), Error> {
        let now = self.clock.nanos();
        while let Some(index) = self.unsent.pop() {
            self.lines[index].sent = now;
            self.sockets.send(index)?;
        }
        Ok(())
    }

    /// Waits until answers arrive, but not beyond `until`. Returns how many transactions ended.
    fn receive(&mut self, until: Option<u64>, served: &mut dyn FnMut(Served<'_>)) -> Result<usize, Error> {
        let left = until.map(|until| Duration::from_nanos(until.saturating_sub(self.clock.nanos())));
        self.sockets.wait(left)?;
        let mut count = 0;
        while let Some(index) = self.sockets.next_arrival()? {
            count += usize::from(self.answers(index, served)?);
        }
        Ok(count)
    }

    /// Handles the answers that have arrived on a connection. Returns whether its transaction ended.
    fn answers(&mut self, index: usize, served: &mut dyn FnMut(Served<'_>)) -> Result<bool, Error> {
        let line = &mut self.lines[index];
        let connection = self.sockets.connection(index);
        while let Some(frame) = connection.next_frame()? {
            let taken = match frame.tag {
                backend::DATA_ROW_TAG => line.work.row(frame.body),
                backend::BIND_COMPLETE_TAG => Ok(()),
                backend::COMMAND_COMPLETE_TAG => line.work.answered(),
                backend::READY_FOR_QUERY_TAG => {
                    let is_idle = frame.body == IDLE;
                    let Some(result) = line.after_round(is_idle, self.statements, connection) else {
                        // Only one round trip is under way on a connection, so no message can follow its end.
                        self.sockets.send(index)?;
                        return Ok(false);
                    };
                    line.serve(result, self.clock.nanos(), &mut self.reply, served);
                    self.idle.push(index);
                    return Ok(true);
                }
                backend::ERROR_RESPONSE_TAG => {
                    let error = wire::server_error(frame.body);
                    if error.ends_session() {
                        return Err(connection.refused(error));
                    }
                    if !line.work.wants(error.sqlstate) {
                        // The first error wins: it is the one that led to the rollback.
                        line.failed.get_or_insert(connection.refused(error).into());
                    }
                    Ok(())
                }
                backend::NOTICE_RESPONSE_TAG | backend::NOTIFICATION_RESPONSE_TAG | backend::PARAMETER_STATUS_TAG => {
                    Ok(())
                }
                other => {
                    let what = format!("a message `{}` where none is expected", other.escape_ascii());
                    return Err(connection.protocol(&what));
                }
            };
            if let Err(Malformed(what)) = taken {
                return Err(connection.protocol(what));
            }
        }
        Ok(false)
    }

    /// Records the failure that ends the session.
    #[cold]
    fn lose(&mut self, error: Error) -> Failure {
        let failure = Failure::from(error);
        let failure = Failure::session(failure.kind, failure.text);
        self.lost = Some(failure.clone());
        failure
    }
}

impl ActiveTransaction {
    /// Handles the end of a round trip. Returns the result if the transaction has ended. Otherwise puts the messages
    /// of the next round trip into the outbox and returns `None`.
    fn after_round(
        &mut self,
        is_idle: bool,
        statements: &Statements,
        connection: &mut Connection,
    ) -> Option<Result<Outcome, Failure>> {
        let out = &mut connection.outbox;
        if self.failed.is_none() {
            match self.work.next(statements, out) {
                Ok(Next::Round) => return None,
                Ok(Next::Done(outcome)) => return Some(Ok(outcome)),
                Err(failure) => self.failed = Some(failure),
            }
        }
        if !is_idle {
            self.work.roll_back(statements, out);
            return None;
        }
        self.failed.take().map(Err)
    }

    fn serve(
        &mut self,
        result: Result<Outcome, Failure>,
        now: u64,
        reply: &mut Reply,
        served: &mut dyn FnMut(Served<'_>),
    ) {
        match &result {
            Ok(_) => self.work.screen().show(reply),
            Err(_) => reply.clear(),
        }
        served(Served { slot: self.slot, sent: self.sent, served: now, result, reply });
    }
}

impl Flights for Transactions<'_> {
    fn depth(&self) -> usize {
        self.lines.len()
    }

    fn start(&mut self, slot: u32, request: &Request<'_>) -> Result<(), Failure> {
        if let Some(failure) = &self.lost {
            return Err(failure.clone());
        }
        let ticket = Ticket::of(request)?;
        let index = self.idle.pop().expect("fewer transactions are under way than there are connections");
        let line = &mut self.lines[index];
        (line.slot, line.failed) = (slot, None);
        let out = &mut self.sockets.connection(index).outbox;
        line.work.begin(ticket.draw(&self.drawing, now()), self.statements, out);
        self.unsent.push(index);
        Ok(())
    }

    fn wait(&mut self, until: Option<u64>, served: &mut dyn FnMut(Served<'_>)) -> Result<(), Failure> {
        if let Some(failure) = &self.lost {
            return Err(failure.clone());
        }
        self.flush().map_err(|error| self.lose(error))?;
        loop {
            if self.idle.len() == self.lines.len() && until.is_none() {
                return Ok(());
            }
            if self.receive(until, served).map_err(|error| self.lose(error))? > 0 {
                return Ok(());
            }
            if until.is_some_and(|until| self.clock.nanos() >= until) {
                return Ok(());
            }
        }
    }
}
