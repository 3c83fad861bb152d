//! The dependencies between committed transactions. Other modules decide which cycles of dependencies are
//! anomalies.
//!
//! The first nodes of the graph are the transactions, in the order of the history. After them come *moments*, which
//! are points in real time. An edge leads from each acknowledged transaction to the next moment, and from each
//! moment to the next one and to the transactions that began between the two. So real time costs a few edges for
//! each transaction, and not one for each pair.

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
    /// *rw* of a range: the first transaction read a range, and the second one added a row to it or removed one.
    RangeBefore,
    /// *rt*: the first transaction was acknowledged before the second one began.
    RealTime,
}

impl Dependency {
    /// Whether the first transaction read a version and the second one wrote the next version.
    pub fn is_anti(self) -> bool {
        matches!(self, Self::ReadBefore | Self::RangeBefore)
    }
}

/// `to` comes after `from`.
#[derive(Clone, Copy, Debug)]
pub struct Edge {
    /// The node that comes first.
    pub from: u32,
    /// The node that comes after it.
    pub to: u32,
    /// Why `to` comes after `from`.
    pub why: Dependency,
    /// The number of the key, unless the reason is real time.
    pub key: u32,
    /// The version of the key that `to` wrote or read, as an index into the list of the key's versions.
    pub version: u32,
}

/// A graph under construction.
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

    /// Adds an edge. An edge from a transaction to itself is left out.
    pub fn add(&mut self, edge: Edge) {
        if edge.from != edge.to {
            self.edges.push(edge);
        }
    }

    /// For each version of a key, adds an edge from its writer to the writer of the next version.
    pub fn add_writes(&mut self, order: &Order) {
        for (key, versions) in order.all() {
            for (version, pair) in (1..).zip(versions.windows(2)) {
                let (from, to) = (pair[0].writer, pair[1].writer);
                self.add(Edge { from, to, why: Dependency::Overwrites, key, version });
            }
        }
    }

    /// Adds the edges that follow from the order of events.
    pub fn add_real_time(&mut self, history: &[Transaction]) {
        // The order of the variants matters: events with the same number happened in an unknown order, so `Began`
        // must sort before `Acknowledged`.
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
        // Acknowledgements between which no transaction began share one moment, which is `open` meanwhile.
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

    /// The same graph, with the edges that leave a node side by side.
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

/// A complete graph, whose edges are sorted by the node that they leave.
#[derive(Debug)]
pub struct SortedGraph {
    /// Nodes below this number are transactions, and all other nodes are moments.
    pub transactions: u32,
    /// For each node, the index in `edges` of the first edge that leaves it. One more entry holds the number of
    /// edges.
    starts: Vec<u32>,
    /// All edges, sorted by the node that they leave.
    pub edges: Vec<Edge>,
}

impl SortedGraph {
    /// The number of nodes.
    pub fn nodes(&self) -> usize {
        self.starts.len() - 1
    }

    /// The indexes in `edges` of the edges that leave `node`.
    pub fn from(&self, node: u32) -> std::ops::Range<usize> {
        self.starts[node as usize] as usize..self.starts[node as usize + 1] as usize
    }
}
