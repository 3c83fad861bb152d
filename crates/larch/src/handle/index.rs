//! An index of a table, as programs read and check it. This module turns arguments into calls of reads, and does no
//! work itself.

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

/// An index of a table. With an index, rows are found by other keys than their own. [`Table::create_index`] and
/// [`Table::index`] return an index. A clone is another handle to the same index.
///
/// Every commit to the table also updates the entries of the index, so the index always agrees with the table. All
/// reads in one call see the same version. [`Readable`](crate::Readable) has the same functions for reads of
/// snapshots and in transactions.
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

    /// What the keys of the index are made of.
    pub fn declaration(&self) -> &[u8] {
        &self.info.declaration
    }

    /// The rows that have this index key, in the order of their own keys. All rows are looked up together.
    ///
    /// # Errors
    ///
    /// Fails as [`Table::get`](crate::Reader::get) does, and with [`Error::TableDropped`] also if the index was
    /// dropped.
    pub fn get_by(&self, index_key: impl AsRef<[u8]>) -> Result<Vec<(Key, Value)>> {
        self.table.get_by(self, index_key)
    }

    /// Does the same as [`Index::get_by`], but returns a future.
    ///
    /// # Errors
    ///
    /// Fails as [`Index::get_by`] does.
    pub async fn get_by_async(&self, index_key: impl AsRef<[u8]>) -> Result<Vec<(Key, Value)>> {
        self.range_by(key_range(index_key.as_ref())).all_async().await
    }

    /// The rows whose index keys are in `range`, in the order of the index. They can be read from either end. If a
    /// row has several index keys in the range, it comes once for each of them. Rows are fetched in rounds: a
    /// round fetches up to 128 rows, and reads many of their pages at the same time.
    ///
    /// # Errors
    ///
    /// This call itself never fails. Reads of the result fail as [`Index::get_by`] does. After the first error, each
    /// further read returns this error again.
    pub fn range_by(&self, range: impl IntoKeyRange) -> RangeBy {
        self.table.range_by(self, range)
    }

    /// Does the same as [`Index::range_by`], but its rows are read with futures.
    pub fn scan_by_async(&self, range: impl IntoKeyRange) -> ScanBy {
        self.range_by(range).into()
    }

    /// The entries whose index keys are in `range`, in order. They can be read from either end. This call reads no
    /// rows of the table. Use it to count rows, or if the entries have all that you need.
    pub fn entries(&self, range: impl IntoKeyRange) -> Entries {
        self.table.entries(self, range)
    }

    /// Checks that `rows` is a reader of the table that has this index. Also checks that the index had all entries
    /// at the version at which `rows` reads.
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

    /// Compares the index with its table. Both are read at the same version. `watch` is told how many rows and
    /// entries were compared so far, and says whether the check goes on.
    ///
    /// # Errors
    ///
    /// If the index and the table differ, the call does not fail: the result lists the differences. The call fails
    /// with [`Error::NoExtractor`] if the keys of the index cannot be made, with [`Error::Cancelled`] if `watch`
    /// ends the check, and as [`Table::get`](crate::Reader::get) does.
    pub fn check<G: GoOn>(&self, watch: impl FnMut(Progress) -> G) -> Result<IndexCheck> {
        let core = self.table.core();
        let live = core.indexes.read_only(self.entries.identity().clone(), &core.env.options.extractors);
        check::check(self.table.inner(), &live, &Watch::new(check::WORK, watch))
    }
}

impl<V: Content> Reader<'_, V> {
    /// The rows that have this key in `index`. It must be an index of this table.
    ///
    /// # Errors
    ///
    /// Fails as [`Index::get_by`] does.
    pub fn get_by(&self, index: &Index, index_key: impl AsRef<[u8]>) -> Result<Vec<(Key, V)>> {
        let rows = self.range_by(index, key_range(index_key.as_ref()));
        rows.map(|row| row.map(|(entry, content)| (entry.row_key().into(), content))).collect()
    }

    /// The rows whose keys in `index` are in `range`, in the order of the index. They can be read from either end.
    /// `index` must be an index of this table. See [`Index::range_by`].
    pub fn range_by(&self, index: &Index, range: impl IntoKeyRange) -> RangeBy<V> {
        let rows = RangeBy::new(self, index.entries.inner(), bounds::owned(&range));
        match index.check_reader(self) {
            Ok(()) => rows,
            Err(error) => rows.failed(error),
        }
    }

    /// The entries of `index` whose index keys are in `range`, without the rows of the table. `index` must be an
    /// index of this table. See [`Index::entries`].
    pub fn entries(&self, index: &Index, range: impl IntoKeyRange) -> Entries {
        let entries = Entries::new(self, index.entries.inner(), bounds::owned(&range));
        match index.check_reader(self) {
            Ok(()) => entries,
            Err(error) => entries.failed(error),
        }
    }
}

/// The range with only this index key.
pub(super) fn key_range(index_key: &[u8]) -> RangeInclusive<&[u8]> {
    index_key..=index_key
}
