//! The runs of a transaction: files with its older writes. This module does not know how the files are written.

use crate::base::table::TableId;
use crate::manifest::DbFile;
use os::sync::Arc;

/// Some writes of a transaction, spilled to files that no manifest names. The files are removed when the run is
/// dropped and no reader uses them any more.
///
/// Operation `i` of the transaction, counted from 0, has the version `base + 1 + i` in these files, as in memory.
#[derive(Debug)]
pub struct Run {
    /// The number of the transaction's operations that are in this run or in older ones. They are its first
    /// operations.
    pub through: u64,
    /// How often the rows of this run have been merged.
    pub merges: u32,
    /// Whether all writes of the run are erases.
    pub is_erases_only: bool,
    /// One file for each table that the run writes to.
    pub files: Vec<(TableId, Arc<DbFile>)>,
}

impl Run {
    /// The run's file of `table`.
    pub fn file_of(&self, table: TableId) -> Option<&Arc<DbFile>> {
        self.files.iter().find(|(of, _)| *of == table).map(|(_, file)| file)
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.files.iter().for_each(|(_, file)| file.discard());
    }
}
