//! Keeps the keys of flushed commits, so that a running transaction can still be compared with these commits. This
//! module does not know what a transaction has read.
//!
//! As long as the rows of a commit are in memory, a transaction is compared with these rows. A flush removes rows
//! from memory. If some of the flushed rows are newer than the start of a running transaction, this module keeps
//! the keys of these rows. This module keeps no values, and takes at most a share of the write buffer. If the kept
//! keys take more, keys of tables that no running transaction has read or written are dropped first. So commits to
//! other tables cannot take this memory away from a running transaction. If that is not enough, the oldest keys of
//! the table whose keys take the most memory are dropped.
//!
//! ```text
//! table 3   ·   ·   floor ├─ keys of a flush ─┤├─ keys of a flush ─┤├─ memory ─▶      a transaction has read it
//! table 7   ·   ·   ·   ·   ·   ·   ·   ·   ·   ·   ·   ·   ·  floor ├─ memory ─▶      none has
//! ```
//!
//! The floor of a table is the newest version whose keys are not known: they were dropped, or never kept. If a
//! transaction depends on a table and began before the floor of this table, it can no longer be compared with all
//! commits. The floors are in an array, and tables whose numbers have equal low bits share a place in it. Such
//! tables have one floor, and one count of the transactions that use them.
//!
//! This module is thread-safe.

use crate::base::table::TableId;
use crate::memtable::Memtable;
use crate::memtable::row_memory::RowMemory;
use crate::memtable::set::MemSet;
use os::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use os::sync::{Arc, Mutex};
use sst::Version;

/// The number of places in the array of floors. Tables with the same place share a floor.
const PLACES: usize = u64::BITS as usize;

/// A set of tables. If a table is in the set, so are all other tables that share its place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tables(u64);

impl Tables {
    /// The set of no tables.
    pub const NONE: Self = Self(0);

    /// The set with this table.
    #[inline]
    fn of(table: TableId) -> Self {
        Self(1 << place(table))
    }

    /// The places of the tables in the set.
    fn places(self) -> impl Iterator<Item = usize> {
        let mut left = self.0;
        std::iter::from_fn(move || {
            let place = left.trailing_zeros() as usize;
            left &= left.wrapping_sub(1);
            (place < PLACES).then_some(place)
        })
    }
}

fn place(table: TableId) -> usize {
    table.0 as usize % PLACES
}

/// The kept keys of commits whose rows are no longer in memory, and the floors of the tables.
#[derive(Debug)]
pub struct Recent {
    /// How many transactions are running.
    running: AtomicUsize,
    /// For each place in the array of floors, how many running transactions have read or written a table that has
    /// this place.
    using: [AtomicU32; PLACES],
    most_bytes: u64,
    commits: Mutex<RecentCommits>,
}

#[derive(Debug)]
struct RecentCommits {
    /// The highest of the floors.
    newest_floor: Version,
    floors: [Version; PLACES],
    flushed: FlushedKeys,
}

/// Kept keys of flushed rows. Each item has the keys of one table from one memory set. The oldest items come
/// first.
#[derive(Clone, Debug, Default)]
pub struct FlushedKeys(Vec<(TableId, Arc<MemSet>)>);

/// A running transaction. When this value is dropped, the transaction has ended.
#[derive(Debug)]
pub struct Running {
    recent: Arc<Recent>,
    /// The tables that the transaction has read or written.
    tables: AtomicU64,
}

impl Running {
    /// Begins a transaction, which will use `tables` and perhaps other tables. The caller takes the version at
    /// which the transaction reads only after this call.
    pub fn begin(recent: &Arc<Recent>, tables: Tables) -> Self {
        recent.running.fetch_add(1, Ordering::SeqCst);
        for place in tables.places() {
            recent.using[place].fetch_add(1, Ordering::SeqCst);
        }
        Self { recent: recent.clone(), tables: AtomicU64::new(tables.0) }
    }

    /// Notes that the transaction reads or writes `table`.
    #[inline]
    pub fn note(&self, table: TableId) {
        if self.tables.load(Ordering::Relaxed) & Tables::of(table).0 == 0 {
            self.note_first(table);
        }
    }

    #[cold]
    fn note_first(&self, table: TableId) {
        let Tables(bit) = Tables::of(table);
        if self.tables.fetch_or(bit, Ordering::Relaxed) & bit == 0 {
            self.recent.using[place(table)].fetch_add(1, Ordering::SeqCst);
        }
    }

    /// The tables that the transaction has read or written.
    pub fn tables(&self) -> Tables {
        Tables(self.tables.load(Ordering::Relaxed))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        for place in self.tables().places() {
            self.recent.using[place].fetch_sub(1, Ordering::SeqCst);
        }
        self.recent.leave();
    }
}

impl RecentCommits {
    /// Notes that this module no longer has all keys of commits up to `version` to tables at `place`.
    fn raise(&mut self, place: usize, version: Version) {
        self.floors[place] = self.floors[place].max(version);
        self.newest_floor = self.newest_floor.max(version);
    }

    fn forget(&mut self, gone: &FlushedKeys) {
        gone.0.iter().for_each(|(table, keys)| self.raise(place(*table), keys.newest()));
    }
}

impl FlushedKeys {
    /// The keys of `table` that may have versions after `since`.
    pub fn of(&self, table: TableId, since: Version) -> impl Iterator<Item = &Arc<Memtable>> {
        let keys = self.0.iter().filter(move |(of, keys)| *of == table && keys.newest() > since);
        keys.filter_map(move |(_, keys)| keys.table(table))
    }

    fn bytes(&self) -> u64 {
        self.0.iter().map(|(_, keys)| keys.bytes()).sum()
    }

    /// Removes keys until the kept keys take at most `most_bytes`, and returns the removed keys. In each step, the
    /// table whose keys take the most bytes loses its oldest keys. Tables that no transaction uses lose all their
    /// keys before other tables lose any.
    fn bound(&mut self, most_bytes: u64, is_used: impl Fn(TableId) -> bool) -> Self {
        let mut gone = Self::default();
        while self.bytes() > most_bytes {
            let of_table = |table: TableId| self.0.iter().filter(move |(of, _)| *of == table);
            let bytes = |table: TableId| of_table(table).map(|(_, keys)| keys.bytes()).sum::<u64>();
            let tables = self.0.iter().map(|(table, _)| *table);
            let first = tables.max_by_key(|table| (!is_used(*table), bytes(*table))).expect("there are bytes");
            let oldest = self.0.iter().position(|(table, _)| *table == first).expect("it was found here");
            gone.0.push(self.0.remove(oldest));
        }
        gone
    }
}

impl Recent {
    /// Starts without any flushed keys. The kept keys will take at most `most_bytes`.
    pub fn new(most_bytes: u64) -> Self {
        let commits =
            RecentCommits { newest_floor: Version(0), floors: [Version(0); PLACES], flushed: FlushedKeys::default() };
        Self {
            running: AtomicUsize::new(0),
            using: [const { AtomicU32::new(0) }; PLACES],
            most_bytes,
            commits: Mutex::new(commits),
        }
    }

    /// A transaction has ended.
    fn leave(&self) {
        if self.running.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.forget_all();
        }
    }

    /// Frees all that is kept for transactions, because no transaction is running.
    #[cold]
    fn forget_all(&self) {
        let mut commits = self.commits.lock();
        if self.running.load(Ordering::SeqCst) > 0 {
            return;
        }
        let gone = std::mem::take(&mut commits.flushed);
        commits.forget(&gone);
        drop(commits);
        drop(gone);
    }

    /// How many transactions are running.
    pub fn running(&self) -> usize {
        self.running.load(Ordering::Relaxed)
    }

    /// Whether a running transaction has read or written `table`.
    fn is_used(&self, table: TableId) -> bool {
        self.using[place(table)].load(Ordering::SeqCst) > 0
    }

    /// Notes that the memory set `memory` is about to be removed, because its rows were written to files. No reader
    /// reads at a version before `oldest`.
    pub fn note_flush(&self, memory: &MemSet, oldest: Version) {
        let is_needed = self.running.load(Ordering::SeqCst) > 0 && oldest < memory.newest();
        let is_used = |table| self.is_used(table);
        let (mut kept, mut floors) = (FlushedKeys::default(), Vec::new());
        for (table, memtable) in memory.all() {
            let keys = if is_needed { newest_keys(memory, (table, &memtable), oldest, self.most_bytes) } else { None };
            let Some((since, keys)) = keys else {
                floors.push((table, memory.newest()));
                continue;
            };
            floors.push((table, since));
            kept.0.extend(keys.map(|keys| (table, Arc::new(keys))));
            let over = kept.bound(self.most_bytes, is_used);
            floors.extend(over.0.iter().map(|(table, _)| (*table, memory.newest())));
        }
        let mut commits = self.commits.lock();
        // If an earlier flush of this memory set failed, keys of the set are already kept. They are replaced.
        let again: Vec<_> = commits.flushed.0.extract_if(.., |(_, keys)| keys.log == memory.log).collect();
        commits.flushed.0.append(&mut kept.0);
        // If the last transaction has ended meanwhile, no keys are kept, and keys from earlier flushes are also
        // dropped.
        let oldest = if self.running.load(Ordering::SeqCst) > 0 { oldest } else { Version::MAX };
        let old = FlushedKeys(commits.flushed.0.extract_if(.., |(_, keys)| keys.newest() <= oldest).collect());
        let over = commits.flushed.bound(self.most_bytes, is_used);
        [&old, &over].into_iter().for_each(|gone| commits.forget(gone));
        floors.into_iter().for_each(|(table, floor)| commits.raise(place(table), floor));
        drop(commits);
        drop((again, old, over));
    }

    /// Notes that the commit `version` changes `tables`, and that its rows are not in the memtables. `None` stands
    /// for all tables. After that, a running transaction that depends on one of these tables cannot be compared
    /// with the commit.
    pub fn note_change_of_tables(&self, tables: Option<&[TableId]>, version: Version) {
        let mut commits = self.commits.lock();
        match tables {
            Some(tables) => tables.iter().for_each(|table| commits.raise(place(*table), version)),
            None => (0..PLACES).for_each(|place| commits.raise(place, version)),
        }
    }

    /// All keys that were kept. The caller has taken a view before this call. Then every commit to `tables` after
    /// `since` is in the memory of this view or among these keys.
    ///
    /// # Errors
    ///
    /// If one of `tables` has a floor after `since`, the error is the highest such floor.
    pub fn commits(&self, since: Version, tables: Tables) -> Result<FlushedKeys, Version> {
        let commits = self.commits.lock();
        if since < commits.newest_floor {
            let floor = tables.places().map(|place| commits.floors[place]).max();
            if let Some(floor) = floor.filter(|floor| since < *floor) {
                return Err(floor);
            }
        }
        Ok(commits.flushed.clone())
    }

    /// The memory that the kept keys take, in bytes.
    pub fn bytes(&self) -> u64 {
        self.commits.lock().flushed.bytes()
    }
}

/// If the keys of a table take too much memory, only the keys of the newer half of the versions are tried. This
/// halving is done at most this many times.
const HALVINGS: usize = 4;

/// Returns a version, and the keys of a table of `memory` that were written after this version, if there are such
/// keys. The version is `oldest`, or a newer one if the keys written after `oldest` take more than `most_bytes`.
/// Returns `None` if even the newest keys take too much.
fn newest_keys(
    memory: &MemSet,
    table: (TableId, &Memtable),
    oldest: Version,
    most_bytes: u64,
) -> Option<(Version, Option<MemSet>)> {
    let mut since = oldest;
    for _ in 0..=HALVINGS {
        let keys = keys_after(memory, table, since, most_bytes);
        if keys.bytes() <= most_bytes {
            return Some((since, keys.table(table.0).is_some().then_some(keys)));
        }
        since = Version(since.0.midpoint(memory.newest().0).max(memory.oldest().0));
    }
    None
}

/// The keys of a table of `memory` that were written after `since`. The search stops when the keys take more than
/// `most_bytes`.
fn keys_after(memory: &MemSet, (table, memtable): (TableId, &Memtable), since: Version, most_bytes: u64) -> MemSet {
    let kept = MemSet::new(memory.log, Arc::new(RowMemory::default()));
    kept.note_commit(memory.newest(), 0);
    let mut rows = None;
    for row in memtable.all_versions().filter(|row| row.version() > since) {
        let rows = rows.get_or_insert_with(|| kept.table_or_new(table).batch());
        rows.apply(row.key(), row.version(), row.kind(), &[]);
        if kept.bytes() > most_bytes {
            return kept;
        }
    }
    for erase in memtable.range_erases() {
        let end = erase.keys.end.as_deref().unwrap_or_default();
        for &version in erase.versions.iter().filter(|version| **version > since) {
            kept.note_range_erases(kept.table_or_new(table).remove_range(&erase.keys.start, end, version));
        }
    }
    kept
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
