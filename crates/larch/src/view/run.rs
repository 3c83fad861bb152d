//! Older writes of a transaction, in files. This module does not know how the files are written.

use crate::base::table::TableId;
use crate::manifest::DbFile;
use os::sync::Arc;

/// Some of the writes of a transaction, in files that no manifest names. The files are removed with the run, when no
/// reader uses them any more.
///
/// In these files, operation number `i` of the transaction, counted from 0, has the version `base + 1 + i`, as in
/// memory.
#[derive(Debug)]
pub struct Run {
    /// This run and older runs have the operations with smaller numbers.
    pub through: u64,
    /// How often the rows of this run were merged.
    pub merges: u32,
    /// Whether the run only erases.
    pub is_erases_only: bool,
    /// A file for each table to which the writes go.
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
