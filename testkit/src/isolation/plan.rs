//! Draws transactions from a seed, and the order in which their steps are taken. A plan knows no store and no
//! values.
//!
//! There are only a few keys, so that transactions meet often. The same seed always gives the same plan.

use super::transaction::{Direction, Isolation, Place};
use crate::model::KeyRange;
use rand::rngs::Xoshiro256PlusPlus;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use std::ops::Bound;

/// A step of a transaction. Beginning is a step, too, which is not listed here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Read a row.
    Get(Place),
    /// Read several rows of a table in one call.
    MultiGet(u32, Vec<Vec<u8>>),
    /// Read a range.
    Range {
        /// Number of the table.
        table: u32,
        /// Which keys.
        range: KeyRange,
        /// From which end.
        direction: Direction,
        /// How many rows to read, if not all.
        limit: Option<usize>,
    },
    /// Give a key a new value.
    Put(Place),
    /// Erase a key.
    Erase(Place),
    /// Erase a range.
    EraseRange(u32, KeyRange),
    /// Give a key a new value if it has none.
    InsertNew(Place),
    /// Give a key a new value if it still has the value that this transaction last saw there.
    CompareAndSwap(Place),
    /// Make a savepoint.
    Savepoint,
    /// Undo all writes since the transaction's savepoint with this number.
    RollBackTo(usize),
    /// Commit.
    Commit,
    /// Drop the transaction.
    Drop,
}

/// The steps of a transaction. The last step is [`Step::Commit`] or [`Step::Drop`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedTransaction {
    /// The level that it asks for.
    pub isolation: Isolation,
    /// Its steps.
    pub steps: Vec<Step>,
}

/// Which levels transactions ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Levels {
    /// All the same.
    All(Isolation),
    /// Each transaction draws its own.
    Mixed,
}

/// Transactions, and the order of their steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The transaction that writes the first rows. It runs alone, before all other transactions.
    pub first: PlannedTransaction,
    /// The others.
    pub transactions: Vec<PlannedTransaction>,
    /// For each turn, the index of the transaction that takes its next step. A transaction begins when its index
    /// first occurs.
    pub order: Vec<usize>,
}

impl Plan {
    /// A plan of `count` transactions, drawn from `seed`.
    pub fn of(seed: u64, count: usize, levels: Levels) -> Self {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let tables = rng.random_range(1..=2);
        let keys = rng.random_range(2..=8);
        let longest = rng.random_range(2..=8);
        let open = rng.random_range(2..=6);
        let mut draw = Draw { rng, tables, keys, longest };
        let transactions: Vec<PlannedTransaction> = (0..count).map(|_| draw.transaction(levels)).collect();
        let order = draw.order(&transactions, open);
        Self { first: draw.first(), transactions, order }
    }
}

struct Draw {
    rng: Xoshiro256PlusPlus,
    tables: u32,
    keys: u8,
    /// The most steps of a transaction.
    longest: usize,
}

impl Draw {
    fn table(&mut self) -> u32 {
        self.rng.random_range(0..self.tables)
    }

    fn key(&mut self) -> Vec<u8> {
        vec![b'a' + self.rng.random_range(0..self.keys)]
    }

    fn place(&mut self) -> Place {
        Place { table: self.table(), key: self.key() }
    }

    /// Draws a range. Some ranges are empty, and some have bounds between keys.
    fn range(&mut self) -> KeyRange {
        let (mut low, mut high) = (self.key(), self.key());
        if low > high && self.rng.random_range(0..10) > 0 {
            std::mem::swap(&mut low, &mut high);
        }
        (self.bound(low), self.bound(high))
    }

    fn bound(&mut self, mut key: Vec<u8>) -> Bound<Vec<u8>> {
        if self.rng.random_range(0..8) == 0 {
            key.push(b'+');
        }
        match self.rng.random_range(0..5) {
            0 => Bound::Unbounded,
            1..3 => Bound::Excluded(key),
            _ => Bound::Included(key),
        }
    }

    /// The first transaction, which writes about half of the rows.
    fn first(&mut self) -> PlannedTransaction {
        let places = (0..self.tables).flat_map(|table| (0..self.keys).map(move |key| (table, vec![b'a' + key])));
        let mut steps: Vec<Step> = places.map(|(table, key)| Step::Put(Place { table, key })).collect();
        steps.retain(|_| self.rng.random());
        steps.push(Step::Commit);
        PlannedTransaction { isolation: Isolation::Serializable, steps }
    }

    fn transaction(&mut self, levels: Levels) -> PlannedTransaction {
        let isolation = match levels {
            Levels::All(isolation) => isolation,
            Levels::Mixed if self.rng.random() => Isolation::Snapshot,
            Levels::Mixed => Isolation::Serializable,
        };
        let is_reader = self.rng.random_range(0..5) == 0;
        // The savepoints that a step may still use, the oldest first.
        let mut savepoints: Vec<usize> = Vec::new();
        let mut made = 0;
        let mut steps = Vec::new();
        for _ in 0..self.rng.random_range(1..=self.longest) {
            let goes_back = !savepoints.is_empty() && self.rng.random_range(0..4) == 0;
            let step = if goes_back {
                let savepoint = self.rng.random_range(0..savepoints.len());
                savepoints.truncate(savepoint + 1);
                Step::RollBackTo(savepoints[savepoint])
            } else if is_reader || self.rng.random() {
                self.read()
            } else {
                self.write()
            };
            if step == Step::Savepoint {
                savepoints.push(made);
                made += 1;
            }
            steps.push(step);
        }
        steps.push(if self.rng.random_range(0..12) == 0 { Step::Drop } else { Step::Commit });
        PlannedTransaction { isolation, steps }
    }

    fn read(&mut self) -> Step {
        match self.rng.random_range(0..10) {
            0..5 => Step::Get(self.place()),
            5..6 => {
                let count = self.rng.random_range(1..4);
                Step::MultiGet(self.table(), (0..count).map(|_| self.key()).collect())
            }
            _ => {
                let direction = if self.rng.random() { Direction::Forward } else { Direction::Backward };
                let limit = if self.rng.random() { Some(self.rng.random_range(0..3)) } else { None };
                Step::Range { table: self.table(), range: self.range(), direction, limit }
            }
        }
    }

    fn write(&mut self) -> Step {
        match self.rng.random_range(0..17) {
            0..8 => Step::Put(self.place()),
            8..10 => Step::Erase(self.place()),
            10..11 => Step::EraseRange(self.table(), self.range()),
            11..13 => Step::InsertNew(self.place()),
            13..15 => Step::CompareAndSwap(self.place()),
            _ => Step::Savepoint,
        }
    }

    /// Draws the order of the steps. At most `open` transactions are under way at the same time.
    fn order(&mut self, transactions: &[PlannedTransaction], open: usize) -> Vec<usize> {
        let mut waiting = (0..transactions.len()).peekable();
        // Each transaction that is under way, with the number of steps that it still has to take. The beginning of
        // a transaction counts as a step.
        let mut under_way: Vec<(usize, usize)> = Vec::new();
        let mut order = Vec::new();
        loop {
            while under_way.len() < open
                && let Some(next) = waiting.next()
            {
                under_way.push((next, transactions[next].steps.len() + 1));
            }
            let places: Vec<usize> = (0..under_way.len()).collect();
            let Some(&place) = places.choose(&mut self.rng) else { return order };
            let (transaction, left) = &mut under_way[place];
            order.push(*transaction);
            *left -= 1;
            if *left == 0 {
                under_way.swap_remove(place);
            }
        }
    }
}
