//! Writes that are committed together. This module checks and collects the rows. The commit itself is done by
//! `write/`.

use super::async_writes::submit_ops;
use super::attempts::transact;
use super::commit::Commit;
use super::expected::{Expected, Unmet};
use super::table::Table;
use super::transaction::TransactionOptions;
use crate::base::bounds::{self, IntoKeyRange};
use crate::base::error::{Error, Result};
use crate::base::ops::BatchOps;
use crate::base::options::Durability;
use crate::base::table::TableInfo;
use crate::core::handle::DatabaseHandle;
use crate::view::value::Key;
use crate::write::not_committed::{NotCommitted, outcome};
use crate::write::{commit, limits};
use os::sync::Arc;
use sst::KeyRange;
use sst::Version;

#[cfg(test)]
mod tests;

/// Writes to any tables of a database. The writes take effect together, in the order in which they were added.
/// [`Database::batch`](crate::Database::batch) makes a batch. The batch holds its rows in memory. A batch that is
/// dropped has no effect.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = tempfile::tempdir()?;
/// # let db = larch::Database::open(&directory)?;
/// # let fruit = db.table("fruit")?;
/// fruit.insert("apple", "green")?;
/// let mut batch = db.batch();
/// batch.insert(&fruit, "banana", "yellow");
/// batch.remove(&fruit, "apple");
/// assert_eq!(batch.len(), 2);
/// batch.commit()?;
/// assert_eq!(fruit.iter().count(), 1);
/// # Ok(())
/// # }
/// ```
#[must_use = "a batch does nothing until it is committed"]
#[derive(Debug)]
pub struct Batch {
    handle: Arc<DatabaseHandle>,
    ops: BatchOps,
    durability: Durability,
    /// The tables to which the batch writes, sorted by their ids.
    tables: Vec<Arc<TableInfo>>,
    /// The first error, which `commit` will return.
    bad: Option<Error>,
    /// How many writes are not in `ops` because of the error `bad`. These are all writes that were added after the
    /// error, and the write that caused the error, if a write did.
    left_out: usize,
    conditions: Vec<(Table, Key, Expected)>,
}

impl Batch {
    pub(super) fn new(handle: &Arc<DatabaseHandle>) -> Self {
        let durability = handle.core().env.options.durability;
        let (ops, tables, conditions) = (BatchOps::new(), Vec::new(), Vec::new());
        Self { handle: handle.clone(), ops, durability, tables, bad: None, left_out: 0, conditions }
    }

    /// Whether a write or a condition for `table` can be added. `check` must not fail. After an error, nothing can
    /// be added.
    fn is_right(&mut self, table: &Table, check: impl FnOnce() -> Result<()>) -> bool {
        if self.bad.is_none() {
            self.bad = table.inner().check_handle(&self.handle).and_then(|()| check()).err();
        }
        self.bad.is_none()
    }

    /// Whether a write to a row of `table` can be added. `check` must not fail.
    fn checked(&mut self, table: &Table, check: impl FnOnce() -> Result<()>) -> bool {
        if !self.is_right(table, check) {
            self.left_out += 1;
            return false;
        }
        if let Err(place) = self.tables.binary_search_by_key(&table.id(), |table| table.id) {
            self.tables.insert(place, table.identity().clone());
        }
        true
    }

    /// Sets `key` to `value`, see [`Table::insert`]. If the table cannot take the row, [`Batch::commit`] returns the
    /// error.
    pub fn insert(&mut self, table: &Table, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) {
        let (key, value) = (key.as_ref(), value.as_ref());
        if self.checked(table, || table.check_row(key, value)) {
            self.ops.put(table.id().0, key, value);
        }
    }

    /// Sets `key` to a value in parts, see [`Table::insert_parts`]. If the table cannot take the row,
    /// [`Batch::commit`] returns the error.
    pub fn insert_parts(&mut self, table: &Table, key: impl AsRef<[u8]>, parts: &[impl AsRef<[u8]>]) {
        let key = key.as_ref();
        if self.checked(table, || table.check_parts(key, parts)) {
            self.ops.put_parts(table.id().0, key, parts);
        }
    }

    /// Removes `key`, see [`Table::remove`].
    pub fn remove(&mut self, table: &Table, key: impl AsRef<[u8]>) {
        let key = key.as_ref();
        if self.checked(table, || limits::check_key(key)) {
            self.ops.erase(table.id().0, key);
        }
    }

    /// Removes every key in `range`, see [`Table::remove_range`]. Rows that are inserted later in the same batch
    /// stay.
    pub fn remove_range(&mut self, table: &Table, range: impl IntoKeyRange) {
        let Some(KeyRange { start, end }) = bounds::keys(&range) else { return };
        let end = end.unwrap_or_default();
        if self.checked(table, || limits::check_key(&start).and_then(|()| limits::check_key(&end))) {
            self.ops.range_erase(table.id().0, &start, &end);
        }
    }

    /// Makes the commit depend on the value that `key` of `table` has at the moment of the commit. Such a batch
    /// has to be committed with [`Batch::commit_if`]. The expected value is the value that the key has before the
    /// writes of this batch take effect.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// # let fruit = db.table("fruit")?;
    /// use larch::transaction::Expected;
    ///
    /// fruit.insert("apple", "green")?;
    /// let mut batch = db.batch();
    /// batch.expect(&fruit, "apple", Expected::Value(b"green".to_vec()));
    /// batch.expect(&fruit, "banana", Expected::Absent);
    /// batch.insert(&fruit, "apple", "red");
    /// assert!(batch.commit_if()?.is_ok());
    ///
    /// let mut batch = db.batch();
    /// batch.expect(&fruit, "apple", Expected::Absent);
    /// batch.remove(&fruit, "apple");
    /// let unmet = batch.commit_if()?.expect_err("there is an apple");
    /// assert_eq!(unmet.key[..], *b"apple");
    /// # Ok(())
    /// # }
    /// ```
    pub fn expect(&mut self, table: &Table, key: impl AsRef<[u8]>, expected: Expected) {
        let key = key.as_ref();
        let check = || {
            limits::check_key(key).and_then(|()| match &expected {
                Expected::Value(_) => table.inner().check_whole(),
                Expected::Absent | Expected::Version(_) => Ok(()),
            })
        };
        if self.is_right(table, check) {
            self.conditions.push((table.clone(), key.into(), expected));
        }
    }

    /// Chooses when [`Batch::commit`] returns. By default, the [`durability`](crate::Builder::durability) of the
    /// database decides when [`Batch::commit`] returns.
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// The number of writes that were added. A write that its table cannot take is counted, and so are all writes
    /// after it.
    pub fn len(&self) -> usize {
        self.ops.count() as usize + self.left_out
    }

    /// Whether nothing was added: no write and no condition. A batch is not empty if [`Batch::commit`] would
    /// return an error. So a caller that does not commit an empty batch misses no error.
    pub fn is_empty(&self) -> bool {
        self.ops.is_empty() && self.conditions.is_empty() && self.bad.is_none()
    }

    /// Takes the first error out of the batch, so that [`Batch::commit`] does not return it. The batch then has
    /// everything that was added before the error, and can be committed. The batch does not have the write or
    /// condition that failed, nor anything that was added later.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// # let fruit = db.table("fruit")?;
    /// let mut batch = db.batch();
    /// batch.insert(&fruit, "apple", "green");
    /// batch.insert(&fruit, [0; 70_000], "a key that is too long");
    /// let error = batch.take_error().expect("a key has 65536 bytes at most");
    /// assert!(matches!(error, larch::Error::KeyTooLong { .. }));
    /// batch.commit()?;
    /// assert!(fruit.contains_key("apple")?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn take_error(&mut self) -> Option<Error> {
        self.left_out = 0;
        self.bad.take()
    }

    /// Commits all writes, and returns the version of the commit. If the batch is empty and has
    /// [`Durability::Synced`], the call makes all earlier commits durable, as
    /// [`Database::sync`](crate::Database::sync) does. Then it returns the newest version.
    ///
    /// The work of a commit grows with its bytes. It also grows with the logarithm of the number of rows that its
    /// tables have in memory. This work does not depend on the number of tables in the database. Each commit
    /// writes one record to the log. Commits that run at the same time share a sync. If a batch takes more than
    /// half of the write buffer, it is written to files instead, and is durable when the call returns. Then the
    /// rows that its tables have in memory are written to files, too, and other commits wait for that. A commit
    /// waits while the write buffer is full, or while level 0 of one of its tables is full.
    ///
    /// Unique [indexes](Table::create_index) are checked only after all writes of the batch. So two rows may swap
    /// their values. A row may also get the index key of another row, if a later write of the batch removes that
    /// row.
    ///
    /// # Errors
    ///
    /// After an error, none of the writes has taken effect. [`Error::OutcomeUnknown`] is an exception: a sync has
    /// failed, and only opening the database again shows whether the writes have taken effect.
    ///
    /// * [`Error::ForeignTable`] if a table belongs to another database.
    /// * [`Error::KeyTooLong`], [`Error::ValueTooLong`], [`Error::Grouped`] or [`Error::PartCount`] for the first row
    ///   that its table cannot take.
    /// * [`Error::HasConditions`] if the batch [expects](Batch::expect) a value.
    /// * All other errors of [`Table::insert`].
    pub fn commit(mut self) -> Result<Version> {
        self.check()?;
        self.commit_valid()
    }

    /// Commits the writes of a batch that was already checked. If a table has indexes, its writes need the rows
    /// that they replace. In this case a transaction reads these rows and commits the writes.
    fn commit_valid(mut self) -> Result<Version> {
        if !self.is_indexed()
            && let Ok(version) =
                outcome(commit::commit(self.handle.core(), &mut self.ops, &self.tables, self.durability))?
        {
            return Ok(version);
        }
        self.commit_indexed(self.durability)
    }

    /// Does the same as [`Batch::commit`], but returns a future. A thread that polls the future does not wait for
    /// room in the write buffer, or for the sync, see [`Batch::submit_async`]. If the future is dropped, either
    /// all writes are committed or none of them.
    ///
    /// # Errors
    ///
    /// Fails as [`Batch::commit`] does.
    pub async fn commit_async(self) -> Result<Version> {
        let durability = self.durability;
        let commit = self.submit_async().await?;
        if durability == Durability::Synced { commit.await } else { Ok(commit.version()) }
    }

    /// Whether the batch writes to a table with an index.
    fn is_indexed(&self) -> bool {
        self.tables.iter().any(|table| self.handle.core().indexes.has(table.id))
    }

    #[cold]
    fn commit_indexed(&self, durability: Durability) -> Result<Version> {
        let options = TransactionOptions::with_durability(Some(durability));
        let ((), version) = transact(&self.handle, &options, |tx| tx.write_all(&self.ops, &self.tables))?;
        Ok(version)
    }

    /// Does the same as [`Batch::commit`], but only if all conditions of the batch are met. If a condition is not
    /// met, nothing is written, and the inner result is an error that names the first such condition. The call
    /// reads the keys of the conditions, so it may read from the disk.
    ///
    /// # Errors
    ///
    /// Fails as [`Batch::commit`] and [`Table::get`](crate::Reader::get) do.
    pub fn commit_if(self) -> Result<Result<Version, Unmet>> {
        if let Some(error) = self.bad {
            return Err(error);
        }
        let options = TransactionOptions::with_durability(Some(self.durability));
        let (met, version) = transact(&self.handle, &options, |tx| {
            for (table, key, expected) in &self.conditions {
                if !tx.has(table, key, expected)? {
                    let (table, key, expected) = (table.name().to_owned(), key.clone(), expected.clone());
                    return Ok(Err(Unmet { table, key, expected }));
                }
            }
            tx.write_all(&self.ops, &self.tables)?;
            Ok::<_, Error>(Ok(()))
        })?;
        Ok(met.map(|()| version))
    }

    /// Commits all writes, and returns when reads see them. The returned [`Commit`] says whether the writes are
    /// durable, and a program can wait with it until they are. The durability of the batch is ignored: no sync
    /// begins until somebody asks for one. If the batch is empty, the returned handle is that of the newest commit
    /// in the database.
    ///
    /// The call costs as much as [`Batch::commit`] without the sync. Like [`Batch::commit`], the call waits while
    /// the write buffer, or level 0 of a table, is full.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// # let fruit = db.table("fruit")?;
    /// let mut batch = db.batch();
    /// batch.insert(&fruit, "apple", "red");
    /// let commit = batch.submit()?;
    /// assert!(fruit.contains_key("apple")?);
    /// commit.wait()?; // It survives a power failure from now on.
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Fails as [`Batch::commit`] does. After an error, none of the writes has taken effect. If a sync fails, not
    /// this call but the returned handle reports it.
    pub fn submit(mut self) -> Result<Commit> {
        self.check()?;
        if !self.is_indexed()
            && let Ok(version) = outcome(commit::submit(self.handle.core(), &mut self.ops, &self.tables))?
        {
            return Ok(Commit::new(self.handle, version));
        }
        let version = self.commit_indexed(Durability::Buffered)?;
        Ok(Commit::new(self.handle, version))
    }

    /// Does the same as [`Batch::submit`], but returns a future. The future does not block its thread: other tasks
    /// run while commits are slowed down, and while the write buffer or level 0 of a table is full. A thread is
    /// started in two cases: the batch takes more than half of the write buffer, or it removes a range from a
    /// table with indexes.
    ///
    /// The future can be dropped at any time, and leaves nothing half done. If the future is dropped, nothing is
    /// committed, except that a started thread may still commit.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> { smol::block_on(async {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// # let fruit = db.table("fruit")?;
    /// let mut batch = db.batch();
    /// batch.insert(&fruit, "apple", "red");
    /// let commit = batch.submit_async().await?;
    /// assert!(fruit.contains_key("apple")?);
    /// commit.await?; // It survives a power failure from now on.
    /// # Ok(()) }) }
    /// ```
    ///
    /// # Errors
    ///
    /// Fails as [`Batch::submit`] does.
    pub async fn submit_async(mut self) -> Result<Commit> {
        self.check()?;
        let version = submit_ops(&self.handle, self.ops, self.tables).await?;
        Ok(Commit::new(self.handle, version))
    }

    /// Does the same as [`Batch::submit`], but only if the commit does not have to wait. If it would have to wait,
    /// this returns the unchanged batch. The batch is returned while commits are slowed down, while the write
    /// buffer or level 0 of a table is full, and while another thread uses the log. It is also returned if it
    /// takes more than half of the write buffer. A batch that writes to a table with indexes is also returned,
    /// because such a commit reads rows. In all these cases, [`Batch::submit`] and [`Batch::submit_async`] wait.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// # let fruit = db.table("fruit")?;
    /// let mut batch = db.batch();
    /// batch.insert(&fruit, "apple", "red");
    /// match batch.try_submit()? {
    ///     Ok(commit) => println!("committed as version {}", commit.version().0),
    ///     Err(batch) => println!("{} writes have to wait", batch.len()),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Fails as [`Batch::submit`] does.
    pub fn try_submit(mut self) -> Result<Result<Commit, Self>> {
        self.check()?;
        let core = self.handle.core();
        if self.ops.is_empty() || self.is_indexed() || commit::is_large(core, &self.ops) {
            return if self.ops.is_empty() { self.submit().map(Ok) } else { Ok(Err(self)) };
        }
        let reserved = &core.writes.reserved;
        if reserved.count() > 0 && reserved.is_reserved_for(&self.ops, core.env.machine.clock.now()) {
            return Ok(Err(self));
        }
        match commit::try_submit(core, &mut self.ops, &self.tables) {
            Ok(Some(version)) => Ok(Ok(Commit::new(self.handle, version))),
            // A conflict here means that a table of the batch has got an index since `is_indexed` was asked above.
            Ok(None) | Err(NotCommitted::Conflict(_) | NotCommitted::Later(_)) => Ok(Err(self)),
            Err(NotCommitted::Failed(error)) => Err(error),
        }
    }

    /// Checks that the batch has no error and no conditions.
    fn check(&mut self) -> Result<()> {
        match self.bad.take() {
            Some(error) => Err(error),
            None if !self.conditions.is_empty() => Err(Error::HasConditions),
            None => Ok(()),
        }
    }
}
