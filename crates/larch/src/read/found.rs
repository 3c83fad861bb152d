//! A row that a read has found, its value not loaded yet.

use crate::manifest::DbFile;
use crate::memtable::MemRow;
use os::sync::Arc;
use sst::Row;

/// A visible row. `F` is what keeps its file: who walks takes newer views on the way and holds the file itself.
#[derive(Clone, Debug)]
pub enum FoundRow<F = Arc<DbFile>> {
    /// In memory.
    Memory(MemRow),
    /// In a file: its value may have to be read.
    File(Row, F),
}
