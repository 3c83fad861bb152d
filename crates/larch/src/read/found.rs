//! A row that a read has found and whose value is not loaded yet. It does not know how the row was found.

use crate::manifest::DbFile;
use crate::memtable::MemRow;
use os::sync::Arc;
use sst::Row;

/// A visible row. `F` keeps its file: a range owns the file, because it takes newer views on the way; a get borrows it.
#[derive(Clone, Debug)]
pub enum FoundRow<F = Arc<DbFile>> {
    /// In memory.
    Memory(MemRow),
    /// In a file: its value may have to be read.
    File(Row, F),
}
