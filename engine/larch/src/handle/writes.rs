//! The writes of a [`Table`], each of which is a commit of its own. This module checks the rows; `write/` commits
//! them, and `indexes/` updates the indexes.

use super::attempts::transact;
use super::table::Table;
use super::transaction::TransactionOptions;
use crate::base::bounds::{self, IntoKeyRange};
use crate::base::error::Result;
use crate::base::operand::MergeOp;
use crate::base::ops::{BatchOps, CommitOps, Op};
use crate::write::not_committed::outcome;
use crate::write::{commit, limits, times};
use os::sync::Arc;
use sst::KeyRange;

impl Table {
    /// Commits one operation. If the table has indexes, a transaction first reads the rows that it replaces.
    pub(super) fn write(&self, op: Op<'_>) -> Result<()> {
        if self.commit_unindexed(CommitOps::One(self.id().0, op))? {
            return Ok(());
        }
        let mut ops = BatchOps::new();
        ops.push(self.id().0, op);
        self.write_indexed(&ops)
    }

    /// Like [`Table::write`], but commits several operations together.
    pub(super) fn write_batch(&self, mut ops: BatchOps) -> Result<()> {
        if self.commit_unindexed(ops.resolve())? { Ok(()) } else { self.write_indexed(&ops) }
    }

    /// Commits `ops`, which are resolved. Returns false and commits nothing if the table has indexes.
    fn commit_unindexed(&self, ops: CommitOps<'_>) -> Result<bool> {
        let (core, tables) = (self.core(), std::slice::from_ref(self.identity()));
        if core.indexes.has(self.id()) {
            return Ok(false);
        }
        Ok(outcome(commit::commit(core, ops, tables, core.env.options.durability))?.is_ok())
    }

    #[cold]
    fn write_indexed(&self, ops: &BatchOps) -> Result<()> {
        let options = TransactionOptions::with_durability(None);
        let table: &Arc<_> = self.identity();
        transact(&self.inner().handle, &options, |tx| tx.write_all(ops, std::slice::from_ref(table)))?;
        Ok(())
    }

    /// Sets `key` to `value`, replacing any earlier value. A key has at most 64 KiB
    /// ([`MAX_KEY_BYTES`](crate::MAX_KEY_BYTES)), a value at most a quarter of the [write
    /// buffer](crate::Builder::write_buffer_bytes).
    ///
    /// Each call is one commit. With the default [`Durability`](crate::Durability), the call returns when the row
    /// is on stable storage. Threads that commit at the same time share one sync. The call waits while the write
    /// buffer is full, or while level 0 of the table is full. For many rows, a [`Batch`](crate::Batch) is faster,
    /// and [`Table::import`] is fastest.
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
    /// After an error, nothing was written, except perhaps after
    /// [`Error::OutcomeUnknown`](crate::Error::OutcomeUnknown).
    ///
    /// * [`Error::KeyTooLong`](crate::Error::KeyTooLong) or [`Error::ValueTooLong`](crate::Error::ValueTooLong) if
    ///   the key or the value is too long. A larger write buffer allows longer values.
    /// * [`Error::Grouped`](crate::Error::Grouped) if the values of the table are split into several column groups: use
    ///   [`Table::insert_parts`].
    /// * [`Error::TableDropped`](crate::Error::TableDropped) if the table was dropped after this handle was made.
    /// * [`Error::Full`](crate::Error::Full) if the write buffer is full because a flush or a compaction has
    ///   failed. The error names the cause. The engine retries background work by itself, so write again when the
    ///   cause is gone.
    /// * [`Error::Log`](crate::Error::Log) or [`Error::Page`](crate::Error::Page) if the log cannot be written, for
    ///   example because the disk is full ([`Error::is_disk_full`](crate::Error::is_disk_full)). Write again when
    ///   the disk has room.
    /// * [`Error::OutcomeUnknown`](crate::Error::OutcomeUnknown) if a sync has failed. To see whether the row was
    ///   written, close the database and open it again.
    /// * If the database takes no writes: [`Error::WritesStopped`](crate::Error::WritesStopped) after an
    ///   [`Error::OutcomeUnknown`](crate::Error::OutcomeUnknown) or a panic of the engine,
    ///   [`Error::ReadOnly`](crate::Error::ReadOnly) in a read-only database,
    ///   [`Error::Forked`](crate::Error::Forked) in a child of the process that opened the database.
    /// * If the table has [indexes](Table::create_index): [`Error::Duplicate`](crate::Error::Duplicate) if another
    ///   row has the same key in a unique index; [`Error::BadRow`](crate::Error::BadRow) if the row does not fit
    ///   the declaration of an index; [`Error::IndexKeyTooLong`](crate::Error::IndexKeyTooLong) if an index key of
    ///   the row is too long; [`Error::NoExtractor`](crate::Error::NoExtractor) or
    ///   [`Error::NoClosure`](crate::Error::NoClosure) if the extractor or the closure of an index is not
    ///   registered; [`Error::TooManyConflicts`](crate::Error::TooManyConflicts) if the write conflicts with other
    ///   commits 100 times; and the errors of [`Table::get`](crate::Reader::get), because the old row is read.
    /// * If the table [gives times](crate::TableOptions::expiry) to its rows: [`Error::BadRow`](crate::Error::BadRow)
    ///   if the extractor refuses the row; [`Error::NoExpiryTime`](crate::Error::NoExpiryTime) if it is not registered.
    pub fn insert(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        let (key, value) = (key.as_ref(), value.as_ref());
        self.check_row(key, value)?;
        let until = times::of_row(self.core(), self.identity(), key, &[value])?;
        self.write(Op::Put { key, value, until })
    }

    /// Sets `key` to a value in parts: one part for each [column group](crate::TableOptions::groups) of the table,
    /// in the order of the groups, or a single part if the table has no groups. All parts together may take at most
    /// a quarter of the write buffer.
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
    /// [`Error::PartCount`](crate::Error::PartCount) if the value has more or fewer parts than the table has groups;
    /// otherwise fails as [`Table::insert`] does.
    pub fn insert_parts(&self, key: impl AsRef<[u8]>, parts: &[impl AsRef<[u8]>]) -> Result<()> {
        let key = key.as_ref();
        self.check_parts(key, parts)?;
        let until = times::of_row(self.core(), self.identity(), key, parts)?;
        let mut ops = BatchOps::new();
        ops.put_parts_until(self.id().0, key, parts, until);
        self.write_batch(ops)
    }

    /// Changes the value of `key` by `op`, without reading it: the change is applied when the value is read, or before
    /// that when rows are merged in the background. It costs as much as an [insert](Table::insert), however far away the
    /// old value is. Commits that change the same key do not conflict, and none of them is lost.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// # let visits = db.table("visits")?;
    /// use larch::MergeOp;
    ///
    /// visits.merge("/home", MergeOp::Add(1))?;
    /// visits.merge("/home", MergeOp::Add(2))?;
    /// assert_eq!(visits.get("/home")?.as_deref(), Some(&3i64.to_le_bytes()[..]));
    /// visits.merge("log", MergeOp::Append(b"one,"))?;
    /// visits.merge("log", MergeOp::Append(b"two"))?;
    /// assert_eq!(visits.get("log")?.as_deref(), Some(&b"one,two"[..]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// If the table has [indexes](Table::create_index), a transaction reads the value and inserts the new one, because
    /// the index keys of both have to be known. It also does if the table [gives times](crate::TableOptions::expiry) to
    /// its rows: a row that is there until a time keeps it, or gets the one that is computed from its new value; any
    /// other row gets one.
    ///
    /// # Errors
    ///
    /// Fails as [`Table::insert`] does, where the bytes of `op` count as a value; and with
    /// [`Error::BadOptions`](crate::Error::BadOptions) if the name of a function is too long, or if the database is
    /// written for a [release](crate::Builder::compat) that does not know merges. Whether `op` fits the value is only
    /// known when it is applied: then reads of the key fail with [`Error::Merge`](crate::Error::Merge).
    ///
    /// In a table that has indexes or gives times to its rows, `op` is applied by this call, which then fails with
    /// [`Error::Merge`](crate::Error::Merge) itself, and with [`Error::ValueTooLong`](crate::Error::ValueTooLong) if
    /// the new value is too long. As it reads the row, it also fails as [`Table::get`](crate::Reader::get) does, and
    /// with [`Error::TooManyConflicts`](crate::Error::TooManyConflicts) if it conflicts with other commits 100 times.
    pub fn merge(&self, key: impl AsRef<[u8]>, op: MergeOp<'_>) -> Result<()> {
        let key = key.as_ref();
        self.check_merge(key, &op)?;
        if self.core().expiring.has(self.id()) {
            let mut ops = BatchOps::new();
            ops.merge(self.id().0, key, &op.encode());
            return self.write_indexed(&ops);
        }
        self.write(Op::Merge { key, operand: &op.encode() })
    }

    /// Removes `key`. It is no error if the key has no value.
    ///
    /// A removal is written as a row of its own, an *erase* (tombstone), which takes some space until a compaction
    /// to the deepest level drops it. When the disk is full, removals still succeed, because they may use the
    /// [reserve](crate::Builder::reserve_bytes).
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
    /// Fails as [`Table::insert`] does.
    pub fn remove(&self, key: impl AsRef<[u8]>) -> Result<()> {
        let key = key.as_ref();
        limits::check_key(key)?;
        self.write(Op::Erase { key })
    }

    /// Removes all keys in `range`. This is one small write, however many rows the range has.
    ///
    /// If the table has [indexes](Table::create_index), the call also reads all rows of the range and erases their
    /// entries, in bounded memory and in the same commit. If another commit writes to the range meanwhile, the call
    /// starts again, and after some conflicts other commits have to wait for it, see
    /// [`Database::transact`](crate::Database::transact). To avoid that, remove a large range in several pieces.
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
    /// Fails as [`Table::insert`] does, and with [`Error::KeyTooLong`](crate::Error::KeyTooLong) if a bound of the
    /// range is longer than the longest key.
    pub fn remove_range(&self, range: impl IntoKeyRange) -> Result<()> {
        let Some(KeyRange { start, end }) = bounds::keys(&range) else {
            return self.core().views.newest().files_of(self.identity()).map(drop);
        };
        let end = end.unwrap_or_default();
        limits::check_key(&start)?;
        limits::check_key(&end)?;
        self.write(Op::RangeErase { start: &start, end: &end })
    }

    /// Removes all rows of the table in one commit. This is fast whatever the size of the table, unless the table
    /// has indexes.
    ///
    /// # Errors
    ///
    /// Fails as [`Table::remove_range`] does.
    pub fn clear(&self) -> Result<()> {
        self.remove_range(..)
    }

    /// Inserts all `rows` in the given order, in commits of about a megabyte each. After an error, the rows of
    /// earlier commits stay in the table. If the rows must become visible together, use a [`Batch`](crate::Batch)
    /// instead. For very many rows, [`Table::import`] is faster.
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
    /// Fails as [`Table::insert`] does.
    pub fn extend<K: AsRef<[u8]>, V: AsRef<[u8]>>(&self, rows: impl IntoIterator<Item = (K, V)>) -> Result<()> {
        let look_up = || self.core().expiring.of(self.id());
        // Looked up once for each commit, so that an alter holds for the commits after it.
        let (mut ops, mut given) = (BatchOps::new(), look_up());
        for (key, value) in rows {
            let (key, value) = (key.as_ref(), value.as_ref());
            if !ops.is_empty() && ops.bytes().len() + key.len() + value.len() > EXTEND_BYTES {
                self.write_batch(std::mem::take(&mut ops))?;
                given = look_up();
            }
            let until = |()| times::of_row_by(self.core(), given.as_ref(), self.identity(), key, &[value]);
            let checked = self.check_row(key, value).and_then(until);
            if !ops.is_empty() && checked.is_err() {
                self.write_batch(std::mem::take(&mut ops))?;
            }
            let until = checked?;
            ops.put_until(self.id().0, key, value, until);
        }
        self.write_batch(ops)
    }
}

/// [`Table::extend`] commits when it has collected about this many bytes.
const EXTEND_BYTES: usize = 1 << 20;
