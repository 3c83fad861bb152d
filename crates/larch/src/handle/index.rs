//! An index of a table as its users read and check it. This module turns arguments into what reads take, and does no
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

/// An index of a table: it finds the rows by other keys than their own. It is made by [`Table::create_index`] and
/// [`Table::index`]. A clone is another handle of the same index.
///
/// Every commit keeps the entries of the index, so a reader finds in the index what it finds in the table. All reads
/// of a call see one version. [`Readable`](crate::Readable) has the same functions for snapshots and transactions.
#[derive(Clone, Debug)]
pub struct Index {
    table: Table,
    /// The entries of the index are the rows of this table.
    entries: Table,
    info: Arc<IndexInfo>,
}

impl Index {
    /// The index of `table` whose entries are the rows of `entries`.
    pub(super) fn new(table: &Table, entries: Arc<TableInfo>) -> Self {
        let info = entries.index.clone().expect("the caller found it among the indexes");
        Self { table: table.clone(), entries: Table::new(table.inner().handle.clone(), entries), info }
    }

    /// What the manifest says about the index.
    pub(super) fn info(&self) -> &IndexInfo {
        &self.info
    }

    /// The table of its entries.
    pub(crate) fn entry_table(&self) -> &Table {
        &self.entries
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.info.name
    }

    /// The table whose rows it finds.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// Whether two rows may not have the same key in it.
    pub fn is_unique(&self) -> bool {
        self.info.is_unique
    }

    /// What the keys of the index are made of.
    pub fn declaration(&self) -> &[u8] {
        &self.info.declaration
    }

    /// The rows that have this key in the index, in the order of their own keys. The rows are looked up together.
    ///
    /// # Errors
    ///
    /// As [`Table::get`](crate::Reader::get); [`Error::TableDropped`] also if the index was dropped.
    pub fn get_by(&self, index_key: impl AsRef<[u8]>) -> Result<Vec<(Key, Value)>> {
        self.table.get_by(self, index_key)
    }

    /// As [`Index::get_by`], as a future.
    ///
    /// # Errors
    ///
    /// As [`Index::get_by`].
    pub async fn get_by_async(&self, index_key: impl AsRef<[u8]>) -> Result<Vec<(Key, Value)>> {
        self.range_by(key_range(index_key.as_ref())).all_async().await
    }

    /// The rows whose keys in the index are in `range`, in the order of the index, from either end. A row with
    /// several such keys comes once for each of these keys. Rows are fetched in rounds of up to 128, many pages at a
    /// time.
    ///
    /// # Errors
    ///
    /// Making it never fails. It answers with the errors of [`Index::get_by`], and goes on answering with its first
    /// error.
    pub fn range_by(&self, range: impl IntoKeyRange) -> RangeBy {
        self.table.range_by(self, range)
    }

    /// As [`Index::range_by`], for futures.
    pub fn scan_by_async(&self, range: impl IntoKeyRange) -> ScanBy {
        self.range_by(range).into()
    }

    /// The entries of the index whose keys are in `range`, in order, from either end. No row is read. So this is the
    /// way to count, and to read what the entries alone say.
    pub fn entries(&self, range: impl IntoKeyRange) -> Entries {
        self.table.entries(self, range)
    }

    /// Refuses to give rows of another table. It also refuses a version at which the index did not have all entries
    /// yet.
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

    /// Compares the index with its table, both at one version. `watch` sees how many rows and entries were looked at
    /// so far, and says whether the check goes on.
    ///
    /// # Errors
    ///
    /// A difference is no error: it is in the result. [`Error::NoExtractor`] if nothing makes the keys of the index;
    /// otherwise as [`Table::get`](crate::Reader::get). [`Error::Cancelled`] if `watch` ends it.
    pub fn check<G: GoOn>(&self, mut watch: impl FnMut(Progress) -> G) -> Result<IndexCheck> {
        let core = self.table.core();
        let live = core.indexes.read_only(self.entries.identity().clone(), &core.env.options.extractors);
        let mut goes_on = |progress| watch(progress).goes_on();
        check::check(self.table.inner(), &live, &Watch::new(check::WORK, &mut goes_on))
    }
}

impl<V: Content> Reader<'_, V> {
    /// The rows that have this key in `index`, which must be an index of the table.
    ///
    /// # Errors
    ///
    /// As [`Index::get_by`].
    pub fn get_by(&self, index: &Index, index_key: impl AsRef<[u8]>) -> Result<Vec<(Key, V)>> {
        let rows = self.range_by(index, key_range(index_key.as_ref()));
        rows.map(|row| row.map(|(entry, content)| (entry.row_key().into(), content))).collect()
    }

    /// The rows whose keys in `index` are in `range`, in the order of the index, from either end. `index` must be an
    /// index of the table. See [`Index::range_by`].
    pub fn range_by(&self, index: &Index, range: impl IntoKeyRange) -> RangeBy<V> {
        let rows = RangeBy::new(self, index.entries.inner(), bounds::owned(&range));
        match index.check_reader(self) {
            Ok(()) => rows,
            Err(error) => rows.failed(error),
        }
    }

    /// The entries of `index` whose keys are in `range`, without their rows. `index` must be an index of the table.
    /// See [`Index::entries`].
    pub fn entries(&self, index: &Index, range: impl IntoKeyRange) -> Entries {
        let entries = Entries::new(self, index.entries.inner(), bounds::owned(&range));
        match index.check_reader(self) {
            Ok(()) => entries,
            Err(error) => entries.failed(error),
        }
    }
}

/// The range of one key.
pub(super) fn key_range(index_key: &[u8]) -> RangeInclusive<&[u8]> {
    index_key..=index_key
}
