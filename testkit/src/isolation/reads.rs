//! Compares each read with the transaction's snapshot and its own writes, and adds the dependencies that follow from
//! what the transaction really read, even if it should have read something else.

use super::anomaly::{Anomaly, Kind};
use super::graph::{Dependency, Edge, Graph};
use super::keys::Keys;
use super::order::{Fate, KeyVersion, Order};
use super::own_writes::OwnWrites;
use super::transaction::{Direction, Mark, Operation, Transaction};
use crate::model::KeyRange;
use std::ops::{Bound, Range};

/// Checks the reads of all transactions of `history`. Adds edges to `graph` for the reads of committed transactions.
pub fn check(history: &[Transaction], keys: &Keys<'_>, order: &Order, graph: &mut Graph, anomalies: &mut Vec<Anomaly>) {
    let mut own = OwnWrites::new(keys.len());
    for (index, transaction) in (0..).zip(history) {
        own.begin();
        let mut reads = Reads { history, keys, order, index, transaction, graph, anomalies };
        for operation in &transaction.operations {
            match operation {
                Operation::Read { place, saw } => reads.row(&own, keys.of_place(place), *saw, Asked::ForRow),
                Operation::ReadRange { table, range, direction, saw, stopped } => {
                    reads.range(&own, *table, range, *direction, saw, *stopped);
                }
                write => own.take(write, keys, &mut |_| {}),
            }
        }
    }
}

/// Whether a key was read by itself or as part of a range.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    ForRow,
    ForRange,
}

/// The reads of one transaction.
struct Reads<'a, 'h> {
    history: &'h [Transaction],
    keys: &'a Keys<'h>,
    order: &'a Order,
    index: u32,
    transaction: &'h Transaction,
    graph: &'a mut Graph,
    anomalies: &'a mut Vec<Anomaly>,
}

impl Reads<'_, '_> {
    fn range(
        &mut self,
        own: &OwnWrites,
        table: u32,
        range: &KeyRange,
        direction: Direction,
        saw: &[(Vec<u8>, Mark)],
        stopped: bool,
    ) {
        let is_sorted = match direction {
            Direction::Forward => saw.is_sorted_by(|(a, _), (b, _)| a < b),
            Direction::Backward => saw.is_sorted_by(|(a, _), (b, _)| a > b),
        };
        let asked = self.keys.within(table, range);
        let mut rows: Vec<(u32, Mark)> = saw.iter().map(|(key, mark)| (self.keys.number(table, key), *mark)).collect();
        if !is_sorted || rows.iter().any(|(key, _)| !asked.contains(key)) {
            let what = "a range gave rows in a wrong order, or twice, or from outside";
            self.anomalies.push(Anomaly::of(Kind::BrokenRange, &[self.transaction], what));
            return;
        }
        if direction == Direction::Backward {
            rows.reverse();
        }
        let read = if stopped { self.read_part(table, range, direction, saw) } else { asked };
        let mut rows = rows.into_iter().peekable();
        for key in read {
            let row = rows.next_if(|(of, _)| *of == key);
            self.row(own, key, row.map(|(_, mark)| mark), Asked::ForRange);
        }
    }

    /// The keys of a range that a stopped read covered: those up to its last row.
    fn read_part(
        &self,
        table: u32,
        (low, high): &KeyRange,
        direction: Direction,
        saw: &[(Vec<u8>, Mark)],
    ) -> Range<u32> {
        let Some((last, _)) = saw.last() else { return 0..0 };
        let last = Bound::Included(last.clone());
        match direction {
            Direction::Forward => self.keys.within(table, &(low.clone(), last)),
            Direction::Backward => self.keys.within(table, &(last, high.clone())),
        }
    }

    fn row(&mut self, own: &OwnWrites, key: u32, saw: Option<Mark>, asked: Asked) {
        if let Some(write) = own.get(key) {
            if write.mark() != saw {
                self.report(Kind::MissedOwnWrite, key, saw, write.mark());
            }
            return;
        }
        let in_snapshot = self.order.in_snapshot(key, self.transaction.snapshot);
        let expected = self.order.versions(key)[..in_snapshot].last().and_then(|version| version.mark);
        let read = if saw == expected {
            Some(in_snapshot)
        } else {
            self.report(self.kind_of_wrong_read(key, saw), key, saw, expected);
            self.version_seen(key, saw, in_snapshot)
        };
        if let Some(count) = read
            && self.transaction.is_committed()
        {
            self.depend(key, count, asked);
        }
    }

    fn report(&mut self, kind: Kind, key: u32, saw: Option<Mark>, expected: Option<Mark>) {
        let shown = |mark: Option<Mark>| mark.map_or("nothing".to_owned(), |mark| mark.0.to_string());
        let what = format!("at {} it saw {}, expected {}", self.keys.name(key), shown(saw), shown(expected));
        let writer = saw.and_then(|mark| self.order.origin(mark)).map(|origin| origin.writer);
        let writer = writer.filter(|writer| *writer != self.index).map(|writer| &self.history[writer as usize]);
        let both: Vec<&Transaction> = writer.into_iter().chain([self.transaction]).collect();
        self.anomalies.push(Anomaly::of(kind, &both, &what));
    }

    fn kind_of_wrong_read(&self, key: u32, saw: Option<Mark>) -> Kind {
        let Some(mark) = saw else { return Kind::NotOfSnapshot };
        let Some(origin) = self.order.origin(mark).filter(|origin| origin.key == key) else {
            return Kind::UnwrittenValue;
        };
        let writer = &self.history[origin.writer as usize];
        match origin.fate {
            Fate::TakenBack => Kind::AbortedRead,
            _ if !writer.is_committed() => Kind::AbortedRead,
            Fate::Replaced => Kind::IntermediateRead,
            Fate::Last => {
                let seen = &self.order.versions(key)[..self.order.in_snapshot(key, self.transaction.snapshot)];
                let is_old = seen.iter().any(|version| version.writer == origin.writer);
                if is_old { Kind::NotOfSnapshot } else { Kind::FutureRead }
            }
        }
    }

    /// For a wrong read of `key`: how many versions the key had when it had the value that the read saw, or `None`
    /// if it never had this value. A read that wrongly saw no value counts as a read of the newest earlier version
    /// without one.
    fn version_seen(&self, key: u32, saw: Option<Mark>, in_snapshot: usize) -> Option<usize> {
        let versions = self.order.versions(key);
        if saw.is_some() {
            return versions.iter().position(|version| version.mark == saw).map(|index| index + 1);
        }
        let absent = versions[..in_snapshot].iter().rposition(|version| version.mark.is_none());
        Some(absent.map_or(0, |index| index + 1))
    }

    /// Adds the dependencies of a read that saw the key as it was after its first `count` versions.
    fn depend(&mut self, key: u32, count: usize, asked: Asked) {
        let versions = self.order.versions(key);
        // Before its first version, a key has no writer.
        let read = count.checked_sub(1).map(|index| versions[index]);
        if let Some(KeyVersion { writer: from, .. }) = read {
            let (why, version) = (Dependency::Reads, count as u32 - 1);
            self.graph.add(Edge { from, to: self.index, why, key, version });
        }
        let is_absent = read.is_none_or(|version| version.mark.is_none());
        let erases = versions[count..].iter().take_while(|version| is_absent && version.mark.is_none()).count();
        let next = count + erases;
        if let Some(version) = versions.get(next) {
            let changes_the_rows = is_absent || version.mark.is_none();
            let why = match asked {
                Asked::ForRange if changes_the_rows => Dependency::RangeBefore,
                _ => Dependency::ReadBefore,
            };
            self.graph.add(Edge { from: self.index, to: version.writer, why, key, version: next as u32 });
        }
    }
}
