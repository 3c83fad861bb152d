//! A view: the memtables and the file set at one moment, which readers see together. Views are immutable. A change
//! of the memory sets or the files makes a new view, and readers switch to it between two of their steps.

pub mod ahead;
pub mod cover;
pub mod ends;
pub mod fold;
pub mod follow;
pub mod found;
pub mod frontier;
pub mod level;
pub mod merge;
pub mod next_rows;
pub mod own_writes;
pub mod part_list;
pub mod point;
pub mod precharge;
pub mod run;
pub mod value;

use crate::base::error::{Error, Result};
use crate::base::operand::MergeFunctions;
use crate::base::row_clock::RowClock;
use crate::base::table::TableInfo;
use crate::manifest::{FileSet, TableFiles};
use crate::memtable::Memtable;
use crate::memtable::row_memory::RowMemory;
use crate::memtable::set::MemSet;
use os::sync::Arc;
use own_writes::OwnRows;
use sst::{RowKind, Until, Version};

/// Memory and files at one moment.
#[derive(Debug, Clone)]
pub struct View {
    /// A number that grows with every new view.
    pub generation: u64,
    /// The memory sets, newest first. Writes go to the first set.
    pub memory: Vec<Arc<MemSet>>,
    /// The files of all tables.
    pub files: Arc<FileSet>,
    /// What decides of rows when they are read.
    pub rules: Arc<ReadRules>,
}

/// What decides of rows when they are read, and is the same in all views of a database.
#[derive(Debug)]
pub struct ReadRules {
    /// The clock by which rows expire.
    pub clock: Arc<RowClock>,
    /// The functions that merges may call.
    pub functions: MergeFunctions,
    /// Where the memory of values that merges make is counted.
    pub memory: Arc<RowMemory>,
}

impl View {
    /// Whether both views share the same memory sets and the same file set. Compares pointers: equal but separate
    /// objects do not count.
    pub fn shows_the_same_as(&self, other: &Self) -> bool {
        let memory = self.memory.iter().map(Arc::as_ptr).eq(other.memory.iter().map(Arc::as_ptr));
        memory && Arc::ptr_eq(&self.files, &other.files)
    }

    /// Bytes of a write buffer of `buffer_bytes` that the memory sets being flushed do not use.
    pub fn left_bytes(&self, buffer_bytes: u64) -> u64 {
        let frozen = self.memory.iter().skip(1).map(|memory| memory.used_bytes());
        buffer_bytes.saturating_sub(frozen.sum())
    }

    /// The files of `table`. Every read and write calls this, which is how it notices that the table was dropped.
    ///
    /// # Errors
    ///
    /// [`Error::TableDropped`] if the view no longer has the table.
    pub fn files_of(&self, table: &TableInfo) -> Result<&TableFiles> {
        self.files.tables.get(&table.id).ok_or_else(|| Error::TableDropped(table.name.clone()))
    }

    /// `table` as a reader at version `at` sees it in this view.
    #[inline]
    pub fn table(&self, table: &TableInfo, at: Version) -> Result<TableView<'_>> {
        Ok(TableView { view: self, files: self.files_of(table)?, at, own: None, shows_expired: false })
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
    /// The rows that the reading transaction has written, if any. They are newer than all other rows.
    pub own: Option<&'v OwnRows>,
    /// Whether rows are shown although they have expired.
    pub shows_expired: bool,
}

impl<'v> TableView<'v> {
    /// The same table for a transaction that has written the rows `own`.
    #[inline]
    pub fn under(self, own: Option<&'v OwnRows>) -> Self {
        Self { own, ..self }
    }

    /// Whether a row of this kind has a value for the reader. `until` gives the time of a row that has one.
    #[inline(always)]
    pub fn shows(&self, kind: RowKind, until: impl FnOnce() -> Option<Until>) -> bool {
        kind == RowKind::Put
            || kind != RowKind::Erase && (self.shows_expired || self.view.rules.clock.shows(kind, until))
    }

    /// The memtables of the table in this view, newest first, without the transaction's own writes.
    pub fn memtables(self) -> impl Iterator<Item = &'v Arc<Memtable>> + use<'v> {
        self.view.memory.iter().filter_map(move |memory| memory.table(self.files.info.id))
    }
}
