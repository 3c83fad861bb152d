//! The interface of every store that is measured.
//!
//! A [`Scheme`](crate::Scheme) opens a store on one table. Every thread of a run takes its own session. A store whose
//! calls wait has [`Blocking`] sessions. A store that can have many requests under way on one thread has [`Flights`].

use crate::clock::Clock;
use crate::failure::Failure;
use crate::reply::Reply;
use crate::request::Request;
use crate::transactions::{Checked, Commits, Transactions};
use serde::{Deserialize, Serialize};

/// A database that is measured.
pub trait Store: Send + Sync {
    /// The engine and the settings in effect, which may differ from those that were asked for: version, durability,
    /// cache, compression, page size, …
    fn settings(&self) -> Vec<Setting>;

    /// A session for the calling thread.
    fn session(&self, clock: Clock) -> Result<Session<'_>, Failure>;

    /// A session for a load. The session gets only inserts, and may gather them ([`Outcome::Batched`]).
    fn loader(&self, clock: Clock) -> Result<Session<'_>, Failure> {
        self.session(clock)
    }

    /// Transactions for the calling thread. Their commits check the rows that `checked` names for changes by others.
    /// Returns `None` if the store has no such transactions, or was opened without them.
    fn transactions(&self, checked: Checked) -> Option<Box<dyn Transactions + '_>> {
        let _ = checked;
        None
    }

    /// Commits for the calling thread. When a call returns, up to `in_flight` commits may not be durable yet. With
    /// 0, each commit is durable when its call returns. `None` if the store has no such commits, or was not opened
    /// with synced commits.
    fn commits(&self, in_flight: usize) -> Option<Box<dyn Commits + '_>> {
        let _ = in_flight;
        None
    }

    /// Loads rows, which come in ascending key order, into an empty table in the fastest way that the store has.
    /// Returns their number, or `None` if the store has no bulk load.
    fn bulk_load(&self, rows: &mut dyn Rows) -> Result<Option<u64>, Failure> {
        let _ = rows;
        Ok(None)
    }

    /// Whether the table has no row.
    fn is_empty(&self) -> Result<bool, Failure>;

    /// What the store has counted since it was opened: page reads, cache hits, bytes written, …
    fn counters(&self) -> Vec<Counter>;

    /// The processor time and disk bytes that the store has used outside this process.
    fn used(&self) -> StoreUse;

    /// Waits until written data has reached its final place, and no background work is left.
    fn settle(&self) -> Result<(), Failure>;

    /// Builds a secondary index of all rows over a part of their values, while other threads write. Returns the
    /// number of rows that the build has visited. Returns `None` if the store has no secondary indexes.
    fn build_index(&self) -> Result<Option<u64>, Failure> {
        Ok(None)
    }

    /// Compares the rows with the index that [`Store::build_index`] has built, and removes the index. Returns the
    /// number of its entries. Fails if index and rows differ, or if the table has no index.
    fn check_and_drop_index(&self) -> Result<u64, Failure> {
        Err(Failure::request("no_index", "there is no index to check"))
    }

    /// Resizes the page cache while the store is in use. Returns `false` if the store cannot do this.
    fn set_cache_bytes(&self, bytes: u64) -> Result<bool, Failure> {
        let _ = bytes;
        Ok(false)
    }

    /// Closes the store cleanly.
    fn close(self: Box<Self>) -> Result<(), Failure>;
}

/// One thread's connection to a store.
pub enum Session<'s> {
    /// Calls wait for the answer.
    Blocking(Box<dyn Blocking + 's>),
    /// Many requests can be under way.
    Flights(Box<dyn Flights + 's>),
}

/// A session whose calls wait for the answer.
pub trait Blocking {
    /// Executes `request`, and puts the rows into `reply`, which is empty before the call. Only the engine may
    /// allocate memory in this call.
    fn call(&mut self, request: &Request<'_>, reply: &mut Reply) -> Result<Outcome, Failure>;

    /// Writes the gathered inserts. Called once, after the last request.
    fn finish(&mut self) -> Result<(), Failure> {
        Ok(())
    }
}

/// A session with many requests under way.
pub trait Flights {
    /// How many requests may be under way at once; at least 1.
    fn depth(&self) -> usize;

    /// Takes a request into slot `slot`, which is free and below the depth. Copies the request's bytes before it
    /// returns, and may leave sending them to [`Flights::wait`].
    fn start(&mut self, slot: u32, request: &Request<'_>) -> Result<(), Failure>;

    /// Sends the requests that were taken, and calls `served` with the answer to each. Returns when at least one
    /// request was answered, or at `until`, a time on the session's clock (`None`: no limit). Returns at once if no
    /// request is under way and `until` has passed. After an error, the session and all requests under way are lost.
    fn wait(&mut self, until: Option<u64>, served: &mut dyn FnMut(Served<'_>)) -> Result<(), Failure>;

    /// Writes the gathered inserts. Called once, when no request is under way.
    fn finish(&mut self) -> Result<(), Failure> {
        Ok(())
    }
}

/// The answer to one request of [`Flights`].
#[derive(Debug)]
pub struct Served<'r> {
    /// The slot that the request was given.
    pub slot: u32,
    /// When the request was sent to the store, by the session's clock.
    pub sent: u64,
    /// When its answer arrived.
    pub served: u64,
    /// The result.
    pub result: Result<Outcome, Failure>,
    /// The rows.
    pub reply: &'r Reply,
}

/// The result of a request that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The request was done.
    Ok,
    /// No such row exists.
    NotFound,
    /// The store keeps the insert and writes it later, together with other inserts.
    Batched,
    /// The transaction was rolled back, as its input demands. It is done, and neither failed nor is it made again.
    RolledBack,
}

/// One setting of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The name of the setting, such as `durability` or `cache`. Every store uses the same name for the same thing.
    pub name: &'static str,
    /// The value in a form for people, for example `64 MiB`, or `buffered: log written, not synced`.
    pub value: String,
}

impl Setting {
    /// A setting with this `name` and `value`.
    pub fn new(name: &'static str, value: impl Into<String>) -> Self {
        Self { name, value: value.into() }
    }
}

/// A count that a store keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counter {
    /// The name of the counter, such as `page reads` or `bytes written`. Every store uses the same name for the same
    /// thing.
    pub name: &'static str,
    /// Its value since the store was opened.
    pub value: u64,
    /// Whether the value goes up and down, like memory in use. The difference of two values of a gauge has no
    /// meaning.
    pub gauge: bool,
}

impl Counter {
    /// A counter of events.
    pub fn of(name: &'static str, value: u64) -> Self {
        Self { name, value, gauge: false }
    }

    /// A gauge: the value at this moment.
    pub fn now(name: &'static str, value: u64) -> Self {
        Self { name, value, gauge: true }
    }
}

/// Where a store runs, and what it has used there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StoreUse {
    /// In this process, which is measured in any case.
    InProcess,
    /// In separate processes on this machine.
    Server(ServerUse),
    /// On another machine, or in a place that this process cannot see.
    Unknown,
}

impl StoreUse {
    /// What was used between `before` and `self`.
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
    /// Bytes that were read from the disk for the server, if this user may see them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_bytes: Option<u64>,
    /// Bytes that were written to the disk for the server, if this user may see them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written_bytes: Option<u64>,
}

/// Rows in key order.
pub trait Rows {
    /// Replaces the previous row in `key` and `record` by the next row of the load. Returns `false` if there are no
    /// more rows.
    fn next_row(&mut self, key: &mut Vec<u8>, record: &mut crate::strings::Strings) -> bool;
}
