//! A session with many requests under way. The session has several connections, several requests on each
//! connection, and one thread.
//!
//! `sockets` waits for the connections. Buffers are kept, so a request allocates nothing.
//!
//! The server works on the messages up to a Sync. Then the server commits, sends its answers, and leaves the state
//! of error, if it was in this state. Each Sync costs the server a transaction and a send. So reads that go out
//! together share one Sync. They are a *group*. If a read fails, the server skips the rest of its group. The session
//! sends the skipped requests again, and does not report them as failed. A write is a group of its own, because a
//! later error in its group would undo the write.
//!
//! An answer is given to the caller when the answer is complete. The last answer of a group waits until the server
//! says that the transaction is over: until then the transaction may still fail.

use crate::connection::Connection;
use crate::error::Error;
use crate::sockets::Sockets;
use crate::statements::Statements;
use crate::wire::{self, Malformed, Values};
use harness::partitions::COUNTERS;
use harness::request::{no_partitions, no_transactions};
use harness::{Clock, Failure, Flights, Outcome, Reply, Request, Served};
use postgres_protocol::message::backend;
use std::collections::VecDeque;
use std::time::Duration;

#[cfg(test)]
mod tests;

/// The statements by which requests are sent.
pub trait Requests {
    /// What the answer to `request` looks like, and the key of the request. The server does not send this key back.
    /// Returns `None` if the prepared statements cannot serve the request.
    fn shape<'r>(&self, request: &Request<'r>) -> Option<(Shape, &'r [u8])>;

    /// Adds the messages of `request` to `out`, without the Sync that lets the server answer.
    fn put(&self, request: &Request<'_>, out: &mut Vec<u8>);
}

impl Requests for Statements {
    #[inline]
    fn shape<'r>(&self, request: &Request<'r>) -> Option<(Shape, &'r [u8])> {
        match *request {
            Request::Read { key, .. } => Some((Shape::Row, key)),
            Request::ReadMany { .. } | Request::Scan { .. } => Some((Shape::Rows, b"")),
            Request::Insert { .. } => Some((Shape::Added, b"")),
            Request::Replace { .. } | Request::Update { .. } | Request::Delete { .. } => Some((Shape::Changed, b"")),
            Request::Partition(_) | Request::Transaction(_) => None,
        }
    }

    #[inline]
    fn put(&self, request: &Request<'_>, out: &mut Vec<u8>) {
        Statements::put(self, request, out);
    }
}

/// A session with many requests under way.
pub struct Session<'s, S = Statements> {
    statements: &'s S,
    clock: Clock,
    /// Most requests on a connection.
    pipeline: usize,
    /// Whether reads share a Sync.
    groups: bool,
    lines: Vec<Outstanding>,
    slots: Vec<Slot>,
    /// Lines with nothing under way.
    idle: Vec<usize>,
    /// Lines that have requests under way and room for more. Each entry was true when it was made, and may be out of
    /// date.
    roomy: Vec<usize>,
    /// Lines with something to send.
    dirty: Vec<usize>,
    /// The connections. Each connection has the number of its line.
    sockets: Sockets,
    under_way: usize,
    /// Why nothing can be asked any more.
    lost: Option<Failure>,
}

/// What is under way on a connection.
struct Outstanding {
    /// What the server will answer, in the order of the answers.
    steps: VecDeque<Step>,
    under_way: usize,
    /// Whether the last group waits for its Sync.
    is_open: bool,
    is_dirty: bool,
    is_roomy: bool,
    /// Slots of requests that were not yet sent.
    unsent: Vec<u32>,
    /// Rows of the request that is being answered.
    reply: Reply,
    /// The answer to the last request of a group, until the group is over.
    held: Option<(u32, Result<Outcome, Failure>)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// The answer to the request of this slot.
    Answer(u32),
    /// The end of a group.
    Ready,
}

/// A request under way.
struct Slot {
    sent: u64,
    shape: Shape,
    /// The key of the row that the request asks for. The server does not send this key back.
    key: Vec<u8>,
    /// The messages of the request, in case they have to be sent again.
    message: Vec<u8>,
}

/// What an answer looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// One row without its key, or none.
    Row,
    /// Rows that begin with their keys.
    Rows,
    /// A row that was added.
    Added,
    /// The answer says whether a row was changed or removed.
    Changed,
    /// The answer has any number of rows of a partition. Each row has its clustering key, then its value or its
    /// counters.
    Partition,
    /// The answer has rows of all partitions. Each row has its partition key, its clustering key, then its value or
    /// its counters.
    Scanned,
}

impl<'s, S: Requests> Session<'s, S> {
    /// A session over these connections, on which the statements are prepared. `groups`: reads may share a transaction.
    ///
    /// # Errors
    ///
    /// Returns an error if the system gives no means to wait for the connections.
    pub fn new(
        statements: &'s S,
        connections: Vec<Connection>,
        pipeline: usize,
        groups: bool,
        clock: Clock,
    ) -> Result<Self, Failure> {
        assert!(!connections.is_empty() && pipeline > 0, "a session can have one request under way at least");
        let slots = (0..connections.len() * pipeline).map(|_| Slot::new()).collect();
        let lines: Vec<Outstanding> = connections.iter().map(|_| Outstanding::new()).collect();
        Ok(Self {
            statements,
            clock,
            pipeline,
            groups: groups && pipeline > 1,
            idle: (0..lines.len()).rev().collect(),
            roomy: Vec::with_capacity(lines.len()),
            dirty: Vec::with_capacity(lines.len()),
            lines,
            slots,
            sockets: Sockets::new(connections)?,
            under_way: 0,
            lost: None,
        })
    }

    /// Returns a line for the next request: an idle line, or, if all lines are busy, a line with room.
    #[inline]
    fn line_with_room(&mut self) -> usize {
        if let Some(index) = self.idle.pop() {
            self.note_room(index);
            return index;
        }
        loop {
            let index = *self.roomy.last().expect("fewer requests are under way than there is room for");
            if (1..self.pipeline).contains(&self.lines[index].under_way) {
                return index;
            }
            self.roomy.pop();
            self.lines[index].is_roomy = false;
        }
    }

    #[inline]
    fn note_room(&mut self, index: usize) {
        let line = &mut self.lines[index];
        if self.pipeline > 1 && !line.is_roomy {
            line.is_roomy = true;
            self.roomy.push(index);
        }
    }

    /// Sends all that is to be sent.
    fn flush(&mut self) -> Result<(), Error> {
        while let Some(index) = self.dirty.pop() {
            let line = &mut self.lines[index];
            line.is_dirty = false;
            line.close(self.sockets.connection(index));
            let now = self.clock.nanos();
            for slot in line.unsent.drain(..) {
                self.slots[slot as usize].sent = now;
            }
            self.sockets.send(index)?;
        }
        Ok(())
    }

    /// Waits until answers come or until `until`. Calls `served` with the complete answers, and returns the number
    /// of these answers.
    fn receive(&mut self, until: Option<u64>, served: &mut dyn FnMut(Served<'_>)) -> Result<usize, Error> {
        let left = until.map(|until| Duration::from_nanos(until.saturating_sub(self.clock.nanos())));
        self.sockets.wait(left)?;
        let mut count = 0;
        while let Some(index) = self.sockets.next_arrival()? {
            count += self.answers(index, served)?;
        }
        Ok(count)
    }

    /// Takes the answers that have arrived on a line.
    fn answers(&mut self, index: usize, served: &mut dyn FnMut(Served<'_>)) -> Result<usize, Error> {
        let now = self.clock.nanos();
        let line = &mut self.lines[index];
        let before = line.under_way;
        while line.take(self.sockets.connection(index), &mut self.slots, now, served)? {}
        let (count, left) = (before - line.under_way, line.under_way);
        self.under_way -= count;
        if line.is_open && !line.is_dirty {
            line.is_dirty = true;
            self.dirty.push(index);
        }
        if count > 0 {
            if left == 0 { self.idle.push(index) } else { self.note_room(index) }
        }
        Ok(count)
    }

    /// Keeps why the session is lost.
    #[cold]
    fn lose(&mut self, error: Error) -> Failure {
        let failure = Failure::from(error);
        let failure = Failure::session(failure.kind, failure.text);
        self.lost = Some(failure.clone());
        failure
    }
}

impl<S: Requests> Flights for Session<'_, S> {
    fn depth(&self) -> usize {
        self.slots.len()
    }

    fn start(&mut self, slot: u32, request: &Request<'_>) -> Result<(), Failure> {
        if let Some(failure) = &self.lost {
            return Err(failure.clone());
        }
        let Some((shape, key)) = self.statements.shape(request) else {
            return Err(match request {
                Request::Transaction(_) => no_transactions(),
                _ => no_partitions(),
            });
        };
        let index = self.line_with_room();
        let line = &mut self.lines[index];
        let connection = self.sockets.connection(index);
        let this = &mut self.slots[slot as usize];
        this.shape = shape;
        this.key.clear();
        this.key.extend_from_slice(key);
        let may_share = self.groups && matches!(shape, Shape::Row | Shape::Rows | Shape::Partition);
        if !may_share {
            line.close(connection);
        }
        let out = &mut connection.outbox;
        let begin = out.len();
        self.statements.put(request, out);
        if may_share {
            this.message.clear();
            this.message.extend_from_slice(&out[begin..]);
        }
        line.steps.push_back(Step::Answer(slot));
        line.is_open = true;
        if !may_share {
            line.close(connection);
        }
        line.unsent.push(slot);
        line.under_way += 1;
        self.under_way += 1;
        if !line.is_dirty {
            line.is_dirty = true;
            self.dirty.push(index);
        }
        Ok(())
    }

    fn wait(&mut self, until: Option<u64>, served: &mut dyn FnMut(Served<'_>)) -> Result<(), Failure> {
        if let Some(failure) = &self.lost {
            return Err(failure.clone());
        }
        self.flush().map_err(|error| self.lose(error))?;
        loop {
            if self.under_way == 0 && until.is_none() {
                return Ok(());
            }
            if self.receive(until, served).map_err(|error| self.lose(error))? > 0 {
                return Ok(());
            }
            // If one request fails, other requests of its group get no answer. These requests are sent again here.
            self.flush().map_err(|error| self.lose(error))?;
            if until.is_some_and(|until| self.clock.nanos() >= until) {
                return Ok(());
            }
        }
    }
}

impl Outstanding {
    fn new() -> Self {
        Self {
            steps: VecDeque::new(),
            under_way: 0,
            is_open: false,
            is_dirty: false,
            is_roomy: false,
            unsent: Vec::new(),
            reply: Reply::new(),
            held: None,
        }
    }

    /// Ends the group, if one is open.
    #[inline]
    fn close(&mut self, connection: &mut Connection) {
        if self.is_open {
            self.is_open = false;
            connection.outbox.extend_from_slice(&wire::SYNC);
            self.steps.push_back(Step::Ready);
        }
    }

    /// Takes a message, if one has come.
    #[inline]
    fn take(
        &mut self,
        connection: &mut Connection,
        slots: &mut [Slot],
        now: u64,
        served: &mut dyn FnMut(Served<'_>),
    ) -> Result<bool, Error> {
        let Some(frame) = connection.next_frame()? else { return Ok(false) };
        let front = self.steps.front().copied();
        match (frame.tag, front) {
            (backend::BIND_COMPLETE_TAG, Some(Step::Answer(_))) => {}
            (backend::DATA_ROW_TAG, Some(Step::Answer(slot))) => {
                if let Err(Malformed(what)) = slots[slot as usize].take_row(frame.body, &mut self.reply) {
                    return Err(connection.protocol(what));
                }
            }
            (backend::COMMAND_COMPLETE_TAG, Some(Step::Answer(slot))) => {
                let outcome = slots[slot as usize].outcome(wire::rows_touched(frame.body), &self.reply);
                self.steps.pop_front();
                if self.steps.front() == Some(&Step::Ready) {
                    self.held = Some((slot, Ok(outcome)));
                } else {
                    self.serve(slots, slot, Ok(outcome), now, served);
                }
            }
            (backend::READY_FOR_QUERY_TAG, Some(Step::Ready)) => {
                self.steps.pop_front();
                if let Some((slot, result)) = self.held.take() {
                    self.serve(slots, slot, result, now, served);
                }
            }
            (backend::ERROR_RESPONSE_TAG, front) => {
                let error = wire::server_error(frame.body);
                self.refuse(connection, error, front, slots)?;
            }
            (backend::NOTICE_RESPONSE_TAG | backend::NOTIFICATION_RESPONSE_TAG | backend::PARAMETER_STATUS_TAG, _) => {}
            (other, _) => {
                let what = format!("a message `{}` where none is expected", other.escape_ascii());
                return Err(connection.protocol(&what));
            }
        }
        Ok(true)
    }

    /// Gives an answer to the caller, and makes the line ready for the next answer.
    #[inline]
    fn serve(
        &mut self,
        slots: &[Slot],
        slot: u32,
        result: Result<Outcome, Failure>,
        now: u64,
        served: &mut dyn FnMut(Served<'_>),
    ) {
        self.under_way -= 1;
        if result.is_err() {
            // Rows that came before the error are dropped.
            self.reply.clear();
        }
        served(Served { slot, sent: slots[slot as usize].sent, served: now, result, reply: &self.reply });
        self.reply.clear();
    }

    /// The server refused the current request, or failed to commit the group whose requests it had answered.
    #[cold]
    fn refuse(
        &mut self,
        connection: &mut Connection,
        error: crate::ServerError,
        front: Option<Step>,
        slots: &[Slot],
    ) -> Result<(), Error> {
        let is_over = error.ends_session();
        let error = connection.refused(error);
        if is_over {
            return Err(error);
        }
        match front {
            Some(Step::Answer(slot)) => {
                self.steps.pop_front();
                self.held = Some((slot, Err(error.into())));
                self.ask_again(connection, slots);
                Ok(())
            }
            Some(Step::Ready) => match &mut self.held {
                Some((_, result)) => {
                    *result = Err(error.into());
                    Ok(())
                }
                None => Err(error),
            },
            None => Err(error),
        }
    }

    /// Sends again the requests that the server skips, up to the end of the current group.
    fn ask_again(&mut self, connection: &mut Connection, slots: &[Slot]) {
        while let Some(step @ Step::Answer(slot)) = self.steps.front().copied() {
            self.steps.pop_front();
            connection.outbox.extend_from_slice(&slots[slot as usize].message);
            self.steps.push_back(step);
            self.is_open = true;
        }
    }
}

impl Slot {
    fn new() -> Self {
        Self { sent: 0, shape: Shape::Row, key: Vec::new(), message: Vec::new() }
    }

    #[inline]
    fn take_row(&self, body: &[u8], reply: &mut Reply) -> Result<(), Malformed> {
        let mut values = Values::new(body)?;
        if matches!(self.shape, Shape::Partition | Shape::Scanned) {
            return take_partition_row(values, self.shape == Shape::Scanned, reply);
        }
        let key = if self.shape == Shape::Rows { values.value()?.unwrap_or_default() } else { &self.key };
        reply.row_of_fields(key, |record| {
            while values.left() > 0 {
                // Another program has written a null. Here, a null is read as an empty value.
                record.push(values.value()?.unwrap_or_default());
            }
            Ok(())
        })
    }

    #[inline]
    fn outcome(&self, touched: u64, reply: &Reply) -> Outcome {
        let is_there = match self.shape {
            Shape::Row | Shape::Partition => reply.rows() > 0,
            Shape::Changed => touched > 0,
            Shape::Rows | Shape::Added | Shape::Scanned => true,
        };
        if is_there { Outcome::Ok } else { Outcome::NotFound }
    }
}

/// A row of a partition. The row has either a value or counters. Each counter is a number of eight bytes, and they
/// follow one another.
fn take_partition_row(mut values: Values<'_>, is_scanned: bool, reply: &mut Reply) -> Result<(), Malformed> {
    let pk = if is_scanned { Some(number(&mut values)?) } else { None };
    let ck = number(&mut values)?;
    let mut counters = [0; 8 * COUNTERS];
    let value = match values.left() {
        1 => values.value()?.unwrap_or_default(),
        _ => {
            for counter in counters.chunks_exact_mut(8) {
                counter.copy_from_slice(&number(&mut values)?.to_be_bytes());
            }
            counters.as_slice()
        }
    };
    match pk {
        Some(pk) => reply.scanned_row(pk, ck, value),
        None => reply.partition_row(ck, value),
    }
    Ok(())
}

fn number(values: &mut Values<'_>) -> Result<i64, Malformed> {
    let bytes = values.value()?.unwrap_or(&[0; 8]);
    Ok(i64::from_be_bytes(bytes.try_into().map_err(|_| Malformed("a number that has not eight bytes"))?))
}
