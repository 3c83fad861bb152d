//! A row that a read has found: where it lies, with its value not loaded yet. This module does not know how the row
//! was found.

use crate::manifest::DbFile;
use crate::memtable::MemRow;
use os::sync::Arc;
use pages::{Page, PageRef};
use sst::{Row, Until, Version};
use std::ops::Range;

/// A row that the reader sees. `F` is the row's file. A range owns it, because it may move to a newer view that no
/// longer has the file; a get only borrows it. `P` is the row's page, as the source gave it.
#[derive(Clone, Debug)]
pub enum FoundRow<F = Arc<DbFile>, P = PageRef> {
    /// The row is in memory.
    Memory(MemRow),
    /// The row is in a file. Its value may still have to be read.
    File(Row<P>, F),
}

impl<F, P: Page> FoundRow<F, P> {
    /// The time until which the row is there, if it has one.
    pub fn until(&self) -> Option<Until> {
        match self {
            Self::Memory(row) => row.until(),
            Self::File(row, _) => row.until(),
        }
    }
}

impl<F, P> FoundRow<F, P> {
    /// The version of the commit that wrote the row.
    pub fn version(&self) -> Version {
        match self {
            Self::Memory(row) => row.version(),
            Self::File(row, _) => row.version,
        }
    }
}

/// Where the content of a row lies.
pub enum Spot<'r> {
    /// A merge or a look-up has found the row.
    Found(FoundRow),
    /// The row was taken from a page without a step of the merge. Its value is at this place in the page.
    InPage(&'r PageRef, Range<usize>),
    /// The row was taken from a memtable without a step of the merge. This is a copy of its value.
    Copied(&'r [u8]),
}
