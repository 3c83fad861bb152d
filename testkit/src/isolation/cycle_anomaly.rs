//! Gives a cycle of dependencies its name as an anomaly, and tells its story. Another module finds the cycles.

use super::anomaly::{Anomaly, Kind};
use super::graph::{Dependency, Edge};
use super::keys::Keys;
use super::order::Order;
use super::transaction::Transaction;

/// Names the anomaly of a cycle and describes it.
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
