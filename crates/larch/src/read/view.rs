//! What readers see together: the memtables and the file set of one moment. Views are immutable; a change of memory or
//! files makes a new one, and readers between steps take it.

use crate::error::{Error, Result};
use crate::manifest::{FileSet, TableFiles, TableId, TableInfo};
use crate::memtable::Memtable;
use os::sync::atomic::{AtomicU64, Ordering};
use os::sync::{Arc, RwLock};
use sst::Version;
use std::collections::BTreeMap;

/// The memtables filled while one log was written, one a table, made when first written.
#[derive(Debug)]
pub struct MemSet {
    /// Number of the log that holds the same rows.
    pub log: u64,
    tables: RwLock<BTreeMap<TableId, Arc<Memtable>>>,
    oldest: AtomicU64,
}

impl MemSet {
    /// No memtables yet.
    pub fn new(log: u64) -> Self {
        Self { log, tables: RwLock::new(BTreeMap::new()), oldest: AtomicU64::new(u64::MAX) }
    }

    /// The memtable of a table, if it has one.
    pub fn table(&self, table: TableId) -> Option<Arc<Memtable>> {
        self.tables.read().get(&table).cloned()
    }

    /// The memtable of a table, made if it has none.
    pub fn table_or_new(&self, table: TableId) -> Arc<Memtable> {
        if let Some(found) = self.table(table) {
            return found;
        }
        self.tables.write().entry(table).or_insert_with(|| Arc::new(Memtable::new())).clone()
    }

    /// All memtables.
    pub fn all(&self) -> Vec<(TableId, Arc<Memtable>)> {
        self.tables.read().iter().map(|(table, memtable)| (*table, memtable.clone())).collect()
    }

    /// Memory of all memtables in bytes.
    pub fn bytes(&self) -> u64 {
        self.tables.read().values().map(|memtable| memtable.bytes()).sum()
    }

    /// Says that rows of `version` are about to come in.
    pub fn note_version(&self, version: Version) {
        self.oldest.fetch_min(version.0, Ordering::Relaxed);
    }

    /// The oldest version in any table; greater than all others if there is none.
    pub fn oldest(&self) -> Version {
        Version(self.oldest.load(Ordering::Relaxed))
    }

    /// Whether no table has rows.
    pub fn is_empty(&self) -> bool {
        self.tables.read().values().all(|memtable| memtable.is_empty())
    }
}

/// Memory and files at one moment.
#[derive(Debug, Clone)]
pub struct View {
    /// Grows with every new view.
    pub generation: u64,
    /// Memtables, newest first. The first takes writes.
    pub memory: Vec<Arc<MemSet>>,
    /// Files.
    pub files: Arc<FileSet>,
}

impl View {
    /// The files of `table`. Here it is decided, for every read and write, that a table is no longer there.
    pub fn files_of(&self, table: &TableInfo) -> Result<&TableFiles> {
        self.files.tables.get(&table.id).ok_or_else(|| Error::TableDropped(table.name.clone()))
    }

    /// `table` as of `at`.
    pub fn table(&self, table: &TableInfo, at: Version) -> Result<TableView<'_>> {
        Ok(TableView { view: self, files: self.files_of(table)?, at })
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
}

impl<'v> TableView<'v> {
    /// Its memtables, newest first.
    pub fn memtables(self) -> impl Iterator<Item = Arc<Memtable>> + use<'v> {
        self.view.memory.iter().filter_map(move |memory| memory.table(self.files.info.id))
    }
}
