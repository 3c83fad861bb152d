//! Rows of one table in memory, ordered by key and version. This module does not know which versions a reader
//! should see, which commits are durable, or when the memtable is flushed.
//!
//! Rows are in a skip list in an arena (decision 47), sorted by key and, within a key, from the newest version to
//! the oldest. So one seek finds "the newest version at or before `at`". Range erases are kept apart from the skip
//! list, cut into fragments that do not overlap.
//!
//! Invariants:
//! - Nothing is removed. If a batch writes a key twice, the list has two rows with the same key and version, and the
//!   row that was added last hides the other.
//! - A reader reads at a version only after all commits up to that version are applied. So what it sees does not
//!   change when more commits are applied.
//! - A merge says all that the memtable knows of its key, see `merging`.
//! - If a put and a range erase have the same version, the put wins; see [`crate::base::ops::BatchOps::resolve`].
//!
//! Thread safety: any number of threads may apply batches and read at the same time; each batch is applied by one
//! thread. Looking up a row takes no lock and allocates nothing. Most lookups of absent keys are answered by the
//! filter of the memory set (decision 68). A reader that asks for range erases takes a read lock, but only if the
//! memtable has any.

use os::sync::atomic::{AtomicU64, Ordering};
use os::sync::{Arc, RwLock};
use sst::{CoverAround, Direction, RangeErase, RowKind, SoughtKey, Until, Version, hash_key};

mod allocated;
mod arena;
mod changes;
mod copied;
mod cursor;
mod fragments;
mod merging;
mod node;
mod row;
pub mod row_memory;
pub mod set;
mod set_filter;
mod skip_list;

pub use copied::CopiedRows;
pub use cursor::MemCursor;
pub use merging::is_whole;
pub use row::MemRow;

use arena::Arena;
use fragments::Fragments;
use node::{Content, Node};
use set_filter::TableFilter;
use skip_list::{Probe, SkipList};

/// The most fragments that a walk over the range erases copies each time it takes the lock.
const LISTED_ERASES: usize = 64;

/// Rows of one table in memory.
#[derive(Debug)]
pub struct Memtable {
    rows: SkipList,
    /// Filter over the keys of the rows, or `None` if the memory set has no filter.
    filter: Option<TableFilter>,
    range_erases: RwLock<Fragments>,
    /// Rows that were applied and not replaced.
    row_count: AtomicU64,
    /// Erases of single rows that were applied.
    erase_count: AtomicU64,
    /// Range erases that were applied. While it is 0, readers need not take the lock.
    range_erase_count: AtomicU64,
    /// The memory of the rows in the arena.
    row_bytes: AtomicU64,
    /// Estimated memory of the range erases: a copy of the number in `range_erases`.
    range_erase_bytes: AtomicU64,
}

/// Applies the rows of one batch to a memtable.
#[derive(Debug)]
pub struct Rows<'m> {
    memtable: &'m Memtable,
    inserter: skip_list::Inserter<'m>,
}

/// Bytes that a row takes beyond its key and its value, for a header and one link. Some rows have more links.
pub const ROW_BYTES: u64 = node::SMALLEST_BYTES as u64;

impl Default for Memtable {
    fn default() -> Self {
        Self::new()
    }
}

impl Memtable {
    /// An empty memtable that puts its rows into `arena` and its keys into `filter`.
    fn in_arena(arena: Arc<Arena>, filter: Option<TableFilter>) -> Self {
        Self {
            rows: SkipList::new(arena),
            filter,
            range_erases: RwLock::new(Fragments::default()),
            row_count: AtomicU64::new(0),
            erase_count: AtomicU64::new(0),
            range_erase_count: AtomicU64::new(0),
            row_bytes: AtomicU64::new(0),
            range_erase_bytes: AtomicU64::new(0),
        }
    }

    /// An empty memtable that belongs to no memory set.
    pub fn new() -> Self {
        Self::in_arena(Arc::new(Arena::new(Arc::default())), None)
    }

    /// Adds a row. `value` is empty for an erase.
    #[cfg(test)]
    pub fn apply(&self, key: &[u8], version: Version, kind: RowKind, value: &[u8]) {
        self.batch().apply(key, version, kind, value);
    }

    /// Returns an inserter through which one thread adds the rows of a batch. Ascending keys are faster.
    pub fn batch(&self) -> Rows<'_> {
        Rows { memtable: self, inserter: self.rows.inserter() }
    }

    /// Adds a range erase of the keys in `start..end` at `version`. If `end` is empty, it erases all keys from
    /// `start` on. Returns the memory of all range erases of the memtable before and after this call, in bytes.
    pub fn remove_range(&self, start: &[u8], end: &[u8], version: Version) -> (u64, u64) {
        let mut fragments = self.range_erases.write();
        let before = fragments.memory_bytes();
        if end.is_empty() || start < end {
            fragments.insert(start, end, version);
            self.range_erase_bytes.store(fragments.memory_bytes(), Ordering::Relaxed);
            self.range_erase_count.fetch_add(1, Ordering::Release);
        }
        (before, fragments.memory_bytes())
    }

    /// Like [`Memtable::get`], but consults the filter first. `at` must be a visible version: the filter may not yet
    /// have a row that is still being applied.
    #[inline]
    pub fn look_up(&self, key: &SoughtKey<'_>, at: Version) -> Option<MemRow> {
        let is_denied = self.filter.as_ref().is_some_and(|filter| !filter.may_have(key.hash()));
        if is_denied { None } else { self.get(key.bytes(), at) }
    }

    /// The newest version of `key` at or before `at`. A range erase may hide this version, see
    /// [`Memtable::cover`].
    #[inline]
    pub fn get(&self, key: &[u8], at: Version) -> Option<MemRow> {
        let node = self.rows.first_from(&Probe::new(key, at))?;
        (node.key() == key).then(|| self.rows.row(node))
    }

    /// The newest range erase at or before `at` that covers `key`.
    pub fn cover(&self, key: &[u8], at: Version) -> Option<Version> {
        if !self.has_range_erases() {
            return None;
        }
        self.range_erases.read().cover(key, at)
    }

    /// Whether any range was erased. Costs one atomic load.
    pub fn has_range_erases(&self) -> bool {
        self.range_erase_count.load(Ordering::Acquire) != 0
    }

    /// The range erases as sorted fragments that do not overlap, each with the versions of all its range erases. If
    /// another thread applies a range erase during the iteration, all or some parts of it may be missing.
    pub fn range_erases(&self) -> impl Iterator<Item = RangeErase<Arc<[u8]>>> + '_ {
        let mut chunk = Vec::new().into_iter();
        // All fragments that begin before this key have been returned or are in `chunk`.
        let mut next = self.has_range_erases().then(|| Arc::from([]));
        std::iter::from_fn(move || {
            if chunk.len() == 0 {
                let from: Arc<[u8]> = next.take()?;
                let listed = self.range_erases.read().list(&from, LISTED_ERASES);
                next = listed.last().and_then(|last| last.keys.end.clone());
                chunk = listed.into_iter();
            }
            chunk.next()
        })
    }

    /// The newest range erase at or before `at` that covers `key`, together with the keys around `key` for which the
    /// answer is the same.
    pub fn cover_around(&self, key: &[u8], at: Version, direction: Direction) -> CoverAround {
        self.range_erases.read().cover_around(key, at, direction)
    }

    /// All rows, sorted by key and from the newest to the oldest version. Other threads may add rows during the
    /// iteration.
    pub fn all_versions(&self) -> impl Iterator<Item = MemRow> + '_ {
        self.rows_from(self.rows.first())
    }

    /// All rows from `start` on, in the same order. Other threads may add rows during the iteration.
    pub fn versions_from<'m>(&'m self, start: &[u8]) -> impl Iterator<Item = MemRow> + use<'m> {
        self.rows_from(self.rows.first_from(&Probe::before(start)))
    }

    fn rows_from<'m>(&'m self, mut next: Option<Node<'m>>) -> impl Iterator<Item = MemRow> + use<'m> {
        std::iter::from_fn(move || {
            let here = next?;
            next = self.rows.following(here);
            // The next row has the same key and version, so the row that was just returned replaces it.
            while let Some(replaced) = next.filter(|next| next.version() == here.version() && next.has_key_of(here)) {
                next = self.rows.following(replaced);
            }
            Some(self.rows.row(here))
        })
    }

    /// Memory of the rows and the range erases, in bytes. Exact for rows, an estimate for range erases, see the
    /// module `fragments`.
    pub fn bytes(&self) -> u64 {
        self.row_bytes.load(Ordering::Relaxed) + self.range_erase_bytes.load(Ordering::Relaxed)
    }

    /// The number of rows. All versions of a key count.
    pub fn rows(&self) -> u64 {
        self.row_count.load(Ordering::Relaxed)
    }

    /// The number of erases of single rows.
    pub fn erases(&self) -> u64 {
        self.erase_count.load(Ordering::Relaxed)
    }

    /// Whether nothing was applied.
    pub fn is_empty(&self) -> bool {
        self.rows.first().is_none() && !self.has_range_erases()
    }
}

impl Rows<'_> {
    /// Adds a row. `value` is empty for an erase.
    #[inline]
    pub fn apply(&mut self, key: &[u8], version: Version, kind: RowKind, value: &[u8]) {
        self.add(&Content { key, version, kind, value, until: None });
    }

    /// Adds a put that is there until `until`.
    #[cold]
    pub fn apply_until(&mut self, key: &[u8], version: Version, until: Until, value: &[u8]) {
        self.add(&Content { key, version, kind: RowKind::PutUntil, value, until: Some(until) });
    }

    #[inline]
    fn add(&mut self, content: &Content<'_>) {
        self.note_key(content.key);
        let inserted = self.inserter.insert(content);
        self.count(content.kind, inserted);
    }

    /// Notes the key of a row in the filter, before the row is inserted.
    #[inline(always)]
    fn note_key(&self, key: &[u8]) {
        if let Some(filter) = &self.memtable.filter {
            filter.note(hash_key(key), self.memtable.rows.arena().used_bytes());
        }
    }

    /// Counts a row of this kind that was inserted: its memory in bytes, and whether it replaces none.
    #[inline(always)]
    fn count(&self, kind: RowKind, (bytes, is_new): (u64, bool)) {
        let memtable = self.memtable;
        memtable.row_bytes.fetch_add(bytes, Ordering::Relaxed);
        if is_new {
            memtable.row_count.fetch_add(1, Ordering::Relaxed);
        }
        if kind == RowKind::Erase {
            memtable.erase_count.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests;
