//! The older writes of a transaction, which are in files. This module does not know how the files are written.

use crate::base::table::TableId;
use crate::manifest::DbFile;
use os::sync::Arc;

/// Some of the writes of a transaction, in files. No manifest names these files. When the run is dropped and no
/// reader uses the files any more, the files are removed.
///
/// In these files, operation number `i` of the transaction, counted from 0, has the version `base + 1 + i`. It has
/// the same version in memory.
#[derive(Debug)]
pub struct Run {
    /// The number of operations that are in this run and in older runs. They are the first operations of the
    /// transaction.
    pub through: u64,
    /// How often the rows of this run were merged so far.
    pub merges: u32,
    /// Whether all writes of the run are erases.
    pub is_erases_only: bool,
    /// One file for each table to which the writes go.
    pub files: Vec<(TableId, Arc<DbFile>)>,
}

impl Run {
    /// The file of `table`.
    pub fn file_of(&self, table: TableId) -> Option<&Arc<DbFile>> {
        self.files.iter().find(|(of, _)| *of == table).map(|(_, file)| file)
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.files.iter().for_each(|(_, file)| file.discard());
    }
}
