//! The memtables of all tables that one log covers. This module does not know how the log is written.
//!
//! The rows of all memtables are in one arena. So the memory of a set is known exactly, and the rows of ten thousand
//! tables take no more memory than the same rows in one table. A set for look-ups has one filter for the keys of all
//! its memtables. The memtables are the nodes of a tree: at each level, the next two bits of a hash of the table id
//! choose one of four branches. Nodes are added and never removed, so a reader finds its memtable without a lock or a
//! reference count.
//!
//! Thread-safe. Any number of threads may add memtables and read at the same time.

use super::Memtable;
use super::arena::Arena;
use super::row_memory::RowMemory;
use super::set_filter::{SetFilter, TableFilter};
use crate::base::operand::MergeFunctions;
use crate::base::table::TableId;
use os::sync::atomic::{AtomicU64, Ordering};
use os::sync::{Arc, OnceLock};
use sst::Version;

/// The memtables that are filled while one log is written, one for each written table. The first write to a table
/// makes its memtable.
#[derive(Debug)]
pub struct MemSet {
    /// The number of the log that has the same rows as this set.
    pub log: u64,
    /// The numbers of older logs that also hold rows of this set. Only recovery, which reads several logs into one
    /// set, makes sets with older logs.
    pub older_logs: Vec<u64>,
    arena: Arc<Arena>,
    /// Denies most keys that the set does not have. `None` unless the set is used for look-ups.
    filter: Option<Arc<SetFilter>>,
    tables: OnceLock<Box<TableNode>>,
    /// The functions that merges may call.
    functions: MergeFunctions,
    /// The bytes of the memtables outside the arena: the tree and the range erases.
    other_bytes: AtomicU64,
    /// The bytes reserved for commits that are being applied.
    reserved_bytes: AtomicU64,
    /// The oldest version in any memtable.
    oldest: AtomicU64,
    /// The newest version in any memtable.
    newest: AtomicU64,
}

/// A memtable in the tree.
#[derive(Debug)]
struct TableNode {
    table: TableId,
    memtable: Arc<Memtable>,
    below: [OnceLock<Box<TableNode>>; 4],
}

impl MemSet {
    /// A set without memtables and without a filter. Rows will get their memory from `memory`.
    pub fn new(log: u64, memory: Arc<RowMemory>) -> Self {
        Self {
            log,
            older_logs: Vec::new(),
            arena: Arc::new(Arena::new(memory)),
            filter: None,
            tables: OnceLock::new(),
            functions: MergeFunctions::default(),
            other_bytes: AtomicU64::new(0),
            reserved_bytes: AtomicU64::new(0),
            oldest: AtomicU64::new(u64::MAX),
            newest: AtomicU64::new(0),
        }
    }

    /// Adds a filter, for a set that is used for look-ups.
    pub fn with_filter(mut self) -> Self {
        self.filter = Some(Arc::default());
        self
    }

    /// Lets merges call `functions`. Without them, values that need a function are computed later.
    pub fn with_functions(mut self, functions: &MergeFunctions) -> Self {
        self.functions = functions.clone();
        self
    }

    /// The functions that merges may call.
    pub fn functions(&self) -> &MergeFunctions {
        &self.functions
    }

    fn filter_bytes(&self) -> u64 {
        self.filter.as_ref().map_or(0, |filter| filter.bytes())
    }

    /// The memtable of a table, if it has one.
    #[inline]
    pub fn table(&self, table: TableId) -> Option<&Arc<Memtable>> {
        let mut place = &self.tables;
        let mut bits = spread(table);
        loop {
            let node = place.get()?;
            if node.table == table {
                return Some(&node.memtable);
            }
            place = &node.below[(bits & 3) as usize];
            bits >>= 2;
        }
    }

    /// The memtable of a table, which is made if it does not exist.
    pub fn table_or_new(&self, table: TableId) -> &Arc<Memtable> {
        let mut place = &self.tables;
        let mut bits = spread(table);
        loop {
            let node = place.get_or_init(|| {
                self.other_bytes.fetch_add(size_of::<TableNode>() as u64 + TABLE_BYTES, Ordering::Relaxed);
                let filter = self.filter.clone().map(|filter| TableFilter::new(filter, table));
                let memtable = Arc::new(Memtable::in_arena(self.arena.clone(), filter));
                Box::new(TableNode { table, memtable, below: Default::default() })
            });
            if node.table == table {
                return &node.memtable;
            }
            place = &node.below[(bits & 3) as usize];
            bits >>= 2;
        }
    }

    /// All memtables, sorted by table id.
    pub fn all(&self) -> Vec<(TableId, Arc<Memtable>)> {
        let mut all = Vec::new();
        let mut open: Vec<&TableNode> = self.tables.get().map(|node| &**node).into_iter().collect();
        while let Some(node) = open.pop() {
            all.push((node.table, node.memtable.clone()));
            open.extend(node.below.iter().filter_map(|place| place.get().map(|node| &**node)));
        }
        all.sort_unstable_by_key(|(table, _)| *table);
        all
    }

    /// The bytes of all memtables.
    pub fn bytes(&self) -> u64 {
        self.arena.bytes() + self.filter_bytes() + self.other_bytes.load(Ordering::Relaxed)
    }

    /// The bytes that are used, or reserved for commits. Memory of the arena that no row uses yet does not count.
    pub fn used_bytes(&self) -> u64 {
        let outside = self.other_bytes.load(Ordering::Relaxed) + self.reserved_bytes.load(Ordering::Relaxed);
        self.arena.used_bytes() + self.filter_bytes() + outside
    }

    /// Called before a commit with `version` is applied, in version order. Reserves about `bytes` for the commit.
    pub fn note_commit(&self, version: Version, bytes: u64) {
        self.reserved_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.oldest.fetch_min(version.0, Ordering::Relaxed);
        self.newest.fetch_max(version.0, Ordering::Relaxed);
    }

    /// Called after a commit was applied. `bytes` is what was reserved for it.
    pub fn note_applied(&self, bytes: u64) {
        self.reserved_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Called after a range erase was added to a memtable, whose range erases took `before` bytes and now take `now`
    /// bytes.
    pub fn note_range_erases(&self, (before, now): (u64, u64)) {
        // `now` is at least `before`, because fragments are only added and only grow.
        self.other_bytes.fetch_add(now.wrapping_sub(before), Ordering::Relaxed);
    }

    /// The oldest version of a commit in this set, or the greatest possible version if there is none.
    pub fn oldest(&self) -> Version {
        Version(self.oldest.load(Ordering::Relaxed))
    }

    /// The newest version of a commit in this set, or 0 if there is none.
    pub fn newest(&self) -> Version {
        Version(self.newest.load(Ordering::Relaxed))
    }

    /// Whether the set has erases of rows or of ranges.
    pub fn has_erases(&self) -> bool {
        self.all().iter().any(|(_, memtable)| memtable.erases() > 0 || memtable.has_range_erases())
    }

    /// Whether nothing was committed to the set.
    pub fn is_empty(&self) -> bool {
        self.oldest() == Version(u64::MAX)
    }
}

impl Drop for MemSet {
    fn drop(&mut self) {
        self.arena.note_flushed();
    }
}

/// The bytes of a memtable besides its rows: the value itself, the counts of its `Arc`, and the headers of the
/// allocator.
const TABLE_BYTES: u64 = size_of::<Memtable>() as u64 + 2 * 8 + 2 * 16;

/// A hash of the table id, which balances the tree. The multiplier is odd, so no two ids have the same hash.
fn spread(table: TableId) -> u32 {
    table.0.wrapping_mul(0x9e37_79b1).reverse_bits()
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
