//! A transaction as its users see it. This module turns arguments into reads, own writes and one commit.
//! `conflicts/` says what these mean.

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

/// What a transaction is protected from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Isolation {
    /// A transaction has the result that it would have if it ran alone at the moment of its commit. It conflicts if
    /// another commit changes anything that it has read: single keys and whole ranges, present and absent. The
    /// default.
    #[default]
    Serializable,
    /// A transaction reads everything as of the moment at which it began. It conflicts only if another commit writes
    /// a key that it writes, or a key that it has read with [`Transaction::get_for_update`]. If each of two
    /// transactions reads what the other one writes, both may commit (write skew).
    Snapshot,
}

/// How a transaction runs, see [`Database::begin_with`](crate::Database::begin_with).
#[derive(Clone, Debug)]
#[must_use = "options begin nothing"]
pub struct TransactionOptions {
    /// What the transaction is protected from.
    pub isolation: Isolation,
    /// What the commit of the transaction waits for. `None`: the [durability of the
    /// database](crate::Builder::durability) decides. Writes that take more than half of the write buffer go into
    /// files, and are durable in any case.
    pub durability: Option<Durability>,
    /// How often [`Database::transact_with`](crate::Database::transact_with) runs the transaction at most. It runs
    /// at least once. Default 100.
    pub attempts: u32,
}

impl Default for TransactionOptions {
    fn default() -> Self {
        Self { isolation: Isolation::default(), durability: None, attempts: 100 }
    }
}

impl TransactionOptions {
    /// The default options, with this durability.
    pub(crate) fn with_durability(durability: Option<Durability>) -> Self {
        Self { durability, ..Self::default() }
    }
}

/// Reads and writes that take effect together, as if nothing else happened meanwhile. It is made by
/// [`Database::begin`](crate::Database::begin).
///
/// A transaction reads the database as it was when the transaction began, with its own writes over it. It has the
/// reads of [`Readable`]: they come in all forms, and a page that is missing does not make the transaction start
/// again. [`Transaction::commit`] either commits all writes or finds a [`Conflict`] with another commit. A
/// transaction that is dropped has no effect. Nothing is locked. Only keys that were read with
/// [`Transaction::get_for_update`] make others wait, for at most a tenth of a second.
///
/// A transaction keeps its writes, and the keys and ranges that it has read, in a share of the write buffer. Writes
/// that take more memory move into files, which are removed when the transaction ends. Its commit makes files of the
/// database from them. A transaction that reads more keeps ranges in place of single keys. Then it may conflict with
/// a commit between the keys that it has read. While it runs, compactions keep the rows that it sees.
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
    /// The indexes whose entries are among its writes.
    indexed: Indexed,
    /// The savepoints to which the transaction can go back.
    savepoints: Savepoints,
    /// The keys that the transaction has reserved: other commits let it write them first.
    reservation: Reservation,
    /// Why the transaction cannot be committed any more.
    failed: Option<Box<Error>>,
}

/// A moment of a transaction to which it can go back, see [`Transaction::savepoint`].
#[derive(Clone, Copy, Debug)]
pub struct Savepoint {
    number: u64,
    mark: WriteMark,
}

/// Lets other tasks run while a transaction other than the owner of `own` holds the writer, or has reserved keys
/// that `ops` write.
pub(super) async fn let_others_go_first(core: &Core, ops: &BatchOps, own: &Reservation) {
    let reserved = &core.writes.reserved;
    if reserved.count() > 0 {
        let (hashes, clock) = (reserved.hashes(written_keys(ops)), &core.env.machine.clock);
        give_way_until(core.patient_clock(), || !reserved.is_reserved(&hashes, own, clock.now())).await;
    }
}

/// The keys that `ops` write one by one.
fn written_keys(ops: &BatchOps) -> impl Iterator<Item = (TableId, &[u8])> {
    ops.iter().filter_map(|(table, op)| Some((TableId(table), op.key()?)))
}

/// Savepoints in the order in which they were made.
#[derive(Debug, Default)]
struct Savepoints {
    all: Vec<Savepoint>,
    /// For each savepoint: how many writes come before it.
    counts: Vec<u64>,
}

impl Savepoints {
    fn push(&mut self, savepoint: Savepoint) {
        self.counts.push(savepoint.mark.count());
        self.all.push(savepoint);
    }

    /// Forgets all savepoints but the first `count`.
    fn truncate(&mut self, count: usize) {
        self.counts.truncate(count);
        self.all.truncate(count);
    }

    /// The place of `savepoint` in the list, if it is there.
    fn place(&self, savepoint: &Savepoint) -> Option<usize> {
        self.all.binary_search_by_key(&savepoint.number, |savepoint| savepoint.number).ok()
    }

    /// The newest place to which the transaction can go back.
    fn newest(&self) -> Option<WriteMark> {
        self.all.last().map(|savepoint| savepoint.mark)
    }
}

/// Numbers savepoints, so that savepoints of other transactions are recognized.
static SAVEPOINTS: AtomicU64 = AtomicU64::new(1);

/// What a transaction has read may take the write buffer divided by this number.
const READS_SHARE: u64 = 64;

/// What a transaction has written and keeps in memory may take the write buffer divided by this number.
const WRITES_SHARE: u64 = 4;

/// A transaction keeps at most this many erases of ranges in memory: each part of the keys has a version for each
/// erase over it.
const MOST_RANGE_ERASES: u32 = 512;

/// Rows that the writes of a batch replace are read together, at most this many at once.
const READ_TOGETHER: usize = 128;

/// What a transaction has read may always take this many bytes.
const LEAST_READ_BYTES: u64 = 4 << 10;

impl Transaction {
    /// Begins a transaction that has reserved keys already. It is going to use `tables`, and perhaps other tables.
    pub(super) fn begin(
        handle: &Arc<DatabaseHandle>,
        options: &TransactionOptions,
        reservation: Reservation,
        tables: Tables,
    ) -> Result<Self> {
        let core = handle.core();
        core.env.check_origin()?;
        let running = Running::begin(&core.writes.recent, tables);
        // The version must not be newer than the indexes. If a transaction began before an index was made, it is too
        // old.
        let pin = Arc::new(core.views.pin());
        let indexed = Indexed::As(core.indexes.generation());
        let most_bytes = (core.env.options.write_buffer_bytes / READS_SHARE).max(LEAST_READ_BYTES);
        let notes_reads = options.isolation == Isolation::Serializable;
        let work = Work::new(running, pin.version(), notes_reads, most_bytes as usize);
        let durability = options.durability.unwrap_or(core.env.options.durability);
        let (handle, isolation, savepoints) = (handle.clone(), options.isolation, Savepoints::default());
        Ok(Self { handle, pin, isolation, durability, work, indexed, savepoints, reservation, failed: None })
    }

    /// The version at which the transaction reads.
    pub fn version(&self) -> Version {
        self.pin.version()
    }

    /// The number of writes.
    pub fn len(&self) -> usize {
        self.work.writes.count() as usize
    }

    /// Whether the transaction has no writes, and nothing that [`Transaction::commit`] would report. A caller that
    /// skips the commit of an empty transaction misses no error.
    pub fn is_empty(&self) -> bool {
        self.work.writes.is_empty() && self.failed.is_none()
    }

    /// Sets `key` to `value`, see [`Table::insert`]. Later reads of this transaction see the new value.
    ///
    /// # Errors
    ///
    /// [`Error::ForeignTable`] if the table belongs to another database. [`Error::KeyTooLong`], [`Error::ValueTooLong`]
    /// or [`Error::Grouped`] if the table cannot take the row. The transaction is as it was before.
    pub fn insert(&mut self, table: &Table, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        let (key, value) = (key.as_ref(), value.as_ref());
        table.inner().check_handle(&self.handle)?;
        table.check_row(key, value)?;
        self.write(table.identity(), Op::Put { key, value })
    }

    /// Sets `key` to a value in parts, see [`Table::insert_parts`].
    ///
    /// # Errors
    ///
    /// As [`Transaction::insert`], with [`Error::PartCount`] in place of [`Error::Grouped`].
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

    /// Removes `key`, see [`Table::remove`].
    ///
    /// # Errors
    ///
    /// [`Error::ForeignTable`], [`Error::KeyTooLong`]. The transaction is as it was before.
    pub fn remove(&mut self, table: &Table, key: impl AsRef<[u8]>) -> Result<()> {
        let key = key.as_ref();
        table.inner().check_handle(&self.handle)?;
        limits::check_key(key)?;
        self.write(table.identity(), Op::Erase { key })
    }

    /// Removes every key in `range`, see [`Table::remove_range`]. Rows that the transaction inserts later stay.
    ///
    /// # Errors
    ///
    /// As [`Transaction::remove`].
    pub fn remove_range(&mut self, table: &Table, range: impl IntoKeyRange) -> Result<()> {
        table.inner().check_handle(&self.handle)?;
        let Some(KeyRange { start, end }) = bounds::keys(&range) else { return Ok(()) };
        let end = end.unwrap_or_default();
        limits::check_key(&start)?;
        limits::check_key(&end)?;
        self.write(table.identity(), Op::RangeErase { start: &start, end: &end })
    }

    /// Whether `key` has what is expected.
    pub(super) fn has(&self, table: &Table, key: &[u8], expected: &Expected) -> Result<bool> {
        Ok(match expected {
            Expected::Absent => !self.contains_key(table, key)?,
            Expected::Value(value) => self.get(table, key)?.as_deref() == Some(value),
            Expected::Version(version) => self.reader(table)?.version_of_key(key)? == Some(*version),
        })
    }

    /// What the transaction has read and written.
    #[cfg(test)]
    pub(crate) fn work(&self) -> &Work {
        &self.work
    }

    /// Moves the writes into files if they take too much memory.
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

    /// Adds a write to `table`. It also adds what the write changes in the indexes of the table. The write was
    /// checked.
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
                // After a panic of an extractor the transaction has a part of the erase.
                self.failed = Some(Box::new(Error::HalfErased { table: table.0.name.as_str().into() }));
                let outcome = self.erase_range_indexed(table, start, end);
                self.failed = match &outcome {
                    Ok(()) => None,
                    // If the transaction cannot go back, it has a part of the erase, too.
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

    /// Adds the writes `ops` to `tables`. The writes were checked. The rows that they replace are read in rounds.
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
                        // The rows that are left out are read one by one below. The next round takes fewer rows.
                        together = rows.len().max(1);
                    }
                    places.into_iter().zip(rows).for_each(|(place, row)| before[place] = Some(row));
                }
            }
            self.write_some(some.into_iter().zip(before), (tables, &indexed))?;
        }
    }

    /// Adds writes to `tables`. Each write comes with the row that it replaces, if this row was read.
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

    /// As [`Transaction::write_all`], as a future, for `ops` without erases of ranges. It reads the rows that the
    /// writes replace, and the entries of unique indexes beside which new entries come. Other tasks run while these
    /// are read from disk.
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

    /// Puts the entries of `index` for the next rows of `table`, see [`IndexedWrites::fill`].
    pub(crate) fn fill(
        &mut self,
        table: &Arc<TableInfo>,
        index: &LiveIndex,
        keys: (Option<&[u8]>, &[u8]),
        most: (usize, usize),
    ) -> Result<Filled> {
        self.indexed_writes().fill(table, index, keys, most)
    }

    /// As [`Readable::get`], for a key that the transaction is going to write. It reserves the key: other commits
    /// that write the key, and other transactions that reserve it, wait until this transaction ends, but for at most
    /// a tenth of a second. So transactions that increment one counter come one after the other. Without the
    /// reservation they would conflict. A serializable transaction that has read and written nothing yet begins
    /// again at the newest version, so that it sees what was committed while it waited.
    ///
    /// A reservation is no lock: the transaction conflicts, in every [`Isolation`], if another commit writes the key
    /// nevertheless.
    ///
    /// # Errors
    ///
    /// As [`Readable::get`].
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

    /// As [`Transaction::get_for_update`], as a future: other tasks run while another transaction has reserved the key.
    ///
    /// # Errors
    ///
    /// As [`Readable::get`].
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

    /// Notes the place after the last write, so that [`Transaction::rollback_to`] can go back to it.
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

    /// Forgets all savepoints but the first `count`.
    fn forget_savepoints(&mut self, count: usize) {
        self.savepoints.truncate(count);
        self.work.writes.keep_to(self.savepoints.newest());
    }

    /// Takes back all writes after `savepoint`. Later savepoints are gone. The transaction can go back to
    /// `savepoint` again. Its reads stay: the transaction still depends on them. Ranges that are open go on seeing
    /// the writes.
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchSavepoint`] if the savepoint is of another transaction, or the transaction has gone back to an
    /// earlier one. If the writes are in files, what reads and writes of files return. The transaction is as it was
    /// before.
    pub fn rollback_to(&mut self, savepoint: &Savepoint) -> Result<()> {
        let before = self.savepoints.place(savepoint).ok_or(Error::NoSuchSavepoint)? + 1;
        let counts = &self.savepoints.counts[..before];
        spill::rewind(self.handle.core(), &mut self.work.writes, &savepoint.mark, counts)?;
        self.forget_savepoints(before);
        Ok(())
    }

    /// Commits all writes, or finds a conflict, which is an error of the inner result. A transaction without writes
    /// never conflicts. With [`Durability::Synced`] it waits, if necessary, until the commits that it has read are
    /// durable.
    ///
    /// It costs as much as the commit of a [`Batch`](crate::Batch). If other commits came since the transaction
    /// began, it also costs a look into memory for each key that was read.
    ///
    /// The writes take effect together, whatever their order. So a unique index refuses them at the commit, and not
    /// one by one: in between, two rows may have the same key, as when they swap their values.
    ///
    /// # Errors
    ///
    /// As [`Batch::commit`](crate::Batch::commit). [`Error::Duplicate`] if two rows would have the same key in a unique
    /// index. After an error none of the writes has taken effect, except after [`Error::OutcomeUnknown`].
    pub fn commit(mut self) -> Result<Result<Version, Conflict>> {
        self.try_commit()
    }

    /// As [`Transaction::commit`]. After a conflict the transaction can say what it depended on.
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

    /// As [`Transaction::try_commit`], as a future. It gives the transaction back.
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

    /// As [`Transaction::commit`], as a future. It does not stop its thread. Other tasks run until the commit is
    /// durable. They also run while commits are slowed, or wait because the write buffer, or level 0 of a table, is
    /// full. Writes that take more than half of the write buffer are committed by a thread that is started for them.
    /// If the future is dropped, either all writes are committed or none.
    ///
    /// # Errors
    ///
    /// As [`Transaction::commit`].
    pub async fn commit_async(self) -> Result<Result<Version, Conflict>> {
        self.try_commit_async().await.map(|(_, committed)| committed)
    }

    /// As [`Transaction::commit`], but it returns when reads see the writes. The returned [`Commit`] says when the
    /// writes are durable, see [`Batch::submit`](crate::Batch::submit). If the transaction has no writes, it is the
    /// commit that the transaction has read.
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
    /// As [`Transaction::commit`]; a sync that fails is an error of the returned handle.
    pub fn submit(mut self) -> Result<Result<Commit, Conflict>> {
        self.check_unique()?;
        let applied = self.apply()?;
        Ok(applied.map(|version| Commit::new(self.handle.clone(), version)))
    }

    /// Refuses writes after which two rows would have the same key in a unique index.
    fn check_unique(&mut self) -> Result<()> {
        match self.work.take_doubtful() {
            Some(doubtful) => self.indexed_writes().check_unique(&doubtful),
            None => Ok(()),
        }
    }

    /// Makes reads see the writes, or finds a conflict. Then the keys are free again, because others need not wait
    /// for a sync.
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

    /// As [`Transaction::apply`], as a future, for writes in memory. The caller has waited for reserved keys.
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

    /// The outcome of a commit that has nothing to do or cannot be made. `None` for any other commit.
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

    /// Reserves keys for the next attempt: the keys that the transaction has read one by one or written. Then it
    /// waits for others that have reserved these keys.
    pub(super) fn reserve_all(&mut self) {
        let hashes = self.hashes_to_reserve();
        let core = self.handle.core();
        core.writes.reserved.reserve(&mut self.reservation, &hashes, core.patient_clock());
    }

    /// As [`Transaction::reserve_all`], as a future: other tasks run meanwhile.
    pub(super) async fn reserve_all_async(&mut self) {
        let hashes = self.hashes_to_reserve();
        let (core, reservation) = (self.handle.core(), &mut self.reservation);
        give_way_until(core.patient_clock(), || core.writes.reserved.reserve(reservation, &hashes, None)).await;
    }

    fn hashes_to_reserve(&mut self) -> Vec<u64> {
        let (writes, keys, _) = self.work.finish();
        self.handle.core().writes.reserved.hashes(written_keys(writes.ops()).chain(keys.keys()))
    }

    /// Takes the keys that the transaction has reserved.
    pub(super) fn take_reservation(&mut self) -> Reservation {
        std::mem::take(&mut self.reservation)
    }

    /// A reader of the same rows in the transaction.
    fn read<'r, V>(&'r self, rows: &'r Reader<'static, V>) -> Result<Reader<'r, V>> {
        rows.handle().check_handle(&self.handle)?;
        Ok(rows.seen_at(Some(&self.pin)).within(&self.work))
    }

    /// The tables that the transaction has read or written.
    pub(super) fn tables(&self) -> Tables {
        self.work.running.tables()
    }

    /// Ends the transaction without any effect, as dropping it does.
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
