//! Redis as a store of the benchmark, through its protocol RESP.
//!
//! From the bottom up: `wire` has the commands and answers of the protocol. `address` parses a target. `connection` is
//! a socket on which commands go out together. `flights` keeps many requests under way on one connection. `store` is a
//! table of YCSB, and `partitions` is one of the key-value driver. `server` starts a Redis of our own for tests.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a benchmark takes real time on a real machine, and its server is a process of it"
)]

mod address;
mod connection;
mod flights;
mod partitions;
pub mod server;
mod store;
mod wire;

pub use partitions::SCHEME as PARTITIONS;
pub use store::SCHEME;
