//! The part of a file that a table sees: some of the file's main rows, together with the older versions of these
//! rows and their parts in column groups. This module knows no keys.
//!
//! The table sees the range erases within the bounds of the slice, even where they cover gaps between the slice's
//! rows. It sees no row in such a gap. The bytes outside the slice stay in the file and are not read. They are
//! freed when a compaction rewrites the slice, or when no table sees the file any more.

use crate::format::meta::KeyBounds;
use os::sync::Arc;
use std::fmt;
use std::ops::Range;

/// What a table sees of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    /// Ids of the main rows that the table sees.
    pub rows: RowRanges,
    /// All keys of the slice's rows, and all keys of range erases that the table sees, lie within these bounds.
    /// The bounds may be wider. If a side of the file was cut off, the bound on this side is the cut: the table
    /// sees nothing of the file before a low bound, and nothing at or after a high bound.
    pub bounds: KeyBounds,
    /// About how many of the file's bytes belong to this slice, estimated by its share of the rows.
    pub bytes: u64,
}

/// A set of row ids: ranges in order, with gaps between them. Cloning or narrowing the set allocates no memory.
#[derive(Clone, PartialEq, Eq)]
pub struct RowRanges {
    /// The set has only rows of this range.
    within: Range<u64>,
    /// Ascending and disjoint ranges. No range is empty, and no two ranges touch. `None`: all rows in `within`
    /// belong to the set.
    ranges: Option<Arc<[Range<u64>]>>,
}

impl RowRanges {
    /// No row.
    pub const NONE: Self = Self { within: 0..0, ranges: None };

    /// The set of the rows in `ranges`. The ranges must be in order and must not overlap.
    pub fn new(ranges: impl IntoIterator<Item = Range<u64>>) -> Self {
        let mut joined: Vec<Range<u64>> = Vec::new();
        for range in ranges.into_iter().filter(|range| !range.is_empty()) {
            match joined.last_mut() {
                Some(last) if range.start <= last.end => {
                    assert_eq!(last.end, range.start, "ranges of rows come in order, apart");
                    last.end = range.end;
                }
                _ => joined.push(range),
            }
        }
        match joined.as_slice() {
            [] => Self::NONE,
            [only] => Self { within: only.clone(), ranges: None },
            [first, .., last] => Self { within: first.start..last.end, ranges: Some(joined.into()) },
        }
    }

    /// The bytes of memory that the list of ranges takes. All clones of the set share this list.
    pub fn memory_bytes(&self) -> usize {
        self.ranges.as_deref().map_or(0, size_of_val)
    }

    /// Whether it has no row.
    pub fn is_empty(&self) -> bool {
        self.first().is_none()
    }

    /// Its ranges in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Range<u64>> {
        let Range { start, end } = self.within;
        let all = self.ranges.as_deref().unwrap_or(std::slice::from_ref(&self.within));
        let first = all.partition_point(|range| range.end <= start);
        let last = all.partition_point(|range| range.start < end).max(first);
        let cut = move |range: &Range<u64>| range.start.max(start)..range.end.min(end);
        all[first..last].iter().map(cut).filter(|range| !range.is_empty())
    }

    /// The rows of this set that are in `rows`.
    #[must_use]
    pub fn within(&self, rows: Range<u64>) -> Self {
        let within = self.within.start.max(rows.start)..self.within.end.min(rows.end);
        Self { within, ranges: self.ranges.clone() }
    }

    /// How many rows it has.
    pub fn count(&self) -> u64 {
        self.iter().map(|range| range.end - range.start).sum()
    }

    /// How many of its rows are in `rows`.
    pub fn count_within(&self, rows: Range<u64>) -> u64 {
        match &self.ranges {
            None => self.within.end.min(rows.end).saturating_sub(self.within.start.max(rows.start)),
            Some(_) => self.within(rows).count(),
        }
    }

    /// Whether `row` belongs to it.
    #[inline]
    pub fn contains(&self, row: u64) -> bool {
        self.within.contains(&row) && (self.ranges.is_none() || self.at_or_after(row) == Some(row))
    }

    /// The first row of the set that is not before `row`.
    #[inline]
    pub fn at_or_after(&self, row: u64) -> Option<u64> {
        let row = row.max(self.within.start);
        let row = match &self.ranges {
            None => row,
            Some(ranges) => {
                let range = &ranges.get(ranges.partition_point(|range| range.end <= row))?;
                row.max(range.start)
            }
        };
        (row < self.within.end).then_some(row)
    }

    /// The last of its rows before `row`.
    #[inline]
    pub fn before(&self, row: u64) -> Option<u64> {
        let end = row.min(self.within.end);
        let end = match &self.ranges {
            None => end,
            Some(ranges) => {
                let range = &ranges[ranges.partition_point(|range| range.start < end).checked_sub(1)?];
                end.min(range.end)
            }
        };
        end.checked_sub(1).filter(|&row| row >= self.within.start)
    }

    /// The range of the set that holds `row`. The row must belong to the set.
    pub fn around(&self, row: u64) -> Range<u64> {
        let Range { start, end } = self.within;
        match &self.ranges {
            None => start..end,
            Some(ranges) => {
                let range = &ranges[ranges.partition_point(|range| range.end <= row)];
                range.start.max(start)..range.end.min(end)
            }
        }
    }

    /// Its first row.
    pub fn first(&self) -> Option<u64> {
        self.at_or_after(0)
    }

    /// Its last row.
    pub fn last(&self) -> Option<u64> {
        self.before(u64::MAX)
    }
}

impl From<Range<u64>> for RowRanges {
    fn from(within: Range<u64>) -> Self {
        Self { within, ranges: None }
    }
}

impl fmt::Debug for RowRanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tries all sets of rows among eight rows, narrowed to every range. All methods must give the answers that a
    /// list of the rows in the set gives.
    #[test]
    fn every_question_is_answered_as_by_a_list_of_the_rows() {
        for bits in 0u32..256 {
            let runs = (0..8).filter(|row| bits >> row & 1 != 0).map(|row: u64| row..row + 1);
            let all = RowRanges::new(runs);
            for (start, end) in (0..=8).flat_map(|start| (0..=9).map(move |end| (start, end))) {
                let rows = all.within(start..end);
                let list: Vec<u64> = (start..end).filter(|&row| row < 8 && bits >> row & 1 != 0).collect();
                assert_eq!(rows.iter().flatten().collect::<Vec<_>>(), list, "{bits:#b} within {start}..{end}");
                assert_eq!(rows.count(), list.len() as u64);
                assert_eq!((rows.first(), rows.last()), (list.first().copied(), list.last().copied()));
                assert_eq!(rows.is_empty(), list.is_empty());
                for row in 0..10 {
                    assert_eq!(rows.contains(row), list.contains(&row));
                    if rows.contains(row) {
                        assert_eq!(Some(rows.around(row)), rows.iter().find(|range| range.contains(&row)));
                    }
                    assert_eq!(rows.at_or_after(row), list.iter().copied().find(|&other| other >= row));
                    assert_eq!(rows.before(row), list.iter().copied().rev().find(|&other| other < row));
                    let inside = list.iter().filter(|&&other| (row..row + 3).contains(&other)).count();
                    assert_eq!(rows.count_within(row..row + 3), inside as u64);
                }
            }
        }
    }

    #[test]
    fn neighbouring_ranges_are_joined() {
        assert_eq!(RowRanges::new([0..3, 3..5, 5..5]), RowRanges::from(0..5));
        assert_eq!(RowRanges::new([0..3, 4..5]).iter().count(), 2);
    }
}
