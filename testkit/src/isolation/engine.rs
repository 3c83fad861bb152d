//! Adapts the engine to the [`Store`] that players use, whose values are marks.
//!
//! A value begins with the number of its mark. The rest is computed from this number, so that a damaged value is
//! noticed. Table 1 keeps its values in column groups. Each read of a row draws its form at random: a blocking call,
//! a call that tries first, a future, and others.
//!
//! The engine promises that a failed commit had no effect, unless the error says that the outcome is unknown. The
//! history records such a transaction as aborted, so that checking the history tests this promise.

use super::indexes;
use super::store::{Commit, OpenTransaction, Row, Store};
use super::transaction::{Direction, Isolation, Mark, Place};
use crate::history::reader::{Rows, Scanned, Seen};
use crate::history::rows::parts;
use crate::model::KeyRange;
use crate::options::TinyOptions;
use larch::index::{IndexEntry, RangeBy, ScanBy};
use larch::rows::Tried;
use larch::transaction::Savepoint;
use larch::{
    Conflict, Database, Durability, Error, Index, Readable, Result, Selection, Table, TableOptions, Value, Version,
};
use os::sim::SimReads;
use os::sync::atomic::{AtomicU64, Ordering};
use os::sync::{Arc, Mutex};
use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;
use rand::seq::IndexedRandom;
use std::ops::{AddAssign, ControlFlow};
use std::task::{Context, Poll, Waker};

/// The number of tables for transactions.
pub const TABLES: u32 = 2;

/// The number of a table that no transaction reads. Its rows are only there to fill the write buffer.
pub const BALLAST: u32 = TABLES;

/// The most puts of a transaction. The write buffer must have room for this many.
const MOST_PUTS: u64 = 16;

/// An upper bound of the memory that a put takes beside its value.
const PUT_BYTES: u64 = 160;

/// How many transactions ended in each way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ends {
    /// Transactions that began.
    pub begun: u64,
    /// The transactions that took place.
    pub committed: u64,
    /// The transactions that conflicted with another transaction.
    pub conflicted: u64,
    /// The transactions that began too long ago to be compared with newer commits, so that they could not commit.
    pub too_old: u64,
    /// The transactions whose outcome is unknown.
    pub unknown: u64,
    /// Those whose commit failed.
    pub failed: u64,
}

impl AddAssign for Ends {
    fn add_assign(&mut self, other: Self) {
        let Self { begun, committed, conflicted, too_old, unknown, failed } = other;
        self.begun += begun;
        self.committed += committed;
        self.conflicted += conflicted;
        self.too_old += too_old;
        self.unknown += unknown;
        self.failed += failed;
    }
}

/// The counters behind [`Ends`].
#[derive(Debug, Default)]
struct Counting {
    begun: AtomicU64,
    committed: AtomicU64,
    conflicted: AtomicU64,
    too_old: AtomicU64,
    unknown: AtomicU64,
    failed: AtomicU64,
}

/// An open database with the tables that the transactions use.
#[derive(Debug)]
pub struct EngineStore {
    db: Database,
    tables: Vec<EngineTable>,
    durability: Durability,
    longest_value: u64,
    /// The held-back reads of a simulated machine, which complete only when the thread that plays the transactions
    /// lets them. `None` on a real machine.
    reads: Option<Arc<SimReads>>,
    rng: Mutex<Xoshiro256PlusPlus>,
    /// The forms from which one is drawn for each read of a row. A form that is listed several times is drawn more
    /// often.
    forms: &'static [Form],
    /// The index through which transactions sometimes read table 0, if it currently exists.
    by_key: Mutex<Option<Index>>,
    counting: Counting,
    /// The newest commit that was acknowledged. `durable` is the newest commit that must survive a crash.
    acknowledged: AtomicU64,
    durable: AtomicU64,
}

/// A table. If the table has column groups, `all_parts` selects all its parts.
#[derive(Debug)]
struct EngineTable {
    table: Table,
    groups: usize,
    all_parts: Option<Selection>,
}

/// How a row is read.
#[derive(Clone, Copy, Debug)]
enum Form {
    Waits,
    Tries,
    Awaits,
    ForUpdate,
    /// The row is read through an index. If the table has no index, it is read by a call that waits.
    ByIndex,
}

/// The forms in which rows are read. The most frequent are those that do not make other transactions wait.
const FORMS: [Form; 10] = [
    Form::Waits,
    Form::Waits,
    Form::Waits,
    Form::Tries,
    Form::Tries,
    Form::Awaits,
    Form::Awaits,
    Form::ForUpdate,
    Form::ByIndex,
    Form::ByIndex,
];

impl EngineStore {
    /// A store over the tables in `db`, which was opened with `options`. Its random choices follow from `seed`.
    ///
    /// # Errors
    ///
    /// A table cannot be created.
    pub fn new(db: Database, options: &TinyOptions, reads: Option<Arc<SimReads>>, seed: u64) -> Result<Self> {
        let table = |number: u32| {
            let groups = if number == 1 { ["a", "b"].map(str::to_owned).to_vec() } else { Vec::new() };
            let stored = TableOptions { groups: groups.clone(), ..options.tables[number as usize].clone() };
            let table = db.table_with(&format!("t{number}"), stored)?;
            let all_parts = if groups.is_empty() { None } else { Some(table.select(&groups)?) };
            Result::Ok(EngineTable { table, groups: groups.len(), all_parts })
        };
        let tables = (0..=BALLAST).map(table).collect::<Result<_>>()?;
        let there = db.version().0;
        let tables: Vec<EngineTable> = tables;
        let by_key = Mutex::new(indexes::by_key(&tables[0].table));
        Ok(Self {
            tables,
            durability: options.durability,
            longest_value: (options.write_buffer_bytes / 2 / MOST_PUTS).saturating_sub(PUT_BYTES),
            reads,
            rng: Mutex::new(Xoshiro256PlusPlus::seed_from_u64(seed)),
            forms: &FORMS,
            by_key,
            counting: Counting::default(),
            acknowledged: AtomicU64::new(there),
            durable: AtomicU64::new(there),
            db,
        })
    }

    /// The same store, but each read is a plain blocking call, and none reserves its key.
    pub fn reading_plainly(self) -> Self {
        Self { forms: &[Form::Waits], ..self }
    }

    /// The database.
    pub fn database(&self) -> &Database {
        &self.db
    }

    /// A table by its number.
    pub fn table(&self, number: u32) -> &Table {
        &self.tables[number as usize].table
    }

    /// Creates those indexes of table 0 that do not exist yet.
    ///
    /// # Errors
    ///
    /// One of them cannot be built.
    pub fn create_indexes(&self) -> Result<()> {
        let created = indexes::create(self.table(0));
        *self.by_key.lock() = indexes::by_key(self.table(0));
        created
    }

    /// Whether table 0 has indexes.
    pub fn has_indexes(&self) -> bool {
        self.table(0).indexes().is_ok_and(|names| !names.is_empty())
    }

    /// Drops the index through which transactions read table 0. If it does not exist, creates it.
    ///
    /// # Errors
    ///
    /// It cannot be dropped or built.
    pub fn drop_or_create_index(&self) -> Result<()> {
        if self.by_key.lock().take().is_none() {
            return self.create_indexes();
        }
        let dropped = indexes::drop_one(self.table(0));
        *self.by_key.lock() = indexes::by_key(self.table(0));
        dropped
    }

    /// Drops everything except the database.
    pub fn into_database(self) -> Database {
        self.db
    }

    /// The durability of commits whose transaction does not ask for another.
    pub fn durability(&self) -> Durability {
        self.durability
    }

    /// How the transactions ended.
    pub fn ends(&self) -> Ends {
        let Counting { begun, committed, conflicted, too_old, unknown, failed } = &self.counting;
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Ends {
            begun: count(begun),
            committed: count(committed),
            conflicted: count(conflicted),
            too_old: count(too_old),
            unknown: count(unknown),
            failed: count(failed),
        }
    }

    /// The newest commit that was acknowledged.
    pub fn acknowledged(&self) -> Version {
        Version(self.acknowledged.load(Ordering::SeqCst))
    }

    /// The newest commit that must survive a crash.
    pub fn durable(&self) -> Version {
        Version(self.durable.load(Ordering::SeqCst))
    }

    /// Notes that a commit was acknowledged.
    pub fn acknowledge(&self, version: Version, durability: Durability) {
        self.acknowledged.fetch_max(version.0, Ordering::SeqCst);
        if durability == Durability::Synced {
            self.durable.fetch_max(version.0, Ordering::SeqCst);
        }
    }

    /// All rows that exist, read without a transaction.
    ///
    /// # Errors
    ///
    /// A read failed.
    pub fn rows(&self) -> Result<Vec<(Place, Mark)>> {
        let mut rows = Vec::new();
        for (table, EngineTable { table: inside, all_parts, .. }) in (0..TABLES).zip(&self.tables) {
            let all = match all_parts {
                None => Rows::Whole(inside.iter()),
                Some(all_parts) => Rows::Parts(all_parts.range(..)),
            };
            for row in all {
                let (key, seen) = row?;
                rows.push((Place { table, key: key.to_vec() }, self.mark(&seen)));
            }
        }
        Ok(rows)
    }

    /// Reads the first `limit` rows of `rows` in the given direction, through an index: by a closure that gets the
    /// rows (only from the front), as a future, or row by row.
    fn rows_by(&self, mut rows: RangeBy, direction: Direction, limit: usize) -> Result<Vec<Row>> {
        let mut given = Vec::new();
        if limit > 0 && direction == Direction::Forward && matches!(self.form(), Form::Waits) {
            let end = rows.for_each_row(|row| {
                given.push((row.row_key().to_vec(), self.mark_of(row.value())));
                if given.len() < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            });
            return end.map(|_| given);
        }
        let row = |(entry, value): (IndexEntry, Value)| (entry.row_key().to_vec(), self.mark_of(&value));
        if matches!(self.form(), Form::Awaits | Form::Tries) {
            let mut rows = ScanBy::from(rows);
            while given.len() < limit {
                let next = match direction {
                    Direction::Forward => self.wait(rows.next()),
                    Direction::Backward => self.wait(rows.next_back()),
                };
                let Some(next) = next.transpose()? else { break };
                given.push(row(next));
            }
            return Ok(given);
        }
        while given.len() < limit {
            let next = match direction {
                Direction::Forward => rows.next(),
                Direction::Backward => rows.next_back(),
            };
            let Some(next) = next.transpose()? else { break };
            given.push(row(next));
        }
        Ok(given)
    }

    /// The value of a mark.
    pub fn value(&self, mark: Mark) -> Vec<u8> {
        let mut value = mark.0.to_le_bytes().to_vec();
        // Most values are short. Now and then, a value has the greatest length that is allowed.
        let more = match mark.0 % 16 {
            0 => self.longest_value,
            1 => self.longest_value / 4,
            few => few,
        };
        value.extend((0..more).map(|place| (mark.0 ^ place) as u8));
        value
    }

    /// The mark of the current value of a key, read without a transaction.
    ///
    /// # Errors
    ///
    /// The read failed.
    pub fn get(&self, Place { table, key }: &Place) -> Result<Option<Mark>> {
        let EngineTable { table, all_parts, .. } = &self.tables[*table as usize];
        let seen = match all_parts {
            None => table.get(key)?.map(Seen::Whole),
            Some(all_parts) => all_parts.get(key)?.map(Seen::Parts),
        };
        Ok(seen.map(|seen| self.mark(&seen)))
    }

    /// `value`, cut into its parts. `None` if table number `table` has no column groups.
    pub fn parts_of(&self, table: u32, value: &[u8]) -> Option<Vec<Vec<u8>>> {
        let EngineTable { groups, all_parts, .. } = &self.tables[table as usize];
        all_parts.as_ref()?;
        Some(parts(value, *groups).into_iter().map(<[u8]>::to_vec).collect())
    }

    /// The mark of what was seen of a row.
    fn mark(&self, seen: &Seen) -> Mark {
        self.mark_of(&seen.iter().flat_map(|part| part.iter().copied()).collect::<Vec<_>>())
    }

    /// The mark of a value.
    pub fn mark_of(&self, value: &[u8]) -> Mark {
        let (number, _) = value.split_first_chunk().unwrap_or_else(|| panic!("{value:?} is not a value of ours"));
        let mark = Mark(u64::from_le_bytes(*number));
        assert!(value == self.value(mark), "the value of {mark:?} is not whole: {value:?}");
        mark
    }

    /// The index for a read of `table` in `form`, or `None` if the form uses none or the index does not exist.
    fn index(&self, table: u32, form: Form) -> Option<Index> {
        let reads = table == 0 && matches!(form, Form::ByIndex);
        self.by_key.lock().clone().filter(|_| reads)
    }

    fn form(&self) -> Form {
        *self.forms.choose(&mut *self.rng.lock()).expect("there are some")
    }

    /// Runs a future to its end. If it waits for reads that are held back, this thread completes them.
    fn wait<T>(&self, future: impl Future<Output = T>) -> T {
        let Some(reads) = &self.reads else { return smol::block_on(future) };
        let mut future = std::pin::pin!(future);
        loop {
            if let Poll::Ready(done) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                return done;
            }
            assert!(reads.step(), "a future waits for no read");
        }
    }
}

impl Store for EngineStore {
    type Error = Error;
    type Open<'s> = EngineTransaction<'s>;

    fn begin(&self, isolation: Isolation) -> Result<EngineTransaction<'_>> {
        let isolation = match isolation {
            Isolation::Serializable => larch::transaction::Isolation::Serializable,
            Isolation::Snapshot => larch::transaction::Isolation::Snapshot,
        };
        let durabilities = [None, None, Some(Durability::Synced), Some(Durability::Buffered)];
        let durability = *durabilities.choose(&mut *self.rng.lock()).expect("there are some");
        let options = larch::transaction::TransactionOptions { isolation, durability, ..Default::default() };
        let inside = self.db.begin_with(&options)?;
        self.counting.begun.fetch_add(1, Ordering::Relaxed);
        Ok(EngineTransaction { store: self, durability: durability.unwrap_or(self.durability), inside })
    }
}

/// A transaction of the engine.
#[derive(Debug)]
pub struct EngineTransaction<'s> {
    store: &'s EngineStore,
    durability: Durability,
    inside: larch::Transaction,
}

impl OpenTransaction for EngineTransaction<'_> {
    type Error = Error;
    type Savepoint = Savepoint;

    fn snapshot(&self) -> Version {
        self.inside.version()
    }

    fn get(&mut self, place: &Place) -> Result<Option<Mark>> {
        let Self { store, inside, .. } = self;
        let form = store.form();
        if let Some(by_key) = store.index(place.table, form) {
            match inside.get_by(&by_key, &place.key) {
                // The transaction began before the index was built, so it cannot read through the index.
                Err(Error::IndexNotReady { .. }) => {}
                rows => {
                    let rows = rows?;
                    assert!(rows.len() <= 1, "rows with one key");
                    return Ok(rows.first().map(|(_, value)| store.mark_of(value)));
                }
            }
        }
        let (number, key) = (&place.table, &place.key);
        let EngineTable { table, all_parts, .. } = &store.tables[*number as usize];
        let seen = match all_parts {
            None => match form {
                Form::Waits | Form::ByIndex => inside.get(table, key)?,
                Form::Tries => match inside.try_get(table, key)? {
                    Tried::Ready(value) => value,
                    Tried::WouldFault => inside.get(table, key)?,
                },
                Form::Awaits => store.wait(inside.get_async(table, key))?,
                Form::ForUpdate => inside.get_for_update(table, key)?,
            }
            .map(Seen::Whole),
            Some(all_parts) => {
                let selected = inside.select(all_parts)?;
                match form {
                    Form::Waits | Form::ByIndex | Form::ForUpdate => selected.get(key)?,
                    Form::Tries => match selected.try_get(key)? {
                        Tried::Ready(parts) => parts,
                        Tried::WouldFault => selected.get(key)?,
                    },
                    Form::Awaits => store.wait(selected.get_async(key))?,
                }
                .map(Seen::Parts)
            }
        };
        Ok(seen.map(|seen| store.mark(&seen)))
    }

    fn multi_get(&mut self, table: u32, keys: &[Vec<u8>]) -> Result<Vec<Option<Mark>>> {
        let Self { store, inside, .. } = self;
        let EngineTable { table, all_parts, .. } = &store.tables[table as usize];
        let awaits = matches!(store.form(), Form::Awaits);
        let seen: Vec<Option<Seen>> = match all_parts {
            None => {
                let rows = if awaits {
                    store.wait(inside.multi_get_async(table, keys))
                } else {
                    inside.multi_get(table, keys)
                };
                rows?.into_iter().map(|row| row.map(Seen::Whole)).collect()
            }
            Some(all_parts) => {
                let selected = inside.select(all_parts)?;
                let rows = if awaits { store.wait(selected.multi_get_async(keys)) } else { selected.multi_get(keys) };
                rows?.into_iter().map(|row| row.map(Seen::Parts)).collect()
            }
        };
        Ok(seen.into_iter().map(|row| row.map(|seen| store.mark(&seen))).collect())
    }

    fn range(&mut self, table: u32, range: &KeyRange, direction: Direction, limit: usize) -> Result<Vec<Row>> {
        let Self { store, inside, .. } = self;
        let form = store.form();
        if let Some(by_key) = store.index(table, form) {
            match store.rows_by(inside.range_by(&by_key, range.clone()), direction, limit) {
                Err(Error::IndexNotReady { .. }) => {}
                rows => return rows,
            }
        }
        let EngineTable { table, all_parts, .. } = &store.tables[table as usize];
        let mut rows = match all_parts {
            None => Rows::Whole(inside.range(table, range.clone())),
            Some(all_parts) => Rows::Parts(inside.select(all_parts)?.range(range.clone())),
        };
        let mut given = Vec::new();
        if matches!(form, Form::Awaits) {
            let mut scanned = Scanned::from(rows);
            while given.len() < limit {
                let row = match direction {
                    Direction::Forward => store.wait(scanned.next()),
                    Direction::Backward => store.wait(scanned.next_back()),
                };
                let Some((key, seen)) = row.transpose()? else { break };
                given.push((key.to_vec(), store.mark(&seen)));
            }
            return Ok(given);
        }
        while given.len() < limit {
            let row = match direction {
                Direction::Forward => rows.next(),
                Direction::Backward => rows.next_back(),
            };
            let Some((key, seen)) = row.transpose()? else { break };
            given.push((key.to_vec(), store.mark(&seen)));
        }
        Ok(given)
    }

    fn put(&mut self, Place { table, key }: &Place, mark: Mark) -> Result<()> {
        let value = self.store.value(mark);
        let inside = self.store.table(*table);
        match self.store.parts_of(*table, &value) {
            None => self.inside.insert(inside, key, value),
            Some(parts) => self.inside.insert_parts(inside, key, &parts),
        }
    }

    fn erase(&mut self, Place { table, key }: &Place) -> Result<()> {
        self.inside.remove(self.store.table(*table), key)
    }

    fn erase_range(&mut self, table: u32, range: &KeyRange) -> Result<()> {
        self.inside.remove_range(self.store.table(table), range.clone())
    }

    fn insert_new(&mut self, place: &Place, mark: Mark) -> Result<Option<Mark>> {
        if self.inside.contains_key(self.store.table(place.table), &place.key)? {
            return self.get(place);
        }
        self.put(place, mark)?;
        Ok(None)
    }

    fn savepoint(&mut self) -> Result<Savepoint> {
        Ok(self.inside.savepoint())
    }

    fn roll_back_to(&mut self, savepoint: &Savepoint) -> Result<()> {
        self.inside.rollback_to(savepoint)
    }

    fn commit(self) -> Result<Commit> {
        let Self { store, durability, inside } = self;
        let has_written = !inside.is_empty();
        let (count, outcome) = match inside.commit() {
            Ok(Ok(version)) => {
                if has_written {
                    store.acknowledge(version, durability);
                }
                (&store.counting.committed, Ok(Commit::Done(has_written.then_some(version))))
            }
            Ok(Err(Conflict::TooOld { .. })) => (&store.counting.too_old, Ok(Commit::Conflict)),
            Ok(Err(_)) => (&store.counting.conflicted, Ok(Commit::Conflict)),
            Err(error @ Error::OutcomeUnknown { .. }) => (&store.counting.unknown, Err(error)),
            Err(error) => {
                assert!(!error.is_corruption(), "a fault is not corruption: {error}");
                (&store.counting.failed, Ok(Commit::Failed))
            }
        };
        count.fetch_add(1, Ordering::Relaxed);
        outcome
    }
}
