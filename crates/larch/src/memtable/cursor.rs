//! Walks the keys of a memtable as of a version, in both directions. It does not hide erased keys and does not look at
//! range erases: the merge above needs the first and asks the memtable for the second.
//!
//! The cursor owns its memtable and borrows nothing from the skip list. It takes rows over in chunks that double from 1
//! to 64: a seek that wants one row pays for one, a scan pays one search for 64 rows. Going forward costs a search a
//! chunk, going back two a row, since the skip list is linked one way only.
//!
//! Invariants:
//! - The chunk holds neighbouring visible rows in ascending order, one for each key. What is visible as of a version
//!   does not change, so a chunk never goes stale and a change of direction reuses it.
//! - `Before` and `After` stand for the two ends of the table; there the chunk is empty.
//!
//! Thread safety: belongs to one thread; others may apply newer versions meanwhile.

use std::ops::Bound;

use os::sync::Arc;
use sst::{Direction, Version};

use super::row::{Lookup, Probe};
use super::{MemRow, Memtable};

/// Most rows taken over at once.
const CHUNK_ROWS: usize = 64;

/// Rows that are passed one by one before another search is cheaper: a key may have thousands of versions.
const PASSED_ROWS: usize = 8;

/// A position among the keys of a memtable as of a version.
#[derive(Clone, Debug)]
pub struct MemCursor {
    table: Arc<Memtable>,
    at: Version,
    chunk: Vec<MemRow>,
    place: CursorPlace,
    /// Rows to take next time, in the direction of last time.
    wanted: usize,
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
        Self { table, at, chunk: Vec::new(), place: CursorPlace::Before, wanted: 1, direction: Direction::Forward }
    }

    /// The version that the cursor sees.
    #[cfg(test)]
    pub fn at(&self) -> Version {
        self.at
    }

    /// Goes to the first key at or after the bound (after it, if it is excluded).
    pub fn seek(&mut self, bound: Bound<&[u8]>) {
        self.wanted = 1;
        self.take_forward(bound);
    }

    /// Goes to the last key at or before the bound (before it, if it is excluded).
    pub fn seek_back(&mut self, bound: Bound<&[u8]>) {
        self.wanted = 1;
        self.take_back(bound);
    }

    /// Goes to the next key; from before the first to the first, from the last to after it, where it stays.
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

    /// Goes to the previous key; from after the last to the last, from the first to before it, where it stays.
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

    /// The newest visible version of the key at the position, which may be an erase. There must be a key.
    pub fn row(&self) -> &MemRow {
        match self.place {
            CursorPlace::On(index) => &self.chunk[index],
            CursorPlace::Before | CursorPlace::After => panic!("the caller has seen a key at the position"),
        }
    }

    /// Takes the visible rows from `bound` on as the chunk and stands on the first of them.
    fn take_forward(&mut self, bound: Bound<&[u8]>) {
        self.chunk.clear();
        self.fill_forward(bound);
        self.place = if self.chunk.is_empty() { CursorPlace::After } else { CursorPlace::On(0) };
    }

    /// Takes the visible rows up to `bound` as the chunk and stands on the last of them.
    fn take_back(&mut self, bound: Bound<&[u8]>) {
        self.chunk.clear();
        self.fill_back(bound);
        self.chunk.reverse();
        self.place = self.chunk.len().checked_sub(1).map_or(CursorPlace::Before, CursorPlace::On);
    }

    fn fill_forward(&mut self, bound: Bound<&[u8]>) {
        let wanted = self.next_chunk_rows(Direction::Forward);
        let rows = &self.table.rows;
        let after = |key: &[u8]| rows.lower_bound(Bound::Excluded(&Probe::after(key) as &dyn Lookup));
        let visible = |key: &[u8]| rows.lower_bound(Bound::Included(&Probe::new(key, self.at) as &dyn Lookup));
        let mut entry = match bound {
            Bound::Included(key) => visible(key),
            Bound::Excluded(key) => after(key),
            Bound::Unbounded => rows.front(),
        };
        let mut passed = 0;
        while let Some(here) = entry {
            let row = here.key();
            let is_newer = row.version() > self.at;
            let is_older = !is_newer && self.chunk.last().is_some_and(|taken| taken.key() == row.key());
            if !is_newer && !is_older {
                self.chunk.push(row.clone());
                if self.chunk.len() == wanted {
                    return;
                }
                passed = 0;
                entry = here.next();
            } else if passed < PASSED_ROWS {
                passed += 1;
                entry = here.next();
            } else {
                passed = 0;
                entry = if is_newer { visible(row.key()) } else { after(row.key()) };
            }
        }
    }

    /// Coming from above, the first row met of a key is its oldest version: if that is visible so is the one looked for,
    /// which takes another search.
    fn fill_back(&mut self, bound: Bound<&[u8]>) {
        let wanted = self.next_chunk_rows(Direction::Backward);
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
                if self.chunk.len() == wanted {
                    return;
                }
            }
            entry = before(key);
        }
    }

    /// How many rows to take now: doubling as long as the direction stays.
    fn next_chunk_rows(&mut self, direction: Direction) -> usize {
        if self.direction != direction {
            self.direction = direction;
            self.wanted = 1;
        }
        let wanted = self.wanted;
        self.wanted = (wanted * 2).min(CHUNK_ROWS);
        wanted
    }
}
