//! Rows of one table in memory, ordered by key and version. It does not know which versions a reader should see, which
//! commits are durable, or when it is flushed.
//!
//! Rows lie in a lock-free skip list, ordered by key and then from the newest version to the oldest, so that "newest
//! version at or before `at`" is one search. Range erases lie beside it, cut into fragments that do not overlap.
//!
//! Invariants:
//! - Nothing is removed. But a row replaces an earlier one with the same key and version, because one batch may write a key
//!   twice.
//! - When a reader asks at a version, every commit up to this version has been applied. So what a reader sees at a version does
//!   not change, even if more commits are applied meanwhile.
//! - At equal versions a put wins over a range erase; see [`crate::write::batch::BatchOps::resolve`].
//!
//! Thread safety: one thread applies at a time, and any number of threads reads meanwhile. Looking up a row takes no lock and
//! allocates nothing. Asking for range erases takes a read lock if there are any.

use std::ops::Bound;

use crossbeam_skiplist::SkipMap;
use os::sync::atomic::{AtomicU64, Ordering};
use os::sync::{Arc, RwLock};
use sst::{CoverAround, Direction, RangeErase, RowKind, Version};

mod allocated;
mod cursor;
mod fragments;
mod row;
pub mod set;

pub use cursor::MemCursor;
pub use row::MemRow;

use fragments::Fragments;
use row::{Lookup, Probe};

/// How many range erases are listed under one lock.
const LISTED_ERASES: usize = 64;

/// Rows of one table in memory.
#[derive(Debug)]
pub struct Memtable {
    rows: SkipMap<MemRow, ()>,
    range_erases: RwLock<Fragments>,
    /// Erases of single rows that were applied.
    erase_count: AtomicU64,
    /// Range erases that were applied. While it is 0, readers need not take the lock.
    range_erase_count: AtomicU64,
    /// The estimated memory of the rows.
    row_bytes: AtomicU64,
    /// The estimated memory of the range erases; a copy of what `range_erases` knows.
    range_erase_bytes: AtomicU64,
}

impl Default for Memtable {
    fn default() -> Self {
        Self::new()
    }
}

impl Memtable {
    /// An empty memtable.
    pub fn new() -> Self {
        Self {
            rows: SkipMap::new(),
            range_erases: RwLock::new(Fragments::default()),
            erase_count: AtomicU64::new(0),
            range_erase_count: AtomicU64::new(0),
            row_bytes: AtomicU64::new(0),
            range_erase_bytes: AtomicU64::new(0),
        }
    }

    /// Adds a row. `value` is empty for an erase.
    pub fn apply(&self, key: &[u8], version: Version, kind: RowKind, value: &[u8]) {
        let row = MemRow::new(key, version, kind, value);
        if kind == RowKind::Erase {
            self.erase_count.fetch_add(1, Ordering::Relaxed);
        }
        self.row_bytes.fetch_add(row.memory_bytes(), Ordering::Relaxed);
        self.rows.insert(row, ());
    }

    /// Erases the keys in `start..end` as of `version`; if `end` is empty, all keys from `start` on.
    pub fn remove_range(&self, start: &[u8], end: &[u8], version: Version) {
        if !end.is_empty() && start >= end {
            return;
        }
        let mut fragments = self.range_erases.write();
        fragments.insert(start, end, version);
        self.range_erase_bytes.store(fragments.memory_bytes(), Ordering::Relaxed);
        self.range_erase_count.fetch_add(1, Ordering::Release);
    }

    /// The newest version of `key` at or before `at`. [`Memtable::cover`] tells whether a range erase hides it.
    pub fn get(&self, key: &[u8], at: Version) -> Option<MemRow> {
        let entry = self.rows.lower_bound(Bound::Included(&Probe::new(key, at) as &dyn Lookup))?;
        let row = entry.key();
        (row.key() == key).then(|| row.clone())
    }

    /// The newest range erase at or before `at` that covers `key`.
    pub fn cover(&self, key: &[u8], at: Version) -> Option<Version> {
        if !self.has_range_erases() {
            return None;
        }
        self.range_erases.read().cover(key, at)
    }

    /// Whether any range was erased. One atomic load.
    pub fn has_range_erases(&self) -> bool {
        self.range_erase_count.load(Ordering::Acquire) != 0
    }

    /// The range erases in fragments: sorted, not overlapping, each with all its versions. Range erases that are applied
    /// meanwhile may be missing, as a whole or in part.
    pub fn range_erases(&self) -> impl Iterator<Item = RangeErase<Arc<[u8]>>> + '_ {
        let mut chunk = Vec::new().into_iter();
        // Fragments that begin before this key were listed.
        let mut next = self.has_range_erases().then(|| Arc::from([]));
        std::iter::from_fn(move || {
            if chunk.len() == 0 {
                let from: Arc<[u8]> = next.take()?;
                let listed = self.range_erases.read().list(&from, LISTED_ERASES);
                next = listed.last().and_then(|last| last.keys.end.clone());
                chunk = listed.into_iter();
            }
            chunk.next()
        })
    }

    /// The newest range erase at or before `at` that covers `key`, and how far the same is true for other keys.
    pub fn cover_around(&self, key: &[u8], at: Version, direction: Direction) -> CoverAround {
        self.range_erases.read().cover_around(key, at, direction)
    }

    /// Every row, sorted by key and from the newest to the oldest version. It is for a flush, when no more rows are applied.
    pub fn all_versions(&self) -> impl Iterator<Item = MemRow> + '_ {
        self.rows.iter().map(|entry| entry.key().clone())
    }

    /// Every row from `start` on, in the same order. Rows may be added meanwhile.
    pub fn versions_from<'m>(&'m self, start: &[u8]) -> impl Iterator<Item = MemRow> + use<'m> {
        let mut entry = self.rows.lower_bound(Bound::Included(&Probe::before(start) as &dyn Lookup));
        std::iter::from_fn(move || {
            let here = entry.take()?;
            let row = here.key().clone();
            entry = here.next();
            Some(row)
        })
    }

    /// How much memory this takes in bytes, with the overhead of the allocator and of the skip list; `row` and `fragments` show
    /// the arithmetic. The estimate is never much too small. It may be too large, because rows that were replaced are counted
    /// even after they are freed.
    pub fn bytes(&self) -> u64 {
        size_of::<Self>() as u64
            + self.row_bytes.load(Ordering::Relaxed)
            + self.range_erase_bytes.load(Ordering::Relaxed)
    }

    /// How many rows there are, all versions counted.
    pub fn rows(&self) -> u64 {
        self.rows.len() as u64
    }

    /// How many erases of single rows were applied.
    pub fn erases(&self) -> u64 {
        self.erase_count.load(Ordering::Relaxed)
    }

    /// Whether nothing was applied.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() && !self.has_range_erases()
    }
}

#[cfg(test)]
mod tests;
