//! What rows can be read from: the database as it is now, a snapshot of it, or a transaction. Reading is `read/`.

use super::index::{Index, key_range};
use super::selected::Selected;
use super::selection::Selection;
use super::snapshot::Snapshot;
use super::table::Table;
use crate::base::bounds::{self, IntoKeyRange};
use crate::base::error::Result;
use crate::indexes::read::{Entries, RangeBy, ScanBy};
use crate::read::{Cursor, Range, Reader, Scan, Tried};
use crate::view::precharge::Prefetched;
use crate::view::value::{Key, Value};
use sst::{Direction, Limits};

/// What rows can be read from: a [`Database`](crate::Database), as it is when it is read, a
/// [`Snapshot`](crate::Snapshot) of it, or a [`Transaction`](crate::Transaction).
///
/// All functions but one are made of [`Readable::reader`]. They do what the functions of [`Table`] with the same names
/// do.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = tempfile::tempdir()?;
/// # let db = larch::Database::open(&directory)?;
/// # let fruit = db.table("fruit")?;
/// use larch::{Readable, Table};
///
/// fn colour(rows: &impl Readable, fruit: &Table) -> larch::Result<Option<larch::Value>> {
///     rows.get(fruit, "apple")
/// }
///
/// fruit.insert("apple", "green")?;
/// let snapshot = db.snapshot();
/// fruit.insert("apple", "red")?;
/// assert_eq!(colour(&snapshot, &fruit)?.as_deref(), Some(&b"green"[..]));
/// assert_eq!(colour(&db, &fruit)?.as_deref(), Some(&b"red"[..]));
/// # Ok(())
/// # }
/// ```
pub trait Readable: Sync {
    /// What reads `table` here.
    ///
    /// # Errors
    ///
    /// [`Error::ForeignTable`](crate::Error::ForeignTable) if the table is one of another database.
    fn reader<'r>(&'r self, table: &'r Table) -> Result<Reader<'r>>;

    /// The value of `key` in `table`, or `None` if the key has no value. See [`Table::get`].
    ///
    /// # Errors
    ///
    /// [`Error::ForeignTable`](crate::Error::ForeignTable) if the table belongs to another database; otherwise as
    /// [`Table::get`].
    fn get(&self, table: &Table, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        self.reader(table)?.get(key.as_ref())
    }

    /// As [`Readable::get`], but only with what is in memory. See [`Table::try_get`].
    ///
    /// # Errors
    ///
    /// [`Error::ForeignTable`](crate::Error::ForeignTable) if the table belongs to another database; otherwise as
    /// [`Table::get`].
    fn try_get(&self, table: &Table, key: impl AsRef<[u8]>) -> Result<Tried<Option<Value>>> {
        self.reader(table)?.try_get(key.as_ref())
    }

    /// As [`Readable::get`], as a future. See [`Table::get_async`].
    ///
    /// # Errors
    ///
    /// [`Error::ForeignTable`](crate::Error::ForeignTable) if the table belongs to another database; otherwise as
    /// [`Table::get`].
    fn get_async<K: AsRef<[u8]> + Send>(
        &self,
        table: &Table,
        key: K,
    ) -> impl Future<Output = Result<Option<Value>>> + Send {
        async move { self.reader(table)?.get_async(key.as_ref()).await }
    }

    /// Whether `key` has a value. See [`Table::contains_key`].
    ///
    /// # Errors
    ///
    /// [`Error::ForeignTable`](crate::Error::ForeignTable) if the table belongs to another database; otherwise as
    /// [`Table::contains_key`].
    fn contains_key(&self, table: &Table, key: impl AsRef<[u8]>) -> Result<bool> {
        self.reader(table)?.contains_key(key.as_ref())
    }

    /// The values of `keys` in `table`, in the order of the keys. See [`Table::multi_get`].
    ///
    /// # Errors
    ///
    /// [`Error::ForeignTable`](crate::Error::ForeignTable) if the table belongs to another database; otherwise as
    /// [`Table::get`].
    fn multi_get<K: AsRef<[u8]>>(
        &self,
        table: &Table,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Vec<Option<Value>>> {
        self.reader(table)?.multi_get(&Vec::from_iter(keys))
    }

    /// As [`Readable::multi_get`], as a future. See [`Table::multi_get_async`].
    ///
    /// # Errors
    ///
    /// [`Error::ForeignTable`](crate::Error::ForeignTable) if the table belongs to another database; otherwise as
    /// [`Table::get`].
    fn multi_get_async<K: AsRef<[u8]> + Send + Sync>(
        &self,
        table: &Table,
        keys: impl IntoIterator<Item = K> + Send,
    ) -> impl Future<Output = Result<Vec<Option<Value>>>> + Send {
        let keys = Vec::from_iter(keys);
        async move { self.reader(table)?.multi_get_async(&keys).await }
    }

    /// Loads the pages that reading `range` of `table` from its start will need, see [`Table::prefetch`]. A transaction does not depend
    /// on what it has only loaded.
    ///
    /// # Errors
    ///
    /// [`Error::ForeignTable`](crate::Error::ForeignTable) if the table belongs to another database; otherwise as
    /// [`Table::prefetch`].
    fn prefetch(&self, table: &Table, range: impl IntoKeyRange, limits: Limits) -> Result<Prefetched> {
        self.reader(table)?.prefetch(bounds::owned(&range), limits, Direction::Forward, table.all_groups())
    }

    /// The rows of `table` with keys in `range`, in the order of the keys, from either end. See [`Table::range`]. If
    /// the table belongs to another database, the range answers with
    /// [`Error::ForeignTable`](crate::Error::ForeignTable).
    fn range(&self, table: &Table, range: impl IntoKeyRange) -> Range {
        match self.reader(table) {
            Ok(reader) => reader.range(bounds::owned(&range)),
            Err(error) => table.reader().range(bounds::owned(&range)).failed(error),
        }
    }

    /// As [`Readable::range`], for futures. See [`Table::scan_async`].
    fn scan_async(&self, table: &Table, range: impl IntoKeyRange) -> Scan {
        self.range(table, range).into()
    }

    /// The rows that have this key in `index`. See [`Index::get_by`].
    ///
    /// # Errors
    ///
    /// [`Error::ForeignTable`](crate::Error::ForeignTable) if the index belongs to another database; otherwise as [`Index::get_by`].
    fn get_by(&self, index: &Index, index_key: impl AsRef<[u8]>) -> Result<Vec<(Key, Value)>> {
        index.get_in(&self.reader(index.table())?, index_key.as_ref())
    }

    /// As [`Readable::get_by`], as a future. See [`Index::get_by_async`].
    ///
    /// # Errors
    ///
    /// As [`Readable::get_by`].
    fn get_by_async<K: AsRef<[u8]> + Send>(
        &self,
        index: &Index,
        index_key: K,
    ) -> impl Future<Output = Result<Vec<(Key, Value)>>> + Send {
        let rows = self.range_by(index, key_range(index_key.as_ref()));
        rows.all_async()
    }

    /// The rows whose keys in `index` are in `range`, in the order of the index, from either end. See [`Index::range_by`].
    fn range_by(&self, index: &Index, range: impl IntoKeyRange) -> RangeBy {
        match self.reader(index.table()) {
            Ok(reader) => index.range_in(&reader, &range),
            Err(error) => index.range_by(range).failed(error),
        }
    }

    /// As [`Readable::range_by`], for futures. See [`Index::scan_by_async`].
    fn scan_by_async(&self, index: &Index, range: impl IntoKeyRange) -> ScanBy {
        self.range_by(index, range).into()
    }

    /// The entries of `index` whose keys are in `range`, without their rows. See [`Index::entries`].
    fn entries(&self, index: &Index, range: impl IntoKeyRange) -> Entries {
        match self.reader(index.table()) {
            Ok(reader) => index.entries_in(&reader, &range),
            Err(error) => index.entries(range).failed(error),
        }
    }

    /// What `selection` shows of its table here, in place of the rows of now.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// use larch::Readable;
    ///
    /// let groups = ["name", "portrait"].map(str::to_owned).to_vec();
    /// let people = db.table_with("people", larch::TableOptions { groups, ..Default::default() })?;
    /// let names = people.select(["name"])?;
    /// let mut tx = db.begin()?;
    /// tx.insert_parts(&people, "ada", &["Ada Lovelace", "a large picture"])?;
    /// let ada = tx.select(&names)?.get("ada")?.expect("a transaction sees its own writes");
    /// assert_eq!(ada[0][..], *b"Ada Lovelace");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::ForeignTable`](crate::Error::ForeignTable) if the table belongs to another database.
    fn select<'r>(&'r self, selection: &'r Selection) -> Result<Selected<'r>> {
        Ok(Selected::new(self.reader(selection.table())?.parts(*selection.wanted())))
    }

    /// All rows of `table`, see [`Readable::range`].
    fn iter(&self, table: &Table) -> Range {
        self.range(table, ..)
    }

    /// A cursor over all rows of `table`. See [`Table::cursor`]. If the table belongs to another database, the cursor answers
    /// with [`Error::ForeignTable`](crate::Error::ForeignTable).
    fn cursor(&self, table: &Table) -> Cursor {
        self.cursor_in(table, ..)
    }

    /// A cursor over the rows of `table` with keys in `range`, see [`Readable::cursor`].
    fn cursor_in(&self, table: &Table, range: impl IntoKeyRange) -> Cursor {
        match self.reader(table) {
            Ok(reader) => reader.cursor(bounds::owned(&range)),
            Err(error) => table.reader().cursor(bounds::owned(&range)).failed(error),
        }
    }
}

impl Readable for Snapshot {
    fn reader<'r>(&'r self, table: &'r Table) -> Result<Reader<'r>> {
        Ok(table.reader_at(Some(self.pin_of(table)?)))
    }
}
