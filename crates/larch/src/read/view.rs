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
    /// Of all memtables, as of the last commit.
    bytes: AtomicU64,
    oldest: AtomicU64,
}

impl MemSet {
    /// No memtables yet.
    pub fn new(log: u64) -> Self {
        Self { log, tables: RwLock::new(BTreeMap::new()), bytes: AtomicU64::new(0), oldest: AtomicU64::new(u64::MAX) }
    }

    /// The memtable of a table, if it has one.
    pub fn table(&self, table: TableId) -> Option<Arc<Memtable>> {
        self.tables.read().get(&table).cloned()
    }

    /// The memtable of a table, made if it has none. For one commit at a time.
    pub fn table_or_new(&self, table: TableId) -> Arc<Memtable> {
        if let Some(found) = self.table(table) {
            return found;
        }
        let memtable = Arc::new(Memtable::new());
        self.note_bytes(0, memtable.bytes());
        self.tables.write().insert(table, memtable.clone());
        memtable
    }

    /// All memtables.
    pub fn all(&self) -> Vec<(TableId, Arc<Memtable>)> {
        self.tables.read().iter().map(|(table, memtable)| (*table, memtable.clone())).collect()
    }

    /// Memory of all memtables in bytes, as of the last commit.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Says that a memtable that had `before` bytes has `now` bytes. One commit at a time does so.
    pub fn note_bytes(&self, before: u64, now: u64) {
        // The difference may be negative: range erases that meet become one.
        self.bytes.fetch_add(now.wrapping_sub(before), Ordering::Relaxed);
    }

    /// Says that rows of `version` are about to come in.
    pub fn note_version(&self, version: Version) {
        self.oldest.fetch_min(version.0, Ordering::Relaxed);
    }

    /// The oldest version in any table; greater than all others if there is none.
    pub fn oldest(&self) -> Version {
        Version(self.oldest.load(Ordering::Relaxed))
    }

    /// Whether nothing was committed to it.
    pub fn is_empty(&self) -> bool {
        self.oldest() == Version(u64::MAX)
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
