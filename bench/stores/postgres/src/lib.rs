//! PostgreSQL as a store of the benchmark. This crate speaks the wire protocol of PostgreSQL. The crate makes few
//! system calls and does little work per request, because the benchmark must not measure the client.
//!
//! From the bottom up: `wire` knows the bytes of messages and no socket. `address` reads the address from a target,
//! and `tls` encrypts a socket. `connection` is one session with a server: one thread uses it and waits for each
//! answer. `statements` is the SQL of a table. `sockets` waits for several connections, and `flights` has many
//! requests under way on these connections. `loader` fills a table, and `store` puts everything together. `server`
//! starts a PostgreSQL of our own for tests and comparisons; `comparison` compares our client with pgbench. `tpcc`
//! is TPC-C.

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
pub use partitions::SCHEME as PARTITIONS;
pub use row_access::SCHEME as ROW_ACCESS;
pub use store::SCHEME;
pub use tpcc::{COCKROACH as TPCC_COCKROACH, POSTGRES as TPCC, YUGABYTE as TPCC_YUGABYTE};
