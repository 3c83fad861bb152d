//! The write-ahead log: one record for each commit, in commit order, and the protocol that makes them durable. It does
//! not know what tables are, or where commits are applied.
//!
//! ```text
//! payload of a record:   version u64 | op count u32 | ops (see `batch`)
//! of a begin record:     previous log's number u64 | previous log's end u64
//! ```
//!
//! A log names the previous log. If the previous log is durable, the header names it. Otherwise the first record,
//! the begin record, names it, and the log need not wait.
//!
//! Invariants: versions grow from record to record. A commit is durable once [`SyncPoint::wait`] has returned for its
//! version.

mod chain;
mod reader;
pub mod resting;
mod sync;
mod writer;

pub use chain::{chain, ends_too_early, named_end, oldest_is_missing};
pub use reader::LogReader;
pub use sync::{SyncPoint, Ticket};
pub use writer::LogWriter;

/// How many bytes of a payload come before the ops.
const COMMIT_HEADER_BYTES: usize = 12;

#[cfg(test)]
pub mod tests;
