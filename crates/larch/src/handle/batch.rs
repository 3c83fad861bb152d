//! Writes that are committed together.

use super::table::Table;
use crate::bounds::{self, IntoKeyRange};
use crate::core::handle::DatabaseHandle;
use crate::error::{Error, Result};
use crate::manifest::TableInfo;
use crate::options::Durability;
use crate::write::batch::BatchOps;
use crate::write::{commit, limits};
use os::sync::Arc;
use sst::KeyRange;
use sst::Version;

/// Writes that take effect together, in the order in which they were added.
#[must_use = "a batch does nothing until it is committed"]
#[derive(Debug)]
pub struct Batch {
    handle: Arc<DatabaseHandle>,
    ops: BatchOps,
    durability: Durability,
    /// The tables that are written to, by their ids.
    tables: Vec<Arc<TableInfo>>,
    /// The first thing that was wrong; told by `commit`.
    bad: Option<Error>,
}

impl Batch {
    pub(super) fn new(handle: &Arc<DatabaseHandle>) -> Self {
        let durability = handle.core().env.options.durability;
        Self { handle: handle.clone(), ops: BatchOps::new(), durability, tables: Vec::new(), bad: None }
    }

    /// Whether the write of a row of `table` that passes `check` can be added.
    fn checked(&mut self, table: &Table, check: impl FnOnce() -> Result<()>) -> bool {
        if self.bad.is_none() {
            self.bad = table.inner().check_handle(&self.handle).and_then(|()| check()).err();
        }
        if let Err(place) = self.tables.binary_search_by_key(&table.id(), |table| table.id) {
            self.tables.insert(place, table.identity().clone());
        }
        self.bad.is_none()
    }

    /// Sets `key` to `value`.
    pub fn insert(&mut self, table: &Table, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) {
        let (key, value) = (key.as_ref(), value.as_ref());
        if self.checked(table, || table.check_row(key, value)) {
            self.ops.put(table.id().0, key, value);
        }
    }

    /// Sets `key` to a value in parts, see [`Table::insert_parts`].
    pub fn insert_parts(&mut self, table: &Table, key: impl AsRef<[u8]>, parts: &[impl AsRef<[u8]>]) {
        let key = key.as_ref();
        if self.checked(table, || table.check_parts(key, parts)) {
            self.ops.put_parts(table.id().0, key, parts);
        }
    }

    /// Removes `key`.
    pub fn remove(&mut self, table: &Table, key: impl AsRef<[u8]>) {
        let key = key.as_ref();
        if self.checked(table, || limits::check_key(key)) {
            self.ops.erase(table.id().0, key);
        }
    }

    /// Removes every key in `range`.
    pub fn remove_range(&mut self, table: &Table, range: impl IntoKeyRange) {
        let Some(KeyRange { start, end }) = bounds::keys(&range) else { return };
        let end = end.unwrap_or_default();
        if self.checked(table, || limits::check_key(&start).and_then(|()| limits::check_key(&end))) {
            self.ops.range_erase(table.id().0, &start, &end);
        }
    }

    /// What the commit waits for, if not the database's default.
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Number of writes.
    pub fn len(&self) -> usize {
        self.ops.count() as usize
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ops.is_empty()
    }

    /// Commits all writes and returns their version. An empty batch that is [`Durability::Synced`] makes every commit before it
    /// durable, as [`Database::sync`] does, and returns the version of the newest.
    ///
    /// A commit does work in proportion to its own bytes, to the depth of the memtables of the tables it names, and once for the
    /// log: a write of one record, and a sync that concurrent commits share. The number of tables does not matter.
    ///
    /// # Errors
    /// After an error none of the writes has taken effect, but after [`Error::OutcomeUnknown`], when a sync has failed: only
    /// opening the database again shows whether they have.
    pub fn commit(mut self) -> Result<Version> {
        match self.bad {
            Some(error) => Err(error),
            None => commit::commit(self.handle.core(), &mut self.ops, &self.tables, self.durability),
        }
    }
}
