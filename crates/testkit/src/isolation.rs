//! Finds anomalies in what concurrent transactions saw. A history of transactions goes in: their reads, their writes,
//! their outcomes and the versions of their commits. What no engine that keeps its promise could have shown comes out:
//! an *anomaly* is what concurrent transactions saw although their isolation does not allow it. A value in a history is
//! a *mark*, a number that stands for the value and names its writer.
//!
//! The checker knows no engine, and not how one decides which transactions may commit. It looks at three things:
//!
//! 1. Each read shows what the transaction's snapshot holds, under the transaction's own writes: values and absent
//!    keys, and of a range neither a row too few nor one too many. Transactions that did not commit are checked too.
//! 2. The committed transactions and their dependencies form a graph. For each key the engine gives the order of its
//!    versions, so every edge is known: *ww* leads from a version to the next one, *wr* from a version to who read it,
//!    *rw* from who read a version to who wrote the next one, and *rt* (real time) from a transaction that was
//!    acknowledged to one that began later. A range is a read of every key in it that the history knows, absent ones
//!    too; so the *rw* of a range finds phantoms.
//! 3. No two overlapping transactions that asked for [`Isolation::Snapshot`] wrote the same key.
//!
//! Which cycles of the graph are anomalies depends on the levels that the transactions asked for. Under serializability
//! each of them is. Under snapshot isolation a cycle is allowed if some transaction in it is a *pivot*: an *rw* leads
//! to it and an *rw* leads away from it. If levels are mixed, a cycle is allowed if it has a pivot that asked for
//! snapshot isolation. Real time counts as a dependency at both levels, so what is checked is strict serializability,
//! and snapshot isolation in which a snapshot has every commit that was acknowledged before it.
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
//! A range erase is a write of those keys that it changes. A key that had no value looks the same after an erase, so
//! who read that it has none comes before the transaction that next gives it a value, and not before the erase.
//!
//! The cost is linear in the operations, in the rows that ranges gave and in the known keys within these ranges, except
//! that transactions are sorted by version and a key is found by a binary search. A history should have few keys, so
//! that transactions meet.
//!
//! [`plan`] draws transactions from a seed, [`player`] plays them on a [`store::Store`] and writes down what they saw.
//! [`ReferenceStore`](reference::ReferenceStore) is such a store, correct or broken on purpose, which shows that the
//! rest finds what it should. [`engine`] is the engine as such a store, and [`script`] plays transactions on it that
//! stand in a text.

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

/// The anomalies of a history, each transaction judged by the level it asked for. A transaction of unknown outcome
/// counts as one that did not take place.
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
