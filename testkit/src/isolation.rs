//! Finds anomalies in a history of concurrent transactions: their reads, writes, outcomes and commit versions. An
//! *anomaly* is something that a transaction saw although its isolation level does not allow it. In a history, a
//! value is only a number, its *mark*, which identifies the writer of the value.
//!
//! The checker does not know how an engine decides which transactions may commit. It checks three things:
//!
//! 1. A read must show what the transaction's snapshot holds, unless the transaction itself has written the key
//!    before. This holds for values, for absent keys, and for ranges, which must have exactly the right rows. The
//!    reads of transactions that did not commit are checked, too.
//! 2. The committed transactions and their dependencies form a graph. The engine's versions give the order of the
//!    writes to each key, so every edge of the graph is known. A *ww* edge leads from the writer of a version to the
//!    writer of the key's next version. A *wr* edge leads from the writer of a version to a transaction that read
//!    it. An *rw* edge leads from a transaction that read a version to the writer of the key's next version. An *rt*
//!    edge (real time) leads from an acknowledged transaction to a transaction that began later. A range counts as a
//!    read of every key in it that the history knows, including absent keys. So the *rw* edges of a range find
//!    phantoms.
//! 3. No two overlapping transactions that asked for [`Isolation::Snapshot`] wrote the same key.
//!
//! The isolation levels of the transactions decide which cycles of the graph are anomalies. Under serializability
//! every cycle is one. Under snapshot isolation, a cycle is allowed if it has a *pivot*: a transaction that the
//! cycle enters by an *rw* edge and leaves by another. If the transactions asked for different levels, a cycle is
//! allowed if it has a pivot that asked for snapshot isolation. Real time counts as a dependency at both levels. So
//! for serializable transactions, the checker tests strict serializability. For snapshot isolation, it tests that a
//! snapshot has every commit that was acknowledged before the snapshot was taken.
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
//! The cost is linear in the operations, the rows that ranges returned, and the known keys within these ranges,
//! apart from sorting the transactions by version and finding keys by binary search. A history should have few keys,
//! so that its transactions conflict.
//!
//! [`plan`] draws transactions from a seed, and [`player`] plays them on a [`store::Store`] and records what they
//! saw. [`ReferenceStore`](reference::ReferenceStore) is a store that is correct, or broken on purpose to show that
//! the checker finds what it should. [`engine`] makes a store out of the engine. [`script`] plays transactions from
//! a text on the engine.

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

/// Returns the anomalies of a history, judging each transaction by the isolation level that it asked for. A
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
