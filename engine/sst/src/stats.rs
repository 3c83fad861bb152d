//! Answers questions about a file from the totals in its index nodes. How many rows, erased rows and bytes does a
//! range have? Which row lies a given number of rows further on? Where can many files be cut into even pieces?
//! This module knows no versions and no levels. It does not know which rows of one file are hidden by another
//! file.
//!
//! Nodes carry running totals. So if all of a child lies in the range, one subtraction gives its totals. Only the
//! nodes on the two ways down to the ends of the range are opened. The table may see only a part of a child (see
//! [`Slice`](crate::Slice)). The row ids alone tell how many of its rows the table sees. To learn how many of its
//! bytes and erased rows the table sees, the child must be opened.
//!
//! ```text
//!            low                      high
//!             ▼                         ▼
//!   [  page  ][  page  ][ page ][ page ][  page  ]      rows: two pages for certain, four at most
//! ```
//!
//! * For each end of the range, the nodes tell only in which data page the end lies. If the end is a separator or
//!   lies beyond the file's bounds, its exact place is known. So an interval is at most two pages wide, and every
//!   interval contains the true number ([`Estimate`]).
//! * Index pages: the nodes on the ways to both ends are read, at most 2 x height. If edges of the slice lie
//!   between the ends, the nodes on the ways to these edges are read, too. Data pages: none are read, except that
//!   an exact answer reads one at each end.
//! * A flat index is a tree of height 1, and the same code reads it.
//! * What a node says is checked against its parent: if the totals do not fit, the result is the error `Corrupt`
//!   and not a wrong sum.
//!
//! Histograms over many sources have their own bounds, see `stats/histogram.rs` and
//! `docs/decisions/0012-a-histogram-opens-what-is-heavy.md`.

mod exact;
mod histogram;
mod range;

pub use histogram::{Bucket, CutPoint, Histogram, HistogramSource, MemoryRun, Metric, histogram};

use crate::format::meta::KeyBounds;
use std::ops::Bound;

/// A number that is not known exactly. The true number lies between `low` and `high`, or equals one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Estimate {
    /// Not greater than the true number.
    pub low: u64,
    /// Not less than the true number.
    pub high: u64,
}

impl Estimate {
    /// A number that is known exactly.
    pub const fn exact(n: u64) -> Self {
        Self { low: n, high: n }
    }

    /// The width of the interval.
    pub const fn width(&self) -> u64 {
        self.high.saturating_sub(self.low)
    }

    /// Whether the number is known exactly.
    pub const fn is_exact(&self) -> bool {
        self.low == self.high
    }

    /// Whether the true number may be `n`.
    pub const fn contains(&self, n: u64) -> bool {
        self.low <= n && n <= self.high
    }

    /// The middle of the interval. If this number is taken for the true one, the error is at most half the width.
    /// No other number has a smaller bound.
    pub const fn middle(&self) -> u64 {
        self.low + self.width() / 2
    }

    /// The sum of two estimates. If a sum exceeds the greatest u64, it becomes the greatest u64.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self { low: self.low.saturating_add(other.low), high: self.high.saturating_add(other.high) }
    }
}

impl std::ops::AddAssign for Estimate {
    fn add_assign(&mut self, other: Self) {
        *self = self.plus(other);
    }
}

/// The totals of those rows of a file that the table sees and that have keys in a range. The bytes of each page
/// are divided evenly among its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct RangeTotals {
    /// Rows, including erased ones.
    pub rows: Estimate,
    /// Rows whose newest version is an erase.
    pub erased: Estimate,
    /// Stored bytes of the main tree's data pages.
    pub bytes: Estimate,
    /// Stored bytes that belong to the rows but lie outside the main tree: large values, history, other groups. A
    /// page outside the main tree is counted together with one data page of the main tree: the data page that was
    /// open when the other page became full.
    pub beside_bytes: Estimate,
}

impl std::ops::AddAssign for RangeTotals {
    fn add_assign(&mut self, other: Self) {
        self.rows += other.rows;
        self.erased += other.erased;
        self.bytes += other.bytes;
        self.beside_bytes += other.beside_bytes;
    }
}

/// A place between keys: directly before `at`, or directly after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct KeyEdge<'k> {
    at: &'k [u8],
    is_after: bool,
}

/// A range of keys, clipped to the bounds of a file. If the range cuts off no keys of the file at one side, this
/// side has no edge. A [`KeyRange`](crate::KeyRange) would have to copy a bound to make it the start or the end of
/// a range. A span copies nothing.
#[derive(Clone, Copy, Debug, Default)]
struct Span<'k> {
    low: Option<KeyEdge<'k>>,
    high: Option<KeyEdge<'k>>,
}

impl<'k> Span<'k> {
    /// The part of the range from `low` to `high` that lies within `bounds`; `None` if no part does.
    fn within(low: Bound<&'k [u8]>, high: Bound<&'k [u8]>, bounds: &KeyBounds) -> Option<Self> {
        let edge = |bound: Bound<&'k [u8]>, after: bool| match bound {
            Bound::Unbounded => None,
            Bound::Included(at) => Some(KeyEdge { at, is_after: after }),
            Bound::Excluded(at) => Some(KeyEdge { at, is_after: !after }),
        };
        let (low, high) = (edge(low, false), edge(high, true));
        let first = KeyEdge { at: &bounds.low, is_after: false };
        let last = bounds.high.as_deref().map(|at| KeyEdge { at, is_after: true });
        let is_empty = low.zip(high).is_some_and(|(low, high)| low >= high)
            || high.is_some_and(|high| high <= first)
            || low.zip(last).is_some_and(|(low, last)| low >= last);
        let low = low.filter(|&low| low > first);
        let high = high.filter(|&high| last.is_none_or(|last| high < last));
        (!is_empty).then_some(Self { low, high })
    }
}

/// The bytes of `part` shares if `bytes` are divided into `whole` equal shares, rounded down.
fn share(bytes: u64, part: u64, whole: u64) -> u64 {
    if part >= whole { bytes } else { (u128::from(bytes) * u128::from(part) / u128::from(whole)) as u64 }
}

#[cfg(test)]
mod tests;
