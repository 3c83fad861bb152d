//! Older writes of a transaction, in files. It does not know how they are written.

use crate::base::table::TableId;
use crate::manifest::DbFile;
use os::sync::Arc;

/// Some of the writes of a transaction, in files that no manifest names. They are removed with it, once no reader uses
/// them.
///
/// The operation number `i` of the transaction, from 0, has the version `base + 1 + i` in them, as in memory.
#[derive(Debug)]
pub struct Run {
    /// The run, and older ones, have the operations with smaller numbers.
    pub through: u64,
    /// How often its rows were merged.
    pub merges: u32,
    /// Whether it only erases.
    pub is_erases_only: bool,
    /// A file for each table that they write to.
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
