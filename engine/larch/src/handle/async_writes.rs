//! The async writes of tables and batches: futures that wait for room in the write buffer without blocking a
//! thread. `write/` commits them.

use super::attempt::Attempt;
use super::attempts::{transact, transact_async};
use super::commit::Commit;
use super::own_thread::in_thread;
use super::readable::Readable;
use super::table::Table;
use super::transaction::{TransactionOptions, let_others_go_first};
use crate::base::bounds::{self, IntoKeyRange};
use crate::base::error::{Error, Result};
use crate::base::operand::MergeOp;
use crate::base::ops::BatchOps;
use crate::base::options::Durability;
use crate::base::row_clock;
use crate::base::table::TableInfo;
use crate::conflicts::reserved::Reservation;
use crate::core::handle::DatabaseHandle;
use crate::view::value::Value;
use crate::write::not_committed::outcome;
use crate::write::{commit, limits, times};
use os::sync::Arc;
use sst::{KeyRange, Version};
use std::time::Duration;

/// Commits `ops`, which write to `tables`, and returns when reads see them. Other tasks run while the write buffer
/// has no room. If rows have to be read, a transaction with these `options` commits.
///
/// # Errors
///
/// Fails as [`Batch::submit`](crate::Batch::submit) does.
pub(super) async fn submit_ops(
    handle: &Arc<DatabaseHandle>,
    options: TransactionOptions,
    mut ops: BatchOps,
    tables: Vec<Arc<TableInfo>>,
) -> Result<Version> {
    let core = handle.core();
    if !options.reads_rows(core, &ops, &tables) {
        if commit::is_large(core, (&ops).into()) {
            return submit_in_thread(handle, options, ops, tables).await;
        }
        let_others_go_first(core, &ops, &Reservation::default()).await;
        if let Ok(version) = outcome(commit::submit_async(core, &mut ops, &tables).await)? {
            return Ok(version);
        }
    }
    if ops.range_erases() > 0 || options.merges_read_rows(core, &ops, &tables) {
        return submit_in_thread(handle, options, ops, tables).await;
    }
    let write = async |mut tx: Attempt| tx.write_all_async(&ops, &tables).await;
    let ((), version) = transact_async(handle, &options, write).await?;
    Ok(version)
}

/// Commits `ops`, which write to `tables`, on a new thread, because they read or write many pages.
async fn submit_in_thread(
    handle: &Arc<DatabaseHandle>,
    options: TransactionOptions,
    mut ops: BatchOps,
    tables: Vec<Arc<TableInfo>>,
) -> Result<Version> {
    let (threads, handle) = (handle.core().env.machine.threads.clone(), handle.clone());
    in_thread(&*threads, move || {
        let core = handle.core();
        if !options.reads_rows(core, &ops, &tables)
            && let Ok(version) = outcome(commit::submit(core, &mut ops, &tables))?
        {
            return Ok(version);
        }
        transact(&handle, &options, |tx| tx.write_all(&ops, &tables)).map(|((), version)| version)
    })
    .await?
}

/// Options of a transaction whose commit does not wait for a sync.
pub(super) fn buffered() -> TransactionOptions {
    TransactionOptions::with_durability(Some(Durability::Buffered))
}

impl Table {
    /// Commits `ops`, and waits until they are durable if the database has [`Durability::Synced`].
    async fn write_async(&self, ops: Result<BatchOps>) -> Result<()> {
        let handle = &self.inner().handle;
        let version = submit_ops(handle, buffered(), ops?, vec![self.identity().clone()]).await?;
        if handle.core().env.options.durability == Durability::Synced {
            Commit::new(handle.clone(), version).await?;
        }
        Ok(())
    }

    /// Like [`Table::insert`], but as a future that never blocks its thread: other tasks run while it waits for the
    /// sync, while commits are slowed down, and while the write buffer or level 0 of the table is full. Tasks that
    /// commit at the same time share one sync.
    ///
    /// The call copies the row, and polling the future writes it. The future can be dropped at any time; the row is
    /// then either written or not. If the table [gives times](crate::TableOptions::expiry) to its rows, the first call
    /// in a database blocks while it begins a log.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> { smol::block_on(async {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// # let fruit = db.table("fruit")?;
    /// fruit.insert_async("apple", "red").await?;
    /// assert_eq!(fruit.get_async("apple").await?.expect("it is there"), "red");
    /// # Ok(()) }) }
    /// ```
    ///
    /// # Errors
    ///
    /// Fails as [`Table::insert`] does.
    pub fn insert_async(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> impl Future<Output = Result<()>> {
        let (key, value) = (key.as_ref(), value.as_ref());
        let checked = self.check_row(key, value);
        let until = checked.and_then(|()| times::of_row(self.core(), self.identity(), key, &[value]));
        self.write_async(until.map(|until| ops(|ops| ops.put_until(self.id().0, key, value, until))))
    }

    /// Like [`Table::insert_until`], but as a future, see [`Table::insert_async`]. The first call in a database blocks
    /// while it begins a log.
    ///
    /// # Errors
    ///
    /// Fails as [`Table::insert_until`] does.
    pub fn insert_until_async(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        until: Duration,
    ) -> impl Future<Output = Result<()>> {
        let (key, value, until) = (key.as_ref(), value.as_ref(), Some(row_clock::until(until)));
        let checked = self.check_row(key, value).and_then(|()| times::allow(self.core()));
        self.write_async(checked.map(|()| ops(|ops| ops.put_until(self.id().0, key, value, until))))
    }

    /// Like [`Table::insert_parts`], but as a future, see [`Table::insert_async`]. If the table
    /// [gives times](crate::TableOptions::expiry) to its rows, the first call in a database blocks while it begins a
    /// log.
    ///
    /// # Errors
    ///
    /// Fails as [`Table::insert_parts`] does.
    pub fn insert_parts_async(
        &self,
        key: impl AsRef<[u8]>,
        parts: &[impl AsRef<[u8]>],
    ) -> impl Future<Output = Result<()>> {
        let key = key.as_ref();
        let checked = self.check_parts(key, parts);
        let until = checked.and_then(|()| times::of_row(self.core(), self.identity(), key, parts));
        self.write_async(until.map(|until| ops(|ops| ops.put_parts_until(self.id().0, key, parts, until))))
    }

    /// Like [`Table::merge`], but as a future, see [`Table::insert_async`]. If the table
    /// [gives times](crate::TableOptions::expiry) to its rows, the future starts a thread, which reads the row.
    ///
    /// # Errors
    ///
    /// Fails as [`Table::merge`] does.
    pub fn merge_async(&self, key: impl AsRef<[u8]>, op: MergeOp<'_>) -> impl Future<Output = Result<()>> {
        let key = key.as_ref();
        self.write_async(self.check_merge(key, &op).map(|()| ops(|ops| ops.merge(self.id().0, key, &op.encode()))))
    }

    /// Like [`Table::remove`], but as a future, see [`Table::insert_async`].
    ///
    /// # Errors
    ///
    /// Fails as [`Table::remove`] does.
    pub fn remove_async(&self, key: impl AsRef<[u8]>) -> impl Future<Output = Result<()>> {
        let key = key.as_ref();
        self.write_async(limits::check_key(key).map(|()| ops(|ops| ops.erase(self.id().0, key))))
    }

    /// Like [`Table::remove_range`], but as a future, see [`Table::insert_async`].
    ///
    /// # Errors
    ///
    /// Fails as [`Table::remove_range`] does.
    pub fn remove_range_async(&self, range: impl IntoKeyRange) -> impl Future<Output = Result<()>> {
        let keys = bounds::keys(&range);
        async move {
            let Some(KeyRange { start, end }) = keys else {
                return self.core().views.newest().files_of(self.identity()).map(drop);
            };
            let end = end.unwrap_or_default();
            let checked = limits::check_key(&start).and_then(|()| limits::check_key(&end));
            self.write_async(checked.map(|()| ops(|ops| ops.range_erase(self.id().0, &start, &end)))).await
        }
    }

    /// Like [`Table::replace`], but as a future. Polling it never blocks on the disk or on room in the write
    /// buffer.
    ///
    /// # Errors
    ///
    /// Fails as [`Table::replace`] does.
    pub async fn replace_async(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<Option<Value>> {
        self.change_async(key.as_ref(), Some(value.as_ref())).await
    }

    /// Like [`Table::take`], but as a future. Polling it never blocks on the disk or on room in the write buffer.
    ///
    /// # Errors
    ///
    /// Fails as [`Table::take`] does.
    pub async fn take_async(&self, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        self.change_async(key.as_ref(), None).await
    }

    async fn change_async(&self, key: &[u8], new: Option<&[u8]>) -> Result<Option<Value>> {
        let change = async |mut tx: Attempt| {
            let now = tx.get_async(self, key).await?;
            match new {
                Some(new) => tx.insert(self, key, new)?,
                None if now.is_some() => tx.remove(self, key)?,
                None => {}
            }
            Ok::<_, Error>(now)
        };
        let options = TransactionOptions::with_durability(None);
        Ok(transact_async(&self.inner().handle, &options, change).await?.0)
    }
}

/// The operations that `fill` adds.
fn ops(fill: impl FnOnce(&mut BatchOps)) -> BatchOps {
    let mut ops = BatchOps::new();
    fill(&mut ops);
    ops
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
