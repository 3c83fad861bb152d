//! Goes through the older versions of a file one after the other. The check of each main row takes the row's older
//! versions from here. This module does not know which main rows have older versions.

use super::check::Check;
use super::tree_walk::{DataPage, TreeWalk};
use crate::format::PageRows;
use pages::{Address, PageKind, PageSource, Result};

/// The rows of the history, one after the other.
pub(super) struct History {
    walk: Option<TreeWalk>,
    here: Option<DataPage>,
    next: usize,
    /// The stored bytes of all history pages before the page with the older version that was taken last. When the
    /// writer wrote the main rows that have been checked so far, it had already closed these pages.
    pub closed_bytes: u64,
}

impl History {
    pub fn new(walk: Option<TreeWalk>) -> Self {
        Self { walk, here: None, next: 0, closed_bytes: 0 }
    }

    /// Finds the next older version. Returns the id of the main row to which it belongs, and the address of the
    /// page that has it. Loads the page if it is not loaded yet.
    pub fn next_row<S: PageSource + ?Sized>(&mut self, check: &mut Check<'_, S>) -> Result<Option<(u64, Address)>> {
        let Some(walk) = &mut self.walk else { return Ok(None) };
        if self.here.as_ref().is_none_or(|data| self.next == data.layout.rows()) {
            self.here = walk.next(check)?;
            self.next = 0;
        }
        let Some(data) = &self.here else { return Ok(None) };
        if self.next == 0 {
            for i in 0..data.layout.rows() {
                let suffix = data.layout.suffix(&data.page, i);
                let bytes = data.layout.prefix(&data.page).len() + usize::from(suffix.head_bytes) + suffix.tail.len();
                if bytes != 16 {
                    let why = format!("key {i} has {bytes} bytes, a row and a version have 16");
                    return Err(check.corrupt(PageKind::History, data.at.offset, why));
                }
            }
        }
        Ok(Some((u64::from_be_bytes(key_of(data, self.next)[0]), data.at)))
    }

    /// Takes the row that [`History::next_row`] has found. Returns its page, its place in the page, and the two
    /// halves of its key.
    pub fn take(&mut self) -> (&DataPage, usize, [[u8; 8]; 2]) {
        let data = self.here.as_ref().expect("the caller has seen that there is a row");
        let i = self.next;
        self.next += 1;
        let through = self.walk.as_ref().expect("a row comes from a tree").totals.bytes;
        self.closed_bytes = through - u64::from(data.at.bytes);
        (data, i, key_of(data, i))
    }

    /// Counts the row that was taken last. The row's value takes `elsewhere` bytes of value pages.
    pub fn counted(&mut self, is_erase: bool, elsewhere: u64) {
        let walk = self.walk.as_mut().expect("a row comes from a tree");
        walk.totals.erased += u64::from(is_erase);
        walk.totals.group_bytes += elsewhere;
    }

    /// Called after the last main row. If no older versions are left, all pages of the history count as closed from
    /// then on. Otherwise, the next call of [`History::next_row`] returns one of those that are left.
    pub fn end<S: PageSource + ?Sized>(&mut self, check: &mut Check<'_, S>) -> Result<()> {
        if self.next_row(check)?.is_none()
            && let Some(walk) = &self.walk
        {
            self.closed_bytes = walk.totals.bytes;
        }
        Ok(())
    }

    /// The offset of the page in which the walk has looked last.
    pub fn offset(&self) -> u64 {
        self.here.as_ref().map_or(0, |data| data.at.offset)
    }
}

fn key_of(data: &DataPage, i: usize) -> [[u8; 8]; 2] {
    let mut key = [[0; 8]; 2];
    data.layout.copy_key(&data.page, i, key.as_flattened_mut());
    key
}
