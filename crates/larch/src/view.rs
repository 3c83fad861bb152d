//! The memtables and the file set of one moment. Readers see them together. Views are immutable: if the memory
//! sets or the files change, a new view is made, and each reader takes the new view between two of its steps.

pub mod ahead;
pub mod cover;
pub mod ends;
pub mod follow;
pub mod found;
pub mod frontier;
pub mod level;
pub mod merge;
pub mod own_writes;
pub mod part_list;
pub mod point;
pub mod precharge;
pub mod run;
pub mod value;

use crate::base::error::{Error, Result};
use crate::base::table::TableInfo;
use crate::manifest::{FileSet, TableFiles};
use crate::memtable::Memtable;
use crate::memtable::set::MemSet;
use os::sync::Arc;
use own_writes::OwnRows;
use sst::Version;

/// Memory and files at one moment.
#[derive(Debug, Clone)]
pub struct View {
    /// A number that grows with every new view.
    pub generation: u64,
    /// The memory sets, newest first. Writes go to the first set.
    pub memory: Vec<Arc<MemSet>>,
    /// Files.
    pub files: Arc<FileSet>,
}

impl View {
    /// Whether both views consist of the same memory set objects and the same file set object. Two objects that
    /// are merely equal do not count as the same.
    pub fn shows_the_same_as(&self, other: &Self) -> bool {
        let memory = self.memory.iter().map(Arc::as_ptr).eq(other.memory.iter().map(Arc::as_ptr));
        memory && Arc::ptr_eq(&self.files, &other.files)
    }

    /// The write buffer has `buffer_bytes` bytes. Returns how many of them the memory sets that are being flushed
    /// do not use.
    pub fn left_bytes(&self, buffer_bytes: u64) -> u64 {
        let frozen = self.memory.iter().skip(1).map(|memory| memory.used_bytes());
        buffer_bytes.saturating_sub(frozen.sum())
    }

    /// The files of `table`. Every read and write calls this, and so finds out whether the table was dropped.
    ///
    /// # Errors
    ///
    /// [`Error::TableDropped`].
    pub fn files_of(&self, table: &TableInfo) -> Result<&TableFiles> {
        self.files.tables.get(&table.id).ok_or_else(|| Error::TableDropped(table.name.clone()))
    }

    /// `table` in this view, for a reader at the version `at`.
    pub fn table(&self, table: &TableInfo, at: Version) -> Result<TableView<'_>> {
        Ok(TableView { view: self, files: self.files_of(table)?, at, own: None })
    }
}

/// A table in a view, for a reader at a version.
#[derive(Clone, Copy, Debug)]
pub struct TableView<'v> {
    /// The view.
    pub view: &'v View,
    /// The files of the table.
    pub files: &'v TableFiles,
    /// The version.
    pub at: Version,
    /// If a transaction reads, the rows that it has written. They are newer than all other rows.
    pub own: Option<&'v OwnRows>,
}

impl<'v> TableView<'v> {
    /// The same table for a transaction that has written the rows `own`.
    #[inline]
    pub fn under(self, own: Option<&'v OwnRows>) -> Self {
        Self { own, ..self }
    }

    /// The memtables of the table in this view, newest first. Memtables of a transaction are not included.
    pub fn memtables(self) -> impl Iterator<Item = &'v Arc<Memtable>> + use<'v> {
        self.view.memory.iter().filter_map(move |memory| memory.table(self.files.info.id))
    }
}
