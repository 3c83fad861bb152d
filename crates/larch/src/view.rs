//! The memtables and the file set of one moment, which readers see together. Views are immutable: a change of memory
//! or files makes a new view, and readers take the new view between two steps.

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
    /// Grows with every new view.
    pub generation: u64,
    /// Memory sets, newest first. The first set takes writes.
    pub memory: Vec<Arc<MemSet>>,
    /// Files.
    pub files: Arc<FileSet>,
}

impl View {
    /// Whether both views consist of the very same memory sets and file set. Equal numbers are not enough.
    pub fn shows_the_same_as(&self, other: &Self) -> bool {
        let memory = self.memory.iter().map(Arc::as_ptr).eq(other.memory.iter().map(Arc::as_ptr));
        memory && Arc::ptr_eq(&self.files, &other.files)
    }

    /// How many bytes of a write buffer of `buffer_bytes` are free: memory sets that are being flushed do not take
    /// them.
    pub fn left_bytes(&self, buffer_bytes: u64) -> u64 {
        let frozen = self.memory.iter().skip(1).map(|memory| memory.used_bytes());
        buffer_bytes.saturating_sub(frozen.sum())
    }

    /// The files of `table`. Every read and write learns here that a table was dropped.
    ///
    /// # Errors
    ///
    /// [`Error::TableDropped`].
    pub fn files_of(&self, table: &TableInfo) -> Result<&TableFiles> {
        self.files.tables.get(&table.id).ok_or_else(|| Error::TableDropped(table.name.clone()))
    }

    /// `table` as of `at`.
    pub fn table(&self, table: &TableInfo, at: Version) -> Result<TableView<'_>> {
        Ok(TableView { view: self, files: self.files_of(table)?, at, own: None })
    }
}

/// A table in a view, as of a version.
#[derive(Clone, Copy, Debug)]
pub struct TableView<'v> {
    /// The view.
    pub view: &'v View,
    /// The files of the table.
    pub files: &'v TableFiles,
    /// The version.
    pub at: Version,
    /// What the transaction that reads has written. These rows lie over everything else.
    pub own: Option<&'v OwnRows>,
}

impl<'v> TableView<'v> {
    /// The same table with the rows that a transaction has written over it.
    #[inline]
    pub fn under(self, own: Option<&'v OwnRows>) -> Self {
        Self { own, ..self }
    }

    /// The memtables of the view, newest first, without the memtables of a transaction.
    pub fn memtables(self) -> impl Iterator<Item = &'v Arc<Memtable>> + use<'v> {
        self.view.memory.iter().filter_map(move |memory| memory.table(self.files.info.id))
    }
}
