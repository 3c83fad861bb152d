//! Finds anomalies in what concurrent transactions saw. The input is a history of transactions: their reads, their
//! writes, their outcomes and the versions of their commits. The output is the list of anomalies. An *anomaly* is
//! something that concurrent transactions saw although their isolation does not allow it. A value in a history is a
//! *mark*, a number that stands for the value and identifies its writer.
//!
//! The checker knows no engine, and no rule by which an engine decides which transactions may commit. It looks at
//! three things:
//!
//! 1. Each read must show what the transaction's snapshot holds, overlaid by the transaction's own writes. This
//!    includes values and absent keys. A range must have neither a row too few nor a row too many. Transactions that did
//!    not commit are checked, too.
//! 2. The committed transactions and their dependencies form a graph. For each key the engine gives the order of its
//!    versions, so every edge is known. *ww* leads from the writer of a version to the writer of the next version. *wr*
//!    leads from the writer of a version to a transaction that read it. *rw* leads from a transaction that read a
//!    version to the writer of the next version. *rt* (real time) leads from an acknowledged transaction to a
//!    transaction that began later. A range counts as a read of every key in it that the history knows, including absent
//!    keys. So the *rw* of a range finds phantoms.
//! 3. No two overlapping transactions that asked for [`Isolation::Snapshot`] wrote the same key.
//!
//! Which cycles of the graph are anomalies depends on the levels that the transactions asked for. Under
//! serializability every cycle is an anomaly. Under snapshot isolation a cycle is allowed if some transaction in it
//! is a *pivot*: an *rw* leads to it and an *rw* leads away from it. If levels are mixed, a cycle is allowed if it
//! has a pivot that asked for snapshot isolation. Real time counts as a dependency at both levels. So the checker
//! tests strict serializability, and a snapshot isolation in which a snapshot has every commit that was acknowledged
//! before it.
//!
//! Names and definitions are from these:
//!
//! * Berenson, Bernstein, Gray, Melton, O'Neil and O'Neil, "A Critique of ANSI SQL Isolation Levels", SIGMOD 1995: lost
//!   update, read skew, write skew, phantom, snapshot isolation.
//! * Adya, "Weak Consistency: A Generalized Theory and Optimistic Implementations for Distributed Transactions", MIT
//!   1999: the graph, G0, G1a, G1b, G1c, G-single, G2-item, G2.
//! * Fekete, O'Neil and O'Neil, "A Read-Only Transaction Anomaly Under Snapshot Isolation", SIGMOD Record 2004.
//! * Fekete, "Allocating Isolation Levels to Transactions", PODS 2005: which levels the pivots of a cycle need.
//! * Kingsbury and Alvaro, "Elle: Inferring Isolation Anomalies from Experimental Observations", VLDB 2020: unique
//!   values that name their writer, G-nonadjacent, cycles with real time.
//!
//! A range erase is a write of the keys that it changes. A key without a value looks the same after an erase. So a
//! transaction that read that the key has no value comes before the transaction that next gives it a value, but not
//! before the erase.
//!
//! The cost is linear in the number of operations, of rows that ranges gave, and of known keys within these ranges.
//! In addition, transactions are sorted by version, and a key is found by a binary search. A history should have few
//! keys, so that transactions meet.
//!
//! [`plan`] draws transactions from a seed, and [`player`] plays them on a [`store::Store`] and records what they
//! saw. [`ReferenceStore`](reference::ReferenceStore) is such a store, correct or broken on purpose. It shows that
//! the checker finds what it should. [`engine`] is the engine as such a store. [`script`] plays transactions from a
//! text on the engine.

pub mod anomaly;
mod cycle_anomaly;
mod cycles;
pub mod engine;
mod graph;
pub mod indexes;
mod keys;
mod notation;
mod order;
mod own_writes;
pub mod plan;
pub mod player;
mod reads;
pub mod reference;
pub mod script;
pub mod store;
#[cfg(test)]
mod tests;
pub mod transaction;
mod unknown;

pub use notation::parse;
pub use unknown::{check_with_unknown, lose_after};

use anomaly::Anomaly;
use graph::Graph;
use keys::Keys;
use order::Order;
use transaction::{Isolation, Transaction};

/// The anomalies of a history. Each transaction is judged by the level that it asked for. A transaction of unknown
/// outcome counts as not committed.
pub fn check(history: &[Transaction]) -> Vec<Anomaly> {
    check_levels(history, &|transaction| transaction.isolation)
}

/// As [`check`], but each transaction is judged as if it had asked for `isolation`.
pub fn check_as(isolation: Isolation, history: &[Transaction]) -> Vec<Anomaly> {
    check_levels(history, &|_| isolation)
}

fn check_levels(history: &[Transaction], level: &dyn Fn(&Transaction) -> Isolation) -> Vec<Anomaly> {
    let keys = Keys::of(history);
    let mut anomalies = Vec::new();
    let order = Order::of(history, &keys, level, &mut anomalies);
    let mut graph = Graph::of_transactions(history.len());
    graph.add_writes(&order);
    reads::check(history, &keys, &order, &mut graph, &mut anomalies);
    graph.add_real_time(history);
    let allows_pivots: Vec<bool> =
        history.iter().map(|transaction| level(transaction) == Isolation::Snapshot).collect();
    for cycle in cycles::find(&graph.sorted(), &allows_pivots) {
        anomalies.push(cycle_anomaly::of_cycle(&cycle, history, &keys, &order));
    }
    anomalies
}
