//! Detects conflicts between transactions. This folder keeps the keys that a transaction has read, the keys that
//! were committed lately, and the keys that transactions have reserved. It does not know how rows are read, or how a
//! commit gets into the log.
//!
//! A transaction reads at the version at which it began, and sees its own writes on top. When it commits, its read
//! set is checked against the keys of all commits since it began, under the lock that orders commits. The rows of
//! these commits are still in memory, sorted by key and version, so the memtables serve as the index for this check
//! (decision 64). Commits outside transactions pay almost nothing: while a transaction runs, they also store a
//! signature of their keys.

pub mod read_set;
pub mod recent;
pub mod reserved;
pub mod signature;
