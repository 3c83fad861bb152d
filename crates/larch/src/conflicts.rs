//! What transactions are compared by: the keys that one has read, the keys that others have committed lately, and keys
//! that are reserved. It does not know how rows are read, or how a commit gets into the log.
//!
//! A transaction reads at the version at which it began, over which its own writes lie. At its commit, under the lock
//! that orders commits, what it has read is compared with the commits since then. These are still in memory, where rows
//! are ordered by key and version: the memtables are the index of conflicts (decision 64). A commit outside of
//! transactions does nothing for it but to leave the signature of its keys, if a transaction is running.

pub mod read_set;
pub mod recent;
pub mod reserved;
pub mod signature;
