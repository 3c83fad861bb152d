//! What decides about conflicts of transactions: the keys that a transaction has read, the keys that others have
//! committed lately, and keys that are reserved. It does not know how rows are read, or how a commit gets into the
//! log.
//!
//! A transaction reads at the version at which it began, and sees its own writes on top. At its commit, under the
//! lock that orders commits, the keys that it has read are compared with the commits since it began. These commits
//! are still in memory, where rows are ordered by key and version: the memtables are the index of conflicts
//! (decision 64). A commit outside of transactions has only one thing to do for this: while a transaction is
//! running, it leaves the signature of its keys.

pub mod read_set;
pub mod recent;
pub mod reserved;
pub mod signature;
