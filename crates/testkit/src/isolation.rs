//! Finds anomalies in what concurrent transactions saw. The input is a history of transactions: their reads, their
//! writes, their outcomes and the versions of their commits. The output is the list of anomalies. An *anomaly* is
//! something that concurrent transactions saw although their isolation does not allow it. In a history, a value is
//! only a number, its *mark*, which identifies the writer of the value.
//!
//! The checker knows no engine, and no rule by which an engine decides which transactions may commit. It looks at
//! three things:
//!
//! 1. A read must show what the transaction's snapshot holds, unless the transaction itself has written the key
//!    before. This rule is checked for values and for absent keys. A range must have exactly the right rows: none
//!    may be missing, and none may be too many. The reads of transactions that did not commit are checked, too.
//! 2. The committed transactions and their dependencies form a graph. The engine gives the order in which each key
//!    got its versions, so every edge of the graph is known. There are four kinds of edges. A *ww* edge leads from
//!    the writer of a version to the writer of the key's next version. A *wr* edge leads from the writer of a
//!    version to a transaction that read it. An *rw* edge leads from a transaction that read a version to the
//!    writer of the key's next version. An *rt* edge (real time) leads from an acknowledged transaction to a
//!    transaction that began later. A range counts as a read of every key in it that the history knows, including
//!    absent keys. So the *rw* edges of a range find phantoms.
//! 3. No two overlapping transactions that asked for [`Isolation::Snapshot`] wrote the same key.
//!
//! Each transaction asks for an isolation level. These levels decide which cycles of the graph are anomalies. Under
//! serializability every cycle is an anomaly. Under snapshot isolation, a cycle is allowed if it has a *pivot*. This
//! is a transaction in the cycle that is reached by one *rw* edge and left by another *rw* edge. If the transactions
//! asked for different levels, a cycle is allowed if it has a pivot that asked for snapshot isolation. Real time
//! counts as a dependency at both levels. So for serializable transactions, the checker tests strict
//! serializability. For snapshot isolation, it tests that a snapshot has every commit that was acknowledged before
//! the snapshot was taken.
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
//! A range erase counts as a write of the keys that it changes. If a key has no value, an erase changes nothing
//! for its readers. So a transaction that read that the key has no value must come before the next transaction
//! that gives the key a value. It need not come before a transaction that only erases the key again.
//!
//! The cost is linear in three numbers: operations, rows that ranges gave, and known keys within these ranges. In
//! addition, the transactions are sorted by version, and keys are found by binary search. A history should have few
//! keys, so that its transactions meet.
//!
//! [`plan`] draws transactions from a seed, and [`player`] plays them on a [`store::Store`] and records what they
//! saw. [`ReferenceStore`](reference::ReferenceStore) is a store that is correct, or broken on purpose: with it,
//! tests show that the checker finds the anomalies that it should find. [`engine`] makes a store out of the
//! engine. [`script`] plays transactions from a text on the engine.

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

/// Returns the anomalies of a history. Each transaction is judged by the isolation level that it asked for. A
/// transaction of unknown outcome counts as not committed.
pub fn check(history: &[Transaction]) -> Vec<Anomaly> {
    check_levels(history, &|transaction| transaction.isolation)
}

/// The same as [`check`], but each transaction is judged as if it had asked for `isolation`.
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
