//! The keys of a history, numbered in their order, so that a range of keys is a range of numbers.

use super::transaction::{Operation, Place, Transaction};
use crate::model::KeyRange;
use std::collections::HashSet;
use std::ops::{Bound, Range};

/// The keys of all tables, sorted.
#[derive(Debug)]
pub struct Keys<'h> {
    sorted: Vec<(u32, &'h [u8])>,
}

impl<'h> Keys<'h> {
    /// The keys of all operations of `history`. A key that occurs only as the bound of a range is left out,
    /// because no operation reads or writes a row with this key.
    pub fn of(history: &'h [Transaction]) -> Self {
        let mut known: HashSet<(u32, &[u8])> = HashSet::new();
        for operation in history.iter().flat_map(|transaction| &transaction.operations) {
            match operation {
                Operation::Read { place, .. } | Operation::Put { place, .. } | Operation::Erase { place } => {
                    known.insert((place.table, &place.key));
                }
                Operation::ReadRange { table, saw, .. } => {
                    known.extend(saw.iter().map(|(key, _)| (*table, key.as_slice())));
                }
                Operation::EraseRange { .. } | Operation::Savepoint | Operation::RollBackTo(_) => {}
            }
        }
        let mut sorted: Vec<(u32, &[u8])> = known.into_iter().collect();
        sorted.sort_unstable();
        Self { sorted }
    }

    /// The number of keys.
    pub fn len(&self) -> usize {
        self.sorted.len()
    }

    /// The number of a key.
    pub fn number(&self, table: u32, key: &[u8]) -> u32 {
        let found = self.sorted.binary_search(&(table, key));
        found.expect("every key of the history is known") as u32
    }

    /// The number of the key at a place.
    pub fn of_place(&self, place: &Place) -> u32 {
        self.number(place.table, &place.key)
    }

    /// The numbers of the keys in a range.
    pub fn within(&self, table: u32, (low, high): &KeyRange) -> Range<u32> {
        let before = |is_before: &dyn Fn(&[u8]) -> bool| {
            self.sorted.partition_point(|(of, key)| *of < table || (*of == table && is_before(key))) as u32
        };
        let start = match low {
            Bound::Unbounded => before(&|_| false),
            Bound::Included(low) => before(&|key| key < low.as_slice()),
            Bound::Excluded(low) => before(&|key| key <= low.as_slice()),
        };
        let end = match high {
            Bound::Unbounded => before(&|_| true),
            Bound::Included(high) => before(&|key| key <= high.as_slice()),
            Bound::Excluded(high) => before(&|key| key < high.as_slice()),
        };
        start..end.max(start)
    }

    /// A key as text.
    pub fn name(&self, number: u32) -> String {
        let (table, key) = self.sorted[number as usize];
        super::notation::place(table, key)
    }
}
