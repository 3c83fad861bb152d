//! Copies of some rows of a memtable, which a range takes one after the other without keeping the memtable alive.
//! This module does not know the other sources of the range.
//!
//! Between two requests for rows, a range must not keep the memory of a whole write buffer. So it copies its next
//! rows from the memtable. A few small rows are enough, because usually many rows of files lie between two rows in
//! memory.

use super::{MemCursor, MemRow};
use crate::base::row_clock::RowClock;
use sst::{Direction, RowKind, StreakRow, StreakStart, Version};
use std::ops::Bound;

/// Copies of the next rows of a memtable in one direction: those that the cursor sees at its version.
#[derive(Debug)]
pub struct CopiedRows {
    direction: Direction,
    start: StreakStart,
    /// The keys and values of all copied rows.
    bytes: Vec<u8>,
    rows: Vec<CopiedRow>,
    /// The index of the next row.
    next: usize,
    /// Whether the copies contain all rows up to the end of the walk. If not, the memtable may have more rows for it.
    is_cut: bool,
}

/// One copied row. Its key is in `bytes` from `key_start` to `key_end`.
#[derive(Debug)]
struct CopiedRow {
    key_start: u32,
    key_end: u32,
    says: StreakRow,
}

/// Copying stops at `MAX_ROWS` rows or `ENOUGH_BYTES` bytes.
const MAX_ROWS: usize = 32;
const ENOUGH_BYTES: usize = 8 << 10;

/// The longest value that is copied. At a row with a longer one, and at a merge, the walk goes on in the memtable.
const MAX_VALUE_BYTES: usize = 1 << 10;

impl CopiedRows {
    /// Copies at most `most` rows, as long as `is_before_end` is true for their keys, beginning with the row at
    /// `cursor` or the one after it, as `start` says. A row that a range erase at version `erased` hides, or that has
    /// expired by `clock`, is copied without its value.
    pub fn new(
        cursor: &MemCursor,
        start: StreakStart,
        direction: Direction,
        (erased, clock): (Option<Version>, &RowClock),
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
            copies.copy(cursor.row(), erased, clock);
            // Checks this before the next step, which may take long: an old snapshot may see only few of the rows.
            if copies.rows.len() >= most.min(MAX_ROWS) || copies.bytes.len() >= ENOUGH_BYTES || copies.ends_elsewhere()
            {
                break;
            }
            cursor.step(direction);
        }
        copies
    }

    /// Whether the value of the last row was not copied, so that the walk has to go on in the memtable at this row.
    fn ends_elsewhere(&self) -> bool {
        self.rows.last().is_some_and(|row| row.says == StreakRow::Elsewhere)
    }

    fn copy(&mut self, row: &MemRow, erased: Option<Version>, clock: &RowClock) {
        let key_start = self.bytes.len() as u32;
        self.bytes.extend_from_slice(row.key());
        let key_end = self.bytes.len() as u32;
        let is_gone = !clock.shows(row.kind(), || row.until()) || erased.is_some_and(|erased| row.version() < erased);
        let says = if is_gone {
            StreakRow::Gone
        } else if row.kind() == RowKind::Merge || row.value().len() > MAX_VALUE_BYTES {
            StreakRow::Elsewhere
        } else {
            self.bytes.extend_from_slice(row.value());
            StreakRow::Shown(key_end, self.bytes.len() as u32)
        };
        self.rows.push(CopiedRow { key_start, key_end, says });
    }

    /// The prefix that all copied keys share.
    pub fn prefix(&self) -> &[u8] {
        let (Some(first), Some(last)) = (self.rows.first(), self.rows.last()) else { return &[] };
        let (first, last) = (self.key_of(first), self.key_of(last));
        let shared = first.iter().zip(last).take_while(|(a, b)| a == b).count();
        &first[..shared]
    }

    /// The direction in which the rows were copied.
    pub fn direction(&self) -> Direction {
        self.direction
    }

    /// Whether no row was copied.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Whether the walk ends after the last copy. If not, the memtable may have more rows for it.
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// The index of the next row, if there is one.
    pub fn row(&self) -> Option<usize> {
        (self.next < self.rows.len()).then_some(self.next)
    }

    /// What the memtable says about the next row. `None` if no row is left.
    pub fn read(&self) -> Option<StreakRow> {
        self.rows.get(self.next).map(|row| row.says)
    }

    /// The key of the next row, which must exist.
    pub fn key(&self) -> &[u8] {
        self.key_of(&self.rows[self.next])
    }

    /// Replaces `key` with the key of row `row`.
    pub fn read_key(&self, row: usize, key: &mut Vec<u8>) {
        key.clear();
        key.extend_from_slice(self.key_of(&self.rows[row]));
    }

    /// The value between two offsets that [`CopiedRows::read`] has returned.
    pub fn value(&self, start: u32, end: u32) -> &[u8] {
        &self.bytes[start as usize..end as usize]
    }

    /// Passes the next row.
    pub fn advance(&mut self) {
        self.next += 1;
    }

    /// Whether at least one copied row was passed.
    pub fn has_advanced(&self) -> bool {
        self.next > 0
    }

    /// Moves `cursor` to the last copied row that was passed. It must still be where it was when the rows were
    /// copied.
    pub fn resume(&self, cursor: &mut MemCursor) {
        let there = usize::from(self.start == StreakStart::At);
        // A step backward takes two searches, so for several rows one search for the key of the last passed row is
        // cheaper.
        if self.direction == Direction::Backward && self.next > there + 1 {
            cursor.seek_back(Bound::Included(self.key_of(&self.rows[self.next - 1])));
            return;
        }
        for _ in there..self.next {
            cursor.step(self.direction);
        }
    }

    /// Whether all copied rows were passed and the memtable may have more rows.
    pub fn is_used_up(&self) -> bool {
        !self.is_cut && self.next == self.rows.len()
    }

    /// The bytes that the copies take.
    pub fn memory_bytes(&self) -> u64 {
        (self.bytes.capacity() + self.rows.capacity() * size_of::<CopiedRow>()) as u64
    }

    fn key_of(&self, row: &CopiedRow) -> &[u8] {
        &self.bytes[row.key_start as usize..row.key_end as usize]
    }
}
