//! Keeps the keys of flushed commits, so that running transactions can still be compared with these commits. This
//! module does not know what a transaction has read.
//!
//! A transaction is compared with rows that are in memory. When a flush removes rows that are newer than the start
//! of a running transaction, this module keeps their keys, without values, in at most a share of the write buffer.
//! If the kept keys outgrow this share, keys of tables that no running transaction has read or written are dropped
//! first, so commits to other tables cannot push out what a transaction needs. After these, the table with the most
//! kept bytes loses its oldest keys.
//!
//! ```text
//! table 3   ·   ·   floor ├─ keys of a flush ─┤├─ keys of a flush ─┤├─ memory ─▶      a transaction has read it
//! table 7   ·   ·   ·   ·   ·   ·   ·   ·   ·   ·   ·   ·   ·  floor ├─ memory ─▶      none has
//! ```
//!
//! The *floor* of a table is the newest version whose keys were dropped or never kept. A transaction that depends
//! on a table and began before its floor can no longer be validated. The floors are in an array with 64 places.
//! Tables whose ids have equal low bits share a place, and so share one floor and one count of the transactions
//! that use them.
//!
//! Thread safe.

use crate::base::table::TableId;
use crate::memtable::Memtable;
use crate::memtable::row_memory::RowMemory;
use crate::memtable::set::MemSet;
use os::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use os::sync::{Arc, Mutex};
use sst::{RowKind, Version};

/// The number of places in the array of floors.
const PLACES: usize = u64::BITS as usize;

/// A set of tables, as the set of their places. It includes all tables that share a place with one of its tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tables(u64);

impl Tables {
    /// The empty set.
    pub const NONE: Self = Self(0);

    /// The set with only this table.
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
    /// For each place, how many running transactions have read or written a table there.
    using: [AtomicU32; PLACES],
    most_bytes: u64,
    commits: Mutex<RecentCommits>,
}

#[derive(Debug)]
struct RecentCommits {
    /// The highest floor.
    newest_floor: Version,
    floors: [Version; PLACES],
    flushed: FlushedKeys,
}

/// Kept keys of flushed rows, oldest first. Each item has the keys of one table from one memory set.
#[derive(Clone, Debug, Default)]
pub struct FlushedKeys(Vec<(TableId, Arc<MemSet>)>);

/// A running transaction, which ends when this value is dropped.
#[derive(Debug)]
pub struct Running {
    recent: Arc<Recent>,
    /// The tables that the transaction has read or written.
    tables: AtomicU64,
}

impl Running {
    /// Begins a transaction that will use `tables` and perhaps others. The caller must take the transaction's
    /// version after this call.
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
    /// Raises the floor at `place`: some keys of commits up to `version` to its tables are no longer kept.
    fn raise(&mut self, place: usize, version: Version) {
        self.floors[place] = self.floors[place].max(version);
        self.newest_floor = self.newest_floor.max(version);
    }

    fn forget(&mut self, gone: &FlushedKeys) {
        gone.0.iter().for_each(|(table, keys)| self.raise(place(*table), keys.newest()));
    }
}

impl FlushedKeys {
    /// The kept keys of `table` that may have versions after `since`.
    pub fn of(&self, table: TableId, since: Version) -> impl Iterator<Item = &Arc<Memtable>> {
        let keys = self.0.iter().filter(move |(of, keys)| *of == table && keys.newest() > since);
        keys.filter_map(move |(_, keys)| keys.table(table))
    }

    fn bytes(&self) -> u64 {
        self.0.iter().map(|(_, keys)| keys.bytes()).sum()
    }

    /// Removes and returns keys until the rest take at most `most_bytes`. In each step, the table whose keys take
    /// the most bytes loses its oldest item. Tables that no transaction uses lose all their keys first.
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
    /// Keeps nothing yet. The kept keys will take at most `most_bytes`.
    pub fn new(most_bytes: u64) -> Self {
        let commits =
            RecentCommits { newest_floor: Version(0), floors: [Version(0); PLACES], flushed: FlushedKeys::default() };
        Self {
            running: AtomicUsize::new(0),
            using: std::array::from_fn(|_| AtomicU32::new(0)),
            most_bytes,
            commits: Mutex::new(commits),
        }
    }

    /// Notes that a transaction has ended.
    fn leave(&self) {
        if self.running.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.forget_all();
        }
    }

    /// Drops all kept keys, unless a transaction has begun meanwhile.
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

    /// Keeps keys of `memory`, a flushed memory set that is about to be removed. No reader reads at a version
    /// before `oldest`.
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
        // After a failed flush of this memory set, its keys are kept already. Replace them.
        let again: Vec<_> = commits.flushed.0.extract_if(.., |(_, keys)| keys.log == memory.log).collect();
        commits.flushed.0.append(&mut kept.0);
        // If the last transaction has ended meanwhile, drop all keys, those of earlier flushes, too.
        let oldest = if self.running.load(Ordering::SeqCst) > 0 { oldest } else { Version::MAX };
        let old = FlushedKeys(commits.flushed.0.extract_if(.., |(_, keys)| keys.newest() <= oldest).collect());
        let over = commits.flushed.bound(self.most_bytes, is_used);
        [&old, &over].into_iter().for_each(|gone| commits.forget(gone));
        floors.into_iter().for_each(|(table, floor)| commits.raise(place(table), floor));
        drop(commits);
        drop((again, old, over));
    }

    /// Notes that the commit `version` changes `tables` without rows in memtables. `None` means all tables. Running
    /// transactions that depend on these tables can then no longer be validated.
    pub fn note_change_of_tables(&self, tables: Option<&[TableId]>, version: Version) {
        let mut commits = self.commits.lock();
        match tables {
            Some(tables) => tables.iter().for_each(|table| commits.raise(place(*table), version)),
            None => (0..PLACES).for_each(|place| commits.raise(place, version)),
        }
    }

    /// All kept keys. If the caller took a view before this call, every commit to `tables` after `since` is in that
    /// view's memory or among these keys.
    ///
    /// # Errors
    ///
    /// The highest floor of `tables`, if that is after `since`.
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

    /// The memory of the kept keys, in bytes.
    pub fn bytes(&self) -> u64 {
        self.commits.lock().flushed.bytes()
    }
}

/// If the keys of a table take too much memory, only those of the newer half of the versions are kept. The versions
/// are halved at most this often.
const HALVINGS: usize = 4;

/// Returns the keys of a table of `memory` that were written after some version, and that version. It is `oldest`,
/// or a newer one if the keys after `oldest` take more than `most_bytes`. Returns `None` if even the newest keys
/// take too much.
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

/// Collects the keys of a table of `memory` that were written after `since`. Stops once they take more than
/// `most_bytes`.
fn keys_after(memory: &MemSet, (table, memtable): (TableId, &Memtable), since: Version, most_bytes: u64) -> MemSet {
    let kept = MemSet::new(memory.log, Arc::new(RowMemory::default()));
    kept.note_commit(memory.newest(), 0);
    let mut rows = None;
    for row in memtable.all_versions().filter(|row| row.version() > since) {
        let rows = rows.get_or_insert_with(|| kept.table_or_new(table).batch());
        // Only the keys are kept, so a row has no time here.
        let kind = if row.kind() == RowKind::PutUntil { RowKind::Put } else { row.kind() };
        rows.apply(row.key(), row.version(), kind, &[]);
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
