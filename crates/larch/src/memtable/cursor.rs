//! Walks the keys of a memtable as of a version, in both directions. It does not hide erased keys, because the merge above needs
//! them, and does not know range erases, because the merge asks the memtable for them.
//!
//! The cursor owns its memtable and borrows nothing from the skip list. It copies rows in chunks, whose size doubles from 1 to
//! 64: a seek pays for one row, and a scan pays one search for 64 rows. Going forward costs one search for each chunk. Going
//! back costs two searches for each row, because the skip list is linked in one direction only.
//!
//! Invariants:
//! - The chunk holds neighbouring visible rows in ascending order, one for each key. Which rows are visible as of a version does
//!   not change, so a chunk stays right, and is used again when the direction changes.
//! - `Before` and `After` are the two ends of the table, where the chunk is empty.
//!
//! Thread safety: belongs to one thread; others may apply newer versions meanwhile.

use std::ops::Bound;

use os::sync::Arc;
use sst::{Direction, Version};

use super::row::{Lookup, Probe};
use super::{MemRow, Memtable};

/// Most rows in a chunk.
const CHUNK_ROWS: usize = 64;

/// After skipping this many rows one by one, another search is cheaper: a key may have thousands of versions.
const SKIPPED_ROWS: usize = 8;

/// A position among the keys of a memtable as of a version.
#[derive(Clone, Debug)]
pub struct MemCursor {
    table: Arc<Memtable>,
    at: Version,
    chunk: Vec<MemRow>,
    place: CursorPlace,
    /// How many rows the next chunk has, if the direction stays the same.
    next_rows: usize,
    direction: Direction,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CursorPlace {
    Before,
    On(usize),
    After,
}

impl MemCursor {
    /// A cursor before the first key, which sees versions up to `at`.
    pub fn new(table: Arc<Memtable>, at: Version) -> Self {
        Self { table, at, chunk: Vec::new(), place: CursorPlace::Before, next_rows: 1, direction: Direction::Forward }
    }

    /// The version that the cursor sees.
    #[cfg(test)]
    pub fn at(&self) -> Version {
        self.at
    }

    /// Goes to the first key at or after the bound, or after it if the bound is excluded.
    pub fn seek(&mut self, bound: Bound<&[u8]>) {
        self.next_rows = 1;
        self.take_forward(bound);
    }

    /// Goes to the last key at or before the bound, or before it if the bound is excluded.
    pub fn seek_back(&mut self, bound: Bound<&[u8]>) {
        self.next_rows = 1;
        self.take_back(bound);
    }

    /// Goes to the next key. From before the first key it goes to the first, and from the last key to after it, where it stays.
    pub fn next(&mut self) {
        match self.place {
            CursorPlace::After => {}
            CursorPlace::Before => self.take_forward(Bound::Unbounded),
            CursorPlace::On(index) if index + 1 < self.chunk.len() => self.place = CursorPlace::On(index + 1),
            CursorPlace::On(index) => {
                let last = self.chunk.swap_remove(index);
                self.take_forward(Bound::Excluded(last.key()));
            }
        }
    }

    /// Goes to the previous key. From after the last key it goes to the last, and from the first key to before it, where it
    /// stays.
    pub fn prev(&mut self) {
        match self.place {
            CursorPlace::Before => {}
            CursorPlace::After => self.take_back(Bound::Unbounded),
            CursorPlace::On(index @ 1..) => self.place = CursorPlace::On(index - 1),
            CursorPlace::On(index) => {
                let first = self.chunk.swap_remove(index);
                self.take_back(Bound::Excluded(first.key()));
            }
        }
    }

    /// The key at the position; `None` before the first and after the last.
    pub fn key(&self) -> Option<&[u8]> {
        match self.place {
            CursorPlace::On(index) => Some(self.chunk[index].key()),
            CursorPlace::Before | CursorPlace::After => None,
        }
    }

    /// The newest visible version of the key at the position, which may be an erase.
    ///
    /// # Panics
    ///
    /// If there is no key at the position.
    pub fn row(&self) -> &MemRow {
        match self.place {
            CursorPlace::On(index) => &self.chunk[index],
            CursorPlace::Before | CursorPlace::After => panic!("the caller has seen a key at the position"),
        }
    }

    /// Fills the chunk with the visible rows from `bound` on, and goes to the first of them.
    fn take_forward(&mut self, bound: Bound<&[u8]>) {
        self.chunk.clear();
        self.fill_forward(bound);
        self.place = if self.chunk.is_empty() { CursorPlace::After } else { CursorPlace::On(0) };
    }

    /// Fills the chunk with the visible rows up to `bound`, and goes to the last of them.
    fn take_back(&mut self, bound: Bound<&[u8]>) {
        self.chunk.clear();
        self.fill_back(bound);
        self.chunk.reverse();
        self.place = self.chunk.len().checked_sub(1).map_or(CursorPlace::Before, CursorPlace::On);
    }

    fn fill_forward(&mut self, bound: Bound<&[u8]>) {
        let chunk_rows = self.next_chunk_rows(Direction::Forward);
        let rows = &self.table.rows;
        let after = |key: &[u8]| rows.lower_bound(Bound::Excluded(&Probe::after(key) as &dyn Lookup));
        let visible = |key: &[u8]| rows.lower_bound(Bound::Included(&Probe::new(key, self.at) as &dyn Lookup));
        let mut entry = match bound {
            Bound::Included(key) => visible(key),
            Bound::Excluded(key) => after(key),
            Bound::Unbounded => rows.front(),
        };
        let mut skipped = 0;
        while let Some(here) = entry {
            let row = here.key();
            let is_newer = row.version() > self.at;
            let is_older = !is_newer && self.chunk.last().is_some_and(|taken| taken.key() == row.key());
            if !is_newer && !is_older {
                self.chunk.push(row.clone());
                if self.chunk.len() == chunk_rows {
                    return;
                }
                skipped = 0;
                entry = here.next();
            } else if skipped < SKIPPED_ROWS {
                skipped += 1;
                entry = here.next();
            } else {
                skipped = 0;
                entry = if is_newer { visible(row.key()) } else { after(row.key()) };
            }
        }
    }

    /// Going back, the first row of a key is its oldest version. If this version is visible, the key has a newest visible one,
    /// and another search finds it.
    fn fill_back(&mut self, bound: Bound<&[u8]>) {
        let chunk_rows = self.next_chunk_rows(Direction::Backward);
        let rows = &self.table.rows;
        let before = |key: &[u8]| rows.upper_bound(Bound::Excluded(&Probe::before(key) as &dyn Lookup));
        let mut entry = match bound {
            Bound::Included(key) => rows.upper_bound(Bound::Included(&Probe::after(key) as &dyn Lookup)),
            Bound::Excluded(key) => before(key),
            Bound::Unbounded => rows.back(),
        };
        while let Some(here) = entry {
            let key = here.key().key();
            if here.key().version() <= self.at {
                let row = self.table.get(key, self.at).expect("a visible version stays");
                self.chunk.push(row);
                if self.chunk.len() == chunk_rows {
                    return;
                }
            }
            entry = before(key);
        }
    }

    /// How many rows to take now. The number doubles as long as the direction stays the same.
    fn next_chunk_rows(&mut self, direction: Direction) -> usize {
        if self.direction != direction {
            self.direction = direction;
            self.next_rows = 1;
        }
        let chunk_rows = self.next_rows;
        self.next_rows = (chunk_rows * 2).min(CHUNK_ROWS);
        chunk_rows
    }
}
