//! Cassandra as a store of the key-value driver, through the crate `scylla`, a driver for Cassandra and ScyllaDB.
//!
//! From the bottom up: `address` parses a target. `error` classifies the driver's failures. `statements` is the CQL
//! of a table. `connection` is a session of the driver with its own executor, and `flights` keeps many requests
//! under way on it. `store` puts everything together. `server` starts a Cassandra of our own for tests and
//! comparisons; `comparison` compares our client with cassandra-stress.

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
