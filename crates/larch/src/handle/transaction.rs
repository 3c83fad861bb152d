//! A transaction as programs use it. This module turns arguments into reads, own writes and one commit. What reads,
//! own writes and the commit mean is defined in `conflicts/`.

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
use crate::base::ops::{BatchOps, Op};
use crate::base::options::Durability;
use crate::base::table::{TableId, TableInfo};
use crate::base::{bounds, parts};
use crate::conflicts::recent::{Running, Tables};
use crate::conflicts::reserved::Reservation;
use crate::core::Core;
use crate::core::handle::DatabaseHandle;
use crate::core::registry::{LiveIndex, TableIndexes};
use crate::core::snapshots::PinnedVersion;
use crate::indexes::maintain::{Filled, IndexedWrites};
use crate::read::Reader;
use crate::read::work::Work;
use crate::view::own_writes::WriteMark;
use crate::view::value::{Parts, Value};
use crate::write::indexed::Indexed;
use crate::write::not_committed::outcome;
use crate::write::room::memory_bytes;
use crate::write::validation::Validation;
use crate::write::{commit, limits, spill};
use os::sync::Arc;
use os::sync::atomic::{AtomicU64, Ordering};
use sst::{KeyRange, Version};

/// How much a transaction is protected from other commits that happen while it runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Isolation {
    /// The transaction has the same result as if it ran alone at the moment of its commit. The transaction
    /// conflicts if another commit changes anything that it has read: a single key or a key in a range, even if
    /// the key had no row. This is the default.
    #[default]
    Serializable,
    /// The transaction reads everything as it was when the transaction began. The transaction conflicts only in
    /// two cases: another commit writes a key that the transaction also writes, or a key that the transaction has
    /// read with [`Transaction::get_for_update`]. Suppose that two transactions run at the same time, and each of
    /// them reads a key that the other writes. Then both may commit. This is called write skew.
    Snapshot,
}

/// The options of a transaction, see [`Database::begin_with`](crate::Database::begin_with).
#[derive(Clone, Debug)]
#[must_use = "options begin nothing"]
pub struct TransactionOptions {
    /// How much the transaction is protected from other commits that happen while it runs.
    pub isolation: Isolation,
    /// What the commit waits for before it returns. If this is `None`, the [durability of the
    /// database](crate::Builder::durability) decides. Writes that take more than half of the write buffer go to
    /// files, so they are durable in any case.
    pub durability: Option<Durability>,
    /// [`Database::transact_with`](crate::Database::transact_with) runs the transaction at most this many times. It
    /// runs the transaction at least once. The default is 100.
    pub attempts: u32,
}

impl Default for TransactionOptions {
    fn default() -> Self {
        Self { isolation: Isolation::default(), durability: None, attempts: 100 }
    }
}

impl TransactionOptions {
    /// The default options, but with this durability.
    pub(crate) fn with_durability(durability: Option<Durability>) -> Self {
        Self { durability, ..Self::default() }
    }
}

/// Reads and writes that are done as one step, as if nothing else happened at the same time.
/// [`Database::begin`](crate::Database::begin) returns a transaction.
///
/// A transaction reads the database as it was when the transaction began, with its own writes on top. A
/// transaction has all reads of [`Readable`]. If a read needs a page that is not in memory, the transaction goes
/// on after the page was read. [`Transaction::commit`] either commits all writes or finds a [`Conflict`] with
/// another commit. If a transaction is dropped, it has no effect. A transaction takes no locks. If it reads a key
/// with [`Transaction::get_for_update`], other commits to this key wait, but at most for a tenth of a second.
///
/// A transaction keeps its writes, and the keys and ranges that it has read. The writes may take a share of the
/// write buffer, and the keys and ranges may take another share. If the writes take more memory than that, they
/// move to files, which are removed when the transaction ends. The commit then makes new files of the database
/// from these files. If the keys take more memory, the transaction joins single keys to ranges. Then it may also
/// conflict with a commit to a key that it has not read, but that lies in such a range. As long as a transaction
/// runs, compactions keep the rows that it sees.
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
    /// The indexes for which the transaction has written entries.
    indexed: Indexed,
    /// The savepoints to which the transaction can go back.
    savepoints: Savepoints,
    /// The keys that the transaction has reserved. Other commits to these keys wait until the transaction has
    /// ended, but at most a tenth of a second.
    reservation: Reservation,
    /// The reason why the transaction can no longer be committed, or `None` if it can.
    failed: Option<Box<Error>>,
}

/// A point in a transaction. The transaction can go back to it, see [`Transaction::savepoint`].
#[derive(Clone, Copy, Debug)]
pub struct Savepoint {
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
    /// For each savepoint, how many writes the transaction had when the savepoint was made.
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

    /// The index of `savepoint` in the list, if the list has it.
    fn place(&self, savepoint: &Savepoint) -> Option<usize> {
        self.all.binary_search_by_key(&savepoint.number, |savepoint| savepoint.number).ok()
    }

    /// The position of the newest savepoint.
    fn newest(&self) -> Option<WriteMark> {
        self.all.last().map(|savepoint| savepoint.mark)
    }
}

/// The number of the next savepoint. All savepoints have different numbers, so a savepoint of another transaction is
/// recognized.
static SAVEPOINTS: AtomicU64 = AtomicU64::new(1);

/// The keys and ranges that a transaction has read may take as much memory as the write buffer divided by this
/// number.
const READS_SHARE: u64 = 64;

/// The writes of a transaction may take as much memory as the write buffer divided by this number.
const WRITES_SHARE: u64 = 4;

/// A transaction keeps at most this many range erases in memory. The number is limited because each fragment has one
/// version for each range erase that covers it.
const MOST_RANGE_ERASES: u32 = 512;

/// The rows that the writes of a batch replace are read together, but at most this many at a time.
const READ_TOGETHER: usize = 128;

/// The keys and ranges that a transaction has read may take this many bytes even if the write buffer is small.
const LEAST_READ_BYTES: u64 = 4 << 10;

impl Transaction {
    /// Begins a transaction. `reservation` may already have keys from earlier attempts. The transaction will use
    /// `tables`, and perhaps other tables.
    pub(super) fn begin(
        handle: &Arc<DatabaseHandle>,
        options: &TransactionOptions,
        reservation: Reservation,
        tables: Tables,
    ) -> Result<Self> {
        let core = handle.core();
        core.env.check_origin()?;
        let running = Running::begin(&core.writes.recent, tables);
        // The version is pinned before the generation of the indexes is read. If an index is made between these
        // two steps, the commit notices that the transaction is too old for this index.
        let pin = Arc::new(core.views.pin());
        let indexed = Indexed::As(core.indexes.generation());
        let most_bytes = (core.env.options.write_buffer_bytes / READS_SHARE).max(LEAST_READ_BYTES);
        let notes_reads = options.isolation == Isolation::Serializable;
        let work = Work::new(running, pin.version(), notes_reads, most_bytes as usize);
        let durability = options.durability.unwrap_or(core.env.options.durability);
        let (handle, isolation, savepoints) = (handle.clone(), options.isolation, Savepoints::default());
        Ok(Self { handle, pin, isolation, durability, work, indexed, savepoints, reservation, failed: None })
    }

    /// The version that the transaction reads.
    pub fn version(&self) -> Version {
        self.pin.version()
    }

    /// The number of writes in the transaction.
    pub fn len(&self) -> usize {
        self.work.writes.count() as usize
    }

    /// Whether the transaction has no writes, and nothing that would make [`Transaction::commit`] fail. So a caller
    /// that does not commit an empty transaction misses no error.
    pub fn is_empty(&self) -> bool {
        self.work.writes.is_empty() && self.failed.is_none()
    }

    /// Sets `key` to `value` in this transaction, see [`Table::insert`]. Later reads of this transaction see the new
    /// value.
    ///
    /// # Errors
    ///
    /// [`Error::ForeignTable`] if the table belongs to another database. [`Error::KeyTooLong`],
    /// [`Error::ValueTooLong`] or [`Error::Grouped`] if the table cannot take the row. After an error, the
    /// transaction is unchanged.
    pub fn insert(&mut self, table: &Table, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        let (key, value) = (key.as_ref(), value.as_ref());
        table.inner().check_handle(&self.handle)?;
        table.check_row(key, value)?;
        self.write(table.identity(), Op::Put { key, value })
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
        self.make_room()?;
        match self.handle.core().indexes.of(table.id()) {
            None => self.work.write_to(table.identity()).put_parts(table.id().0, key, parts),
            Some(indexes) => {
                let mut value = Vec::new();
                parts::encode(parts, &mut value);
                self.write_indexed((table.identity(), &indexes), Op::Put { key, value: &value }, None)?;
            }
        }
        Ok(())
    }

    /// Removes `key` in this transaction, see [`Table::remove`].
    ///
    /// # Errors
    ///
    /// [`Error::ForeignTable`] or [`Error::KeyTooLong`]. After an error, the transaction is unchanged.
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

    /// Whether `key` has what `expected` says.
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

    /// If the writes take too much memory, moves them to files.
    fn make_room(&mut self) -> Result<()> {
        let core = self.handle.core();
        let ops = self.work.writes.ops();
        let most_bytes = core.env.options.write_buffer_bytes / WRITES_SHARE;
        if memory_bytes(ops) < most_bytes && ops.range_erases() < MOST_RANGE_ERASES {
            return Ok(());
        }
        self.spill()
    }

    #[cold]
    fn spill(&mut self) -> Result<()> {
        self.work.depend_on_writes();
        spill::spill(self.handle.core(), &mut self.work.writes, &self.savepoints.counts)
    }

    /// Adds a write to `table`, and the writes that this makes necessary in the indexes of the table. The caller
    /// has checked the write.
    fn write(&mut self, table: &Arc<TableInfo>, op: Op<'_>) -> Result<()> {
        self.make_room()?;
        match self.handle.core().indexes.of(table.id) {
            None => self.work.write_to(table).push(table.id.0, op),
            Some(indexes) => self.write_indexed((table, &indexes), op, None)?,
        }
        Ok(())
    }

    #[cold]
    fn write_indexed(
        &mut self,
        table: (&Arc<TableInfo>, &TableIndexes),
        op: Op<'_>,
        before: Option<Option<Parts>>,
    ) -> Result<()> {
        match op {
            Op::Put { key, value } => self.indexed_writes().write(table, (key, Some(value)), before),
            Op::Erase { key } => self.indexed_writes().write(table, (key, None), before),
            Op::RangeErase { start, end } => {
                let savepoint = self.savepoint();
                // If an extractor panics in the next step, the transaction has only a part of the range erase and
                // must not be committed.
                self.failed = Some(Box::new(Error::HalfErased { table: table.0.name.as_str().into() }));
                let outcome = self.erase_range_indexed(table, start, end);
                self.failed = match &outcome {
                    Ok(()) => None,
                    // The same is true if the transaction cannot go back to the savepoint.
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

    /// Adds the operations `ops`, which write to `tables`. The caller has checked them. If a table has indexes,
    /// the rows that they replace are needed, and many such rows are read at the same time.
    pub(crate) fn write_all(&mut self, ops: &BatchOps, tables: &[Arc<TableInfo>]) -> Result<()> {
        if !tables.iter().any(|table| self.handle.core().indexes.has(table.id)) {
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
                        // Not all rows could be read together. The others are read one by one below, and the next
                        // round asks for fewer rows.
                        together = rows.len().max(1);
                    }
                    places.into_iter().zip(rows).for_each(|(place, row)| before[place] = Some(row));
                }
            }
            self.write_some(some.into_iter().zip(before), (tables, &indexed))?;
        }
    }

    /// Adds writes, which write to `tables`. Each write comes with the row that it replaces, if that row was read
    /// already.
    fn write_some<'o>(
        &mut self,
        some: impl Iterator<Item = ((u32, Op<'o>), Option<Option<Parts>>)>,
        (tables, indexed): (&[Arc<TableInfo>], &[Option<Arc<TableIndexes>>]),
    ) -> Result<()> {
        for ((id, op), before) in some {
            self.make_room()?;
            let place = tables.iter().position(|table| table.id.0 == id).expect("the tables are those of the ops");
            match &indexed[place] {
                None => self.work.write_to(&tables[place]).push(id, op),
                Some(indexes) => self.write_indexed((&tables[place], indexes), op, before)?,
            }
        }
        Ok(())
    }

    /// Does the same as [`Transaction::write_all`], but returns a future. `ops` must have no range erases. The
    /// future reads the rows that the writes replace. In unique indexes, the future also reads the places where
    /// new entries will be, because other rows may have the same index key. Other tasks run while these rows and
    /// entries are read from the disk.
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
                    if let Op::Put { key, value } = some[place].1 {
                        self.indexed_writes().load_unique_async((table, indexes), (key, value)).await?;
                    }
                }
            }
            self.write_some(some.into_iter().zip(before), (tables, &indexed))?;
        }
        Ok(())
    }

    /// Adds the entries of `index` for the next rows of `table`, see [`IndexedWrites::fill`].
    pub(crate) fn fill(
        &mut self,
        table: &Arc<TableInfo>,
        index: &LiveIndex,
        keys: (Option<&[u8]>, &[u8]),
        most: (usize, usize),
    ) -> Result<Filled> {
        self.indexed_writes().fill(table, index, keys, most)
    }

    /// Does the same as [`Readable::get`], for a key that the transaction is going to write. The call reserves the
    /// key until the transaction ends. Other commits that write this key wait meanwhile, and so do other
    /// transactions that want to reserve it. They wait at most a tenth of a second. For example, transactions that
    /// increment the same counter then run one after the other; without the reservation they would conflict. If
    /// this is the first read or write of a serializable transaction, the transaction begins again at the newest
    /// version after it has waited. So it sees commits that were made meanwhile.
    ///
    /// A reservation is not a lock. Another commit may still write the key after its longest wait. Then this
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

    /// Does the same as [`Transaction::get_for_update`], but returns a future. Other tasks run while another
    /// transaction has reserved the key.
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

    /// Marks the point after the last write. [`Transaction::rollback_to`] can go back to it.
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
        let number = SAVEPOINTS.fetch_add(1, Ordering::Relaxed);
        let savepoint = Savepoint { number, mark: self.work.writes.mark() };
        self.savepoints.push(savepoint);
        self.work.writes.keep_to(Some(savepoint.mark));
        savepoint
    }

    /// Removes all savepoints except the first `count`.
    fn forget_savepoints(&mut self, count: usize) {
        self.savepoints.truncate(count);
        self.work.writes.keep_to(self.savepoints.newest());
    }

    /// Undoes all writes after `savepoint`. Later savepoints are then no longer valid, but the transaction can go
    /// back to `savepoint` again. Reads are not undone: the transaction still depends on what it has read after
    /// the savepoint. Open ranges still see the writes that were undone.
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchSavepoint`] if the savepoint belongs to another transaction, or if the transaction has gone
    /// back to an earlier savepoint. If the writes of the transaction are in files, the call also fails if these
    /// files cannot be read or written. After an error, the transaction is unchanged.
    pub fn rollback_to(&mut self, savepoint: &Savepoint) -> Result<()> {
        let before = self.savepoints.place(savepoint).ok_or(Error::NoSuchSavepoint)? + 1;
        let counts = &self.savepoints.counts[..before];
        spill::rewind(self.handle.core(), &mut self.work.writes, &savepoint.mark, counts)?;
        self.forget_savepoints(before);
        Ok(())
    }

    /// Commits all writes. A conflict is reported as an error of the inner result. A transaction without writes
    /// never conflicts. If the transaction has [`Durability::Synced`], the call also waits until all commits whose
    /// rows the transaction has read are durable.
    ///
    /// The call does as much work as the commit of a [`Batch`](crate::Batch). If there were other commits since
    /// the transaction began, the call also looks up each key that the transaction has read. It looks for newer
    /// rows in memory.
    ///
    /// All writes take effect together, so their order does not matter for unique indexes. Unique indexes are
    /// checked only by the commit. Before the commit, two rows may have the same index key, for example if the
    /// transaction swaps the values of two rows.
    ///
    /// # Errors
    ///
    /// Fails as [`Batch::commit`](crate::Batch::commit) does. [`Error::Duplicate`] if two rows would have the same
    /// key in a unique index. After an error, none of the writes has taken effect, except perhaps after
    /// [`Error::OutcomeUnknown`].
    pub fn commit(mut self) -> Result<Result<Version, Conflict>> {
        self.try_commit()
    }

    /// Does the same as [`Transaction::commit`], but does not take the transaction away from the caller. So after
    /// a conflict, the caller can see on what the transaction depended.
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

    /// Does the same as [`Transaction::try_commit`], but returns a future, which also returns the transaction.
    pub(super) async fn try_commit_async(mut self) -> Result<(Self, Result<Version, Conflict>)> {
        let_others_go_first(self.handle.core(), self.work.writes.ops(), &self.reservation).await;
        if let Some(doubtful) = self.work.take_doubtful() {
            self.indexed_writes().check_unique_async(&doubtful).await?;
        }
        let (core, writes) = (self.handle.core(), &self.work.writes);
        let applied = if writes.in_runs() > 0 || commit::is_large(core, writes.ops()) {
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

    /// Does the same as [`Transaction::commit`], but returns a future. The future does not block its thread. Other
    /// tasks run until the commit is durable. They also run while commits are slowed down, and while the write
    /// buffer or level 0 of a table is full. If the writes take more than half of the write buffer, a separate
    /// thread is started to commit them. If the future is dropped, either all writes are committed or none of
    /// them.
    ///
    /// # Errors
    ///
    /// Fails as [`Transaction::commit`] does.
    pub async fn commit_async(self) -> Result<Result<Version, Conflict>> {
        self.try_commit_async().await.map(|(_, committed)| committed)
    }

    /// Does the same as [`Transaction::commit`], but returns as soon as reads see the writes. The returned
    /// [`Commit`] says when the writes are durable, see [`Batch::submit`](crate::Batch::submit). If the
    /// transaction has no writes, the returned [`Commit`] is that of the version at which the transaction has
    /// read.
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
    /// Fails as [`Transaction::commit`] does. If a sync fails, the returned handle reports it.
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

    /// Makes reads see the writes, or finds a conflict. After success, the reserved keys are free again, because
    /// others need not wait for the sync.
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
        core.writes.reserved.wait_for(writes.ops(), Some(&self.reservation), core.patient_clock());
        let applied = outcome(if has_runs {
            spill::commit(core, writes, self.indexed, validation)
        } else {
            let (ops, tables) = writes.parts_mut();
            commit::submit_valid(core, ops, (tables, self.indexed), validation)
        })?;
        self.applied(&applied);
        Ok(applied)
    }

    /// Does the same as [`Transaction::apply`], but returns a future. The writes must be in memory. The caller has
    /// already waited until no other transaction has reserved their keys.
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

    /// The result of a commit that needs no work: an error if the transaction cannot be committed any more, or the
    /// version at which it has read if it has no writes. In all other cases `None`.
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

    /// Reserves keys for the next attempt. The reserved keys are those that the transaction has written, or has
    /// read one by one. If other transactions have reserved some of these keys, this waits for them.
    pub(super) fn reserve_all(&mut self) {
        let hashes = self.hashes_to_reserve();
        let core = self.handle.core();
        core.writes.reserved.reserve(&mut self.reservation, &hashes, core.patient_clock());
    }

    /// Does the same as [`Transaction::reserve_all`], but returns a future: other tasks run while it waits.
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

    /// A reader of the same rows as `rows`, within this transaction.
    fn read<'r, V>(&'r self, rows: &'r Reader<'static, V>) -> Result<Reader<'r, V>> {
        rows.handle().check_handle(&self.handle)?;
        Ok(rows.seen_at(Some(&self.pin)).within(&self.work))
    }

    /// The tables that the transaction has used so far.
    pub(super) fn tables(&self) -> Tables {
        self.work.running.tables()
    }

    /// Ends the transaction without any effect, as if it were dropped.
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

#[cfg(test)]
mod tests;
