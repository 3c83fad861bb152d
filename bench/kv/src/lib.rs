//! The key-value driver: rows in partitions under the workloads of scylla-bench. Its options, its defaults and the
//! lines that it prints are those of scylla-bench. A *partition* is the rows with the same first key, and the second
//! key, the *clustering key*, orders the rows of a partition. `docs/benchmarks/kv.md` says what is different.
//!
//! It knows no database: one that can be measured is a [`Database`], which the loop of the harness drives with
//! [`harness::PartitionRequest`]s. From the bottom up: `database` is what is asked of one, `draw` draws numbers,
//! `value` makes and checks values, `options` are those of the command line, `keys` draws rows, `client` does
//! operations on them.

pub mod client;
pub mod conformance;
pub mod database;
pub mod draw;
pub mod keys;
pub mod noop;
pub mod options;
pub mod value;

pub use client::{Findings, Work};
pub use database::{Content, Database, Scheme, ServerOptions, Setup};
pub use options::{Distribution, Mode, Options, Restriction, Retries, Workload};
pub use value::{Filler, RowSize};
