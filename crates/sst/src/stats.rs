//! What lies where in a file, from the totals in its index nodes: rows, erased rows and bytes of any range, the row at
//! a distance, and where to cut many files into even pieces. It knows no versions, no levels, and not what one file
//! hides of another.
//!
//! Nodes carry running totals, so a child that lies in a range as a whole is one subtraction, and only the two ways
//! down to the ends of the range are walked. A child that is seen in part (see [`Slice`](crate::Slice)) has its rows
//! counted by row ids, without opening it; only the nodes below say how many of its bytes and erased rows are seen.
//!
//! ```text
//!            low                      high
//!             ▼                         ▼
//!   [  page  ][  page  ][ page ][ page ][  page  ]      rows: two pages for certain, four at most
//! ```
//!
//! * An end of the range is known to the data page it lies in; exactly if it is a separator or beyond the file's
//!   bounds. So an interval is two pages wide at most, and every interval holds the truth ([`Estimate`]).
//! * Index pages: those on the way to both ends, 2 x height at most, and on the way to each edge of the slice between
//!   them. Data pages: none; where the answer is to be exact, one at each end.
//! * A flat index is a tree of height 1 and goes through the same code.
//! * What a node says is checked against its parent: totals that do not fit are `Corrupt`, not a wrong sum.
//!
//! Histograms over many sources have their own bounds, see `stats/histogram.rs` and
//! `docs/decisions/0012-a-histogram-opens-what-is-heavy.md`.

mod exact;
mod histogram;
mod range;

pub use histogram::{Bucket, CutPoint, Histogram, HistogramSource, MemoryRun, Metric, histogram};

use crate::format::meta::KeyBounds;
use std::ops::Bound;

/// A number that is not known: the truth lies between, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Estimate {
    /// Not greater than the truth.
    pub low: u64,
    /// Not less than the truth.
    pub high: u64,
}

impl Estimate {
    /// A number that is known.
    pub const fn exact(n: u64) -> Self {
        Self { low: n, high: n }
    }

    /// By how much it may be wrong.
    pub const fn width(&self) -> u64 {
        self.high.saturating_sub(self.low)
    }

    /// Whether it is known.
    pub const fn is_exact(&self) -> bool {
        self.low == self.high
    }

    /// Whether the truth may be `n`.
    pub const fn contains(&self, n: u64) -> bool {
        self.low <= n && n <= self.high
    }

    /// Middle of the interval: the number that is wrong by least, half the width.
    pub const fn middle(&self) -> u64 {
        self.low + self.width() / 2
    }

    /// The sum of two numbers, at most what a u64 holds.
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

/// Totals of the rows of a file that are seen and whose keys lie in a range. The bytes of a page are shared evenly by
/// its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct RangeTotals {
    /// Rows, erased ones among them.
    pub rows: Estimate,
    /// Those whose newest version is an erase.
    pub erased: Estimate,
    /// Stored bytes of the main tree's data pages.
    pub bytes: Estimate,
    /// Stored bytes of what belongs to the rows and lies elsewhere: large values, history, other groups. A page of
    /// those counts where the main tree counts it: at the data page that was being filled when it was full.
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

/// A place between keys: before `at`, or after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct KeyEdge<'k> {
    at: &'k [u8],
    is_after: bool,
}

/// The range of keys that is asked about, clipped to the bounds of a file: no edge on a side where nothing is cut off.
/// A [`KeyRange`](crate::KeyRange) would need a copy of every bound that is not its own end.
#[derive(Clone, Copy, Debug, Default)]
struct Span<'k> {
    low: Option<KeyEdge<'k>>,
    high: Option<KeyEdge<'k>>,
}

impl<'k> Span<'k> {
    /// The part of the range from `low` to `high` with keys within `bounds`; `None` if none exists.
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

/// `part` of `whole` shares of `bytes`, rounded down.
fn share(bytes: u64, part: u64, whole: u64) -> u64 {
    if part >= whole { bytes } else { (u128::from(bytes) * u128::from(part) / u128::from(whole)) as u64 }
}

#[cfg(test)]
mod tests;
