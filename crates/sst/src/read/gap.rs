//! A range of keys that no range erase of a file touches. It is kept from one read to the next, so that a read
//! within it asks no page whether its keys were erased. It knows no rows. It knows no versions either: where
//! nothing was erased, versions do not matter.
//!
//! Range erases often lie together, far from the keys that are read. So for each file, only the gap that was met
//! last is kept. If erases lie among the keys that are read, the gap is of no use. Then one miss in [`MISSES`]
//! replaces it, which costs two short copies.
//!
//! Thread safe.

use crate::KeyRange;
use os::sync::RwLock;
use os::sync::atomic::{AtomicU32, Ordering};
use std::ops::Bound;

/// Of so many reads that look for range erases, one notes what it has found.
const MISSES: u32 = 16;

/// The length of the longest key that is kept. Keys of erases are short, or have long parts in common with many
/// other keys.
const MAX_KEY_BYTES: usize = 256;

/// The gap that was met last in a file: keys that no range erase covers.
#[derive(Debug, Default)]
pub struct KnownGap {
    gap: RwLock<Option<KeyRange>>,
    misses: AtomicU32,
}

impl KnownGap {
    /// Whether no range erase is known to cover a key from `low` to `high`.
    pub(super) fn holds(&self, low: Bound<&[u8]>, high: Bound<&[u8]>) -> bool {
        self.gap.read().as_ref().is_some_and(|gap| gap.holds(low, high))
    }

    /// Notes that a read looked for range erases, and found none in `gap`.
    pub(super) fn missed(&self, gap: impl FnOnce() -> KeyRange) {
        if !self.misses.fetch_add(1, Ordering::Relaxed).is_multiple_of(MISSES) {
            return;
        }
        let found = gap();
        if found.start.len().max(found.end.as_ref().map_or(0, Vec::len)) > MAX_KEY_BYTES {
            return;
        }
        let mut known = self.gap.write();
        match &mut *known {
            Some(known) if known.touches(&found) => known.join(found),
            known => *known = Some(found),
        }
    }

    /// The bytes of memory of its keys.
    pub fn heap_bytes(&self) -> usize {
        self.gap.read().as_ref().map_or(0, KeyRange::heap_bytes)
    }
}

#[cfg(test)]
mod tests;
