//! Rows of one page that follow one another in a merge, without a row of another source between them, which the caller
//! has made sure of. It knows no other source, and no file.
//!
//! A merge takes a row by comparing all that it reads from. Most rows come from the page of the row before, with
//! nothing in between; those need no comparison, no reference to a page or a file, and no lock.

use super::tree::TreeCursor;
use crate::Direction;
use crate::format::PageRows;
use crate::format::data_page::Layout;
use crate::row::{RowKind, Version};
use pages::PageRef;
use std::ops::{Bound, Range};

/// The rest of a page's rows, in one direction, as of one version. Holds the page.
#[derive(Debug)]
pub struct Streak {
    page: PageRef,
    layout: Layout,
    /// Still to come, by their places in the page.
    rows: Range<usize>,
    direction: Direction,
    at: Version,
    /// A range erase that hides older rows.
    erased: Option<Version>,
    version_offset: u64,
}

impl Streak {
    /// Rows after the place of `cursor`, up to a gap in what it is bounded to. `None` if it is nowhere, at the last of
    /// them, or at a row whose value, or whose visible version, lies elsewhere.
    pub(super) fn after(
        cursor: &TreeCursor,
        direction: Direction,
        at: Version,
        erased: Option<Version>,
        version_offset: u64,
    ) -> Option<Streak> {
        let (page, layout, i) = cursor.place()?;
        // Where this row was not one to be followed, the next ones will hardly be.
        let here = layout.record(page, i);
        if here.outside || here.version.0.saturating_add(version_offset) > at.0 {
            return None;
        }
        let first = layout.first_row();
        let seen = cursor.rows_around(first + i as u64);
        let start = seen.start.saturating_sub(first) as usize;
        let end = layout.rows().min(usize::try_from(seen.end - first).unwrap_or(usize::MAX));
        let rows = match direction {
            Direction::Forward => i + 1..end,
            Direction::Backward => start..i,
        };
        if rows.is_empty() {
            return None;
        }
        Some(Streak { page: page.clone(), layout: *layout, rows, direction, at, erased, version_offset })
    }

    /// Leaves out rows from `far` on: with an excluded bound the one with this key, too.
    pub fn until(&mut self, far: Bound<&[u8]>) {
        let search = |key| self.layout.search(&self.page, key);
        match self.direction {
            Direction::Forward => {
                let end = match far {
                    Bound::Unbounded => return,
                    Bound::Included(key) => search(key).map_or_else(|after| after, |there| there + 1),
                    Bound::Excluded(key) => search(key).unwrap_or_else(|after| after),
                };
                self.rows.end = self.rows.end.min(end).max(self.rows.start);
            }
            Direction::Backward => {
                let start = match far {
                    Bound::Unbounded => return,
                    Bound::Included(key) => search(key).unwrap_or_else(|after| after),
                    Bound::Excluded(key) => search(key).map_or_else(|after| after, |there| there + 1),
                };
                self.rows.start = self.rows.start.max(start).min(self.rows.end);
            }
        }
    }

    /// Whether no row is left.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The page that holds the rows and their values.
    pub fn page(&self) -> &PageRef {
        &self.page
    }

    /// Which way it goes.
    pub fn direction(&self) -> Direction {
        self.direction
    }

    /// The next row that is visible, and the same one again until the streak [advances](Self::advance): where in the
    /// page its value lies, in 32 bits each so that it stays in registers. Its key replaces what is in `key`. Rows that are not visible are skipped. `None` at the
    /// end, and before a row whose value, or whose visible version, lies elsewhere; then `key` means nothing.
    #[inline]
    pub fn next(&mut self, key: &mut Vec<u8>) -> Option<Range<u32>> {
        while !self.rows.is_empty() {
            let i = match self.direction {
                Direction::Forward => self.rows.start,
                Direction::Backward => self.rows.end - 1,
            };
            let record = self.layout.read_row(&self.page, i, key);
            let version = Version(record.version.0.saturating_add(self.version_offset));
            let is_visible = version <= self.at;
            if (!is_visible && record.has_history) || record.outside {
                return None;
            }
            let is_erased = self.erased.is_some_and(|erased| version < erased);
            if is_visible && !is_erased && record.kind == RowKind::Put {
                return Some(record.value_at as u32..(record.value_at + record.value_bytes) as u32);
            }
            self.advance();
        }
        None
    }

    /// Goes past the row found last.
    #[inline]
    pub fn advance(&mut self) {
        match self.direction {
            Direction::Forward => self.rows.start += 1,
            Direction::Backward => self.rows.end -= 1,
        }
    }

    /// Place in the page of the row passed last, or of the one before the first.
    pub(super) fn passed(&self) -> usize {
        match self.direction {
            Direction::Forward => self.rows.start - 1,
            Direction::Backward => self.rows.end,
        }
    }
}
