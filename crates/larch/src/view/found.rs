//! A row that a read has found but whose value is not loaded yet, and the place of the row. This module does not
//! know how the row was found.

use crate::manifest::DbFile;
use crate::memtable::MemRow;
use os::sync::Arc;
use pages::PageRef;
use sst::{Row, Version};
use std::ops::Range;

/// A visible row. `F` keeps the file of the row: a range owns the file, because the range takes newer views on the
/// way; a get borrows the file.
#[derive(Clone, Debug)]
pub enum FoundRow<F = Arc<DbFile>> {
    /// In memory.
    Memory(MemRow),
    /// In a file: its value may have to be read.
    File(Row, F),
}

impl<F> FoundRow<F> {
    /// The commit that wrote it.
    pub fn version(&self) -> Version {
        match self {
            Self::Memory(row) => row.version(),
            Self::File(row, _) => row.version,
        }
    }
}

/// Where a row lies.
pub enum Spot<'r> {
    /// The row was found by a merge or a look-up.
    Found(FoundRow),
    /// The value of the row lies at this place of a page. The row before it lies in the same page.
    InPage(&'r PageRef, Range<usize>),
    /// The row is in memory, and this is a copy of its value.
    Copied(&'r [u8]),
}
