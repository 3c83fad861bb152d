//! Writes of a table. Each write is one commit. This module checks the row. Committing is done by `write/`, and the
//! changes of indexes are made by `indexes/`.

use super::attempts::transact;
use super::table::Table;
use super::transaction::TransactionOptions;
use crate::base::bounds::{self, IntoKeyRange};
use crate::base::error::Result;
use crate::base::ops::BatchOps;
use crate::write::not_committed::outcome;
use crate::write::{commit, limits};
use os::sync::Arc;
use sst::KeyRange;

impl Table {
    /// Commits the operations that `fill` gives. In a table with indexes they depend on the rows that they replace,
    /// so a transaction commits them.
    fn write(&self, fill: impl FnOnce(&mut BatchOps)) -> Result<()> {
        let mut ops = BatchOps::new();
        fill(&mut ops);
        self.commit_ops(ops)
    }

    fn commit_ops(&self, mut ops: BatchOps) -> Result<()> {
        let (core, tables) = (self.core(), std::slice::from_ref(self.identity()));
        if !core.indexes.has(self.id())
            && outcome(commit::commit(core, &mut ops, tables, core.env.options.durability))?.is_ok()
        {
            return Ok(());
        }
        self.write_indexed(&ops)
    }

    #[cold]
    fn write_indexed(&self, ops: &BatchOps) -> Result<()> {
        let options = TransactionOptions::with_durability(None);
        let table: &Arc<_> = self.identity();
        transact(&self.inner().handle, &options, |tx| tx.write_all(ops, std::slice::from_ref(table)))?;
        Ok(())
    }

    /// Sets `key` to `value`, whether or not it has a value already. A key has at most 64 KiB
    /// ([`MAX_KEY_BYTES`](crate::MAX_KEY_BYTES)). A value has at most a quarter of the [write
    /// buffer](crate::Builder::write_buffer_bytes).
    ///
    /// The write is one commit. With the default [`Durability`](crate::Durability) it returns when the row is on stable
    /// storage; commits of other threads share the sync. It waits while the write buffer, or level 0 of the table, is
    /// full. To write many rows, a [`Batch`](crate::Batch) is faster, and [`Table::import`] is the fastest.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// # let fruit = db.table("fruit")?;
    /// fruit.insert("apple", "green")?;
    /// fruit.insert("apple", "red")?;
    /// assert_eq!(fruit.get("apple")?.as_deref(), Some(&b"red"[..]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// After an error nothing was written, except perhaps after
    /// [`Error::OutcomeUnknown`](crate::Error::OutcomeUnknown).
    ///
    /// * [`Error::KeyTooLong`](crate::Error::KeyTooLong), [`Error::ValueTooLong`](crate::Error::ValueTooLong): use a
    ///   shorter one, or a larger write buffer for values.
    /// * [`Error::Grouped`](crate::Error::Grouped) if the values of the table are split into several column groups: use
    ///   [`Table::insert_parts`].
    /// * [`Error::TableDropped`](crate::Error::TableDropped) if the table was dropped after this handle was made.
    /// * [`Error::Full`](crate::Error::Full) if the write buffer has no room because a flush or a compaction fails. It
    ///   names the cause. Background work is tried again by itself, so write again when the cause is gone.
    /// * [`Error::Log`](crate::Error::Log), [`Error::Page`](crate::Error::Page) if the log cannot be written, for
    ///   example because the disk is full ([`Error::is_disk_full`](crate::Error::is_disk_full)). Write again when the
    ///   disk has room.
    /// * [`Error::OutcomeUnknown`](crate::Error::OutcomeUnknown) if a sync failed. Close the database and open it again
    ///   to see whether the row was written.
    /// * [`Error::WritesStopped`](crate::Error::WritesStopped) after such an error,
    ///   [`Error::ReadOnly`](crate::Error::ReadOnly) in a database opened read-only,
    ///   [`Error::Forked`](crate::Error::Forked) in a child process: the database takes no writes.
    /// * If the table has [indexes](Table::create_index): [`Error::Duplicate`](crate::Error::Duplicate) if another row
    ///   has the key of this one in a unique index, [`Error::BadRow`](crate::Error::BadRow) if the row does not fit the
    ///   declaration of an index, [`Error::IndexKeyTooLong`](crate::Error::IndexKeyTooLong),
    ///   [`Error::NoExtractor`](crate::Error::NoExtractor) if nothing makes the keys of an index,
    ///   [`Error::TooManyConflicts`](crate::Error::TooManyConflicts) if other commits contradict it 100 times, and the
    ///   errors of [`Table::get`](crate::Reader::get): the row of before is read.
    pub fn insert(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        let (key, value) = (key.as_ref(), value.as_ref());
        self.check_row(key, value)?;
        self.write(|ops| ops.put(self.id().0, key, value))
    }

    /// Sets `key` to a value in parts: one part for each [column group](crate::TableOptions::groups) of the table, in
    /// the order of the groups, or one part if the table has no groups. All parts together have at most a quarter of
    /// the write buffer.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// let groups = ["name", "photo"].map(str::to_owned).to_vec();
    /// let users = db.table_with("users", larch::TableOptions { groups, ..Default::default() })?;
    /// users.insert_parts("ada", &[&b"Ada Lovelace"[..], &[0xff; 10_000]])?;
    /// assert!(users.insert("ada", "in one piece").is_err());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::PartCount`](crate::Error::PartCount) if the table has another number of groups; otherwise as
    /// [`Table::insert`].
    pub fn insert_parts(&self, key: impl AsRef<[u8]>, parts: &[impl AsRef<[u8]>]) -> Result<()> {
        let key = key.as_ref();
        self.check_parts(key, parts)?;
        self.write(|ops| ops.put_parts(self.id().0, key, parts))
    }

    /// Removes `key`. It is no error if the key has no value.
    ///
    /// The removal is written as a row (an *erase*), so it takes some space until a compaction reaches the deepest
    /// level. When the disk is full, removals take from the [reserve](crate::Builder::reserve_bytes) and still
    /// succeed.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// # let fruit = db.table("fruit")?;
    /// fruit.insert("apple", "red")?;
    /// fruit.remove("apple")?;
    /// fruit.remove("banana")?;
    /// assert!(fruit.get("apple")?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Table::insert`].
    pub fn remove(&self, key: impl AsRef<[u8]>) -> Result<()> {
        limits::check_key(key.as_ref())?;
        self.write(|ops| ops.erase(self.id().0, key.as_ref()))
    }

    /// Removes every key in `range`. It costs one small write, whatever the number of rows. An empty range removes
    /// nothing. If the table has [indexes](Table::create_index), it reads the rows of the range and erases their
    /// entries, all in one commit, in bounded memory. It begins again if another commit writes to the range
    /// meanwhile. After some conflicts other commits wait for it, see
    /// [`Database::transact`](crate::Database::transact). If they must not wait, remove a large range in pieces.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// # let fruit = db.table("fruit")?;
    /// for name in ["apple", "banana", "cherry"] {
    ///     fruit.insert(name, "ripe")?;
    /// }
    /// fruit.remove_range("b"..)?;
    /// assert_eq!(fruit.iter().count(), 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Table::insert`]; the bounds of the range are limited like keys.
    pub fn remove_range(&self, range: impl IntoKeyRange) -> Result<()> {
        let Some(KeyRange { start, end }) = bounds::keys(&range) else {
            return self.core().views.newest().files_of(self.identity()).map(drop);
        };
        let end = end.unwrap_or_default();
        limits::check_key(&start)?;
        limits::check_key(&end)?;
        self.write(|ops| ops.range_erase(self.id().0, &start, &end))
    }

    /// Removes all rows. This is one commit, which takes the same short time for a table of any size.
    ///
    /// # Errors
    ///
    /// As [`Table::remove_range`].
    pub fn clear(&self) -> Result<()> {
        self.remove_range(..)
    }

    /// Inserts all `rows` in their order, in commits of about a megabyte each. After an error the rows of the
    /// earlier commits stay. Rows that have to become visible together belong in one [`Batch`](crate::Batch). For
    /// very many rows, [`Table::import`] is faster.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// # let fruit = db.table("fruit")?;
    /// fruit.extend([("apple", "red"), ("banana", "yellow")])?;
    /// assert_eq!(fruit.iter().count(), 2);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Table::insert`].
    pub fn extend<K: AsRef<[u8]>, V: AsRef<[u8]>>(&self, rows: impl IntoIterator<Item = (K, V)>) -> Result<()> {
        let mut ops = BatchOps::new();
        for (key, value) in rows {
            let (key, value) = (key.as_ref(), value.as_ref());
            let checked = self.check_row(key, value);
            let is_full = ops.bytes().len() + key.len() + value.len() > EXTEND_BYTES;
            if !ops.is_empty() && (is_full || checked.is_err()) {
                self.commit_ops(std::mem::take(&mut ops))?;
            }
            checked?;
            ops.put(self.id().0, key, value);
        }
        self.commit_ops(ops)
    }
}

/// The bytes of a commit of [`Table::extend`].
const EXTEND_BYTES: usize = 1 << 20;
