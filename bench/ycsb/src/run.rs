//! Clients that work with records: they read, update, insert and scan records, and make read-modify-writes.

#[cfg(test)]
mod tests;

use crate::draw::{Deck, Hand, Operation};
use crate::kinds;
use crate::settings::Settings;
use harness::{Client, Clock, Extra, Failure, Fields, Kind, Next, Outcome, Reply, Request, Share, Strings, Workload};
use os::sync::Arc;

/// The transactions of a workload.
pub struct Run {
    deck: Arc<Deck>,
    seed: u64,
    clock: Clock,
}

impl Run {
    /// The run that `settings` describes. Everything in it is drawn from `seed`. Its clients never end by
    /// themselves. The plan limits the number of operations, see [`Settings::plan`].
    pub fn new(settings: &Settings, seed: u64) -> Run {
        Self::of_share(settings, seed, Share::WHOLE)
    }

    /// The run in a process that does the part `share` of it. The clients of this process still have their numbers
    /// among the clients of the whole run, see [`Share::part`]. No two shares insert the same records.
    pub fn of_share(settings: &Settings, seed: u64, share: Share) -> Run {
        Run { deck: Arc::new(Deck::new(settings, share)), seed, clock: Clock::start() }
    }
}

impl Workload for Run {
    type Client = RunClient;

    fn kinds(&self) -> &'static [&'static str] {
        kinds::NAMES
    }

    fn client(&self, number: usize, clients: usize) -> RunClient {
        RunClient {
            hand: Hand::new(&self.deck, self.seed, number, clients),
            operation: Operation::Read,
            is_written: false,
            key: Vec::new(),
            fields: Fields::All,
            field: 0,
            rows: 0,
            number: 0,
            value: Vec::new(),
            record: Strings::new(),
            expected: Vec::new(),
            clock: self.clock,
        }
    }
}

/// A client that works with records.
pub struct RunClient {
    hand: Hand,
    operation: Operation,
    /// Whether the read of a read-modify-write is done, so that the write comes next.
    is_written: bool,
    key: Vec<u8>,
    /// The fields to read.
    fields: Fields,
    /// The field to write, unless the whole record is written.
    field: u32,
    rows: u64,
    /// The number of an insert.
    number: i64,
    value: Vec<u8>,
    record: Strings,
    /// The value that a read should have found.
    expected: Vec<u8>,
    /// The clock that measures how long a check takes.
    clock: Clock,
}

impl RunClient {
    fn draw_key(&mut self) {
        let number = self.hand.record();
        self.hand.deck().values().key(number, &mut self.key);
    }

    fn draw_values(&mut self) {
        if self.hand.deck().writes_all_fields {
            self.hand.whole(&self.key, &mut self.record);
        } else {
            self.field = self.hand.field();
            self.hand.value(&self.key, self.field, &mut self.value);
        }
    }

    /// Checks the record that was read, if its values can be checked.
    fn verify(&mut self, result: Result<Outcome, &Failure>, reply: &Reply, extra: &mut Extra<'_>) {
        if !self.hand.deck().values().checkable {
            return;
        }
        let start = self.clock.nanos();
        let checked = if result.is_err() || reply.rows() == 0 {
            // All records that clients ask for exist, so a missing record is also an error.
            Err("ERROR")
        } else if reply.key() == self.key
            && self.hand.deck().values().are_right(&self.key, self.fields, reply.record(), &mut self.expected)
        {
            Ok(Outcome::Ok)
        } else {
            Err("UNEXPECTED_STATE")
        };
        extra.note(kinds::VERIFY, self.clock.nanos() - start, checked);
    }
}

impl Client for RunClient {
    #[inline]
    fn begin(&mut self) -> bool {
        self.operation = self.hand.operation();
        match self.operation {
            Operation::Read => {
                self.draw_key();
                self.fields = self.hand.fields();
            }
            Operation::Update => {
                self.draw_key();
                self.draw_values();
            }
            Operation::Insert => {
                self.number = self.hand.insert();
                self.hand.deck().values().key(self.number, &mut self.key);
                self.hand.whole(&self.key, &mut self.record);
            }
            Operation::Scan => {
                self.draw_key();
                self.rows = self.hand.rows();
                self.fields = self.hand.fields();
            }
            Operation::ReadModifyWrite => {
                self.draw_key();
                self.fields = self.hand.fields();
                self.draw_values();
                self.is_written = false;
            }
        }
        true
    }

    #[inline]
    fn request(&mut self) -> (Kind, Request<'_>) {
        let key = &self.key[..];
        let (fields, rows) = (self.fields, self.rows);
        match self.operation {
            Operation::Read => (kinds::READ, Request::Read { key, fields }),
            Operation::ReadModifyWrite if !self.is_written => (kinds::READ, Request::Read { key, fields }),
            Operation::Update | Operation::ReadModifyWrite => {
                let write = if self.hand.deck().writes_all_fields {
                    Request::Replace { key, record: &self.record }
                } else {
                    Request::Update { key, field: self.field, value: &self.value }
                };
                (kinds::UPDATE, write)
            }
            Operation::Insert => (kinds::INSERT, Request::Insert { key, record: &self.record }),
            Operation::Scan => (kinds::SCAN, Request::Scan { start: key, rows, fields }),
        }
    }

    #[inline]
    fn served(&mut self, result: Result<Outcome, &Failure>, reply: &Reply, extra: &mut Extra<'_>) -> Next {
        let is_ok = matches!(result, Ok(Outcome::Ok | Outcome::Batched));
        match self.operation {
            Operation::Read => self.verify(result, reply, extra),
            Operation::Insert => self.hand.acknowledge(self.number),
            Operation::ReadModifyWrite if !self.is_written => {
                self.verify(result, reply, extra);
                if is_ok {
                    self.is_written = true;
                    return Next::More;
                }
            }
            Operation::ReadModifyWrite if is_ok => return Next::DoneAs(kinds::READ_MODIFY_WRITE),
            Operation::ReadModifyWrite | Operation::Update | Operation::Scan => {}
        }
        if result.is_err() { Next::Failed } else { Next::Done }
    }
}
