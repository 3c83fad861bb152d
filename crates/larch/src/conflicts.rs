//! Finds conflicts between transactions. This folder uses the keys that a transaction has read, the keys that others
//! have committed lately, and keys that are reserved. This folder does not know how rows are read, or how a commit
//! gets into the log.
//!
//! A transaction reads at the version at which it began. On top of this version it sees its own writes. When it
//! commits, the keys that it has read are compared with all commits since it began. The comparison happens under the
//! lock that orders commits. These commits are still in memory, where rows are ordered by key and version. So the
//! memtables are the index in which conflicts are looked up (decision 64). A commit outside of transactions has to
//! do only one thing for this: while a transaction is running, it leaves the signature of its keys.

pub mod read_set;
pub mod recent;
pub mod reserved;
pub mod signature;
