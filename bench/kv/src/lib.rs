//! The key-value driver: rows in partitions under the workloads of scylla-bench. Its options, its defaults and the lines that it
//! prints are those of scylla-bench. `docs/benchmarks/kv.md` says what is different.
//!
//! It knows no database: one that can be measured is a [`Database`], which the loop of the harness drives with
//! [`harness::PartitionRequest`]s.

pub mod conformance;
pub mod database;

pub use database::{Content, Database, Scheme, ServerOptions, Setup};
