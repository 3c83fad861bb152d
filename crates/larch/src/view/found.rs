//! A row that a read has found, with its place. Its value is not loaded yet. This module does not know how the row
//! was found.

use crate::manifest::DbFile;
use crate::memtable::MemRow;
use os::sync::Arc;
use pages::PageRef;
use sst::{Row, Version};
use std::ops::Range;

/// A row that is visible to the reader. `F` is the file of the row. A range owns the file, because the range may
/// take a newer view that no longer has this file. A get only borrows the file.
#[derive(Clone, Debug)]
pub enum FoundRow<F = Arc<DbFile>> {
    /// The row is in memory.
    Memory(MemRow),
    /// The row is in a file, and its value may have to be read.
    File(Row, F),
}

impl<F> FoundRow<F> {
    /// The version of the commit that wrote the row.
    pub fn version(&self) -> Version {
        match self {
            Self::Memory(row) => row.version(),
            Self::File(row, _) => row.version,
        }
    }
}

/// The place of a row.
pub enum Spot<'r> {
    /// A merge or a look-up has found the row.
    Found(FoundRow),
    /// The value of the row is at this place in a page. The row was taken directly from the page, without a step
    /// of the merge.
    InPage(&'r PageRef, Range<usize>),
    /// The row is in memory, and this is a copy of its value.
    Copied(&'r [u8]),
}
