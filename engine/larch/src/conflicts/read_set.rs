//! The keys and key ranges that a transaction has read, including keys that have no row. This module does not know
//! values.
//!
//! The size of a set is bounded. If it grows too large, neighbouring keys of a table are joined to a range. A large
//! transaction may therefore conflict with a commit to a key in such a range that it never read, but no real
//! conflict is missed.
//!
//! While a transaction is reading a range, the set has the whole range. When the program drops the range, the set
//! keeps only the part that was read.

use crate::base::bounds;
use crate::base::table::TableId;
use os::sync::{Arc, Mutex};
use sst::{KeyRange, MAX_KEY_BYTES};
use std::ops::Bound;

/// The keys and ranges that a transaction has read.
#[derive(Debug)]
pub struct ReadSet {
    /// All keys in a row. Each is preceded by the id of its table and its length, in four bytes each.
    keys: Vec<u8>,
    ranges: Vec<TableRange>,
    /// The memory of `ranges`, in bytes.
    range_bytes: usize,
    /// The ranges that are being read now.
    open: Vec<Option<TableRange>>,
    /// The indexes of free places in `open`.
    free: Vec<usize>,
    most_bytes: usize,
}

/// A range of keys of a table.
pub type TableRange = (TableId, KeyRange);

const HEADER_BYTES: usize = 8;

/// The least size of an allocation, enough for the few keys that most transactions read.
const FIRST_BYTES: usize = 64;

impl ReadSet {
    /// An empty set, which joins neighbouring keys to ranges when it grows beyond `most_bytes`.
    pub fn new(most_bytes: usize) -> Self {
        Self { keys: Vec::new(), ranges: Vec::new(), range_bytes: 0, open: Vec::new(), free: Vec::new(), most_bytes }
    }

    /// Whether the transaction has read nothing.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.ranges.is_empty() && self.open.len() == self.free.len()
    }

    /// Adds a key.
    #[inline]
    pub fn add_key(&mut self, table: TableId, key: &[u8]) {
        if key.len() > MAX_KEY_BYTES {
            // No table can have such a key.
            return;
        }
        self.keys.reserve((HEADER_BYTES + key.len()).max(FIRST_BYTES));
        let header = u64::from(table.0) | (key.len() as u64) << 32;
        self.keys.extend_from_slice(&header.to_le_bytes());
        self.keys.extend_from_slice(key);
        self.bound();
    }

    /// Adds a range.
    pub fn add_range(&mut self, table: TableId, range: KeyRange) {
        self.range_bytes += range_bytes(&range);
        self.ranges.push((table, range));
        self.bound();
    }

    /// The keys that were read one by one and were not joined to ranges. A key may also lie in one of the ranges.
    pub fn keys(&self) -> impl Iterator<Item = (TableId, &[u8])> {
        let mut rest = self.keys.as_slice();
        std::iter::from_fn(move || {
            let (header, after) = rest.split_first_chunk::<HEADER_BYTES>()?;
            let [a, b, c, d, length @ ..] = *header;
            let (key, after) = after.split_at(u32::from_le_bytes(length) as usize);
            rest = after;
            Some((TableId(u32::from_le_bytes([a, b, c, d])), key))
        })
    }

    /// The ranges that were read or are being read.
    pub fn ranges(&self) -> impl Iterator<Item = &TableRange> {
        self.ranges.iter().chain(self.open.iter().flatten())
    }

    /// Adds a range that is being read, and returns its number.
    fn open(&mut self, table: TableId, range: KeyRange) -> usize {
        let number = self.free.pop().unwrap_or_else(|| {
            self.open.push(None);
            self.open.len() - 1
        });
        self.open[number] = Some((table, range));
        number
    }

    /// Ends the read of the range with this number. Keys between the bounds `left`, if given, were not read.
    fn close(&mut self, number: usize, left: Option<bounds::Borrowed<'_>>) {
        // The range is missing if a commit is under way, which has taken all open ranges out of the set.
        let Some((table, range)) = self.open.get_mut(number).and_then(Option::take) else { return };
        self.free.push(number);
        let Some((low, high)) = left else { return self.add_range(table, range) };
        let Some(left) = KeyRange::between(low, high) else { return self.add_range(table, range) };
        if let Some(front) = KeyRange::new(range.start, Some(left.start)) {
            self.add_range(table, front);
        }
        if let Some(end) = left.end
            && let Some(back) = KeyRange::new(end, range.end)
        {
            self.add_range(table, back);
        }
    }

    /// The memory of the set, in bytes.
    pub fn bytes(&self) -> usize {
        self.keys.len() + self.range_bytes
    }

    #[inline]
    fn bound(&mut self) {
        if self.bytes() > self.most_bytes {
            self.join_neighbours();
        }
    }

    /// Joins keys and ranges until the set takes at most half of `most_bytes`, or one range for each table is left.
    #[cold]
    fn join_neighbours(&mut self) {
        let mut all: Vec<TableRange> = self.keys().map(|(table, key)| (table, KeyRange::of_key(key))).collect();
        all.append(&mut self.ranges);
        all.sort_unstable();
        all = join(all, |last, next| last.touches(next));
        while all.iter().map(|(_, range)| range_bytes(range)).sum::<usize>() > self.most_bytes / 2 {
            let before = all.len();
            // Joins ranges in pairs: the first with the second, the third with the fourth, and so on.
            let mut is_second = true;
            all = join(all, |_, _| {
                is_second = !is_second;
                !is_second
            });
            if all.len() == before {
                break;
            }
        }
        self.keys = Vec::new();
        self.range_bytes = all.iter().map(|(_, range)| range_bytes(range)).sum();
        self.ranges = all;
    }
}

/// Joins each of the sorted ranges to the one before it, if they are in the same table and `joins` returns true.
fn join(sorted: Vec<TableRange>, mut joins: impl FnMut(&KeyRange, &KeyRange) -> bool) -> Vec<TableRange> {
    let mut joined: Vec<TableRange> = Vec::with_capacity(sorted.len());
    for (table, range) in sorted {
        match joined.last_mut() {
            Some((last_table, last)) if *last_table == table && joins(last, &range) => last.join(range),
            _ => joined.push((table, range)),
        }
    }
    joined
}

fn range_bytes(range: &KeyRange) -> usize {
    size_of::<TableRange>() + range.heap_bytes()
}

/// A range that a transaction is reading. It depends on the whole range until the read is [closed](Self::close).
#[derive(Debug)]
pub struct OpenRead {
    reads: Arc<Mutex<ReadSet>>,
    table: TableId,
    number: usize,
}

impl OpenRead {
    /// Begins to read `range` of `table`.
    pub fn begin(reads: &Arc<Mutex<ReadSet>>, table: TableId, range: KeyRange) -> Self {
        let number = reads.lock().open(table, range);
        Self { reads: reads.clone(), table, number }
    }

    /// Begins another read in the same table, of the keys between the given bounds; `None` if no key can lie
    /// between them.
    pub fn another(&self, (low, high): &bounds::Owned) -> Option<Self> {
        let keys = KeyRange::between(low.as_ref().map(Vec::as_slice), high.as_ref().map(Vec::as_slice))?;
        Some(Self::begin(&self.reads, self.table, keys))
    }

    /// Ends the read. Keys between the bounds `left` were not read; `None` means that the whole range was.
    pub fn close(self, left: Option<bounds::Borrowed<'_>>) {
        self.reads.lock().close(self.number, left);
    }

    /// Ends the read like [`OpenRead::close`], and then begins to read the keys between `low` and `high`. If no key
    /// can lie between them, opens a read of the key of one bound instead, so that the transaction still knows that
    /// it has a reader at its version.
    pub fn restart(&mut self, left: Option<bounds::Borrowed<'_>>, (low, high): bounds::Borrowed<'_>) {
        let range = KeyRange::between(low, high).unwrap_or_else(|| match (low, high) {
            (Bound::Included(key) | Bound::Excluded(key), _) | (_, Bound::Included(key) | Bound::Excluded(key)) => {
                KeyRange::of_key(key)
            }
            (Bound::Unbounded, Bound::Unbounded) => KeyRange::ALL,
        });
        let mut reads = self.reads.lock();
        reads.close(self.number, left);
        self.number = reads.open(self.table, range);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
