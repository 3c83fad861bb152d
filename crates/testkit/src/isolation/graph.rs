//! The dependencies between committed transactions. Which cycles of them are anomalies is not decided here.
//!
//! Nodes are the transactions, by their index in the history, and after them *moments*, which are points in real
//! time. Edges lead from an acknowledged transaction to the moment after it, and from a moment to the next moment and
//! to the transactions that begin after it. So real time costs one or two edges for each transaction, and not one
//! edge for each pair.

use super::order::Order;
use super::transaction::Transaction;

/// Why one transaction comes before another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dependency {
    /// *ww*: the second transaction wrote the next version of a key.
    Overwrites,
    /// *wr*: the second transaction read what the first one wrote.
    Reads,
    /// *rw*: the first transaction read a version, and the second one wrote the next version.
    ReadBefore,
    /// *rw* of a range: the second transaction made a row come into the range that the first one read, or go out of
    /// it.
    RangeBefore,
    /// *rt*: the first transaction was acknowledged before the second one began.
    RealTime,
}

impl Dependency {
    /// Whether it is a read of a version before the other's.
    pub fn is_anti(self) -> bool {
        matches!(self, Self::ReadBefore | Self::RangeBefore)
    }
}

/// `to` comes after `from`.
#[derive(Clone, Copy, Debug)]
pub struct Edge {
    /// A node.
    pub from: u32,
    /// Another one.
    pub to: u32,
    /// Why.
    pub why: Dependency,
    /// Number of the key, if real time is not the reason.
    pub key: u32,
    /// Which version of the key was written or read by `to`: its index among the versions of the key.
    pub version: u32,
}

/// A graph that grows.
#[derive(Debug)]
pub struct Graph {
    transactions: u32,
    moments: u32,
    edges: Vec<Edge>,
}

impl Graph {
    /// No edges.
    pub fn of_transactions(count: usize) -> Self {
        Self { transactions: count as u32, moments: 0, edges: Vec::new() }
    }

    /// Adds an edge, unless it leads from a transaction to itself.
    pub fn add(&mut self, edge: Edge) {
        if edge.from != edge.to {
            self.edges.push(edge);
        }
    }

    /// Adds an edge from each version of a key to the next one.
    pub fn add_writes(&mut self, order: &Order) {
        for (key, versions) in order.all() {
            for (version, pair) in (1..).zip(versions.windows(2)) {
                let (from, to) = (pair[0].writer, pair[1].writer);
                self.add(Edge { from, to, why: Dependency::Overwrites, key, version });
            }
        }
    }

    /// Adds what follows from the order of events.
    pub fn add_real_time(&mut self, history: &[Transaction]) {
        // The order of the variants matters: if events have the same number, they are not known to be one after the
        // other.
        #[derive(PartialEq, Eq, PartialOrd, Ord)]
        enum What {
            Began,
            Acknowledged,
        }
        let mut events: Vec<(u64, What, u32)> = Vec::with_capacity(2 * history.len());
        for (index, transaction) in (0..).zip(history).filter(|(_, transaction)| transaction.is_committed()) {
            events.extend(transaction.began.map(|at| (at, What::Began, index)));
            events.extend(transaction.acknowledged.map(|at| (at, What::Acknowledged, index)));
        }
        events.sort_unstable();
        let why = Dependency::RealTime;
        let edge = |from, to| Edge { from, to, why, key: 0, version: 0 };
        // A moment takes acknowledgements until a transaction begins. Then it is closed.
        let (mut last, mut open): (Option<u32>, Option<u32>) = (None, None);
        for (_, what, transaction) in events {
            match what {
                What::Acknowledged => {
                    let moment = open.unwrap_or_else(|| {
                        let moment = self.transactions + self.moments;
                        self.moments += 1;
                        self.edges.extend(last.map(|last| edge(last, moment)));
                        moment
                    });
                    open = Some(moment);
                    self.add(edge(transaction, moment));
                }
                What::Began => {
                    last = open.take().or(last);
                    self.edges.extend(last.map(|last| edge(last, transaction)));
                }
            }
        }
    }

    /// The graph with the edges of each node side by side.
    pub fn sorted(self) -> SortedGraph {
        let nodes = (self.transactions + self.moments) as usize;
        let mut starts = vec![0_u32; nodes + 1];
        for edge in &self.edges {
            starts[edge.from as usize + 1] += 1;
        }
        for node in 0..nodes {
            starts[node + 1] += starts[node];
        }
        let mut next = starts.clone();
        let mut edges = self.edges.clone();
        for edge in self.edges {
            let place = &mut next[edge.from as usize];
            edges[*place as usize] = edge;
            *place += 1;
        }
        SortedGraph { transactions: self.transactions, starts, edges }
    }
}

/// A graph that is complete.
#[derive(Debug)]
pub struct SortedGraph {
    /// Nodes below this number are transactions, the others moments.
    pub transactions: u32,
    /// Where the edges of each node start. The last entry is where the edges of the last node end.
    starts: Vec<u32>,
    /// All edges, by the node that they come from.
    pub edges: Vec<Edge>,
}

impl SortedGraph {
    /// The number of nodes.
    pub fn nodes(&self) -> usize {
        self.starts.len() - 1
    }

    /// Where the edges from a node lie in `edges`.
    pub fn from(&self, node: u32) -> std::ops::Range<usize> {
        self.starts[node as usize] as usize..self.starts[node as usize + 1] as usize
    }
}
