//! PostgreSQL as a store of the benchmark. This crate speaks PostgreSQL's wire protocol itself, with few system
//! calls and little work per request, because the benchmark must not measure its client.
//!
//! From the bottom up: `wire` encodes and decodes messages and uses no socket. `dialect` has the differences between
//! servers, `address` parses the address in a target, and `tls` encrypts a socket. `connection` is one session with a
//! server, on which one thread waits for each answer. `statements` is the SQL of a table. `sockets` waits for several connections, and `flights` keeps
//! many requests under way on them. `loader` fills a table, and `store` puts everything together. `server` starts a
//! PostgreSQL of our own for tests and comparisons; `comparison` compares our client with pgbench. `tpcc` is TPC-C.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a benchmark takes real time on a real machine, and its server lies on the real disk"
)]

pub mod address;
pub mod comparison;
pub mod connection;
mod dialect;
pub mod error;
pub mod flights;
pub mod loader;
mod moved;
mod partitions;
mod row_access;
pub mod server;
mod sockets;
pub mod statements;
pub mod store;
mod tls;
mod tpcc;
pub mod wire;

pub use address::Address;
pub use connection::Connection;
pub use error::{Error, ServerError};
pub use partitions::{COCKROACH as PARTITIONS_COCKROACH, SCHEME as PARTITIONS, YUGABYTE as PARTITIONS_YUGABYTE};
pub use row_access::{COCKROACH as ROW_ACCESS_COCKROACH, SCHEME as ROW_ACCESS, YUGABYTE as ROW_ACCESS_YUGABYTE};
pub use store::{COCKROACH, SCHEME, YUGABYTE};
pub use tpcc::{COCKROACH as TPCC_COCKROACH, POSTGRES as TPCC, YUGABYTE as TPCC_YUGABYTE};
