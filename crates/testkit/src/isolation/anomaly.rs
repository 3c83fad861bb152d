//! What a broken engine showed: a name, and a story for who has to find the mistake. Anomalies are not found here.

use super::graph::{Dependency, Edge};
use super::keys::Keys;
use super::order::Order;
use super::transaction::Transaction;
use std::fmt;

/// What kind of thing must not be. Those of cycles say in brackets what Adya or Elle call them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A transaction saw a value that one wrote that did not commit, or that its writer took back (G1a).
    AbortedRead,
    /// A transaction saw a value that its writer replaced before it committed (G1b).
    IntermediateRead,
    /// A transaction saw a value that was committed after its snapshot.
    FutureRead,
    /// A transaction saw an old value, or none, where its snapshot has another one.
    NotOfSnapshot,
    /// A transaction did not see what it wrote itself.
    MissedOwnWrite,
    /// A transaction saw a value that nobody wrote to this key.
    UnwrittenValue,
    /// The rows of a range were not in order, or not in the range.
    BrokenRange,
    /// A commit has no place in the order of versions, or one before its own snapshot.
    CommitOrder,
    /// Two transactions that overlap wrote one key, under snapshot isolation.
    OverlappingWrites,
    /// Writes alone make a cycle (G0).
    DirtyWrite,
    /// Each transaction of the cycle sees or overwrites what the one before it wrote (G1c).
    CircularInformation,
    /// A transaction read a key and then overwrote what another one had written to it in between (G-single).
    LostUpdate,
    /// A transaction saw one thing of another one, but not all (G-single).
    ReadSkew,
    /// Readers see independent writes in different orders (G-nonadjacent).
    LongFork,
    /// Transactions read what others then overwrote (G2-item).
    WriteSkew,
    /// As write skew, but of rows that came into a range or went out of it (G2).
    Phantom,
}

/// An anomaly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Anomaly {
    /// Its name.
    pub kind: Kind,
    /// Whether it is one only because some transactions were acknowledged before others began.
    pub needs_real_time: bool,
    /// The ids of the transactions that take part.
    pub transactions: Vec<u64>,
    story: String,
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

/// The anomaly that a cycle is.
pub fn of_cycle(cycle: &[Edge], history: &[Transaction], keys: &Keys<'_>, order: &Order) -> Anomaly {
    let name = |node: u32| format!("T{}", history[node as usize].id);
    let mut what = cycle.iter().map(|edge| name(edge.from)).collect::<Vec<_>>().join(" -> ");
    what += &format!(" -> {}", name(cycle[0].from));
    for edge in cycle {
        let (from, to) = (name(edge.from), name(edge.to));
        let key = || keys.name(edge.key);
        let version = || order.versions(edge.key)[edge.version as usize].version.0;
        what += "\n  ";
        what += &match edge.why {
            Dependency::Overwrites => format!("ww: {from} wrote {}, and {to} overwrote it at {}", key(), version()),
            Dependency::Reads => format!("wr: {to} read {} as {from} left it at {}", key(), version()),
            Dependency::ReadBefore => format!("rw: {from} read {}, and {to} overwrote it at {}", key(), version()),
            Dependency::RangeBefore => {
                format!("rw: {from} read a range, and {to} brought or took {} at {}", key(), version())
            }
            Dependency::RealTime => format!("rt: {from} was acknowledged before {to} began"),
        };
    }
    let members: Vec<&Transaction> = cycle.iter().map(|edge| &history[edge.from as usize]).collect();
    let needs_real_time = cycle.iter().any(|edge| edge.why == Dependency::RealTime);
    Anomaly { needs_real_time, ..Anomaly::of(kind_of(cycle), &members, &what) }
}

fn kind_of(cycle: &[Edge]) -> Kind {
    let has = |why: Dependency| cycle.iter().any(|edge| edge.why == why);
    let is_anti = |index: usize| cycle[index % cycle.len()].why.is_anti();
    let are_adjacent = (0..cycle.len()).any(|index| is_anti(index) && is_anti(index + 1));
    match cycle.iter().filter(|edge| edge.why.is_anti()).count() {
        0 if has(Dependency::Reads) => Kind::CircularInformation,
        0 => Kind::DirtyWrite,
        1 => match cycle {
            [a, b] if has(Dependency::Overwrites) && a.key == b.key => Kind::LostUpdate,
            _ => Kind::ReadSkew,
        },
        _ if !are_adjacent => Kind::LongFork,
        _ if has(Dependency::RangeBefore) => Kind::Phantom,
        _ => Kind::WriteSkew,
    }
}
