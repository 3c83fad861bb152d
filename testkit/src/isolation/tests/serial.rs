//! The checker must find nothing in a random history of transactions that ran one after the other. If one of its
//! reads is changed to show a wrong row, the checker must find that.

use super::{expect_clean, only_seed, seeds, shown};
use crate::isolation::anomaly::Kind;
use crate::isolation::check;
use crate::isolation::transaction::{Direction, Isolation, Mark, Operation, Outcome, Place, Transaction};
use larch::Version;
use rand::rngs::Xoshiro256PlusPlus;
use rand::seq::{IndexedMutRandom, IndexedRandom};
use rand::{RngExt, SeedableRng};
use std::collections::BTreeMap;
use std::ops::Bound;

const TRANSACTIONS: u64 = 40;

/// A history of transactions that ran one after the other on a sorted map. It shares no code with the checker or with
/// the store.
struct Serial {
    rng: Xoshiro256PlusPlus,
    rows: BTreeMap<Vec<u8>, Mark>,
    history: Vec<Transaction>,
    marks: u64,
    newest: u64,
}

impl Serial {
    fn history(seed: u64) -> Vec<Transaction> {
        let rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut serial = Self { rng, rows: BTreeMap::new(), history: Vec::new(), marks: 0, newest: 0 };
        (0..TRANSACTIONS).for_each(|id| serial.transaction(id));
        serial.history
    }

    fn key(&mut self) -> Vec<u8> {
        vec![self.rng.random_range(b'a'..=b'f')]
    }

    fn transaction(&mut self, id: u64) {
        let before = self.rows.clone();
        let mut operations = Vec::new();
        for _ in 0..self.rng.random_range(1..8) {
            let place = Place { table: 0, key: self.key() };
            operations.push(match self.rng.random_range(0..5) {
                0 => Operation::Read { saw: self.rows.get(&place.key).copied(), place },
                1 => {
                    let (low, high) = (place.key, self.key());
                    let is_within = |(key, _): &(&Vec<u8>, &Mark)| **key >= low && **key < high;
                    let saw = self.rows.iter().filter(is_within).map(|(key, mark)| (key.clone(), *mark)).collect();
                    let range = (Bound::Included(low), Bound::Excluded(high));
                    Operation::ReadRange { table: 0, range, direction: Direction::Forward, saw, stopped: false }
                }
                2 => {
                    self.rows.remove(&place.key);
                    Operation::Erase { place }
                }
                _ => {
                    let mark = Mark(self.marks);
                    self.marks += 1;
                    self.rows.insert(place.key.clone(), mark);
                    Operation::Put { place, mark }
                }
            });
        }
        let is_write = |operation: &Operation| matches!(operation, Operation::Put { .. } | Operation::Erase { .. });
        let (snapshot, writes) = (Version(self.newest), operations.iter().any(is_write));
        let outcome = if self.rng.random_range(0..6) == 0 {
            self.rows = before;
            Outcome::Aborted
        } else {
            self.newest += u64::from(writes);
            Outcome::Committed(writes.then_some(Version(self.newest)))
        };
        let isolation = if self.rng.random() { Isolation::Serializable } else { Isolation::Snapshot };
        let (began, acknowledged) = (Some(2 * id), Some(2 * id + 1));
        self.history.push(Transaction { id, isolation, snapshot, operations, outcome, began, acknowledged });
    }
}

#[test]
fn transactions_of_a_sorted_map_are_clean() {
    seeds(1000).for_each(|seed| expect_clean(&Serial::history(seed)));
}

#[test]
fn one_wrong_row_in_a_history_is_found() {
    let mut kinds: BTreeMap<Kind, usize> = BTreeMap::new();
    for seed in seeds(2000) {
        let mut history = Serial::history(seed);
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(!seed);
        let Some(what) = spoil(&mut history, &mut rng) else { continue };
        let anomalies = check(&history);
        assert!(!anomalies.is_empty(), "{what} was not found\n{}", shown(&[], &history));
        anomalies.iter().for_each(|anomaly| *kinds.entry(anomaly.kind).or_default() += 1);
    }
    println!("{kinds:?}");
    use Kind::*;
    for kind in [AbortedRead, IntermediateRead, FutureRead, NotOfSnapshot, MissedOwnWrite, ReadSkew] {
        assert!(only_seed().is_some() || kinds.contains_key(&kind), "{kind:?} in {kinds:?}");
    }
}

/// Draws a read of `history` and falsifies it. `None` if this read saw nothing that could be changed.
fn spoil(history: &mut [Transaction], rng: &mut Xoshiro256PlusPlus) -> Option<String> {
    let put = |operation: &Operation| match operation {
        Operation::Put { place, mark } => Some((place.key.clone(), *mark)),
        _ => None,
    };
    let puts: Vec<(Vec<u8>, Mark)> =
        history.iter().flat_map(|transaction| &transaction.operations).filter_map(put).collect();
    let transaction = rng.random_range(0..history.len());
    let operation = history[transaction].operations.choose_mut(rng)?;
    let before = operation.to_string();
    match operation {
        Operation::Read { place, saw } => {
            let others = puts.iter().filter(|(key, mark)| *key == place.key && Some(*mark) != *saw);
            let others: Vec<Mark> = others.map(|(_, mark)| *mark).collect();
            *saw = match others.choose(rng) {
                Some(mark) if saw.is_none() || rng.random() => Some(*mark),
                _ => saw.is_none().then_some(Mark(u64::MAX)),
            };
        }
        Operation::ReadRange { saw, .. } if !saw.is_empty() => {
            let row = rng.random_range(0..saw.len());
            let others = puts.iter().filter(|(key, mark)| *key == saw[row].0 && *mark != saw[row].1);
            match others.collect::<Vec<_>>().choose(rng) {
                Some((_, mark)) if rng.random() => saw[row].1 = *mark,
                _ => drop(saw.remove(row)),
            }
        }
        _ => return None,
    }
    Some(format!("{before} of T{} as {operation}", history[transaction].id))
}
