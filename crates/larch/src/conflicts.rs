//! Finds conflicts between transactions. The code here keeps three things: the keys that a transaction has read,
//! the keys that others have committed lately, and the keys that transactions have reserved. This folder does not
//! know how rows are read, or how a commit gets into the log.
//!
//! A transaction reads at the version at which it began. On top of this version it sees its own writes. When the
//! transaction commits, the keys that it has read are compared with the keys of all commits since it began. The
//! comparison happens under the lock that orders commits. The rows of these commits are still in memory, ordered by
//! key and version. So the memtables are the index in which conflicts are looked up (decision 64). A commit that
//! does not belong to a transaction has almost no extra work. While a transaction is running, such a commit also
//! stores the signature of its keys.

pub mod read_set;
pub mod recent;
pub mod reserved;
pub mod signature;
