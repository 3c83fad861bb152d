//! The interface that every store has for a benchmark.
//!
//! A store is opened by its [`Scheme`](crate::Scheme) on one table. Every thread of a run takes a session of its own. A
//! store whose calls wait has [`Blocking`] sessions; one that can have many requests under way on one thread has
//! [`Flights`].

use crate::clock::Clock;
use crate::failure::Failure;
use crate::reply::Reply;
use crate::request::Request;
use crate::transactions::{Checked, Commits, Transactions};
use serde::{Deserialize, Serialize};

/// A database that is measured.
pub trait Store: Send + Sync {
    /// What it is and how it is set, as it really is and not as it was asked for: engine and version, durability,
    /// cache, compression, page size, …
    fn settings(&self) -> Vec<Setting>;

    /// A session for the calling thread.
    fn session(&self, clock: Clock) -> Result<Session<'_>, Failure>;

    /// A session that loads: it is given inserts only, and may gather them ([`Outcome::Batched`]).
    fn loader(&self, clock: Clock) -> Result<Session<'_>, Failure> {
        self.session(clock)
    }

    /// Transactions for the calling thread, whose commits compare `checked` with others. `None`: the store has none, or
    /// not as it was opened.
    fn transactions(&self, checked: Checked) -> Option<Box<dyn Transactions + '_>> {
        let _ = checked;
        None
    }

    /// Commits of the calling thread, of which `in_flight` may be not yet durable when a call returns; 0: each is
    /// durable then. `None`: the store has no such way, or it was not opened with synced commits.
    fn commits(&self, in_flight: usize) -> Option<Box<dyn Commits + '_>> {
        let _ = in_flight;
        None
    }

    /// Takes rows whose keys rise in the store's fastest way for many at once, into an empty table. `None`: the store
    /// has no such way.
    fn bulk_load(&self, rows: &mut dyn Rows) -> Result<Option<u64>, Failure> {
        let _ = rows;
        Ok(None)
    }

    /// Whether the table has no row.
    fn is_empty(&self) -> Result<bool, Failure>;

    /// Counts since the store was opened: page reads, cache hits, bytes written, …
    fn counters(&self) -> Vec<Counter>;

    /// What the store has used of processors and disk outside of this process.
    fn used(&self) -> StoreUse;

    /// Waits until what was written is where it stays, and nothing goes on in the background.
    fn settle(&self) -> Result<(), Failure>;

    /// Builds a secondary index over all rows, by a part of their values, while other threads write. Returns how many
    /// rows it has gone over. `None`: the store has no secondary indexes.
    fn build_index(&self) -> Result<Option<u64>, Failure> {
        Ok(None)
    }

    /// Compares the index that [`Store::build_index`] has built with the rows, and removes it. Returns how many entries
    /// it has. It fails if they differ, or the table has no index.
    fn check_and_drop_index(&self) -> Result<u64, Failure> {
        Err(Failure::request("no_index", "there is no index to check"))
    }

    /// Changes the memory for pages while the store is in use. `false`: it cannot.
    fn set_cache_bytes(&self, bytes: u64) -> Result<bool, Failure> {
        let _ = bytes;
        Ok(false)
    }

    /// Ends it in good order.
    fn close(self: Box<Self>) -> Result<(), Failure>;
}

/// One thread's way to a store.
pub enum Session<'s> {
    /// Calls that wait for the answer.
    Blocking(Box<dyn Blocking + 's>),
    /// Many requests under way.
    Flights(Box<dyn Flights + 's>),
}

/// A session whose calls wait for the answer.
pub trait Blocking {
    /// Does what `request` asks. `reply` is empty and takes the rows. Allocates nothing that the engine does not.
    fn call(&mut self, request: &Request<'_>, reply: &mut Reply) -> Result<Outcome, Failure>;

    /// Writes what was gathered. Called once, after the last request.
    fn finish(&mut self) -> Result<(), Failure> {
        Ok(())
    }
}

/// A session with many requests under way.
pub trait Flights {
    /// How many may be under way at once; at least 1.
    fn depth(&self) -> usize;

    /// Takes a request, whose bytes are copied before it returns. `slot` is less than the depth, and none that is under
    /// way. What is taken need not be sent before [`Flights::wait`].
    fn start(&mut self, slot: u32, request: &Request<'_>) -> Result<(), Failure>;

    /// Sends what was taken and gives what was answered to `served`, each slot once. Returns when at least one was
    /// answered, or it is `until`, a time of the session's clock (`None`: no such time). Returns at once if none is
    /// under way and `until` has come. An error here loses the session and all that was under way.
    fn wait(&mut self, until: Option<u64>, served: &mut dyn FnMut(Served<'_>)) -> Result<(), Failure>;

    /// Writes what was gathered. Called once, when nothing is under way.
    fn finish(&mut self) -> Result<(), Failure> {
        Ok(())
    }
}

/// The answer to one request of [`Flights`].
#[derive(Debug)]
pub struct Served<'r> {
    /// The slot that the request was given.
    pub slot: u32,
    /// When it went to the store, by the session's clock.
    pub sent: u64,
    /// When its answer was there.
    pub served: u64,
    /// The result.
    pub result: Result<Outcome, Failure>,
    /// The rows.
    pub reply: &'r Reply,
}

/// The result of a request that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was done.
    Ok,
    /// No such row exists.
    NotFound,
    /// An insert that waits for others to be written with it.
    Batched,
}

/// One line of how a store is set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// `durability`, `cache`, …: the same name for the same thing in every store.
    pub name: &'static str,
    /// As people read it: `64 MiB`, `buffered: log written, not synced`.
    pub value: String,
}

impl Setting {
    /// `name` and `value`.
    pub fn new(name: &'static str, value: impl Into<String>) -> Self {
        Self { name, value: value.into() }
    }
}

/// A count that a store keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counter {
    /// `page reads`, `cache hits`, `bytes written`, …: the same name for the same thing in every store.
    pub name: &'static str,
    /// Since the store was opened.
    pub value: u64,
    /// Whether it goes up and down, as memory in use does: then a difference of two says nothing.
    pub gauge: bool,
}

impl Counter {
    /// A count of what happened.
    pub fn of(name: &'static str, value: u64) -> Self {
        Self { name, value, gauge: false }
    }

    /// A value as it is now.
    pub fn now(name: &'static str, value: u64) -> Self {
        Self { name, value, gauge: true }
    }
}

/// Where a store works, and what it has used there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StoreUse {
    /// In this process, whose use is counted in any case.
    InProcess,
    /// In processes of its own on this machine.
    Server(ServerUse),
    /// On another machine, or where it cannot be seen.
    Unknown,
}

impl StoreUse {
    /// What was used between `before` and this.
    pub fn since(self, before: Self) -> Self {
        match (self, before) {
            (Self::InProcess, _) => Self::InProcess,
            (Self::Server(after), Self::Server(before)) => {
                let grown = |after: Option<u64>, before: Option<u64>| Some(after?.saturating_sub(before?));
                Self::Server(ServerUse {
                    nanos: after.nanos.saturating_sub(before.nanos),
                    read_bytes: grown(after.read_bytes, before.read_bytes),
                    written_bytes: grown(after.written_bytes, before.written_bytes),
                })
            }
            _ => Self::Unknown,
        }
    }
}

/// What a server used of the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerUse {
    /// Processor time, in nanoseconds.
    pub nanos: u64,
    /// Bytes that the disk read for it, where this user may see them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_bytes: Option<u64>,
    /// Bytes that it had written to the disk, where this user may see them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written_bytes: Option<u64>,
}

/// Rows in the order of their keys.
pub trait Rows {
    /// Puts the next row into `key` and `record`, which hold the one before. `false`: no more rows come.
    fn next_row(&mut self, key: &mut Vec<u8>, record: &mut crate::strings::Strings) -> bool;
}
