//! The trait [`Readable`]: the same reads for a database as it is now, a snapshot and a transaction. The reads
//! themselves are in `read/`.

use super::index::{Index, key_range};
use super::selection::Selection;
use super::snapshot::Snapshot;
use super::table::Table;
use crate::base::bounds::{self, IntoKeyRange};
use crate::base::error::Result;
use crate::indexes::read::{Entries, RangeBy, ScanBy};
use crate::read::{Cursor, Range, Reader, Scan, Tried};
use crate::view::precharge::Prefetched;
use crate::view::value::{Key, Parts, Value};
use sst::AtMost;

/// Something to read rows from: a [`Database`](crate::Database) as it is at the moment of the read, a
/// [`Snapshot`](crate::Snapshot) or a [`Transaction`](crate::Transaction).
///
/// [`Readable::reader`] returns a [`Reader`] of a table. The other functions are shortcuts for its functions of the
/// same names. On a `dyn Readable`, only [`Readable::reader`] and [`Readable::select`] can be called.
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
    /// A reader of `table`, which sees the rows of this database, snapshot or transaction.
    ///
    /// # Errors
    ///
    /// [`Error::ForeignTable`](crate::Error::ForeignTable) if the table belongs to another database.
    fn reader<'r>(&'r self, table: &'r Table) -> Result<Reader<'r>>;

    /// A reader of the parts that `selection` names. It sees the rows of this database, snapshot or transaction,
    /// even if `selection` belongs to another snapshot.
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
    fn select<'r>(&'r self, selection: &'r Selection) -> Result<Reader<'r, Parts>>;

    /// The value of `key` in `table`, or `None` if the key has no value. See [`Reader::get`].
    ///
    /// # Errors
    ///
    /// [`Error::ForeignTable`](crate::Error::ForeignTable) if the table belongs to another database; otherwise fails
    /// as [`Reader::get`] does.
    fn get(&self, table: &Table, key: impl AsRef<[u8]>) -> Result<Option<Value>>
    where
        Self: Sized,
    {
        self.reader(table)?.get(key)
    }

    /// Like [`Readable::get`], but uses only pages in memory. See [`Reader::try_get`].
    ///
    /// # Errors
    ///
    /// [`Error::ForeignTable`](crate::Error::ForeignTable) if the table belongs to another database; otherwise fails
    /// as [`Reader::get`] does.
    fn try_get(&self, table: &Table, key: impl AsRef<[u8]>) -> Result<Tried<Option<Value>>>
    where
        Self: Sized,
    {
        self.reader(table)?.try_get(key)
    }

    /// Like [`Readable::get`], but as a future. See [`Reader::get_async`].
    ///
    /// # Errors
    ///
    /// [`Error::ForeignTable`](crate::Error::ForeignTable) if the table belongs to another database; otherwise fails
    /// as [`Reader::get`] does.
    fn get_async<K: AsRef<[u8]> + Send>(
        &self,
        table: &Table,
        key: K,
    ) -> impl Future<Output = Result<Option<Value>>> + Send
    where
        Self: Sized,
    {
        async move { self.reader(table)?.get_async(key.as_ref()).await }
    }

    /// Whether `key` has a value. See [`Reader::contains_key`].
    ///
    /// # Errors
    ///
    /// [`Error::ForeignTable`](crate::Error::ForeignTable) if the table belongs to another database; otherwise fails
    /// as [`Reader::contains_key`] does.
    fn contains_key(&self, table: &Table, key: impl AsRef<[u8]>) -> Result<bool>
    where
        Self: Sized,
    {
        self.reader(table)?.contains_key(key)
    }

    /// Like [`Readable::contains_key`], but uses only pages in memory. See [`Reader::try_contains_key`].
    ///
    /// # Errors
    ///
    /// [`Error::ForeignTable`](crate::Error::ForeignTable) if the table belongs to another database; otherwise fails
    /// as [`Reader::contains_key`] does.
    fn try_contains_key(&self, table: &Table, key: impl AsRef<[u8]>) -> Result<Tried<bool>>
    where
        Self: Sized,
    {
        self.reader(table)?.try_contains_key(key)
    }

    /// Like [`Readable::contains_key`], but as a future. See [`Reader::contains_key_async`].
    ///
    /// # Errors
    ///
    /// [`Error::ForeignTable`](crate::Error::ForeignTable) if the table belongs to another database; otherwise fails
    /// as [`Reader::contains_key`] does.
    fn contains_key_async<K: AsRef<[u8]> + Send>(
        &self,
        table: &Table,
        key: K,
    ) -> impl Future<Output = Result<bool>> + Send
    where
        Self: Sized,
    {
        async move { self.reader(table)?.contains_key_async(key.as_ref()).await }
    }

    /// The values of `keys` in `table`, in the order of `keys`. See [`Reader::multi_get`].
    ///
    /// # Errors
    ///
    /// [`Error::ForeignTable`](crate::Error::ForeignTable) if the table belongs to another database; otherwise fails
    /// as [`Reader::get`] does.
    fn multi_get<K: AsRef<[u8]>>(&self, table: &Table, keys: impl IntoIterator<Item = K>) -> Result<Vec<Option<Value>>>
    where
        Self: Sized,
    {
        self.reader(table)?.multi_get(keys)
    }

    /// Like [`Readable::multi_get`], but as a future. See [`Reader::multi_get_async`].
    ///
    /// # Errors
    ///
    /// [`Error::ForeignTable`](crate::Error::ForeignTable) if the table belongs to another database; otherwise fails
    /// as [`Reader::get`] does.
    fn multi_get_async<K: AsRef<[u8]> + Send + Sync>(
        &self,
        table: &Table,
        keys: impl IntoIterator<Item = K> + Send,
    ) -> impl Future<Output = Result<Vec<Option<Value>>>> + Send
    where
        Self: Sized,
    {
        let keys = Vec::from_iter(keys);
        async move { self.reader(table)?.multi_get_async(&keys).await }
    }

    /// Loads the pages that reading `range` of `table` from its start will need, see [`Reader::prefetch`]. This
    /// does not make a transaction depend on the rows in them.
    ///
    /// # Errors
    ///
    /// [`Error::ForeignTable`](crate::Error::ForeignTable) if the table belongs to another database; otherwise fails
    /// as [`Reader::prefetch`] does.
    fn prefetch(&self, table: &Table, range: impl IntoKeyRange, limits: AtMost) -> Result<Prefetched>
    where
        Self: Sized,
    {
        self.reader(table)?.prefetch(range, limits)
    }

    /// The rows of `table` with keys in `range`, in key order, from either end. See [`Reader::range`]. If the table
    /// belongs to another database, reads of the range fail with
    /// [`Error::ForeignTable`](crate::Error::ForeignTable).
    fn range(&self, table: &Table, range: impl IntoKeyRange) -> Range
    where
        Self: Sized,
    {
        match self.reader(table) {
            Ok(reader) => reader.range(range),
            Err(error) => table.range(range).failed(error),
        }
    }

    /// Like [`Readable::range`], but rows are read with futures. See [`Reader::scan_async`].
    fn scan_async(&self, table: &Table, range: impl IntoKeyRange) -> Scan
    where
        Self: Sized,
    {
        self.range(table, range).into()
    }

    /// The rows of `table` with keys that begin with `prefix`, see [`Reader::prefix`] and [`Readable::range`].
    fn prefix(&self, table: &Table, prefix: impl AsRef<[u8]>) -> Range
    where
        Self: Sized,
    {
        self.range(table, bounds::of_prefix(prefix.as_ref()))
    }

    /// All rows of `table`, see [`Readable::range`].
    fn iter(&self, table: &Table) -> Range
    where
        Self: Sized,
    {
        self.range(table, ..)
    }

    /// The row of `table` with the least key, or `None` if the table is empty. See [`Reader::first_key_value`].
    ///
    /// # Errors
    ///
    /// [`Error::ForeignTable`](crate::Error::ForeignTable) if the table belongs to another database; otherwise fails
    /// as [`Reader::get`] does.
    fn first_key_value(&self, table: &Table) -> Result<Option<(Key, Value)>>
    where
        Self: Sized,
    {
        self.reader(table)?.first_key_value()
    }

    /// The row of `table` with the greatest key, or `None` if the table is empty. See [`Reader::last_key_value`].
    ///
    /// # Errors
    ///
    /// [`Error::ForeignTable`](crate::Error::ForeignTable) if the table belongs to another database; otherwise fails
    /// as [`Reader::get`] does.
    fn last_key_value(&self, table: &Table) -> Result<Option<(Key, Value)>>
    where
        Self: Sized,
    {
        self.reader(table)?.last_key_value()
    }

    /// A cursor over all rows of `table`. See [`Reader::cursor`]. If the table belongs to another database, moves of
    /// the cursor fail with [`Error::ForeignTable`](crate::Error::ForeignTable).
    fn cursor(&self, table: &Table) -> Cursor
    where
        Self: Sized,
    {
        self.cursor_in(table, ..)
    }

    /// A cursor over the rows of `table` with keys in `range`, see [`Readable::cursor`].
    fn cursor_in(&self, table: &Table, range: impl IntoKeyRange) -> Cursor
    where
        Self: Sized,
    {
        match self.reader(table) {
            Ok(reader) => reader.cursor_in(range),
            Err(error) => table.cursor_in(range).failed(error),
        }
    }

    /// The rows with this key in `index`. See [`Index::get_by`].
    ///
    /// # Errors
    ///
    /// [`Error::ForeignTable`](crate::Error::ForeignTable) if the index belongs to another database; otherwise fails
    /// as [`Index::get_by`] does.
    fn get_by(&self, index: &Index, index_key: impl AsRef<[u8]>) -> Result<Vec<(Key, Value)>>
    where
        Self: Sized,
    {
        self.reader(index.table())?.get_by(index, index_key)
    }

    /// Like [`Readable::get_by`], but as a future. See [`Index::get_by_async`].
    ///
    /// # Errors
    ///
    /// Fails as [`Readable::get_by`] does.
    fn get_by_async<K: AsRef<[u8]> + Send>(
        &self,
        index: &Index,
        index_key: K,
    ) -> impl Future<Output = Result<Vec<(Key, Value)>>> + Send
    where
        Self: Sized,
    {
        let rows = self.range_by(index, key_range(index_key.as_ref()));
        rows.all_async()
    }

    /// The rows with index keys in `range`, in the order of the index, from either end. See [`Index::range_by`].
    fn range_by(&self, index: &Index, range: impl IntoKeyRange) -> RangeBy
    where
        Self: Sized,
    {
        match self.reader(index.table()) {
            Ok(reader) => reader.range_by(index, range),
            Err(error) => index.range_by(range).failed(error),
        }
    }

    /// Like [`Readable::range_by`], but rows are read with futures. See [`Index::scan_by_async`].
    fn scan_by_async(&self, index: &Index, range: impl IntoKeyRange) -> ScanBy
    where
        Self: Sized,
    {
        self.range_by(index, range).into()
    }

    /// The entries of `index` with index keys in `range`, without the rows of the table. See [`Index::entries`].
    fn entries(&self, index: &Index, range: impl IntoKeyRange) -> Entries
    where
        Self: Sized,
    {
        match self.reader(index.table()) {
            Ok(reader) => reader.entries(index, range),
            Err(error) => index.entries(range).failed(error),
        }
    }
}

impl Readable for Snapshot {
    fn reader<'r>(&'r self, table: &'r Table) -> Result<Reader<'r>> {
        Ok(table.seen_at(Some(self.pin_of(table)?)))
    }

    fn select<'r>(&'r self, selection: &'r Selection) -> Result<Reader<'r, Parts>> {
        Ok(selection.seen_at(Some(self.pin_of(selection)?)))
    }
}
