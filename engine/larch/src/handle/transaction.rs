//! The public face of a transaction. This module turns calls into reads, buffered writes and one commit;
//! `conflicts/` decides what conflicts.

use super::commit::Commit;
use super::expected::Expected;
use super::give_way::give_way_until;
use super::own_thread::in_thread;
use super::readable::Readable;
use super::selection::Selection;
use super::table::Table;
use crate::base::bounds::IntoKeyRange;
use crate::base::conflict::Conflict;
use crate::base::error::{Error, Result};
use crate::base::operand::{self, MergeOp};
use crate::base::ops::{BatchOps, Op};
use crate::base::options::Durability;
use crate::base::table::{TableId, TableInfo};
use crate::base::{bounds, parts, row_clock};
use crate::conflicts::recent::{Running, Tables};
use crate::conflicts::reserved::Reservation;
use crate::core::Core;
use crate::core::expiring::RowTimes;
use crate::core::handle::{DatabaseHandle, TableHandle};
use crate::core::registry::{LiveIndex, TableIndexes};
use crate::core::snapshots::PinnedVersion;
use crate::indexes::maintain::{Filled, IndexedWrites};
use crate::read::Reader;
use crate::read::work::Work;
use crate::view::own_writes::WriteMark;
use crate::view::part_list::PartList;
use crate::view::value::{Parts, Value};
use crate::write::indexed::Indexed;
use crate::write::not_committed::outcome;
use crate::write::room::memory_bytes;
use crate::write::validation::Validation;
use crate::write::{commit, limits, spill, times};
use os::sync::Arc;
use sst::{KeyRange, Until, Version};
use std::time::Duration;

/// How a transaction is isolated from commits that happen while it runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Isolation {
    /// The transaction has the same result as if it ran alone at the moment of its commit. It conflicts if another
    /// commit changes anything that it has read, be it a single key or a key in a range, even one that had no row.
    /// This is the default.
    #[default]
    Serializable,
    /// The transaction reads everything as it was when it began. It conflicts only if another commit writes a key
    /// that it also writes, or that it has read with [`Transaction::get_for_update`]. Write skew is possible: if
    /// two transactions each read a key that the other one writes, both may commit.
    Snapshot,
}

/// The options of a transaction, see [`Database::begin_with`](crate::Database::begin_with).
#[derive(Clone, Debug)]
#[must_use = "options begin nothing"]
pub struct TransactionOptions {
    /// How the transaction is isolated from commits that happen while it runs.
    pub isolation: Isolation,
    /// What the commit waits for before it returns. `None` means the [durability of the
    /// database](crate::Builder::durability). Writes that take more than half of the write buffer go to files, so
    /// they are durable in any case.
    pub durability: Option<Durability>,
    /// The most attempts that [`Database::transact_with`](crate::Database::transact_with) makes, at least one. The
    /// default is 100.
    pub attempts: u32,
    /// Whether rows get only the times that the calls name, and not those that their
    /// [tables](crate::TableOptions::expiry) give. This is for programs that copy rows as they are. The default is
    /// false.
    pub own_times: bool,
}

impl Default for TransactionOptions {
    fn default() -> Self {
        Self { isolation: Isolation::default(), durability: None, attempts: 100, own_times: false }
    }
}

impl TransactionOptions {
    /// The default options, but with this durability.
    pub(crate) fn with_durability(durability: Option<Durability>) -> Self {
        Self { durability, ..Self::default() }
    }

    /// Whether rows have to be read to commit `ops` to `tables`, so that a transaction does it: a table has an index,
    /// or a merge goes to a table that gives times to its rows.
    pub(super) fn reads_rows(&self, core: &Core, ops: &BatchOps, tables: &[Arc<TableInfo>]) -> bool {
        tables.iter().any(|table| core.indexes.has(table.id)) || self.merges_read_rows(core, ops, tables)
    }

    /// Whether a merge of `ops` goes to a table that gives times to its rows, so that its row has to be read.
    pub(super) fn merges_read_rows(&self, core: &Core, ops: &BatchOps, tables: &[Arc<TableInfo>]) -> bool {
        if self.own_times || !ops.has_merges() {
            return false;
        }
        let into = |table: TableId| ops.iter().any(|(id, op)| id == table.0 && matches!(op, Op::Merge { .. }));
        tables.iter().any(|table| core.expiring.has(table.id) && into(table.id))
    }
}

/// Reads and writes that take effect as one step, as if nothing else happened at the same time.
/// [`Database::begin`](crate::Database::begin) begins a transaction.
///
/// A transaction reads the database as it was when the transaction began, with its own writes on top. It has all
/// reads of [`Readable`]. [`Transaction::commit`] either commits all writes or finds a [`Conflict`] with another
/// commit. Dropping a transaction discards its writes. A transaction takes no locks, but other commits to a key
/// that it has read with [`Transaction::get_for_update`] wait for it, at most for a tenth of a second.
///
/// A transaction keeps in memory its writes, and the keys and ranges that it has read; each of the two may take a
/// fixed share of the write buffer. Writes beyond their share spill to temporary files, and the commit turns these
/// into files of the database. When the keys outgrow their share, the transaction joins single keys to ranges. It
/// may then also conflict with a commit to a key that it has not read, but that lies in such a range. While a
/// transaction runs, compactions keep the rows that it sees.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = tempfile::tempdir()?;
/// # let db = larch::Database::open(&directory)?;
/// # let accounts = db.table("accounts")?;
/// use larch::Readable;
///
/// accounts.insert("ada", "10")?;
/// let mut tx = db.begin()?;
/// assert_eq!(tx.get(&accounts, "ada")?.as_deref(), Some(&b"10"[..]));
/// tx.insert(&accounts, "ada", "7")?;
/// tx.insert(&accounts, "alan", "3")?;
/// assert_eq!(tx.iter(&accounts).count(), 2);
/// match tx.commit()? {
///     Ok(version) => println!("committed as version {}", version.0),
///     Err(conflict) => println!("{conflict}"),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "a transaction does nothing until it is committed"]
pub struct Transaction {
    handle: Arc<DatabaseHandle>,
    pin: Arc<PinnedVersion>,
    isolation: Isolation,
    durability: Durability,
    work: Work,
    /// The generation of indexes for which the transaction writes entries.
    indexed: Indexed,
    /// The savepoints that can still be rolled back to.
    savepoints: Savepoints,
    /// The keys that the transaction has reserved. Other commits to them wait for its end, but at most a tenth of a
    /// second.
    reservation: Reservation,
    /// Whether rows get only the times that the calls name.
    own_times: bool,
    /// Why the transaction can no longer be committed, if it cannot.
    failed: Option<Box<Error>>,
}

/// A point in a transaction that it can be rolled back to, see [`Transaction::savepoint`].
#[derive(Clone, Copy, Debug)]
pub struct Savepoint {
    /// No other savepoint of the process has it, so a transaction recognizes savepoints of another one.
    number: u64,
    mark: WriteMark,
}

/// Lets other tasks run while another transaction holds the writer, or has reserved keys that `ops` write.
/// Reservations in `own` do not count.
pub(super) async fn let_others_go_first(core: &Core, ops: &BatchOps, own: &Reservation) {
    let reserved = &core.writes.reserved;
    if reserved.count() > 0 {
        let (hashes, clock) = (reserved.hashes(written_keys(ops)), &core.env.machine.clock);
        give_way_until(core.patient_clock(), || !reserved.is_reserved(&hashes, own, clock.now())).await;
    }
}

/// The keys that `ops` put or erase, without range erases.
fn written_keys(ops: &BatchOps) -> impl Iterator<Item = (TableId, &[u8])> {
    ops.iter().filter_map(|(table, op)| Some((TableId(table), op.key()?)))
}

/// The savepoints of a transaction, in the order in which they were made.
#[derive(Debug, Default)]
struct Savepoints {
    all: Vec<Savepoint>,
    /// How many writes the transaction had at each savepoint.
    counts: Vec<u64>,
}

impl Savepoints {
    fn push(&mut self, savepoint: Savepoint) {
        self.counts.push(savepoint.mark.count());
        self.all.push(savepoint);
    }

    /// Removes all savepoints except the first `count`.
    fn truncate(&mut self, count: usize) {
        self.counts.truncate(count);
        self.all.truncate(count);
    }

    /// The index of `savepoint` in `all`, if it is there.
    fn place(&self, savepoint: &Savepoint) -> Option<usize> {
        self.all.binary_search_by_key(&savepoint.number, |savepoint| savepoint.number).ok()
    }

    /// The mark of the newest savepoint.
    fn newest(&self) -> Option<WriteMark> {
        self.all.last().map(|savepoint| savepoint.mark)
    }
}

/// The share of the write buffer for the keys and ranges that a transaction has read: one part in this many.
const READS_SHARE: u64 = 64;

/// The share of the write buffer for the writes of a transaction: one part in this many.
const WRITES_SHARE: u64 = 4;

/// A transaction keeps at most this many range erases in memory, because each fragment stores one version for each
/// range erase that covers it.
const MOST_RANGE_ERASES: u32 = 512;

/// The rows that a batch replaces are read together, at most this many at a time.
const READ_TOGETHER: usize = 128;

/// The least memory for the keys and ranges that a transaction has read, even if the write buffer is small.
const LEAST_READ_BYTES: u64 = 4 << 10;

impl Transaction {
    /// Begins a transaction. `reservation` may already hold keys from earlier attempts. `tables` are those that it
    /// is expected to use; it may use others, too.
    pub(super) fn begin(
        handle: &Arc<DatabaseHandle>,
        options: &TransactionOptions,
        reservation: Reservation,
        tables: Tables,
    ) -> Result<Self> {
        let core = handle.core();
        core.env.check_origin()?;
        let running = Running::begin(&core.writes.recent, tables);
        // Pin the version before reading the generation of the indexes: if an index is made in between, the commit
        // notices that the transaction is too old for it.
        let pin = Arc::new(core.views.pin());
        let indexed = Indexed::As(core.indexes.generation());
        let most_bytes = (core.env.options.write_buffer_bytes / READS_SHARE).max(LEAST_READ_BYTES);
        let notes_reads = options.isolation == Isolation::Serializable;
        let work = Work::new(running, pin.version(), notes_reads, most_bytes as usize);
        let durability = options.durability.unwrap_or(core.env.options.durability);
        let (handle, isolation, savepoints) = (handle.clone(), options.isolation, Savepoints::default());
        let own_times = options.own_times;
        Ok(Self { handle, pin, isolation, durability, work, indexed, savepoints, reservation, own_times, failed: None })
    }

    /// The version that the transaction reads.
    pub fn version(&self) -> Version {
        self.pin.version()
    }

    /// The number of writes in the transaction.
    pub fn len(&self) -> usize {
        self.work.writes.count() as usize
    }

    /// Whether the transaction has no writes, and no earlier error that would make [`Transaction::commit`] fail. So
    /// a caller that does not commit an empty transaction misses no error.
    pub fn is_empty(&self) -> bool {
        self.work.writes.is_empty() && self.failed.is_none()
    }

    /// Sets `key` to `value` in this transaction, see [`Table::insert`]. Its later reads see the new value.
    ///
    /// # Errors
    ///
    /// [`Error::ForeignTable`] if the table belongs to another database; [`Error::KeyTooLong`],
    /// [`Error::ValueTooLong`] or [`Error::Grouped`] if the table cannot take the row. If the table has indexes,
    /// the call also fails as [`Table::insert`] does on such a table. After an error, the transaction is unchanged.
    pub fn insert(&mut self, table: &Table, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        let (key, value) = (key.as_ref(), value.as_ref());
        table.inner().check_handle(&self.handle)?;
        table.check_row(key, value)?;
        let until = self.given_time(table, key, &[value])?;
        self.write(table.identity(), Op::Put { key, value, until })
    }

    /// Sets `key` to `value` until `until` in this transaction, see [`Table::insert_until`].
    ///
    /// # Errors
    ///
    /// Fails as [`Transaction::insert`] and [`Table::insert_until`] do.
    pub fn insert_until(
        &mut self,
        table: &Table,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        until: Duration,
    ) -> Result<()> {
        let (key, value) = (key.as_ref(), value.as_ref());
        table.inner().check_handle(&self.handle)?;
        table.check_row(key, value)?;
        times::allow(self.handle.core())?;
        self.write(table.identity(), Op::Put { key, value, until: Some(row_clock::until(until)) })
    }

    /// Sets `key` to a value in parts in this transaction, see [`Table::insert_parts`].
    ///
    /// # Errors
    ///
    /// Fails as [`Transaction::insert`] does, but with [`Error::PartCount`] instead of [`Error::Grouped`].
    pub fn insert_parts(&mut self, table: &Table, key: impl AsRef<[u8]>, parts: &[impl AsRef<[u8]>]) -> Result<()> {
        let key = key.as_ref();
        table.inner().check_handle(&self.handle)?;
        table.check_parts(key, parts)?;
        let until = self.given_time(table, key, parts)?;
        self.write_parts(table, key, parts, until)
    }

    /// Sets `key` to a value in parts until `until` in this transaction, see [`Table::insert_parts_until`].
    ///
    /// # Errors
    ///
    /// Fails as [`Transaction::insert_parts`] and [`Table::insert_until`] do.
    pub fn insert_parts_until(
        &mut self,
        table: &Table,
        key: impl AsRef<[u8]>,
        parts: &[impl AsRef<[u8]>],
        until: Duration,
    ) -> Result<()> {
        let key = key.as_ref();
        table.inner().check_handle(&self.handle)?;
        table.check_parts(key, parts)?;
        times::allow(self.handle.core())?;
        self.write_parts(table, key, parts, Some(row_clock::until(until)))
    }

    /// The time that a row gets whose write names none.
    fn given_time(&self, table: &Table, key: &[u8], parts: &[impl AsRef<[u8]>]) -> Result<Option<Until>> {
        if self.own_times { Ok(None) } else { times::of_row(self.handle.core(), table.identity(), key, parts) }
    }

    fn write_parts(
        &mut self,
        table: &Table,
        key: &[u8],
        parts: &[impl AsRef<[u8]>],
        until: Option<Until>,
    ) -> Result<()> {
        self.make_room()?;
        match self.handle.core().indexes.of(table.id()) {
            None => self.work.write_to(table.identity()).put_parts_until(table.id().0, key, parts, until),
            Some(indexes) => {
                let mut value = Vec::new();
                parts::encode(parts, &mut value);
                self.write_indexed((table.identity(), &indexes), Op::Put { key, value: &value, until }, None)?;
            }
        }
        Ok(())
    }

    /// Changes the value of `key` in this transaction, see [`Table::merge`]. This reads nothing, so it conflicts with
    /// no other commit, unless the table has indexes or gives times to its rows. Later reads of the transaction see the
    /// new value.
    ///
    /// # Errors
    ///
    /// Fails as [`Transaction::insert`] and [`Table::merge`] do.
    pub fn merge(&mut self, table: &Table, key: impl AsRef<[u8]>, op: MergeOp<'_>) -> Result<()> {
        let key = key.as_ref();
        table.inner().check_handle(&self.handle)?;
        table.check_merge(key, &op)?;
        self.write(table.identity(), Op::Merge { key, operand: &op.encode() })
    }

    /// Removes `key` in this transaction, see [`Table::remove`].
    ///
    /// # Errors
    ///
    /// [`Error::ForeignTable`] if the table belongs to another database; [`Error::KeyTooLong`] if the key is too
    /// long. If the table has indexes, the call also fails as [`Table::remove`] does on such a table. After an
    /// error, the transaction is unchanged.
    pub fn remove(&mut self, table: &Table, key: impl AsRef<[u8]>) -> Result<()> {
        let key = key.as_ref();
        table.inner().check_handle(&self.handle)?;
        limits::check_key(key)?;
        self.write(table.identity(), Op::Erase { key })
    }

    /// Removes all keys in `range` in this transaction, see [`Table::remove_range`]. Rows that the transaction
    /// inserts after this call stay.
    ///
    /// # Errors
    ///
    /// Fails as [`Transaction::remove`] does.
    pub fn remove_range(&mut self, table: &Table, range: impl IntoKeyRange) -> Result<()> {
        table.inner().check_handle(&self.handle)?;
        let Some(KeyRange { start, end }) = bounds::keys(&range) else { return Ok(()) };
        let end = end.unwrap_or_default();
        limits::check_key(&start)?;
        limits::check_key(&end)?;
        self.write(table.identity(), Op::RangeErase { start: &start, end: &end })
    }

    /// Whether `key` meets the expectation `expected`.
    pub(super) fn has(&self, table: &Table, key: &[u8], expected: &Expected) -> Result<bool> {
        Ok(match expected {
            Expected::Absent => !self.contains_key(table, key)?,
            Expected::Value(value) => self.get(table, key)?.as_deref() == Some(value),
            Expected::Version(version) => self.reader(table)?.version_of_key(key)? == Some(*version),
        })
    }

    /// The reads and writes of the transaction.
    #[cfg(test)]
    pub(crate) fn work(&self) -> &Work {
        &self.work
    }

    /// Spills the writes to files if they take too much memory.
    fn make_room(&mut self) -> Result<()> {
        let core = self.handle.core();
        let ops = self.work.writes.ops();
        let most_bytes = core.env.options.write_buffer_bytes / WRITES_SHARE;
        if memory_bytes(ops.into()) < most_bytes && ops.range_erases() < MOST_RANGE_ERASES {
            return Ok(());
        }
        self.spill()
    }

    #[cold]
    fn spill(&mut self) -> Result<()> {
        self.work.depend_on_writes();
        spill::spill(self.handle.core(), &mut self.work.writes, &self.savepoints.counts)
    }

    /// Adds a write to `table` and the resulting writes to its indexes. The caller has checked the write.
    fn write(&mut self, table: &Arc<TableInfo>, op: Op<'_>) -> Result<()> {
        self.make_room()?;
        match self.handle.core().indexes.of(table.id) {
            None => self.write_unindexed(table, op),
            Some(indexes) => self.write_indexed((table, &indexes), op, None),
        }
    }

    /// Adds a write to a table without indexes. There is room for it.
    fn write_unindexed(&mut self, table: &Arc<TableInfo>, op: Op<'_>) -> Result<()> {
        if let Op::Merge { key, operand } = op
            && let Some(times) = self.times_of(table)
        {
            let (value, until) = self.merged(table, (key, operand), Some(&times))?;
            self.work.write_to(table).put_until(table.id.0, key, &value, until);
            return Ok(());
        }
        self.work.write_to(table).push(table.id.0, op);
        Ok(())
    }

    /// How `table` gives times to the rows that this transaction writes, if it does.
    fn times_of(&self, table: &TableInfo) -> Option<RowTimes> {
        if self.own_times { None } else { self.handle.core().expiring.of(table.id) }
    }

    /// The value of `key` after the merge, and the time until which it is there. The transaction depends on the value
    /// before it.
    fn merged(
        &mut self,
        table: &Arc<TableInfo>,
        (key, operand): (&[u8], &[u8]),
        times: Option<&RowTimes>,
    ) -> Result<(Vec<u8>, Option<Until>)> {
        let core = self.handle.core();
        let handle = TableHandle::new(self.handle.clone(), table.clone());
        let reader = Reader::<Value>::new(&handle, Some(&self.pin), PartList::whole()).within(&self.work);
        let (old, now) = reader.get_timed(key)?;
        let (old, until) = old.map_or((None, None), |(value, until)| (Some(value), until));
        let value = operand::value_after(key, old.as_deref(), operand, &core.env.options.merge_functions)?;
        limits::check_row(&core.env.options, table, key, &value)?;
        let Some(times) = times else {
            // The row stays there as long as it was.
            return Ok((value, until));
        };
        let until = times.after_merge(now, table, (key, &value, until))?;
        if until.is_some() {
            times::allow(core)?;
        }
        Ok((value, until))
    }

    #[cold]
    fn write_indexed(
        &mut self,
        table: (&Arc<TableInfo>, &TableIndexes),
        op: Op<'_>,
        before: Option<Option<Parts>>,
    ) -> Result<()> {
        match op {
            Op::Put { key, value, until } => self.indexed_writes().write(table, (key, Some(value), until), before),
            Op::Merge { key, operand } => {
                let times = self.times_of(table.0);
                let (value, until) = self.merged(table.0, (key, operand), times.as_ref())?;
                self.indexed_writes().write(table, (key, Some(&value), until), None)
            }
            Op::Erase { key } => self.indexed_writes().write(table, (key, None, None), before),
            Op::RangeErase { start, end } => {
                let savepoint = self.savepoint();
                // If an extractor panics below, or the rollback fails, only a part of the range is erased, and the
                // transaction must not commit.
                self.failed = Some(Box::new(Error::HalfErased { table: table.0.name.as_str().into() }));
                let outcome = self.erase_range_indexed(table, start, end);
                self.failed = match &outcome {
                    Ok(()) => None,
                    Err(_) => self.rollback_to(&savepoint).err().map(Box::new),
                };
                self.forget_savepoints(self.savepoints.all.len() - 1);
                outcome
            }
        }
    }

    fn erase_range_indexed(
        &mut self,
        (table, indexes): (&Arc<TableInfo>, &TableIndexes),
        start: &[u8],
        end: &[u8],
    ) -> Result<()> {
        let mut rows = self.indexed_writes().begin_erase((table, indexes), start, end)?;
        while self.indexed_writes().erase_entries((table, indexes), &mut rows)? {
            self.make_room()?;
        }
        self.work.write_to(table).range_erase(table.id.0, start, end);
        Ok(())
    }

    fn indexed_writes(&mut self) -> IndexedWrites<'_> {
        IndexedWrites { handle: &self.handle, pin: &self.pin, work: &mut self.work }
    }

    /// Adds `ops`, which write to `tables` and which the caller has checked. If a table has indexes, this reads the
    /// rows that the operations replace, many at a time.
    pub(crate) fn write_all(&mut self, ops: &BatchOps, tables: &[Arc<TableInfo>]) -> Result<()> {
        let options = TransactionOptions { own_times: self.own_times, ..TransactionOptions::default() };
        if !options.reads_rows(self.handle.core(), ops, tables) {
            self.work.append(ops, tables);
            return Ok(());
        }
        let indexed: Vec<_> = tables.iter().map(|table| self.handle.core().indexes.of(table.id)).collect();
        let (mut ops, mut together) = (ops.iter(), READ_TOGETHER);
        loop {
            let some: Vec<(u32, Op<'_>)> = ops.by_ref().take(together).collect();
            together = (2 * together).min(READ_TOGETHER);
            if some.is_empty() {
                return Ok(());
            }
            let mut before: Vec<Option<Option<Parts>>> = some.iter().map(|_| None).collect();
            for (table, indexes) in tables.iter().zip(&indexed) {
                let Some(indexes) = indexes else { continue };
                let of_table = some.iter().enumerate().filter(|(_, (id, _))| *id == table.id.0);
                let (places, keys): (Vec<usize>, Vec<&[u8]>) =
                    of_table.filter_map(|(place, (_, op))| Some((place, op.key()?))).unzip();
                if keys.len() > 1 {
                    let rows = self.indexed_writes().rows_before((table, indexes), &keys)?;
                    if rows.len() < keys.len() {
                        // Not all rows could be read together. The rest are read one by one below, and the next
                        // round asks for fewer.
                        together = rows.len().max(1);
                    }
                    places.into_iter().zip(rows).for_each(|(place, row)| before[place] = Some(row));
                }
            }
            self.write_some(some.into_iter().zip(before), (tables, &indexed))?;
        }
    }

    /// Adds writes to `tables`. Each comes with the row that it replaces, if that row was read already.
    fn write_some<'o>(
        &mut self,
        some: impl Iterator<Item = ((u32, Op<'o>), Option<Option<Parts>>)>,
        (tables, indexed): (&[Arc<TableInfo>], &[Option<Arc<TableIndexes>>]),
    ) -> Result<()> {
        for ((id, op), before) in some {
            self.make_room()?;
            let place = tables.iter().position(|table| table.id.0 == id).expect("the tables are those of the ops");
            match &indexed[place] {
                None => self.write_unindexed(&tables[place], op)?,
                Some(indexes) => self.write_indexed((&tables[place], indexes), op, before)?,
            }
        }
        Ok(())
    }

    /// Like [`Transaction::write_all`], but as a future. `ops` must have no range erases, and no merges into tables
    /// that give times to their rows, because these block the thread. Without blocking its thread, it reads the rows
    /// that the writes replace, and the places in unique indexes where new entries go, because another row may have the
    /// same index key.
    pub(crate) async fn write_all_async(&mut self, ops: &BatchOps, tables: &[Arc<TableInfo>]) -> Result<()> {
        let indexed: Vec<_> = tables.iter().map(|table| self.handle.core().indexes.of(table.id)).collect();
        let mut ops = ops.iter().peekable();
        while ops.peek().is_some() {
            let some: Vec<(u32, Op<'_>)> = ops.by_ref().take(READ_TOGETHER).collect();
            let mut before: Vec<Option<Option<Parts>>> = some.iter().map(|_| None).collect();
            for (table, indexes) in tables.iter().zip(&indexed) {
                let Some(indexes) = indexes else { continue };
                let of_table = some.iter().enumerate().filter(|(_, (id, _))| *id == table.id.0);
                let (places, keys): (Vec<usize>, Vec<&[u8]>) =
                    of_table.filter_map(|(place, (_, op))| Some((place, op.key()?))).unzip();
                let rows = self.indexed_writes().rows_before_async((table, indexes), &keys).await?;
                places.iter().zip(rows).for_each(|(&place, row)| before[place] = Some(row));
                for &place in &places {
                    if let Op::Put { key, value, .. } = some[place].1 {
                        self.indexed_writes().load_unique_async((table, indexes), (key, value)).await?;
                    }
                }
            }
            self.write_some(some.into_iter().zip(before), (tables, &indexed))?;
        }
        Ok(())
    }

    /// Adds entries to `index` for the next rows of `table`, see [`IndexedWrites::fill`].
    pub(crate) fn fill(
        &mut self,
        table: &Arc<TableInfo>,
        index: &LiveIndex,
        keys: (Option<&[u8]>, &[u8]),
        most: (usize, usize),
    ) -> Result<Filled> {
        self.indexed_writes().fill(table, index, keys, most)
    }

    /// Reads a key that the transaction is going to write, like [`Readable::get`], and reserves it until the
    /// transaction ends. Other commits that write the key, and other transactions that reserve it, wait meanwhile,
    /// but at most a tenth of a second. For example, transactions that increment the same counter run one after the
    /// other instead of conflicting. If this is the first read or write of a serializable transaction, the
    /// transaction moves to the newest version after the wait, so it sees the commits that were made meanwhile.
    ///
    /// A reservation is not a lock: after the tenth of a second, another commit may write the key. Then this
    /// transaction conflicts, whichever [`Isolation`] it has.
    ///
    /// # Errors
    ///
    /// Fails as [`Readable::get`] does.
    pub fn get_for_update(&mut self, table: &Table, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        let key = key.as_ref();
        table.inner().check_handle(&self.handle)?;
        let core = self.handle.core();
        core.env.check_origin()?;
        let reserved = &core.writes.reserved;
        let hashes = reserved.hashes([(table.id(), key)].into_iter());
        reserved.reserve(&mut self.reservation, &hashes, core.patient_clock());
        self.depend_on_reserved(table, key);
        self.get(table, key)
    }

    /// Like [`Transaction::get_for_update`], but as a future: other tasks run while another transaction has
    /// reserved the key.
    ///
    /// # Errors
    ///
    /// Fails as [`Readable::get`] does.
    pub async fn get_for_update_async(&mut self, table: &Table, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        let key = key.as_ref();
        table.inner().check_handle(&self.handle)?;
        let core = self.handle.core();
        core.env.check_origin()?;
        let (reserved, reservation) = (&core.writes.reserved, &mut self.reservation);
        let hashes = reserved.hashes([(table.id(), key)].into_iter());
        give_way_until(core.patient_clock(), || reserved.reserve(reservation, &hashes, None)).await;
        self.depend_on_reserved(table, key);
        self.get_async(table, key).await
    }

    fn depend_on_reserved(&mut self, table: &Table, key: &[u8]) {
        if self.is_empty() && self.work.has_read_nothing() {
            let core = self.handle.core();
            self.pin = Arc::new(core.views.pin());
            self.indexed = Indexed::As(core.indexes.generation());
            self.work.writes.rebase(self.pin.version());
        }
        self.work.depend_on(table.id(), key);
    }

    /// Marks the current point in the transaction, so that [`Transaction::rollback_to`] can go back to it.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// # let fruit = db.table("fruit")?;
    /// use larch::Readable;
    ///
    /// let mut tx = db.begin()?;
    /// tx.insert(&fruit, "apple", "red")?;
    /// let before = tx.savepoint();
    /// tx.remove_range(&fruit, ..)?;
    /// assert!(tx.get(&fruit, "apple")?.is_none());
    /// tx.rollback_to(&before)?;
    /// assert!(tx.get(&fruit, "apple")?.is_some());
    /// # Ok(())
    /// # }
    /// ```
    pub fn savepoint(&mut self) -> Savepoint {
        let savepoint = Savepoint { number: os::process::unique_number(), mark: self.work.writes.mark() };
        self.savepoints.push(savepoint);
        self.work.writes.keep_to(Some(savepoint.mark));
        savepoint
    }

    /// Removes all savepoints except the first `count`.
    fn forget_savepoints(&mut self, count: usize) {
        self.savepoints.truncate(count);
        self.work.writes.keep_to(self.savepoints.newest());
    }

    /// Undoes all writes after `savepoint`. This invalidates later savepoints, but `savepoint` itself can be used
    /// again. Reads are not undone: the transaction still depends on what it has read since. Open ranges still see
    /// the undone writes.
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchSavepoint`] if the savepoint belongs to another transaction, or was invalidated by a rollback
    /// to an earlier one. If the writes have spilled to files, also fails if these cannot be read or written. After
    /// an error, the transaction is unchanged.
    pub fn rollback_to(&mut self, savepoint: &Savepoint) -> Result<()> {
        let before = self.savepoints.place(savepoint).ok_or(Error::NoSuchSavepoint)? + 1;
        let counts = &self.savepoints.counts[..before];
        spill::rewind(self.handle.core(), &mut self.work.writes, &savepoint.mark, counts)?;
        self.forget_savepoints(before);
        Ok(())
    }

    /// Commits all writes. The inner result reports a conflict. A transaction without writes never conflicts. With
    /// [`Durability::Synced`], the call also waits until all commits whose rows the transaction has read are
    /// durable.
    ///
    /// This costs as much as the commit of a [`Batch`](crate::Batch). If there were other commits since the
    /// transaction began, it also looks for newer rows in memory under each key that the transaction has read.
    ///
    /// Unique indexes are checked only here, after all writes. So two rows may share an index key for a while, for
    /// example while the transaction swaps the values of two rows.
    ///
    /// # Errors
    ///
    /// Fails as [`Batch::commit`](crate::Batch::commit) does, and with [`Error::Duplicate`] if two rows would have
    /// the same key in a unique index. After an error, none of the writes has taken effect, except perhaps after
    /// [`Error::OutcomeUnknown`].
    pub fn commit(mut self) -> Result<Result<Version, Conflict>> {
        self.try_commit()
    }

    /// Like [`Transaction::commit`], but leaves the transaction with the caller, who after a conflict wants to know
    /// what it has read and written.
    pub(crate) fn try_commit(&mut self) -> Result<Result<Version, Conflict>> {
        self.check_unique()?;
        let applied = self.apply()?;
        if let Ok(version) = applied
            && self.durability == Durability::Synced
        {
            self.handle.core().make_durable(version)?;
        }
        Ok(applied)
    }

    /// Like [`Transaction::try_commit`], but as a future that takes the transaction and returns it.
    pub(super) async fn try_commit_async(mut self) -> Result<(Self, Result<Version, Conflict>)> {
        let_others_go_first(self.handle.core(), self.work.writes.ops(), &self.reservation).await;
        if let Some(doubtful) = self.work.take_doubtful() {
            self.indexed_writes().check_unique_async(&doubtful).await?;
        }
        let (core, writes) = (self.handle.core(), &self.work.writes);
        let applied = if writes.in_runs() > 0 || commit::is_large(core, writes.ops().into()) {
            let threads = core.env.machine.threads.clone();
            let applied;
            (self, applied) = in_thread(&*threads, move || {
                let applied = self.apply();
                (self, applied)
            })
            .await?;
            applied?
        } else {
            self.apply_async().await?
        };
        if let Ok(version) = applied
            && self.durability == Durability::Synced
        {
            Commit::new(self.handle.clone(), version).await?;
        }
        Ok((self, applied))
    }

    /// Like [`Transaction::commit`], but as a future. It never blocks its thread: other tasks run while the commit
    /// waits for the sync, while commits are slowed down, and while the write buffer or level 0 of a table is full.
    /// If the writes take more than half of the write buffer, a separate thread commits them. If the future is
    /// dropped, either all writes are committed or none.
    ///
    /// # Errors
    ///
    /// Fails as [`Transaction::commit`] does.
    pub async fn commit_async(self) -> Result<Result<Version, Conflict>> {
        self.try_commit_async().await.map(|(_, committed)| committed)
    }

    /// Like [`Transaction::commit`], but returns as soon as reads see the writes. The returned [`Commit`] says when
    /// they are durable, see [`Batch::submit`](crate::Batch::submit). For a transaction without writes, it stands
    /// for the version that the transaction has read.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// # let fruit = db.table("fruit")?;
    /// let mut tx = db.begin()?;
    /// tx.insert(&fruit, "apple", "red")?;
    /// let commit = tx.submit()??;
    /// assert!(fruit.contains_key("apple")?);
    /// commit.wait()?; // It survives a power failure from now on.
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Fails as [`Transaction::commit`] does. A failed sync is reported by the returned handle.
    pub fn submit(mut self) -> Result<Result<Commit, Conflict>> {
        self.check_unique()?;
        let applied = self.apply()?;
        Ok(applied.map(|version| Commit::new(self.handle.clone(), version)))
    }

    /// Fails if two rows would have the same key in a unique index after the commit.
    fn check_unique(&mut self) -> Result<()> {
        match self.work.take_doubtful() {
            Some(doubtful) => self.indexed_writes().check_unique(&doubtful),
            None => Ok(()),
        }
    }

    /// Makes the writes visible to reads, or finds a conflict. On success, frees the reserved keys, because others
    /// need not wait for the sync.
    fn apply(&mut self) -> Result<Result<Version, Conflict>> {
        if let Some(done) = self.done_before() {
            return done;
        }
        let has_runs = self.work.writes.in_runs() > 0;
        if has_runs {
            self.work.depend_on_writes();
        }
        let (began, guards_writes, core) = (self.version(), self.isolation == Isolation::Snapshot, self.handle.core());
        let tables = self.work.running.tables();
        let (writes, keys, ranges) = self.work.finish();
        let validation = Validation::new(began, tables, [Some(keys), ranges.as_ref()], guards_writes);
        core.check_writable()?;
        core.writes.reserved.wait_for(writes.ops().into(), Some(&self.reservation), core.patient_clock());
        let applied = outcome(if has_runs {
            spill::commit(core, writes, self.indexed, validation)
        } else {
            let (ops, tables) = writes.parts_mut();
            commit::submit_valid(core, ops, (tables, self.indexed), validation)
        })?;
        self.applied(&applied);
        Ok(applied)
    }

    /// Like [`Transaction::apply`], but as a future. The writes must be in memory, and the caller has already
    /// waited for reservations of their keys.
    async fn apply_async(&mut self) -> Result<Result<Version, Conflict>> {
        if let Some(done) = self.done_before() {
            return done;
        }
        let (began, guards_writes, core) = (self.version(), self.isolation == Isolation::Snapshot, self.handle.core());
        let tables = self.work.running.tables();
        let (writes, keys, ranges) = self.work.finish();
        let validation = Validation::new(began, tables, [Some(keys), ranges.as_ref()], guards_writes);
        let (ops, tables) = writes.parts_mut();
        let applied = outcome(commit::submit_valid_async(core, ops, (tables, self.indexed), validation).await)?;
        self.applied(&applied);
        Ok(applied)
    }

    /// The result of a commit that needs no work: the error if the transaction has failed, or its read version if
    /// it has no writes. Otherwise `None`.
    fn done_before(&self) -> Option<Result<Result<Version, Conflict>>> {
        match &self.failed {
            Some(error) => Some(Err(Error::clone(error))),
            None => self.is_empty().then(|| Ok(Ok(self.version()))),
        }
    }

    fn applied(&mut self, applied: &Result<Version, Conflict>) {
        if applied.is_ok() {
            self.handle.core().writes.reserved.free(&mut self.reservation);
        }
    }

    /// Reserves, for the next attempt, the keys that the transaction has written or has read one by one. Waits for
    /// other transactions that have reserved some of them.
    pub(super) fn reserve_all(&mut self) {
        let hashes = self.hashes_to_reserve();
        let core = self.handle.core();
        core.writes.reserved.reserve(&mut self.reservation, &hashes, core.patient_clock());
    }

    /// Like [`Transaction::reserve_all`], but as a future: other tasks run while it waits.
    pub(super) async fn reserve_all_async(&mut self) {
        let hashes = self.hashes_to_reserve();
        let (core, reservation) = (self.handle.core(), &mut self.reservation);
        give_way_until(core.patient_clock(), || core.writes.reserved.reserve(reservation, &hashes, None)).await;
    }

    fn hashes_to_reserve(&mut self) -> Vec<u64> {
        let (writes, keys, _) = self.work.finish();
        self.handle.core().writes.reserved.hashes(written_keys(writes.ops()).chain(keys.keys()))
    }

    /// Takes the reservation out of the transaction.
    pub(super) fn take_reservation(&mut self) -> Reservation {
        std::mem::take(&mut self.reservation)
    }

    /// A reader of the same table and parts as `rows`, within this transaction.
    fn read<'r, V>(&'r self, rows: &'r Reader<'static, V>) -> Result<Reader<'r, V>> {
        rows.handle().check_handle(&self.handle)?;
        Ok(rows.seen_at(Some(&self.pin)).within(&self.work))
    }

    /// The tables that the transaction has used so far.
    pub(super) fn tables(&self) -> Tables {
        self.work.running.tables()
    }

    /// Ends the transaction without any effect, like dropping it.
    pub fn rollback(self) {}
}

impl Drop for Transaction {
    fn drop(&mut self) {
        self.handle.core().writes.reserved.free(&mut self.reservation);
    }
}

impl Readable for Transaction {
    fn reader<'r>(&'r self, table: &'r Table) -> Result<Reader<'r>> {
        self.read(table)
    }

    fn select<'r>(&'r self, selection: &'r Selection) -> Result<Reader<'r, Parts>> {
        self.read(selection)
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
