//! Copies of some rows of a memtable. A range takes these rows one after the other without holding the memtable. It
//! does not know other sources.
//!
//! A range that is idle between two rows must not keep the memory of a write buffer, so it copies some rows instead.
//! It copies only a few small rows, because rows in memory mostly lie far apart between the rows of files.

use super::{MemCursor, MemRow};
use sst::{Direction, RowKind, StreakRow, StreakStart, Version};
use std::ops::Bound;

/// Copies of the next rows of a memtable in one direction, as of the version of a cursor.
#[derive(Debug)]
pub struct CopiedRows {
    direction: Direction,
    start: StreakStart,
    /// Keys and values.
    bytes: Vec<u8>,
    rows: Vec<CopiedRow>,
    /// The row that comes next.
    next: usize,
    /// Whether the copies reach the end of the walk for which they were made. If not, rows at the far end were left
    /// out.
    is_cut: bool,
}

/// One row: its key lies in the bytes up to `key_end`, before the description of the row.
#[derive(Debug)]
struct CopiedRow {
    key_start: u32,
    key_end: u32,
    says: StreakRow,
}

/// The most rows that are copied, and how many bytes are enough.
const MAX_ROWS: usize = 32;
const ENOUGH_BYTES: usize = 8 << 10;

/// A longer value is not copied: the walk goes on in the memtable there.
const MAX_VALUE_BYTES: usize = 1 << 10;

impl CopiedRows {
    /// At most `most` rows from the place of `cursor` on, as long as `is_before_end` is true for their keys. Rows
    /// that a range erase of version `erased` hides are copied without a value.
    pub fn new(
        cursor: &MemCursor,
        start: StreakStart,
        direction: Direction,
        erased: Option<Version>,
        most: usize,
        is_before_end: impl Fn(&[u8]) -> bool,
    ) -> Self {
        let mut copies = Self { direction, start, bytes: Vec::new(), rows: Vec::new(), next: 0, is_cut: false };
        let mut cursor = cursor.clone();
        if start == StreakStart::After {
            cursor.step(direction);
        }
        loop {
            if !cursor.key().is_some_and(&is_before_end) {
                copies.is_cut = true;
                break;
            }
            copies.copy(cursor.row(), erased);
            // The search ends with the last copied row, because an old snapshot may see only one row in many.
            if copies.rows.len() >= most.min(MAX_ROWS) || copies.bytes.len() >= ENOUGH_BYTES || copies.ends_elsewhere()
            {
                break;
            }
            cursor.step(direction);
        }
        copies
    }

    /// Whether the walk goes on in the memtable at the row copied last.
    fn ends_elsewhere(&self) -> bool {
        self.rows.last().is_some_and(|row| row.says == StreakRow::Elsewhere)
    }

    fn copy(&mut self, row: &MemRow, erased: Option<Version>) {
        let key_start = self.bytes.len() as u32;
        self.bytes.extend_from_slice(row.key());
        let key_end = self.bytes.len() as u32;
        let is_gone = row.kind() != RowKind::Put || erased.is_some_and(|erased| row.version() < erased);
        let says = if is_gone {
            StreakRow::Gone
        } else if row.value().len() > MAX_VALUE_BYTES {
            StreakRow::Elsewhere
        } else {
            self.bytes.extend_from_slice(row.value());
            StreakRow::Shown(key_end, self.bytes.len() as u32)
        };
        self.rows.push(CopiedRow { key_start, key_end, says });
    }

    /// What all keys begin with.
    pub fn prefix(&self) -> &[u8] {
        let (Some(first), Some(last)) = (self.rows.first(), self.rows.last()) else { return &[] };
        let (first, last) = (self.key_of(first), self.key_of(last));
        let shared = first.iter().zip(last).take_while(|(a, b)| a == b).count();
        &first[..shared]
    }

    /// Which way they go.
    pub fn direction(&self) -> Direction {
        self.direction
    }

    /// Whether no row was copied.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Whether the memtable has no row after the last one within the walk. Otherwise it may have more.
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// The row that comes next, if one exists.
    pub fn row(&self) -> Option<usize> {
        (self.next < self.rows.len()).then_some(self.next)
    }

    /// What the memtable says about the row that comes next. `None` if no row is left.
    pub fn read(&self) -> Option<StreakRow> {
        self.rows.get(self.next).map(|row| row.says)
    }

    /// The key of the row that comes next, which must exist.
    pub fn key(&self) -> &[u8] {
        self.key_of(&self.rows[self.next])
    }

    /// Replaces `key` with the key of a row.
    pub fn read_key(&self, row: usize, key: &mut Vec<u8>) {
        key.clear();
        key.extend_from_slice(self.key_of(&self.rows[row]));
    }

    /// The bytes between two places that [`CopiedRows::read`] has answered with.
    pub fn value(&self, start: u32, end: u32) -> &[u8] {
        &self.bytes[start as usize..end as usize]
    }

    /// Goes past the row that comes next.
    pub fn advance(&mut self) {
        self.next += 1;
    }

    /// Whether it has gone past a row.
    pub fn has_advanced(&self) -> bool {
        self.next > 0
    }

    /// Moves `cursor`, from whose place on the rows were copied, to the last row that was passed.
    pub fn resume(&self, cursor: &mut MemCursor) {
        let there = usize::from(self.start == StreakStart::At);
        // Backward, a step takes two searches.
        if self.direction == Direction::Backward && self.next > there + 1 {
            cursor.seek_back(Bound::Included(self.key_of(&self.rows[self.next - 1])));
            return;
        }
        for _ in there..self.next {
            cursor.step(self.direction);
        }
    }

    /// Whether all copied rows were passed, and the memtable may have more rows.
    pub fn is_used_up(&self) -> bool {
        !self.is_cut && self.next == self.rows.len()
    }

    /// The memory that they take, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        (self.bytes.capacity() + self.rows.capacity() * size_of::<CopiedRow>()) as u64
    }

    fn key_of(&self, row: &CopiedRow) -> &[u8] {
        &self.bytes[row.key_start as usize..row.key_end as usize]
    }
}
