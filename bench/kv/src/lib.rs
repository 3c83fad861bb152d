//! The key-value driver: rows in partitions under the workloads of scylla-bench. The driver's options, defaults and
//! printed lines follow scylla-bench. A *partition* is the set of rows with the same first key. The second key, the
//! *clustering key*, orders the rows of a partition. `docs/benchmarks/kv.md` lists the differences from
//! scylla-bench.
//!
//! This crate knows no database. A database that can be measured is a [`Database`], which the loop of the harness
//! drives with [`harness::PartitionRequest`]s. From the bottom up: `database` is the interface of a database, `draw`
//! draws numbers, `value` makes and checks values, `options` has the options of the command line, `keys` draws rows,
//! and `client` does operations on the rows.

pub mod client;
pub mod conformance;
pub mod database;
pub mod draw;
pub mod keys;
pub mod noop;
pub mod options;
pub mod value;

pub use client::{Findings, Work};
pub use database::{Content, Database, KvScheme, ServerOptions, Setup};
pub use options::{Distribution, Mode, Options, Restriction, Retries, Workload};
pub use value::{Filler, RowSize};
