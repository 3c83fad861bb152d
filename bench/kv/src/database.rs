//! What a database is asked for by the key-value driver.
//!
//! It is a [`Store`] of the harness, whose sessions answer [`Request::Partition`](harness::Request::Partition) alone.
//! So the loop, the clocks and the histograms are those of every other benchmark.

use harness::{Failure, Opening, Store, Target};
use std::fmt;
use std::time::Duration;

/// A kind of database that can be opened.
#[derive(Clone, Copy)]
pub struct Scheme {
    /// What stands before the colon of a target.
    pub name: &'static str,
    /// Whether the database is another process, so that the client's processor time is not the database's.
    pub networked: bool,
    /// Options of the driver that mean nothing for this database, by their names (`consistency-level`), each with the
    /// reason as a clause: `Larch has one copy of the data`.
    pub unused: &'static [(&'static str, &'static str)],
    /// Opens it.
    pub open: Open,
}

/// Opens a database, and makes the table of the run if it is not there and [`Setup::opening`] lets it.
pub type Open = fn(&Target, &Setup) -> Result<Box<dyn Database>, Failure>;

/// What the rows of a table are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// `(pk bigint, ck bigint, v blob)`.
    Values,
    /// `(pk bigint, ck bigint, c1 counter, …, c5 counter)`.
    Counters,
}

/// How a database is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    /// What may become of a table that is not there: with [`Opening::Existing`] nothing is made, neither the table nor
    /// what it lies in.
    pub opening: Opening,
    /// The keyspace, or what a database has in its place.
    pub keyspace: String,
    /// The table of the run.
    pub table: String,
    /// What its rows are.
    pub content: Content,
    /// Requests under way at once, of all threads together; at least 1.
    pub concurrency: usize,
    /// Threads, each with a session; at least 1.
    pub threads: usize,
    /// Connections of all threads together; at least 1. A database in this process has none.
    pub connections: usize,
    /// A scan brings this number of rows at once.
    pub page_rows: u32,
    /// A request that takes longer fails.
    pub timeout: Duration,
    /// What only some databases know.
    pub server: ServerOptions,
}

/// Options that only some databases know. `None`: not given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerOptions {
    /// How many copies have to answer: `quorum`, `one`, …
    pub consistency_level: Option<String>,
    /// How many copies a new keyspace has.
    pub replication_factor: Option<u32>,
    /// Whether messages are compressed.
    pub client_compression: Option<bool>,
    /// How a server is chosen: `round-robin`, `host-pool` or `token-aware`.
    pub host_selection_policy: Option<String>,
    /// Whether reads leave the cache of rows as it is.
    pub bypass_cache: Option<bool>,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            opening: Opening::OrCreate,
            keyspace: "scylla_bench".to_owned(),
            table: "test".to_owned(),
            content: Content::Values,
            concurrency: 16,
            threads: 1,
            connections: 4,
            page_rows: 1000,
            timeout: Duration::from_secs(5),
            server: ServerOptions::default(),
        }
    }
}

impl Setup {
    /// Requests that one session must be able to have under way.
    pub fn requests_a_session(&self) -> usize {
        self.concurrency.div_ceil(self.threads.max(1)).max(1)
    }

    /// Connections of one session.
    pub fn connections_a_session(&self) -> usize {
        self.connections.div_ceil(self.threads.max(1)).max(1)
    }
}

/// The failure of who would read a table that is not there; `place` is what it should be in.
#[cold]
pub fn not_written(table: &str, place: impl fmt::Display) -> Failure {
    let text = format!("there is no table `{table}` in {place}: write it first, with -mode write or counter_update");
    Failure::session("no_store", text)
}

/// A database with one table of partitions.
///
/// What is asked of a session ([`Store::session`]):
///
/// * It is one of [`Flights`](harness::Flights), whose depth is at least [`Setup::requests_a_session`].
/// * It answers every [`PartitionRequest`](harness::PartitionRequest). In a table of values `Add` need not work, and in
///   a table of counters `Insert` need not.
/// * Rows of a `Read` go to [`Reply::partition_row`](harness::Reply::partition_row) or
///   [`Reply::partition_counters`](harness::Reply::partition_counters), rows of a `Scan` to
///   [`Reply::scanned_row`](harness::Reply::scanned_row).
/// * A read that meets no row is answered with [`Outcome::NotFound`](harness::Outcome::NotFound), everything else that
///   was done with [`Outcome::Ok`](harness::Outcome::Ok).
/// * A failure after which the same request may succeed has [`Harm::Again`](harness::Harm::Again): the driver makes it
///   again. One after which the session is of no more use has [`Harm::Session`](harness::Harm::Session) and ends the
///   run.
///
/// [`Store::settings`] names engine, durability, cache and copies; [`Store::is_empty`] and [`Store::counters`] are of
/// the table. [`crate::conformance::check`] checks all of it.
pub trait Database: Store {
    /// Removes all rows of the table.
    ///
    /// # Errors
    ///
    /// The database cannot.
    fn truncate(&self) -> Result<(), Failure>;

    /// Removes the table. Nothing is asked of it afterwards but [`Store::close`].
    ///
    /// # Errors
    ///
    /// The database cannot.
    fn drop_table(&self) -> Result<(), Failure>;
}
