//! A range of keys that no range erase of a file touches. The file keeps it from one read to the next. So a read
//! of keys in this range need not look at any page to know that they were not erased. This module knows no rows
//! and no versions: where nothing was erased, versions do not matter.
//!
//! Range erases often lie together, far from the keys that are read. So for each file, only the gap that a read
//! has found last is kept. If erases lie among the keys that are read, most reads lie outside this gap. One in
//! [`MISSES`] of these reads replaces the gap by its own, which costs two short copies.
//!
//! Thread safe.

use crate::KeyRange;
use os::sync::RwLock;
use os::sync::atomic::{AtomicU32, Ordering};
use std::ops::Bound;

/// One in this many reads that look for range erases notes the gap that it has found.
const MISSES: u32 = 16;

/// A gap with a longer bound than this, in bytes, is not kept.
const MAX_KEY_BYTES: usize = 256;

/// The range without range erases that was noted last for a file.
#[derive(Debug, Default)]
pub struct KnownGap {
    gap: RwLock<Option<KeyRange>>,
    misses: AtomicU32,
}

impl KnownGap {
    /// Whether all keys from `low` to `high` are known to be free of range erases.
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
