//! The memtables of all tables that belong to one log. It does not know how the log is written.
//!
//! Thread safety: one commit at a time changes it, and any number of threads reads meanwhile.

use super::Memtable;
use crate::manifest::TableId;
use os::sync::atomic::{AtomicU64, Ordering};
use os::sync::{Arc, RwLock};
use sst::Version;
use std::collections::BTreeMap;

/// The memtables that are filled while one log is written: one for each table, made by the first write to the table.
#[derive(Debug)]
pub struct MemSet {
    /// The number of the log that holds the same rows.
    pub log: u64,
    tables: RwLock<BTreeMap<TableId, Arc<Memtable>>>,
    /// The memory of all memtables, as of the last commit.
    bytes: AtomicU64,
    /// The oldest version in any memtable.
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

    /// The memtable of a table, which is made if there is none. One commit at a time calls it.
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

    /// The memory of all memtables in bytes, as of the last commit.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Notes that a memtable that had `before` bytes has `now` bytes. One commit at a time calls it.
    pub fn note_bytes(&self, before: u64, now: u64) {
        // The difference may be negative: range erases that meet become one.
        self.bytes.fetch_add(now.wrapping_sub(before), Ordering::Relaxed);
    }

    /// Notes that rows of `version` are about to be added.
    pub fn note_version(&self, version: Version) {
        self.oldest.fetch_min(version.0, Ordering::Relaxed);
    }

    /// The oldest version in any memtable; the greatest possible version if there is none.
    pub fn oldest(&self) -> Version {
        Version(self.oldest.load(Ordering::Relaxed))
    }

    /// Whether nothing was committed to it.
    pub fn is_empty(&self) -> bool {
        self.oldest() == Version(u64::MAX)
    }
}
