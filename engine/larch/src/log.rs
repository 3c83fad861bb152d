//! The write-ahead log: one record for each commit, in commit order, and the protocol that makes these records
//! durable. This module does not know what tables are, or where commits are applied.
//!
//! ```text
//! payload of a record:   version u64 | op count u32 | ops (see `batch`)
//! of a lean record:      version step varint | op count varint | ops
//!                        the step is the version less that of the commit before it in the file; the first commit of
//!                        a file states its whole version
//! of a begin record:     previous log's number u64 | previous log's end u64
//! ```
//!
//! Each log names the previous log. If the previous log was durable when the new log was created, the header of the
//! new log names it. Otherwise the first record of the new log, the begin record, does, so that a new log can begin
//! before the previous log is durable.
//!
//! Invariants: versions of records ascend. When [`SyncPoint::wait`] has returned for the version of a commit, the
//! commit is durable.

mod chain;
mod reader;
pub mod resting;
mod sync;
mod writer;

pub use chain::{chain, ends_too_early, named_end, oldest_is_missing};
pub use reader::LogReader;
pub use sync::{SyncPoint, Ticket};
pub use writer::LogWriter;

/// Bytes before the ops in the payload of a record that is not lean.
const COMMIT_HEADER_BYTES: usize = 12;

#[cfg(test)]
pub mod tests;
