//! A stretch of keys that no range erase of a file touches, kept from one read to the next: a read within it asks no page
//! whether its keys were erased. It knows no rows, and no versions, since where nothing was erased no version matters.
//!
//! Range erases often lie together, far from what is read. So one gap is kept for a file, the one met last. Where erases lie
//! among what is read it is of no use; then one miss in [`MISSES`] replaces it, which costs two short copies.
//!
//! Thread safe.

use os::sync::RwLock;
use os::sync::atomic::{AtomicU32, Ordering};
use std::ops::Bound;

/// Of so many reads that look for range erases one notes what it found.
const MISSES: u32 = 16;

/// Longest key that is kept. Keys of erases are short, or have long parts in common with many others.
const MAX_KEY_BYTES: usize = 256;

/// Keys from `low` to before `high`, which no range erase covers; to the last key if that is `None`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Gap {
    pub low: Vec<u8>,
    pub high: Option<Vec<u8>>,
}

impl Gap {
    fn holds(&self, low: Bound<&[u8]>, high: Bound<&[u8]>) -> bool {
        let begins = match low {
            Bound::Included(low) | Bound::Excluded(low) => self.low.as_slice() <= low,
            Bound::Unbounded => self.low.is_empty(),
        };
        begins
            && match (&self.high, high) {
                (None, _) => true,
                (Some(_), Bound::Unbounded) => false,
                (Some(end), Bound::Included(high)) => high < end.as_slice(),
                (Some(end), Bound::Excluded(high)) => high <= end.as_slice(),
            }
    }

    /// Whether no key lies between this gap and `other`.
    fn meets(&self, other: &Gap) -> bool {
        let reaches = |a: &Gap, b: &Gap| a.high.as_ref().is_none_or(|high| b.low <= *high);
        reaches(self, other) && reaches(other, self)
    }

    fn take_in(&mut self, other: Gap) {
        self.low = std::mem::take(&mut self.low).min(other.low);
        self.high = self.high.take().zip(other.high).map(|(a, b)| a.max(b));
    }

    fn is_short(&self) -> bool {
        self.low.len().max(self.high.as_ref().map_or(0, Vec::len)) <= MAX_KEY_BYTES
    }
}

/// The gap of a file that was met last.
#[derive(Debug, Default)]
pub struct KnownGap {
    gap: RwLock<Option<Gap>>,
    misses: AtomicU32,
}

impl KnownGap {
    /// Whether no range erase covers a key from `low` to `high`, as far as that is known.
    pub(super) fn holds(&self, low: Bound<&[u8]>, high: Bound<&[u8]>) -> bool {
        self.gap.read().as_ref().is_some_and(|gap| gap.holds(low, high))
    }

    /// Says that a read looked for range erases, and found none in `gap`.
    pub(super) fn missed(&self, gap: impl FnOnce() -> Gap) {
        if !self.misses.fetch_add(1, Ordering::Relaxed).is_multiple_of(MISSES) {
            return;
        }
        let found = gap();
        if !found.is_short() {
            return;
        }
        let mut known = self.gap.write();
        match &mut *known {
            Some(known) if known.meets(&found) => known.take_in(found),
            known => *known = Some(found),
        }
    }

    /// Memory of its keys.
    pub fn heap_bytes(&self) -> usize {
        let gap = self.gap.read();
        gap.as_ref().map_or(0, |gap| gap.low.capacity() + gap.high.as_ref().map_or(0, Vec::capacity))
    }
}

#[cfg(test)]
mod tests;
