//! In small random graphs, the search finds a cycle exactly if one exists by the definition, whatever path leads to
//! it.

use super::find;
use crate::isolation::graph::{Dependency, Edge, Graph};
use crate::isolation::tests::seeds;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

/// Whether a cycle is an anomaly: wherever an *rw* edge follows another *rw* edge, they meet in a transaction that
/// may not be a pivot.
fn is_anomaly(cycle: &[Edge], allows_pivots: &[bool]) -> bool {
    let next = cycle.iter().cycle().skip(1);
    !cycle.iter().zip(next).any(|(a, b)| a.why.is_anti() && b.why.is_anti() && allows_pivots[a.to as usize])
}

/// Calls `found` with each cycle that begins with the edges of `way` and passes no transaction twice.
fn cycles_from(way: &mut Vec<Edge>, edges: &[Edge], found: &mut dyn FnMut(&[Edge])) {
    let (start, last) = (way[0].from, way[way.len() - 1].to);
    if last == start {
        return found(way);
    }
    for edge in edges.iter().filter(|edge| edge.from == last) {
        if edge.to == start || !way.iter().any(|passed| passed.from == edge.to) {
            way.push(*edge);
            cycles_from(way, edges, found);
            way.pop();
        }
    }
}

#[test]
fn a_shortest_cycle_without_an_allowed_pivot_is_found() {
    let mut with_one = 0;
    for seed in seeds(5000) {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let nodes = rng.random_range(2..7);
        let mut edges: Vec<Edge> = Vec::new();
        for _ in 0..rng.random_range(0..2 * nodes) {
            let why = if rng.random() { Dependency::ReadBefore } else { Dependency::Reads };
            let (from, to) = (rng.random_range(0..nodes), rng.random_range(0..nodes));
            edges.extend((from != to).then_some(Edge { from, to, why, key: 0, version: 0 }));
        }
        let allows_pivots: Vec<bool> = (0..nodes).map(|_| rng.random_range(0..3) > 0).collect();
        let mut shortest: Option<usize> = None;
        for edge in &edges {
            cycles_from(&mut vec![*edge], &edges, &mut |cycle| {
                if is_anomaly(cycle, &allows_pivots) {
                    shortest = Some(shortest.unwrap_or(usize::MAX).min(cycle.len()));
                }
            });
        }
        let mut graph = Graph::of_transactions(nodes as usize);
        edges.iter().for_each(|edge| graph.add(*edge));
        let found = find(&graph.sorted(), &allows_pivots);
        assert!(found.iter().all(|cycle| is_anomaly(cycle, &allows_pivots)), "{edges:?} {found:?}");
        assert_eq!(found.iter().map(Vec::len).min(), shortest, "{edges:?} {allows_pivots:?}");
        with_one += usize::from(shortest.is_some());
    }
    println!("{with_one} graphs with an anomaly");
}
