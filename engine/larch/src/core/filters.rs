//! The filters of tables, and what they have decided. A compaction only asks a filter and notes what it says; commits
//! carry it out (decision 113). This module does not know how.
//!
//! This module is thread-safe. A filter is asked with no lock held.

use crate::base::filter::{CompactionFilter, FilterCounts, JudgedRow, Verdict};
use crate::base::table::TableId;
use os::sync::atomic::{AtomicBool, Ordering};
use os::sync::{Arc, Condvar, Mutex};
use sst::Version;
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// Decisions that wait to be carried out take at most this many bytes, and then one batch more.
const MOST_BYTES: usize = 4 << 20;

/// One commit carries out the decisions about at most `BATCH_ROWS` rows. It takes no more decisions once they have
/// `BATCH_BYTES`.
const BATCH_BYTES: usize = 64 << 10;
const BATCH_ROWS: usize = 256;

/// A decision takes this many bytes beside its key and value.
const DECISION_BYTES: usize = size_of::<Decision>();

/// A compaction waits so long for room for its decisions, as long as commits make room. It must not wait for ever,
/// because a commit may wait for a compaction.
const PATIENCE: Duration = Duration::from_millis(20);

/// The filters of the tables of a database.
#[derive(Debug, Default)]
pub struct Filters(Mutex<HashMap<TableId, Arc<TableFilter>>>);

impl Filters {
    /// Adds a filter for `table`. Returns `None`, and adds none, if the table has one.
    pub fn add(&self, table: TableId, filter: Arc<TableFilter>) -> Option<()> {
        let mut filters = self.0.lock();
        if filters.contains_key(&table) {
            return None;
        }
        filters.insert(table, filter);
        Some(())
    }

    /// Takes the filter of `table` away.
    pub fn remove(&self, table: TableId) {
        let removed = self.0.lock().remove(&table);
        // The filter is code of the program, so it is not dropped under the lock.
        drop(removed);
    }

    /// The filter of `table`, unless it has ended.
    pub fn of(&self, table: TableId) -> Option<Arc<TableFilter>> {
        self.0.lock().get(&table).filter(|filter| !filter.is_over()).cloned()
    }
}

/// What a filter has decided about a row.
#[derive(Debug, PartialEq, Eq)]
pub struct Decision {
    /// The key of the row.
    pub key: Vec<u8>,
    /// The version of the row. If the key has another one by now, the decision is outdated.
    pub version: Version,
    /// The time until which the row is there.
    pub until: Option<Duration>,
    /// The new value in parts; `None` if the row is to be removed.
    pub new: Option<Vec<Vec<u8>>>,
}

impl Decision {
    fn bytes(&self) -> usize {
        let new = self.new.iter().flatten().map(|part| size_of::<Vec<u8>>() + part.len());
        DECISION_BYTES + self.key.len() + new.sum::<usize>()
    }
}

/// Decisions that are being carried out, until this is dropped.
#[derive(Debug)]
pub struct Taken {
    /// The decisions.
    pub decisions: Vec<Decision>,
    filter: Arc<TableFilter>,
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.filter.state.lock().taken -= 1;
        self.filter.changed.notify_all();
    }
}

/// The filter of one table.
pub struct TableFilter {
    filter: Box<dyn CompactionFilter>,
    state: Mutex<State>,
    /// Whether the filter has ended. Changes under the lock of the state.
    is_over: AtomicBool,
    /// Notified when decisions were added or taken, and at the end.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    batches: VecDeque<Vec<Decision>>,
    bytes: usize,
    /// How many batches are being carried out.
    taken: usize,
    counts: FilterCounts,
}

impl fmt::Debug for TableFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableFilter").field("state", &self.state).finish_non_exhaustive()
    }
}

impl TableFilter {
    /// A filter that has judged nothing yet.
    pub fn new(filter: Box<dyn CompactionFilter>) -> Arc<Self> {
        let (state, is_over, changed) = (Mutex::default(), AtomicBool::new(false), Condvar::new());
        Arc::new(Self { filter, state, is_over, changed })
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    /// What the filter has done so far.
    pub fn counts(&self) -> FilterCounts {
        self.state.lock().counts
    }

    /// Changes the counts.
    pub fn count(&self, change: impl FnOnce(&mut FilterCounts)) {
        change(&mut self.state.lock().counts);
    }

    /// Takes the oldest decisions that wait, for one commit. `None` if none waits.
    pub fn take(self: &Arc<Self>) -> Option<Taken> {
        let mut state = self.state.lock();
        let decisions = state.batches.pop_front()?;
        state.bytes -= decisions.iter().map(Decision::bytes).sum::<usize>();
        state.taken += 1;
        drop(state);
        self.changed.notify_all();
        Some(Taken { decisions, filter: self.clone() })
    }

    /// Waits until what others have taken is carried out. Returns whether there is more to take.
    pub fn wait_for_others(&self) -> bool {
        let mut state = self.state.lock();
        while state.taken > 0 && state.batches.is_empty() && !self.is_over() {
            state = self.changed.wait(state);
        }
        !state.batches.is_empty()
    }

    /// Waits until there are decisions. Returns false once the filter has [ended](TableFilter::end).
    pub fn wait(&self) -> bool {
        let mut state = self.state.lock();
        while state.batches.is_empty() && !self.is_over() {
            state = self.changed.wait(state);
        }
        !self.is_over()
    }

    /// Ends the filter: it is not asked again, and nothing that it has decided is carried out any more.
    pub fn end(&self) {
        let mut state = self.state.lock();
        self.is_over.store(true, Ordering::Release);
        let batches = std::mem::take(&mut state.batches);
        state.bytes = 0;
        drop(state);
        drop(batches);
        self.changed.notify_all();
    }

    /// Adds decisions. If too many wait, waits for room while `may_wait`, and otherwise leaves them out. Returns whether
    /// there was room.
    fn add(&self, batch: Vec<Decision>, may_wait: bool) -> bool {
        let mut state = self.state.lock();
        while may_wait && state.bytes >= MOST_BYTES && !self.is_over() {
            let before = state.bytes;
            let (next, is_late) = self.changed.wait_timeout(state, PATIENCE);
            state = next;
            if is_late && state.bytes >= before {
                break;
            }
        }
        if self.is_over() {
            return true;
        }
        if state.bytes >= MOST_BYTES {
            state.counts.left += batch.len() as u64;
            return false;
        }
        state.bytes += batch.iter().map(Decision::bytes).sum::<usize>();
        state.batches.push_back(batch);
        drop(state);
        self.changed.notify_all();
        true
    }
}

/// Asks the filter of a table about the rows of one compaction.
#[derive(Debug)]
pub struct Judge {
    filter: Arc<TableFilter>,
    /// Whether the compaction may wait for room.
    may_wait: bool,
    batch: Vec<Decision>,
    bytes: usize,
    judged: u64,
    /// Whether the last decisions found no room. Then the compaction does not wait for it again, until there is some.
    is_full: bool,
}

impl Judge {
    /// A judge that asks `filter`, for a compaction that waits for room if it `may_wait`.
    pub fn new(filter: Arc<TableFilter>, may_wait: bool) -> Self {
        Self { filter, may_wait, batch: Vec::new(), bytes: 0, judged: 0, is_full: false }
    }

    /// Asks the filter about `row`, and notes what it says.
    pub fn judge(&mut self, row: &JudgedRow<'_>) {
        if self.filter.is_over() {
            return;
        }
        self.judged += 1;
        let Ok(verdict) = catch_unwind(AssertUnwindSafe(|| self.filter.filter.judge(row))) else {
            self.filter.count(|counts| counts.has_panicked = true);
            self.filter.end();
            return;
        };
        let new = match verdict {
            Verdict::Keep => return,
            Verdict::Remove => None,
            // Otherwise a filter that encodes every row anew would never come to rest.
            Verdict::Replace(parts) if parts.iter().map(Vec::as_slice).eq(row.parts.iter().copied()) => return,
            Verdict::Replace(parts) => Some(parts),
        };
        let decision = Decision { key: row.key.to_vec(), version: row.version, until: row.until, new };
        self.bytes += decision.bytes();
        self.batch.push(decision);
        if self.bytes >= BATCH_BYTES || self.batch.len() >= BATCH_ROWS {
            self.send();
        }
    }

    fn send(&mut self) {
        let judged = std::mem::take(&mut self.judged);
        self.filter.count(|counts| counts.judged += judged);
        let batch = std::mem::take(&mut self.batch);
        self.bytes = 0;
        if !batch.is_empty() {
            self.is_full = !self.filter.add(batch, self.may_wait && !self.is_full);
        }
    }
}

impl Drop for Judge {
    fn drop(&mut self) {
        self.send();
    }
}

#[cfg(test)]
mod tests;
