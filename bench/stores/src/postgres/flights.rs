//! A session with many requests under way: one thread, several connections, and several requests on each.
//!
//! `sockets` waits for the connections. Buffers are reused, so a request allocates nothing. A *line* is the state of
//! one connection, and a *slot* is the caller's number for a request under way.
//!
//! The server processes messages up to a Sync. There it commits, sends its answers, and recovers from an error if
//! there was one. Each Sync costs the server a transaction and a send, so reads that go out together share one: they
//! are a *group*. If a read fails, the server skips the rest of its group. The session sends the skipped requests
//! again and does not report them as failed. A write is a group of its own, because a later error in its group would
//! roll it back.
//!
//! An answer goes to the caller once it is complete, except for the last one of a group: it waits until the server
//! reports the end of the transaction, which may still fail until then.

use crate::postgres::connection::Connection;
use crate::postgres::error::Error;
use crate::postgres::sockets::Sockets;
use crate::postgres::statements::Statements;
use crate::postgres::wire::{self, Malformed, Values};
use harness::partitions::COUNTERS;
use harness::request::{no_partitions, no_transactions};
use harness::{Clock, Failure, Flights, Outcome, Reply, Request, Served};
use postgres_protocol::message::backend;
use std::collections::VecDeque;
use std::time::Duration;

#[cfg(test)]
mod tests;

/// Turns requests into messages for the server.
pub trait Requests {
    /// The shape of the answer to `request`, and the request's key, which the server does not send back. `None` if
    /// the prepared statements cannot serve the request.
    fn shape<'r>(&self, request: &Request<'r>) -> Option<(Shape, &'r [u8])>;

    /// Appends the messages of `request` to `out`, without a Sync.
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
    /// Most requests under way on a connection.
    pipeline: usize,
    /// Whether reads share a Sync.
    groups: bool,
    lines: Vec<Outstanding>,
    slots: Vec<Slot>,
    /// Lines with nothing under way.
    idle: Vec<usize>,
    /// Lines that have requests under way and room for more. Entries may be out of date.
    roomy: Vec<usize>,
    /// Lines with unsent bytes.
    dirty: Vec<usize>,
    /// The connections, numbered like their lines.
    sockets: Sockets,
    under_way: usize,
    /// The failure that ended the session, if there was one.
    lost: Option<Failure>,
}

/// What is under way on one connection.
struct Outstanding {
    /// The answers that the server still owes, in order.
    steps: VecDeque<Step>,
    under_way: usize,
    /// Whether the last group still needs its Sync.
    is_open: bool,
    is_dirty: bool,
    is_roomy: bool,
    /// Slots of requests that were not sent yet.
    unsent: Vec<u32>,
    /// Rows that arrived for the current answer.
    reply: Reply,
    /// The last answer of a group, until the group ends.
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
    /// The key of the requested row, which the server does not send back.
    key: Vec<u8>,
    /// The request's messages, in case they must be sent again.
    message: Vec<u8>,
}

/// The shape of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// At most one row, without its key.
    Row,
    /// Rows, each of which begins with its key.
    Rows,
    /// No rows: a row was inserted.
    Added,
    /// No rows, but whether a row was changed or removed.
    Changed,
    /// Rows of one partition: the clustering key, then the value or the counters.
    Partition,
    /// Rows of all partitions: the partition key, the clustering key, then the value or the counters.
    Scanned,
}

impl<'s, S: Requests> Session<'s, S> {
    /// A session over these connections, on which the statements are prepared. With `groups`, reads may share a
    /// Sync, and so a transaction.
    ///
    /// # Errors
    ///
    /// Returns an error if the system cannot set up a wait for the connections.
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

    /// Picks a line for the next request: an idle one, or else one with room.
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

    /// Sends the unsent bytes of all lines.
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

    /// Waits until answers arrive, but not beyond `until`. Calls `served` with each complete answer, and returns
    /// their number.
    fn receive(&mut self, until: Option<u64>, served: &mut dyn FnMut(Served<'_>)) -> Result<usize, Error> {
        let left = until.map(|until| Duration::from_nanos(until.saturating_sub(self.clock.nanos())));
        self.sockets.wait(left)?;
        let mut count = 0;
        while let Some(index) = self.sockets.next_arrival()? {
            count += self.answers(index, served)?;
        }
        Ok(count)
    }

    /// Handles the answers that have arrived on a line.
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

    /// Records the failure that ends the session.
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
            // After a failed request, the skipped requests of its group are in the outbox again and go out here.
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

    /// Ends the open group, if any, with a Sync.
    #[inline]
    fn close(&mut self, connection: &mut Connection) {
        if self.is_open {
            self.is_open = false;
            connection.outbox.extend_from_slice(&wire::SYNC);
            self.steps.push_back(Step::Ready);
        }
    }

    /// Handles the next message, if one has arrived.
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

    /// Gives an answer to the caller and clears the line for the next one.
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
            // Drops the rows that came before the error.
            self.reply.clear();
        }
        served(Served { slot, sent: slots[slot as usize].sent, served: now, result, reply: &self.reply });
        self.reply.clear();
    }

    /// Handles an error of the server: it refused the current request, or could not commit a group that it had
    /// answered.
    #[cold]
    fn refuse(
        &mut self,
        connection: &mut Connection,
        error: crate::postgres::ServerError,
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

    /// Queues the rest of the current group again, which the server skips.
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
                // A NULL, which only another program can have written, reads as an empty value.
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

/// Reads a row of a partition, which has either a value or counters of eight bytes each.
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
