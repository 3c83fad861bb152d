//! Counts what the memtables of a table contain, as if they were one memtable. The numbers are exact, because the
//! rows are walked one by one. Such a walk is never very long, because the write buffer limits the rows. This module
//! reads no page and does not know files.

use crate::base::row_clock::RowClock;
use crate::memtable::{MemCursor, MemRow, Memtable};
use crate::view::TableView;
use os::sync::Arc;
use sst::KeyRange;
use sst::stats::MemoryRun;
use sst::{RangeErase, Version};
use std::ops::Bound;

/// The parts of `span` that range erases in memory hide, sorted and disjoint.
pub fn erased(table: TableView<'_>, span: &KeyRange) -> Vec<KeyRange> {
    let seen = |erase: &RangeErase<Arc<[u8]>>| erase.versions.last().is_some_and(|&oldest| oldest <= table.at);
    let mut spans: Vec<KeyRange> = Vec::new();
    for memtable in table.memtables() {
        for erase in memtable.range_erases().filter(seen) {
            spans.extend(erase.keys.meet(span));
        }
    }
    spans.sort_by(|a, b| a.start.cmp(&b.start));
    let mut joined: Vec<KeyRange> = Vec::new();
    for span in spans {
        match joined.last_mut() {
            Some(last) if last.touches(&span) => last.join(span),
            _ => joined.push(span),
        }
    }
    joined
}

/// Walks over the keys in memory in order. For each key, the newest memtable that has it decides.
#[derive(Debug)]
pub struct MemoryRows {
    cursors: Vec<(MemCursor, Arc<Memtable>)>,
    at: Version,
    clock: Arc<RowClock>,
}

impl MemoryRows {
    /// The keys from `low` on.
    pub fn from(table: TableView<'_>, low: Bound<&[u8]>) -> Self {
        let at = table.at;
        let mut cursors: Vec<_> =
            table.memtables().map(|memtable| (MemCursor::new(memtable.clone(), at), memtable.clone())).collect();
        cursors.iter_mut().for_each(|(cursor, _)| cursor.seek(low));
        Self { cursors, at, clock: table.view.rules.clock.clone() }
    }

    /// The last key in `span`, if there is one.
    pub fn last_in(table: TableView<'_>, span: &KeyRange) -> Option<Vec<u8>> {
        let last = table.memtables().filter_map(|memtable| {
            let mut cursor = MemCursor::new(memtable.clone(), table.at);
            cursor.seek_back(span.high());
            cursor.key().filter(|&key| key >= span.start.as_slice()).map(<[u8]>::to_vec)
        });
        last.max()
    }

    /// The next row before the end of `span`, and whether a reader sees it: it may be an erase, or a range erase may
    /// hide it.
    pub fn next_in(&mut self, span: &KeyRange) -> Option<(MemRow, bool)> {
        let nearest = self.cursors.iter().filter_map(|(cursor, _)| cursor.key()).min()?;
        if !span.ends_after(nearest) {
            return None;
        }
        let key = nearest.to_vec();
        let mut cover = None;
        let mut found = None;
        for (cursor, memtable) in &mut self.cursors {
            let is_here = cursor.key() == Some(&key);
            if found.is_none() {
                cover = cover.max(memtable.cover(&key, self.at));
                if is_here {
                    let row = cursor.row().clone();
                    let shows = self.clock.shows(row.kind(), || row.until())
                        && cover.is_none_or(|cover| cover <= row.version());
                    found = Some((row, shows));
                }
            }
            if is_here {
                cursor.next();
            }
        }
        found
    }
}

/// How many rows and bytes are in memory, including rows that a reader does not see. A key in several memtables
/// counts once for each. The bytes include all versions.
#[derive(Clone, Copy, Debug, Default)]
pub struct InMemory {
    /// The number of keys.
    pub rows: u64,
    /// The bytes of all versions of the keys.
    pub bytes: u64,
}

/// What the memtables have in `span`.
pub fn held(table: TableView<'_>, span: &KeyRange) -> InMemory {
    let runs = table.memtables().flat_map(|memtable| runs(memtable, span, u64::MAX, u64::MAX));
    runs.fold(InMemory::default(), |sum, run| InMemory { rows: sum.rows + run.rows, bytes: sum.bytes + run.bytes })
}

/// Divides the keys of `span` in a memtable into consecutive runs. A run ends when it has `rows` keys or `bytes`
/// bytes.
pub fn runs(memtable: &Memtable, span: &KeyRange, rows: u64, bytes: u64) -> Vec<MemoryRun> {
    let mut runs: Vec<MemoryRun> = Vec::new();
    let versions = memtable.versions_from(&span.start);
    for row in versions.take_while(|row| span.ends_after(row.key())) {
        let more_bytes = row.memory_bytes();
        match runs.last_mut() {
            Some(run) if run.last_key == row.key() => run.bytes += more_bytes,
            Some(run) if run.rows < rows && run.bytes < bytes => {
                run.last_key.clear();
                run.last_key.extend_from_slice(row.key());
                run.rows += 1;
                run.bytes += more_bytes;
            }
            _ => {
                let (first_key, last_key) = (row.key().to_vec(), row.key().to_vec());
                runs.push(MemoryRun { first_key, last_key, rows: 1, bytes: more_bytes });
            }
        }
    }
    runs
}

/// The `n`-th key of a memtable at or after `start`, counted from 0.
pub fn nth_key(memtable: &Memtable, start: &[u8], n: u64) -> Option<Vec<u8>> {
    let mut left = n;
    let mut last: Option<MemRow> = None;
    for row in memtable.versions_from(start) {
        if last.as_ref().is_some_and(|last| last.key() == row.key()) {
            continue;
        }
        if left == 0 {
            return Some(row.key().to_vec());
        }
        left -= 1;
        last = Some(row);
    }
    None
}

#[cfg(test)]
mod tests;
