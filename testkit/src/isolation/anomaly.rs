//! An anomaly: its name, and an explanation for the person who has to find the mistake. Other modules find
//! anomalies.

use super::transaction::Transaction;
use std::fmt;

/// The kind of an anomaly. For anomalies that are cycles, the name by Adya or Elle stands in parentheses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A transaction saw a value whose writer did not commit, or whose writer rolled this write back to a
    /// savepoint before it committed (G1a).
    AbortedRead,
    /// A transaction saw a value that its writer replaced before the commit (G1b).
    IntermediateRead,
    /// A transaction saw a value that was committed after its snapshot.
    FutureRead,
    /// A transaction saw an old value, or no value, although its snapshot has another value.
    NotOfSnapshot,
    /// A transaction did not see what it wrote itself.
    MissedOwnWrite,
    /// A transaction saw a value that no transaction wrote to this key.
    UnwrittenValue,
    /// The rows of a range were not in order, or some of them do not belong to the range.
    BrokenRange,
    /// A commit has no version, or the version of another commit, or one that is not newer than its own snapshot.
    CommitOrder,
    /// Under snapshot isolation, two transactions that overlap wrote the same key.
    OverlappingWrites,
    /// A cycle of writes only (G0).
    DirtyWrite,
    /// Each transaction of the cycle sees or overwrites what the previous transaction in the cycle wrote (G1c).
    CircularInformation,
    /// A transaction read a key, another one then wrote it, and the first overwrote this new value without having
    /// seen it (G-single).
    LostUpdate,
    /// A transaction saw a part of what another transaction wrote, but not all of it (G-single).
    ReadSkew,
    /// Readers see independent writes in different orders (G-nonadjacent).
    LongFork,
    /// Two neighbours in the cycle, or more, each read something that the next transaction in the cycle then
    /// overwrote (G2-item).
    WriteSkew,
    /// Write skew through a range that a row entered or left (G2).
    Phantom,
}

/// An anomaly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Anomaly {
    /// Its name.
    pub kind: Kind,
    /// Whether this is an anomaly only because some transactions were acknowledged before others began.
    pub needs_real_time: bool,
    /// The ids of the transactions that take part in the anomaly.
    pub transactions: Vec<u64>,
    pub(super) story: String,
}

impl Anomaly {
    /// An anomaly in which `transactions` take part.
    pub fn of(kind: Kind, transactions: &[&Transaction], what: &str) -> Self {
        let mut story = format!("{what}\n");
        for transaction in transactions {
            story += &format!("  {transaction}\n");
        }
        let transactions = transactions.iter().map(|transaction| transaction.id).collect();
        Self { kind, needs_real_time: false, transactions, story }
    }
}

impl fmt::Display for Anomaly {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = if self.needs_real_time { ", by real time" } else { "" };
        write!(out, "{:?}{time}: {}", self.kind, self.story)
    }
}
