//! The handle to an index: reads by the index and its check. This module only calls the code that does the work.

use super::table::Table;
use crate::base::bounds::{self, IntoKeyRange};
use crate::base::error::{Error, Result};
use crate::base::table::{IndexInfo, TableInfo};
use crate::base::watch::{GoOn, Progress, Watch};
use crate::indexes::check::{self, IndexCheck};
use crate::indexes::read::{Entries, RangeBy, ScanBy};
use crate::read::{Content, Reader};
use crate::view::value::{Key, Value};
use os::sync::Arc;
use std::ops::RangeInclusive;

/// An index of a table finds its rows by other keys than their own. [`Table::create_index`], [`Table::index_by`]
/// and [`Table::index`] return one. A clone is another handle to the same index.
///
/// Every commit to the table also updates the index, so the two always agree. One call reads entries and rows at
/// the same version. [`Readable`](crate::Readable) has the same functions for snapshots and transactions.
#[derive(Clone, Debug)]
pub struct Index {
    table: Table,
    /// A table whose rows are the entries of the index.
    entries: Table,
    info: Arc<IndexInfo>,
}

impl Index {
    /// The index of `table` whose entries are in the table `entries`.
    pub(super) fn new(table: &Table, entries: Arc<TableInfo>) -> Self {
        let info = entries.index.clone().expect("the caller found it among the indexes");
        Self { table: table.clone(), entries: Table::new(table.inner().handle.clone(), entries), info }
    }

    /// What the manifest says about the index.
    pub(super) fn info(&self) -> &IndexInfo {
        &self.info
    }

    /// The table that holds the entries.
    pub(crate) fn entry_table(&self) -> &Table {
        &self.entries
    }

    /// The name of the index.
    pub fn name(&self) -> &str {
        &self.info.name
    }

    /// The table whose rows the index finds.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// Whether the index forbids two rows with the same index key.
    pub fn is_unique(&self) -> bool {
        self.info.is_unique
    }

    /// Says how index keys are made from a row, see [`Table::create_index`].
    pub fn declaration(&self) -> &[u8] {
        &self.info.declaration
    }

    /// The rows with this index key, in the order of their own keys. They are looked up together.
    ///
    /// # Errors
    ///
    /// Fails as [`Table::get`](crate::Reader::get) does. [`Error::TableDropped`] also if the index was dropped.
    pub fn get_by(&self, index_key: impl AsRef<[u8]>) -> Result<Vec<(Key, Value)>> {
        self.table.get_by(self, index_key)
    }

    /// Like [`Index::get_by`], but as a future.
    ///
    /// # Errors
    ///
    /// Fails as [`Index::get_by`] does.
    pub async fn get_by_async(&self, index_key: impl AsRef<[u8]>) -> Result<Vec<(Key, Value)>> {
        self.range_by(key_range(index_key.as_ref())).all_async().await
    }

    /// The rows with index keys in `range`, in the order of the index, from either end. A row with several index
    /// keys in the range comes once for each. Rows are fetched in rounds of up to 128, which read many of their
    /// pages at the same time.
    ///
    /// # Errors
    ///
    /// This call itself never fails. Reads of the result fail as [`Index::get_by`] does. After the first error,
    /// every further read returns the same error.
    pub fn range_by(&self, range: impl IntoKeyRange) -> RangeBy {
        self.table.range_by(self, range)
    }

    /// Like [`Index::range_by`], but rows are read with futures.
    pub fn scan_by_async(&self, range: impl IntoKeyRange) -> ScanBy {
        self.range_by(range).into()
    }

    /// The entries with index keys in `range`, in order, from either end. This reads no rows of the table: use it
    /// to count rows, or if the entries have all that you need.
    pub fn entries(&self, range: impl IntoKeyRange) -> Entries {
        self.table.entries(self, range)
    }

    /// Checks that `rows` reads the table of this index, and at a version at which the index was complete.
    fn check_reader<V>(&self, rows: &Reader<'_, V>) -> Result<()> {
        rows.handle().check_handle(&self.table.inner().handle)?;
        let table = &rows.handle().identity;
        let names = || (table.name.as_str().into(), self.name().into());
        if table.id != self.table.id() {
            let (table, index) = names();
            return Err(Error::NoSuchIndex { table, index });
        }
        if rows.version().is_some_and(|version| version < self.info.since) {
            let (table, index) = names();
            return Err(Error::IndexNotReady { table, index });
        }
        Ok(())
    }

    /// Compares the index with its table at one version. `watch` is told how many rows and entries were compared so
    /// far, and decides whether the check goes on.
    ///
    /// # Errors
    ///
    /// Differences are no error: the result lists them. [`Error::NoExtractor`] or [`Error::NoClosure`] if the keys
    /// of the index cannot be made; [`Error::Cancelled`] if `watch` ends the check; otherwise fails as
    /// [`Table::get`](crate::Reader::get) does.
    pub fn check<G: GoOn>(&self, watch: impl FnMut(Progress) -> G) -> Result<IndexCheck> {
        let core = self.table.core();
        let live = core.indexes.read_only(self.entries.identity().clone(), &core.env.options.extractors);
        check::check(self.table.inner(), &live, &Watch::new(check::WORK, watch))
    }
}

impl<V: Content> Reader<'_, V> {
    /// The rows with this key in `index`, which must be an index of this table.
    ///
    /// # Errors
    ///
    /// Fails as [`Index::get_by`] does.
    pub fn get_by(&self, index: &Index, index_key: impl AsRef<[u8]>) -> Result<Vec<(Key, V)>> {
        let rows = self.range_by(index, key_range(index_key.as_ref()));
        rows.map(|row| row.map(|(entry, content)| (entry.row_key().into(), content))).collect()
    }

    /// The rows with index keys in `range`, in the order of the index, from either end. `index` must be an index of
    /// this table. See [`Index::range_by`].
    pub fn range_by(&self, index: &Index, range: impl IntoKeyRange) -> RangeBy<V> {
        let rows = RangeBy::new(self, index.entries.inner(), bounds::owned(&range));
        match index.check_reader(self) {
            Ok(()) => rows,
            Err(error) => rows.failed(error),
        }
    }

    /// The entries with index keys in `range`, without the rows of the table. `index` must be an index of this
    /// table. See [`Index::entries`].
    pub fn entries(&self, index: &Index, range: impl IntoKeyRange) -> Entries {
        let entries = Entries::new(self, index.entries.inner(), bounds::owned(&range));
        match index.check_reader(self) {
            Ok(()) => entries,
            Err(error) => entries.failed(error),
        }
    }
}

/// The range that has only this index key.
pub(super) fn key_range(index_key: &[u8]) -> RangeInclusive<&[u8]> {
    index_key..=index_key
}
