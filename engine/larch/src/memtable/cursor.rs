//! Walks through the keys of a memtable in both directions and sees only versions up to its own. It hides neither
//! erased keys, which the merge needs, nor keys under range erases, for which the merge asks the memtable.
//!
//! A cursor stands on a row of the skip list and keeps the memtable alive. A step forward follows the links of the
//! lowest level. A step back costs two searches, because the list is linked in only one direction.
//!
//! Invariants:
//! - The cursor's row is the newest visible version of its key. Which rows are visible at a version never changes,
//!   and no row leaves the list. So the cursor can go on from its row at any time.
//! - `Before` and `After` are the two ends of the table.
//!
//! Thread safety: a cursor belongs to one thread. Other threads may apply newer versions at the same time.

use super::node::Node;
use super::skip_list::{Probe, SkipList};
use super::{MemRow, Memtable};
use os::sync::Arc;
use sst::{Direction, Version};
use std::ops::Bound;

/// How many versions of a key the cursor skips one by one before it searches instead. A key may have thousands of
/// them.
const SKIPPED_ROWS: usize = 8;

/// How many rows that the reader does not see are passed by [`Memtable::next_key`]. To an old snapshot, a memtable may
/// have nothing else.
const UNSEEN_ROWS: usize = 32;

/// A position among the keys of a memtable, for a reader at a version.
#[derive(Clone, Debug)]
pub struct MemCursor {
    table: Arc<Memtable>,
    at: Version,
    place: CursorPlace,
}

#[derive(Clone, Debug)]
enum CursorPlace {
    Before,
    On(MemRow),
    After,
}

impl MemCursor {
    /// A cursor before the first key, which sees versions up to `at`.
    pub fn new(table: Arc<Memtable>, at: Version) -> Self {
        Self { table, at, place: CursorPlace::Before }
    }

    /// The memtable.
    pub fn memtable(&self) -> &Arc<Memtable> {
        &self.table
    }

    /// The version of the cursor: it sees rows up to this version.
    #[cfg(test)]
    pub fn at(&self) -> Version {
        self.at
    }

    /// Seeks the first key at or after an included bound, or after an excluded one.
    pub fn seek(&mut self, bound: Bound<&[u8]>) {
        let rows = &self.table.rows;
        let visible = seek(rows, bound, self.at, usize::MAX);
        self.place.set(rows, visible, CursorPlace::After);
    }

    /// Seeks the last key at or before an included bound, or before an excluded one.
    pub fn seek_back(&mut self, bound: Bound<&[u8]>) {
        let rows = &self.table.rows;
        let visible = seek_back(rows, bound, self.at, usize::MAX);
        self.place.set(rows, visible, CursorPlace::Before);
    }

    /// Goes to the next key. From before the first key it goes to the first key, and from the last key to the place
    /// after all keys, where it stays.
    pub fn next(&mut self) {
        match &self.place {
            CursorPlace::After => {}
            CursorPlace::Before => self.seek(Bound::Unbounded),
            CursorPlace::On(row) => {
                let rows = &self.table.rows;
                let visible = first_visible(rows, after_key(rows, row.node()), self.at, usize::MAX);
                self.place.set(rows, visible, CursorPlace::After);
            }
        }
    }

    /// Goes to the previous key. From after the last key it goes to the last key, and from the first key to the place
    /// before all keys, where it stays.
    pub fn prev(&mut self) {
        match &self.place {
            CursorPlace::Before => {}
            CursorPlace::After => self.seek_back(Bound::Unbounded),
            CursorPlace::On(row) => {
                let rows = &self.table.rows;
                let last = rows.last_before(&Probe::before(row.key()));
                let visible = last_visible(rows, last, self.at, usize::MAX);
                self.place.set(rows, visible, CursorPlace::Before);
            }
        }
    }

    /// Goes to the next key in `direction`.
    pub fn step(&mut self, direction: Direction) {
        match direction {
            Direction::Forward => self.next(),
            Direction::Backward => self.prev(),
        }
    }

    /// The key at the cursor. `None` before the first key and after the last one.
    pub fn key(&self) -> Option<&[u8]> {
        match &self.place {
            CursorPlace::On(row) => Some(row.key()),
            CursorPlace::Before | CursorPlace::After => None,
        }
    }

    /// The newest visible version of the key at the cursor, which may be an erase.
    ///
    /// # Panics
    ///
    /// If the cursor is at no key.
    pub fn row(&self) -> &MemRow {
        match &self.place {
            CursorPlace::On(row) => row,
            CursorPlace::Before | CursorPlace::After => panic!("the caller has seen a key at the position"),
        }
    }
}

impl CursorPlace {
    /// Goes to `row`, or to `end` if there is none. `rows` must be the cursor's list.
    fn set(&mut self, rows: &SkipList, row: Option<Node<'_>>, end: Self) {
        match (row, self) {
            (Some(node), Self::On(row)) => row.set(node),
            (Some(node), place) => *place = Self::On(rows.row(node)),
            (None, place) => *place = end,
        }
    }
}

impl Memtable {
    /// A key in `direction` from `start` before which a reader at `at` sees none. It is the first of which the reader
    /// sees a version, unless [`UNSEEN_ROWS`] others come before that. `None` if there is no key.
    pub fn next_key(&self, start: Bound<&[u8]>, direction: Direction, at: Version) -> Option<&[u8]> {
        if self.is_empty() {
            return None;
        }
        let node = match direction {
            Direction::Forward => seek(&self.rows, start, at, UNSEEN_ROWS),
            Direction::Backward => seek_back(&self.rows, start, at, UNSEEN_ROWS),
        };
        node.map(Node::key)
    }
}

/// The first row that a reader at `at` sees at or after an included bound, or after an excluded one. After `most` rows
/// that the reader does not see, it is the next one in any case, as in the functions below.
fn seek<'l>(rows: &'l SkipList, bound: Bound<&[u8]>, at: Version, most: usize) -> Option<Node<'l>> {
    let first = match bound {
        Bound::Included(key) => rows.first_from(&Probe::new(key, at)),
        Bound::Excluded(key) => rows.first_from(&Probe::after(key)),
        Bound::Unbounded => rows.first(),
    };
    first_visible(rows, first, at, most)
}

/// The newest version that a reader at `at` sees of the last such key at or before an included bound, or before an
/// excluded one.
fn seek_back<'l>(rows: &'l SkipList, bound: Bound<&[u8]>, at: Version, most: usize) -> Option<Node<'l>> {
    let last = match bound {
        Bound::Included(key) => rows.last_before(&Probe::after(key)),
        Bound::Excluded(key) => rows.last_before(&Probe::before(key)),
        Bound::Unbounded => rows.last(),
    };
    last_visible(rows, last, at, most)
}

/// The first row after all versions of the key of `node`.
fn after_key<'l>(rows: &'l SkipList, node: Node<'_>) -> Option<Node<'l>> {
    let mut next = rows.following(node);
    for _ in 0..SKIPPED_ROWS {
        match next {
            Some(here) if here.has_key_of(node) => next = rows.following(here),
            other => return other,
        }
    }
    rows.first_from(&Probe::after(node.key()))
}

/// The first row at or after `node` that a reader at `at` sees. `node` must be the newest version of its key, or
/// newer than `at`.
fn first_visible<'l>(rows: &'l SkipList, mut node: Option<Node<'l>>, at: Version, most: usize) -> Option<Node<'l>> {
    let mut skipped = 0;
    loop {
        let here = node?;
        if here.version() <= at || skipped == most {
            return node;
        }
        skipped += 1;
        if skipped % SKIPPED_ROWS == 0 {
            node = rows.first_from(&Probe::new(here.key(), at));
        } else {
            node = rows.following(here);
        }
    }
}

/// Walks backward from `node`, the oldest version of its key, to the nearest key of which a reader at `at` sees a
/// version, and returns the newest such version. If the oldest version is visible, one more search finds the newest
/// visible one.
fn last_visible<'l>(rows: &'l SkipList, mut node: Option<Node<'l>>, at: Version, most: usize) -> Option<Node<'l>> {
    let mut skipped = 0;
    loop {
        let here = node?;
        if here.version() <= at {
            return rows.first_from(&Probe::new(here.key(), at));
        }
        if skipped == most {
            return node;
        }
        skipped += 1;
        node = rows.last_before(&Probe::before(here.key()));
    }
}
