//! Cassandra as a store of the key-value driver, through the crate `scylla`, which speaks the protocol of Cassandra and
//! of ScyllaDB.
//!
//! From the bottom up: `address` is what a target says. `error` says what a failure of the driver means to a
//! benchmark. `statements` is the CQL of a table. `connection` is a session of the driver with its own executor,
//! and `flights` has many requests under way on such a session. `store` puts them together. `server` starts a
//! Cassandra of our own for tests and comparisons; `comparison` compares our client with cassandra-stress.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a benchmark takes real time on a real machine, and its server lies on the real disk"
)]

pub mod address;
pub mod comparison;
pub mod connection;
pub mod error;
pub mod flights;
pub mod server;
pub mod statements;
pub mod store;

pub use address::Address;
pub use store::{Cassandra, PARTITIONS, SCHEME};
