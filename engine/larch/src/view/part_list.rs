//! Which parts of rows a read returns, in which order. Column group 0 is the main group, whose parts lie in the same
//! pages as the keys. This module does not know the names of groups, nor where rows lie.

use super::value::{Parts, Value};
use crate::base::parts::{self, MAX_GROUPS};
use crate::memtable::MemRow;
use pages::{PageCache, Stop, together};
use sst::{Groups, LoadedValue, Row, StoredValue};
use std::ops::Range;

/// Some of the parts of a row, each at most once.
#[derive(Clone, Copy, Debug)]
pub struct PartList {
    /// The number of parts of every row in the table.
    row_parts: u8,
    len: u8,
    /// The group of each part, in the caller's order.
    groups: [u8; MAX_GROUPS],
    set: Groups,
}

impl PartList {
    /// A list of no parts, for a read that returns only keys. The rows have `row_parts` parts.
    pub fn nothing(row_parts: usize) -> Self {
        Self { row_parts: row_parts.max(1) as u8, len: 0, groups: [0; MAX_GROUPS], set: Groups::NONE }
    }

    /// A list of one part, the whole value, for rows that are not split.
    pub fn whole() -> Self {
        Self { row_parts: 1, len: 1, groups: [0; MAX_GROUPS], set: Groups::MAIN }
    }

    /// Appends the part in `group`. `None` if the list already has it.
    pub fn with(mut self, group: usize) -> Option<Self> {
        if self.set.contains(group) {
            return None;
        }
        self.groups[usize::from(self.len)] = group as u8;
        self.len += 1;
        self.set = self.set.with(group);
        Some(self)
    }

    /// The number of parts.
    #[inline]
    pub fn len(&self) -> usize {
        usize::from(self.len)
    }

    /// The group of part `i`.
    #[inline]
    pub fn group(&self, i: usize) -> usize {
        usize::from(self.groups[..self.len()][i])
    }

    /// The groups as a set.
    #[inline]
    pub fn set(&self) -> Groups {
        self.set
    }

    /// Where part `i` of this list lies in `value`, the encoded value of a row in a memtable.
    pub fn place(&self, i: usize, value: &[u8]) -> Range<usize> {
        let place = parts::find(value, usize::from(self.row_parts), self.group(i));
        place.expect("commits and recovery let in only values that were made of the table's parts")
    }

    /// Takes the parts of this list from a row in a memtable.
    pub fn of_memory(&self, row: &MemRow) -> Parts {
        Parts::of((0..self.len()).map(|i| Value::from_memory(row, self.place(i, row.value()))))
    }

    /// Part `i` of this list, in a row of a file. `beside_main` has the row's wanted parts except the one in the main
    /// group, in group order.
    pub fn stored<'s>(&self, i: usize, row: &'s Row, beside_main: &'s [StoredValue]) -> &'s StoredValue {
        match self.group(i) {
            0 => &row.value,
            group => self.beside(group, beside_main),
        }
    }

    /// The part in `group`, which is not the main group. `beside_main` is as in [`PartList::stored`].
    #[inline]
    pub fn beside<'s>(&self, group: usize, beside_main: &'s [StoredValue]) -> &'s StoredValue {
        &beside_main[self.set.beside_main_before(group)]
    }
}

impl PartList {
    /// Loads all parts of this list with `load`, which gets the index of a part in the list. All missing pages cause
    /// one fault together. A step.
    pub fn load(
        &self,
        cache: &PageCache,
        mut load: impl FnMut(usize) -> Result<LoadedValue, Stop>,
    ) -> Result<Parts, Stop> {
        let mut loaded = [const { None }; MAX_GROUPS];
        together((0..self.len()).zip(&mut loaded), |(i, part)| {
            *part = Some(load(i)?);
            Ok(())
        })?;
        Ok(Parts::of(loaded.into_iter().flatten().map(|part| Value::from_file(cache, part))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_wanted_once_and_in_the_order_asked_for() {
        let wanted = [4, 0, 2].into_iter().try_fold(PartList::nothing(5), PartList::with).expect("each once");
        assert!(wanted.with(2).is_none() && wanted.with(0).is_none());
        assert_eq!((0..wanted.len()).map(|i| wanted.group(i)).collect::<Vec<_>>(), [4, 0, 2]);
        assert_eq!(wanted.set().beside_main().collect::<Vec<_>>(), [2, 4]);
        let mut value = Vec::new();
        parts::encode(&["a", "bb", "ccc", "", "eeeee"], &mut value);
        let found: Vec<&[u8]> = (0..wanted.len()).map(|i| &value[wanted.place(i, &value)]).collect();
        assert_eq!(found, [&b"eeeee"[..], b"a", b"ccc"]);
        assert_eq!(PartList::whole().place(0, &value), 0..value.len());
    }

    #[test]
    fn every_group_can_be_wanted() {
        let wanted = (0..MAX_GROUPS).try_fold(PartList::nothing(MAX_GROUPS), PartList::with).expect("each once");
        assert_eq!(wanted.len(), MAX_GROUPS);
        assert_eq!(wanted.set(), Groups::first(MAX_GROUPS));
    }
}
