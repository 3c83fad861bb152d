//! A row that a read has found, with its place. Its value is not loaded yet. This module does not know how the row
//! was found.

use crate::manifest::DbFile;
use crate::memtable::MemRow;
use os::sync::Arc;
use pages::PageRef;
use sst::{Row, Version};
use std::ops::Range;

/// A row that is visible to the reader. `F` keeps the file of the row. A range owns the file, because it takes
/// newer views on its way. A get only borrows the file.
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
    /// The row was found by a merge or a look-up.
    Found(FoundRow),
    /// The value of the row lies at this place of a page. The row that was given before it is in the same page.
    InPage(&'r PageRef, Range<usize>),
    /// The row is in memory, and this is a copy of its value.
    Copied(&'r [u8]),
}
