//! Says where in a file how much lies, from the totals in its index nodes: the rows, erased rows and bytes of any
//! range, the row at a distance, and where to cut many files into even pieces. It knows no versions and no levels.
//! It does not know which rows of one file another file hides.
//!
//! Nodes carry running totals. So a child that lies in a range as a whole takes one subtraction, and only the two
//! ways down to the ends of the range are walked. If a child is seen only in part (see [`Slice`](crate::Slice)),
//! its rows are counted by their ids, without opening it; how many of its bytes and erased rows are seen, only the
//! nodes below it say.
//!
//! ```text
//!            low                      high
//!             ▼                         ▼
//!   [  page  ][  page  ][ page ][ page ][  page  ]      rows: two pages for certain, four at most
//! ```
//!
//! * Of an end of the range, only the data page in which it lies is known. If it is a separator or beyond the
//!   file's bounds, it is known exactly. So an interval is at most two pages wide, and every interval contains the
//!   true number ([`Estimate`]).
//! * Index pages that are read: those on the ways to both ends, at most 2 x height, and those on the way to each
//!   edge of the slice between the ends. Data pages: none; for an exact answer, one at each end.
//! * A flat index is a tree of height 1 and goes through the same code.
//! * What a node says is checked against its parent: totals that do not fit are `Corrupt`, and do not make a wrong
//!   sum.
//!
//! Histograms over many sources have their own bounds, see `stats/histogram.rs` and
//! `docs/decisions/0012-a-histogram-opens-what-is-heavy.md`.

mod exact;
mod histogram;
mod range;

pub use histogram::{Bucket, CutPoint, Histogram, HistogramSource, MemoryRun, Metric, histogram};

use crate::format::meta::KeyBounds;
use std::ops::Bound;

/// A number that is not known exactly: the true number lies between the two, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
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

    /// The middle of the interval: the number with the smallest possible error, which is half the width.
    pub const fn middle(&self) -> u64 {
        self.low + self.width() / 2
    }

    /// The sum of two numbers, limited to what a u64 holds.
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

/// The totals of those rows of a file that are seen and whose keys lie in a range. The bytes of a page are divided
/// evenly among its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct RangeTotals {
    /// Rows, including erased ones.
    pub rows: Estimate,
    /// Rows whose newest version is an erase.
    pub erased: Estimate,
    /// Stored bytes of the main tree's data pages.
    pub bytes: Estimate,
    /// Stored bytes that belong to the rows but lie elsewhere: large values, history, other groups. A page of these
    /// counts where the main tree counts it: at the data page that was being filled when this page became full.
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

/// The range of keys in question, clipped to the bounds of a file. A side where nothing is cut off has no edge. A
/// [`KeyRange`](crate::KeyRange) would need a copy of every bound that is not its own end.
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

/// The bytes of `part` shares, if `bytes` are divided into `whole` shares; rounded down.
fn share(bytes: u64, part: u64, whole: u64) -> u64 {
    if part >= whole { bytes } else { (u128::from(bytes) * u128::from(part) / u128::from(whole)) as u64 }
}

#[cfg(test)]
mod tests;
