//! A batch: writes that are committed together. This module checks and collects the rows; `write/` commits them.

use super::async_writes::{buffered, submit_ops};
use super::attempts::transact;
use super::commit::Commit;
use super::expected::{Expected, Unmet};
use super::table::Table;
use super::transaction::TransactionOptions;
use crate::base::bounds::{self, IntoKeyRange};
use crate::base::error::{Error, Result};
use crate::base::operand::MergeOp;
use crate::base::ops::BatchOps;
use crate::base::options::Durability;
use crate::base::row_clock;
use crate::base::table::TableInfo;
use crate::core::handle::DatabaseHandle;
use crate::view::value::Key;
use crate::write::not_committed::{NotCommitted, outcome};
use crate::write::{commit, limits, times};
use os::sync::Arc;
use sst::{KeyRange, Until, Version};
use std::time::Duration;

#[cfg(test)]
mod tests;

/// Writes to any tables of a database that take effect together, in the order in which they were added.
/// [`Database::batch`](crate::Database::batch) returns an empty batch. A batch holds its rows in memory. Dropping
/// it without a commit has no effect.
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
    /// The tables to which the batch writes, sorted by id.
    tables: Vec<Arc<TableInfo>>,
    /// The first error, which `commit` will return.
    bad: Option<Error>,
    /// How many writes are missing from `ops` because of `bad`: the write that failed, if it was a write, and all
    /// writes after it.
    left_out: usize,
    conditions: Vec<(Table, Key, Expected)>,
    /// Whether rows get only the times that the calls name.
    own_times: bool,
}

impl Batch {
    pub(super) fn new(handle: &Arc<DatabaseHandle>) -> Self {
        let durability = handle.core().env.options.durability;
        let (ops, tables, conditions) = (BatchOps::new(), Vec::new(), Vec::new());
        let handle = handle.clone();
        Self { handle, ops, durability, tables, bad: None, left_out: 0, conditions, own_times: false }
    }

    /// Whether a write or a condition for `table` can be added: `check` passes, and nothing failed before. Notes
    /// the first error in `bad`.
    fn is_right(&mut self, table: &Table, check: impl FnOnce() -> Result<()>) -> bool {
        self.found(table, check).is_some()
    }

    /// Like [`Batch::is_right`], for a check that finds something. Returns `None` if something failed.
    fn found<T>(&mut self, table: &Table, check: impl FnOnce() -> Result<T>) -> Option<T> {
        if self.bad.is_some() {
            return None;
        }
        let found = table.inner().check_handle(&self.handle).and_then(|()| check());
        found.map_err(|error| self.bad = Some(error)).ok()
    }

    /// Like [`Batch::is_right`], for a write. Also notes the table, or counts the write as left out.
    fn checked(&mut self, table: &Table, check: impl FnOnce() -> Result<()>) -> bool {
        self.noted(table, check).is_some()
    }

    /// Like [`Batch::checked`], for a check that finds something.
    fn noted<T>(&mut self, table: &Table, check: impl FnOnce() -> Result<T>) -> Option<T> {
        let Some(found) = self.found(table, check) else {
            self.left_out += 1;
            return None;
        };
        if let Err(place) = self.tables.binary_search_by_key(&table.id(), |table| table.id) {
            self.tables.insert(place, table.identity().clone());
        }
        Some(found)
    }

    /// Whether `table` may give times to rows of the batch.
    #[inline]
    fn gives_times(&self, table: &Table) -> bool {
        !self.own_times && table.core().expiring.may_have(table.id())
    }

    /// Notes a put whose write names no time, and returns the time that the table gives to it.
    #[cold]
    fn given_time(
        &mut self,
        table: &Table,
        key: &[u8],
        parts: &[impl AsRef<[u8]>],
        check: impl FnOnce() -> Result<()>,
    ) -> Option<Option<Until>> {
        let own_times = self.own_times;
        self.noted(table, || {
            check()?;
            if own_times { Ok(None) } else { times::of_row(table.core(), table.identity(), key, parts) }
        })
    }

    /// Sets `key` to `value`, see [`Table::insert`]. If the table cannot take the row, [`Batch::commit`] fails.
    pub fn insert(&mut self, table: &Table, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) {
        let (key, value) = (key.as_ref(), value.as_ref());
        if !self.gives_times(table) {
            if self.checked(table, || table.check_row(key, value)) {
                self.ops.put(table.id().0, key, value);
            }
        } else if let Some(until) = self.given_time(table, key, &[value], || table.check_row(key, value)) {
            self.ops.put_until(table.id().0, key, value, until);
        }
    }

    /// Sets `key` to `value` until `until`, see [`Table::insert_until`]. If the table cannot take the row,
    /// [`Batch::commit`] fails.
    pub fn insert_until(&mut self, table: &Table, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>, until: Duration) {
        let (key, value) = (key.as_ref(), value.as_ref());
        if self.checked(table, || table.check_row(key, value).and_then(|()| times::allow(table.core()))) {
            self.ops.put_until(table.id().0, key, value, Some(row_clock::until(until)));
        }
    }

    /// Sets `key` to a value in parts until `until`, see [`Table::insert_parts_until`]. If the table cannot take the
    /// row, [`Batch::commit`] fails.
    pub fn insert_parts_until(
        &mut self,
        table: &Table,
        key: impl AsRef<[u8]>,
        parts: &[impl AsRef<[u8]>],
        until: Duration,
    ) {
        let key = key.as_ref();
        if self.checked(table, || table.check_parts(key, parts).and_then(|()| times::allow(table.core()))) {
            self.ops.put_parts_until(table.id().0, key, parts, Some(row_clock::until(until)));
        }
    }

    /// Sets `key` to a value in parts, see [`Table::insert_parts`]. If the table cannot take the row,
    /// [`Batch::commit`] fails.
    pub fn insert_parts(&mut self, table: &Table, key: impl AsRef<[u8]>, parts: &[impl AsRef<[u8]>]) {
        let key = key.as_ref();
        if let Some(until) = self.given_time(table, key, parts, || table.check_parts(key, parts)) {
            self.ops.put_parts_until(table.id().0, key, parts, until);
        }
    }

    /// Changes the value of `key`, see [`Table::merge`]. If the table cannot take the merge, [`Batch::commit`] fails.
    pub fn merge(&mut self, table: &Table, key: impl AsRef<[u8]>, op: MergeOp<'_>) {
        let key = key.as_ref();
        if self.checked(table, || table.check_merge(key, &op)) {
            self.ops.merge(table.id().0, key, &op.encode());
        }
    }

    /// Removes `key`, see [`Table::remove`].
    pub fn remove(&mut self, table: &Table, key: impl AsRef<[u8]>) {
        let key = key.as_ref();
        if self.checked(table, || limits::check_key(key)) {
            self.ops.erase(table.id().0, key);
        }
    }

    /// Removes all keys in `range`, see [`Table::remove_range`]. Rows that the same batch inserts later stay.
    pub fn remove_range(&mut self, table: &Table, range: impl IntoKeyRange) {
        let Some(KeyRange { start, end }) = bounds::keys(&range) else { return };
        let end = end.unwrap_or_default();
        if self.checked(table, || limits::check_key(&start).and_then(|()| limits::check_key(&end))) {
            self.ops.range_erase(table.id().0, &start, &end);
        }
    }

    /// Adds a condition: the batch commits only if `key` has the expected value at that moment, before the writes
    /// of the batch take effect. A batch with conditions must be committed with [`Batch::commit_if`].
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

    /// Sets what [`Batch::commit`] waits for. The default is the [`durability`](crate::Builder::durability) of the
    /// database.
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Rows of the batch get only the times that the calls name, and not those that their
    /// [tables](crate::TableOptions::expiry) give. This is for programs that copy rows as they are. It has to be called
    /// before the first write is added; otherwise [`Batch::commit`] fails with [`Error::BadOptions`].
    pub fn own_times(mut self) -> Self {
        if !self.is_empty() && self.bad.is_none() {
            let why = "a batch has writes already, which may have got times; call own_times before the first write";
            self.bad = Some(Error::BadOptions(why.to_owned()));
        }
        self.own_times = true;
        self
    }

    /// The number of writes that were added, including those that an error has kept out of the batch.
    pub fn len(&self) -> usize {
        self.ops.count() as usize + self.left_out
    }

    /// Whether nothing was added, no write and no condition. A batch whose commit would fail is not empty, so a
    /// caller that does not commit an empty batch misses no error.
    pub fn is_empty(&self) -> bool {
        self.ops.is_empty() && self.conditions.is_empty() && self.bad.is_none()
    }

    /// Takes the error out of the batch, so that the batch can be committed after all. It has everything that was
    /// added before the error, but not the write or condition that failed, nor anything that was added later.
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

    /// Commits all writes, and returns the version of the commit. An empty batch with [`Durability::Synced`] makes
    /// all earlier commits durable, like [`Database::sync`](crate::Database::sync), and returns the newest version.
    ///
    /// The cost of a commit grows with its bytes, and with the logarithm of the number of rows that its tables have
    /// in memory, but not with the number of tables in the database. Each commit appends one record to the log, and
    /// concurrent commits share a sync. A commit waits while the write buffer is full, or while level 0 of one of
    /// its tables is full. A batch that takes more than half of the write buffer is written to files instead, and
    /// is durable when the call returns. The rows that its tables have in memory are then flushed, too, and other
    /// commits wait for that.
    ///
    /// Unique [indexes](Table::create_index) are checked only after all writes of the batch. So two rows may swap
    /// their values, and a row may take the index key of another row that a later write of the batch removes.
    ///
    /// # Errors
    ///
    /// After an error, none of the writes has taken effect, except perhaps after [`Error::OutcomeUnknown`]: then a
    /// sync has failed, and only opening the database again shows whether they have.
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

    /// Commits a checked batch. If a table has indexes, a transaction first reads the rows that the writes replace.
    fn commit_valid(mut self) -> Result<Version> {
        if !self.reads_rows()
            && let Ok(version) =
                outcome(commit::commit(self.handle.core(), self.ops.resolve(), &self.tables, self.durability))?
        {
            return Ok(version);
        }
        self.commit_indexed(self.durability)
    }

    /// Like [`Batch::commit`], but as a future. Polling it never blocks on room in the write buffer or on the sync,
    /// see [`Batch::submit_async`]. If the future is dropped, either all writes are committed or none.
    ///
    /// # Errors
    ///
    /// Fails as [`Batch::commit`] does.
    pub async fn commit_async(self) -> Result<Version> {
        let durability = self.durability;
        let commit = self.submit_async().await?;
        if durability == Durability::Synced { commit.await } else { Ok(commit.version()) }
    }

    /// Options of a transaction that commits the batch.
    fn options(&self, durability: Durability) -> TransactionOptions {
        let options = TransactionOptions::with_durability(Some(durability));
        TransactionOptions { own_times: self.own_times, ..options }
    }

    /// Whether rows have to be read to commit the batch.
    fn reads_rows(&self) -> bool {
        self.options(self.durability).reads_rows(self.handle.core(), &self.ops, &self.tables)
    }

    #[cold]
    fn commit_indexed(&self, durability: Durability) -> Result<Version> {
        let options = self.options(durability);
        let ((), version) = transact(&self.handle, &options, |tx| tx.write_all(&self.ops, &self.tables))?;
        Ok(version)
    }

    /// Like [`Batch::commit`], but commits only if all conditions of the batch are met. Otherwise, nothing is
    /// written, and the inner error names the first condition that is not met. The call reads the keys of the
    /// conditions, perhaps from the disk.
    ///
    /// # Errors
    ///
    /// Fails as [`Batch::commit`] and [`Table::get`](crate::Reader::get) do.
    pub fn commit_if(self) -> Result<Result<Version, Unmet>> {
        if let Some(error) = self.bad {
            return Err(error);
        }
        let options = self.options(self.durability);
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

    /// Commits all writes, and returns when reads see them. The returned [`Commit`] says whether they are durable,
    /// and can wait until they are. The durability of the batch is ignored: no sync begins until somebody asks for
    /// one. For an empty batch, the handle is that of the newest commit in the database.
    ///
    /// This costs as much as [`Batch::commit`] without the sync. It, too, waits while the write buffer or level 0
    /// of a table is full.
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
    /// Fails as [`Batch::commit`] does. After an error, none of the writes has taken effect. A failed sync is
    /// reported by the returned handle, not by this call.
    pub fn submit(mut self) -> Result<Commit> {
        self.check()?;
        if !self.reads_rows()
            && let Ok(version) = outcome(commit::submit(self.handle.core(), &mut self.ops, &self.tables))?
        {
            return Ok(Commit::new(self.handle, version));
        }
        let version = self.commit_indexed(Durability::Buffered)?;
        Ok(Commit::new(self.handle, version))
    }

    /// Like [`Batch::submit`], but as a future that never blocks its thread: other tasks run while commits are
    /// slowed down, and while the write buffer or level 0 of a table is full. It starts a thread if the batch takes
    /// more than half of the write buffer, removes a range from a table with indexes, or merges into a table that
    /// [gives times](crate::TableOptions::expiry) to its rows.
    ///
    /// The future can be dropped at any time. Then nothing is committed, except that a started thread may still
    /// commit the whole batch.
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
        let options = TransactionOptions { own_times: self.own_times, ..buffered() };
        let version = submit_ops(&self.handle, options, self.ops, self.tables).await?;
        Ok(Commit::new(self.handle, version))
    }

    /// Like [`Batch::submit`], but never waits. If the commit would have to wait, this returns the unchanged batch:
    /// while commits are slowed down, while the write buffer or level 0 of a table is full, while another thread uses
    /// the log, and while a transaction has reserved keys of the batch. It also returns a batch that takes more than
    /// half of the write buffer, and one that writes to a table with indexes, or merges into a table that [gives
    /// times](crate::TableOptions::expiry) to its rows, because that commit reads rows. In all these cases,
    /// [`Batch::submit`] and [`Batch::submit_async`] do the work.
    ///
    /// The first row with a time in a database begins a log, and that waits: it happens when the row is added to the
    /// batch, and not in this call.
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
        if self.ops.is_empty() || self.reads_rows() || commit::is_large(core, (&self.ops).into()) {
            return if self.ops.is_empty() { self.submit().map(Ok) } else { Ok(Err(self)) };
        }
        let reserved = &core.writes.reserved;
        if reserved.count() > 0 && reserved.is_reserved_for((&self.ops).into(), core.env.machine.clock.now()) {
            return Ok(Err(self));
        }
        match commit::try_submit(core, &mut self.ops, &self.tables) {
            Ok(Some(version)) => Ok(Ok(Commit::new(self.handle, version))),
            // A conflict means that a table of the batch has got an index since the check of `reads_rows` above.
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
