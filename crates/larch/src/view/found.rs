//! A row that a read has found and whose value is not loaded yet, and where it lies. It does not know how the row was
//! found.

use crate::manifest::DbFile;
use crate::memtable::MemRow;
use os::sync::Arc;
use pages::PageRef;
use sst::{Row, Version};
use std::ops::Range;

/// A visible row. `F` keeps its file: a range owns the file, because it takes newer views on the way; a get borrows it.
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
    /// A merge or a lookup found it.
    Found(FoundRow),
    /// Its value lies at this place of a page, which is the page of the row before it.
    InPage(&'r PageRef, Range<usize>),
    /// This is the value of a row in memory, copied.
    Copied(&'r [u8]),
}
