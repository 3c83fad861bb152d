//! The interface of a database for the key-value driver.
//!
//! A database is a [`Store`] of the harness, whose sessions answer only
//! [`Request::Partition`](harness::Request::Partition). So the loop that drives every other benchmark also drives a
//! database, with the same clocks and histograms.

use harness::{Failure, Opening, Store, Target};
use std::fmt;
use std::time::Duration;

/// A kind of database that can be opened.
#[derive(Clone, Copy)]
pub struct KvScheme {
    /// The text before the colon of a target.
    pub name: &'static str,
    /// Whether the database runs in another process. If it does, the client's processor time does not include the
    /// database's processor time.
    pub networked: bool,
    /// Options of the driver that have no meaning for this database, by their names (`consistency-level`). Each comes
    /// with the reason as a clause: `Larch has one copy of the data`.
    pub unused: &'static [(&'static str, &'static str)],
    /// Opens such a database.
    pub open: Open,
}

/// Opens a database. If the table of the run does not exist, it is made, unless [`Setup::opening`] forbids this.
pub type Open = fn(&Target, &Setup) -> Result<Box<dyn Database>, Failure>;

/// The columns of a table's rows.
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
    /// What may be made. With [`Opening::Existing`], nothing is made: neither the table nor what contains it.
    pub opening: Opening,
    /// The keyspace, or the place for tables that the database has instead of keyspaces.
    pub keyspace: String,
    /// The table of the run.
    pub table: String,
    /// The columns of its rows.
    pub content: Content,
    /// The number of requests that all threads together have under way at once; at least 1.
    pub concurrency: usize,
    /// The number of threads; at least 1. Each thread has a session.
    pub threads: usize,
    /// The number of connections of all threads together; at least 1. A database in this process has no
    /// connections.
    pub connections: usize,
    /// The number of rows that a scan fetches at once.
    pub page_rows: u32,
    /// The longest time that a request may take before it fails.
    pub timeout: Duration,
    /// Options that only some databases know.
    pub server: ServerOptions,
}

/// Options that only some databases know. `None`: not given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerOptions {
    /// How many copies must answer: `quorum`, `one`, …
    pub consistency_level: Option<String>,
    /// How many copies a new keyspace has.
    pub replication_factor: Option<u32>,
    /// Whether messages are compressed.
    pub client_compression: Option<bool>,
    /// The policy that chooses a server: `round-robin`, `host-pool` or `token-aware`.
    pub host_selection_policy: Option<String>,
    /// Whether reads leave the server's row cache unchanged.
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
    /// The number of requests that one session must be able to have under way.
    pub fn requests_a_session(&self) -> usize {
        self.concurrency.div_ceil(self.threads.max(1)).max(1)
    }

    /// The number of connections of one session.
    pub fn connections_a_session(&self) -> usize {
        self.connections.div_ceil(self.threads.max(1)).max(1)
    }
}

/// The failure for a read of a table that does not exist. `place` is the place in which the table should be.
#[cold]
pub fn not_written(table: &str, place: impl fmt::Display) -> Failure {
    let text = format!("there is no table `{table}` in {place}: write it first, with -mode write or counter_update");
    Failure::session("no_store", text)
}

/// A database with one table of partitions.
///
/// What a session ([`Store::session`]) must do:
///
/// * The session is a [`Flights`](harness::Flights), whose depth is at least [`Setup::requests_a_session`].
/// * The session answers every [`PartitionRequest`](harness::PartitionRequest). `Add` need not work in a table of
///   values, and `Insert` need not work in a table of counters.
/// * The session gives the rows of a `Read` to [`Reply::partition_row`](harness::Reply::partition_row) or
///   [`Reply::partition_counters`](harness::Reply::partition_counters). The session gives the rows of a `Scan` to
///   [`Reply::scanned_row`](harness::Reply::scanned_row).
/// * If a read finds no row, the answer is [`Outcome::NotFound`](harness::Outcome::NotFound). For every other
///   request that was done, the answer is [`Outcome::Ok`](harness::Outcome::Ok).
/// * If the same request may succeed later, the failure has [`Harm::Again`](harness::Harm::Again), and the driver
///   repeats the request. If the session cannot be used any more, the failure has
///   [`Harm::Session`](harness::Harm::Session), and the run ends.
///
/// [`Store::settings`] names engine, durability, cache and copies. [`Store::is_empty`] and [`Store::counters`] are
/// about the table. [`crate::conformance::check`] checks all these promises.
pub trait Database: Store {
    /// Removes all rows of the table.
    ///
    /// # Errors
    ///
    /// Returns an error if the database cannot remove all rows.
    fn truncate(&self) -> Result<(), Failure>;

    /// Removes the table. After this call, only [`Store::close`] is called.
    ///
    /// # Errors
    ///
    /// Returns an error if the database cannot remove the table.
    fn drop_table(&self) -> Result<(), Failure>;
}
