//! Finds the cycles of dependencies that are anomalies: for each strongly connected component, one shortest cycle.
//! Finding the components takes time linear in the size of the graph. Other modules name the anomalies.
//!
//! The search runs over *states*. A state is a node together with whether the path entered it by an *rw* edge. A
//! path that entered a transaction that may be a pivot by an *rw* edge must not leave it by another one. So a cycle
//! of states is a cycle of transactions without an allowed pivot, which is an anomaly. A cycle may pass a
//! transaction in both of its states. Then a part of the cycle leaves this transaction and comes back to it without
//! an allowed pivot there, so this part is an anomaly by itself. Tarjan's algorithm finds the strongly connected
//! components of the states.

use super::graph::{Dependency, Edge, SortedGraph};
use std::collections::VecDeque;

/// For each component, the search for the shortest cycle starts from at most this many of its states. If the
/// engine is broken, one component may have all transactions. The cost of each search grows with the size of the
/// component, so the number of searches is limited.
const STARTS: usize = 200;

/// One shortest cycle for each strongly connected component. The edges lead from transaction to transaction, without
/// the moments between them. For each transaction, `allows_pivots` says whether it may be a pivot.
pub fn find(graph: &SortedGraph, allows_pivots: &[bool]) -> Vec<Vec<Edge>> {
    let states = States { graph, allows_pivots };
    let components = Components::of(&states);
    components.iter().map(|component| shortest_cycle(&states, component)).collect()
}

/// A state as a number: twice the number of its node, plus one if the path entered it by an *rw* edge and it may be
/// a pivot.
type State = u32;

struct States<'g> {
    graph: &'g SortedGraph,
    allows_pivots: &'g [bool],
}

impl States<'_> {
    fn count(&self) -> usize {
        2 * self.graph.nodes()
    }

    fn is_moment(&self, state: State) -> bool {
        state / 2 >= self.graph.transactions
    }

    /// The state to which `edge` leads from `state`, if the path may follow it.
    fn follow(&self, state: State, edge: &Edge) -> Option<State> {
        let came_by_anti = state % 2 == 1;
        if came_by_anti && edge.why.is_anti() {
            return None;
        }
        let may_be_pivot = edge.why.is_anti() && self.allows_pivots[edge.to as usize];
        Some(edge.to * 2 + u32::from(may_be_pivot))
    }
}

/// In `lowest`: the state was not met yet.
const UNMET: u32 = u32::MAX;
/// In `lowest`: the state's component is complete.
const DONE: u32 = u32::MAX - 1;

/// Tarjan's algorithm, without recursion.
struct Components {
    /// For each state, the lowest number among the states that can be reached from it, as far as the search knows.
    /// States are numbered in the order in which the search meets them.
    lowest: Vec<u32>,
    met: u32,
    /// The states that were met and whose components are not complete.
    stack: Vec<State>,
    /// The path to the current state: each state on it, its number and its next edge.
    way: Vec<(State, u32, usize)>,
}

impl Components {
    /// The components with more than one state.
    fn of(states: &States<'_>) -> Vec<Vec<State>> {
        let mut search = Self { lowest: vec![UNMET; states.count()], met: 0, stack: Vec::new(), way: Vec::new() };
        let mut components = Vec::new();
        // From an odd state, every edge leads to an even state. So each cycle has an even state, and it is enough
        // to begin at even states.
        for root in (0..states.count() as State).step_by(2) {
            if search.lowest[root as usize] == UNMET {
                search.enter(states, root);
                search.go(states, &mut components);
            }
        }
        components
    }

    fn enter(&mut self, states: &States<'_>, state: State) {
        self.lowest[state as usize] = self.met;
        self.way.push((state, self.met, states.graph.from(state / 2).start));
        self.stack.push(state);
        self.met += 1;
    }

    fn go(&mut self, states: &States<'_>, components: &mut Vec<Vec<State>>) {
        while let Some((state, number, next)) = self.way.last_mut() {
            let (state, number) = (*state, *number);
            if *next < states.graph.from(state / 2).end {
                let edge = &states.graph.edges[*next];
                *next += 1;
                let Some(to) = states.follow(state, edge) else { continue };
                match self.lowest[to as usize] {
                    UNMET => self.enter(states, to),
                    DONE => {}
                    reached => self.reach(state, reached),
                }
                continue;
            }
            self.way.pop();
            let reached = self.lowest[state as usize];
            if let Some((before, ..)) = self.way.last() {
                self.reach(*before, reached);
            }
            if reached == number {
                let start = self.stack.iter().rposition(|on| *on == state).expect("it stays until it is complete");
                let component = self.stack.split_off(start);
                component.iter().for_each(|done| self.lowest[*done as usize] = DONE);
                components.extend((component.len() > 1).then_some(component));
            }
        }
    }

    fn reach(&mut self, state: State, reached: u32) {
        let lowest = &mut self.lowest[state as usize];
        *lowest = reached.min(*lowest);
    }
}

/// The shortest cycle through any of the first states of a component.
fn shortest_cycle(states: &States<'_>, component: &[State]) -> Vec<Edge> {
    let mut search = Search::new(states.count(), component);
    let mut best: Option<Vec<Edge>> = None;
    for start in component.iter().filter(|state| !states.is_moment(**state)).take(STARTS) {
        let below = best.as_ref().map_or(u32::MAX, |best| best.len() as u32);
        best = search.cycle(states, *start, below).or(best);
    }
    best.expect("a component with several states has a cycle through each of them")
}

/// How a search met a state.
#[derive(Clone, Copy, Default)]
struct Met {
    /// Number of the search.
    search: u32,
    length: u32,
    /// The last edge of the path to the state.
    edge: usize,
    /// The state before this edge.
    before: State,
}

/// Breadth-first searches within one component, each for the shortest path from a state back to itself. An edge that
/// leaves a moment has length zero.
struct Search {
    is_inside: Vec<bool>,
    met: Vec<Met>,
    searches: u32,
}

impl Search {
    fn new(states: usize, component: &[State]) -> Self {
        let mut is_inside = vec![false; states];
        component.iter().for_each(|state| is_inside[*state as usize] = true);
        Self { is_inside, met: vec![Met::default(); states], searches: 0 }
    }

    /// The shortest cycle through `start`, if it has fewer than `below` edges.
    fn cycle(&mut self, states: &States<'_>, start: State, below: u32) -> Option<Vec<Edge>> {
        self.searches += 1;
        let mut queue = VecDeque::from([(start, 0)]);
        while let Some((state, length)) = queue.pop_front() {
            if length > 0 && state == start {
                return Some(self.way_back(states, start));
            }
            if length > self.met[state as usize].length && self.met[state as usize].search == self.searches {
                continue;
            }
            let further = length + u32::from(!states.is_moment(state));
            for edge in states.graph.from(state / 2) {
                let Some(to) = states.follow(state, &states.graph.edges[edge]) else { continue };
                let met = &mut self.met[to as usize];
                let is_longer = met.search == self.searches && met.length <= further;
                if is_longer || further >= below || !self.is_inside[to as usize] {
                    continue;
                }
                *met = Met { search: self.searches, length: further, edge, before: state };
                if further == length { queue.push_front((to, further)) } else { queue.push_back((to, further)) }
            }
        }
        None
    }

    fn way_back(&self, states: &States<'_>, start: State) -> Vec<Edge> {
        let mut edges: Vec<Edge> = Vec::new();
        let mut state = start;
        loop {
            let Met { edge, before, .. } = self.met[state as usize];
            let edge = states.graph.edges[edge];
            match edges.last_mut() {
                // Two edges that meet in a moment count as one edge of the cycle.
                Some(last) if last.why == Dependency::RealTime && last.from >= states.graph.transactions => {
                    last.from = edge.from;
                }
                _ => edges.push(edge),
            }
            state = before;
            if state == start {
                break;
            }
        }
        edges.reverse();
        edges
    }
}

#[cfg(test)]
mod tests;
