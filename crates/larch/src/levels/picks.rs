//! Knows which tables a compaction has to examine: the tables that changed since they were examined last. So the
//! work of choosing a compaction does not grow with the number of tables. This module remembers which compaction
//! was picked for each table and which compactions are under way. It does not know why a compaction was picked.
//!
//! Thread safe. At any time, an install may report the tables that it has changed, and a compaction may end. Only
//! the thread that chooses the next compaction makes all other calls, see [`Picks::try_choose`].

use super::claim::Claim;
use super::level0::{Level0Use, Now, Watch};
use super::pick::Pick;
use crate::base::table::TableId;
use crate::manifest::{Edit, FileSet, TableFiles};
use os::sync::{Arc, Mutex, MutexGuard};
use sst::Version;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// What earlier examinations have found out about the tables.
#[derive(Debug, Default)]
pub struct Picks {
    state: Mutex<PickState>,
    /// The thread that chooses the next compaction holds this lock.
    choosing: Mutex<()>,
}

#[derive(Debug, Default)]
struct PickState {
    /// The tables that have changed and were not examined since.
    changed: BTreeSet<TableId>,
    /// The pick for each table that needs a compaction.
    picked: BTreeMap<TableId, Pick>,
    /// The tables in which a compaction may remove more as soon as the oldest readers have ended.
    waiting: BTreeSet<TableId>,
    /// How level 0 of each table is used.
    level0: Watch,
    /// The compactions under way, with a number for each.
    under_way: BTreeMap<TableId, Vec<(u64, Claim)>>,
    next_claim: u64,
    /// How many tables were examined so far.
    #[cfg(test)]
    examined: u64,
    /// When the tables in `waiting` were examined last, this was the oldest version that a reader could read at.
    oldest: Version,
}

/// A compaction under way. This value is made before the compaction begins, and is dropped when the compaction is
/// installed or has failed.
#[derive(Debug)]
pub struct Claimed {
    picks: Arc<Picks>,
    table: TableId,
    number: u64,
}

impl Drop for Claimed {
    fn drop(&mut self) {
        let mut state = self.picks.state.lock();
        if let Entry::Occupied(mut claims) = state.under_way.entry(self.table) {
            claims.get_mut().retain(|(number, _)| *number != self.number);
            if claims.get().is_empty() {
                claims.remove();
            }
        }
        state.changed.insert(self.table);
    }
}

impl Picks {
    /// The picks of a database that was just opened. Each table is to be examined.
    pub fn of(files: &FileSet) -> Arc<Self> {
        let changed = files.tables.keys().copied().collect();
        Arc::new(Self { state: Mutex::new(PickState { changed, ..PickState::default() }), choosing: Mutex::default() })
    }

    /// Gives this thread the right to choose the next compaction, until the returned guard is dropped. `None` if
    /// another thread has this right now.
    pub fn try_choose(&self) -> Option<MutexGuard<'_, ()>> {
        self.choosing.try_lock()
    }

    /// The claims of the compactions under way, by table.
    pub fn under_way(&self) -> BTreeMap<TableId, Vec<Claim>> {
        let claims = |claims: &Vec<(u64, Claim)>| claims.iter().map(|(_, claim)| claim.clone()).collect();
        self.state.lock().under_way.iter().map(|(table, all)| (*table, claims(all))).collect()
    }

    /// The number of compactions under way.
    pub fn under_way_count(&self) -> usize {
        self.state.lock().under_way.values().map(Vec::len).sum()
    }

    /// Adds a compaction of `table` to those under way, until the returned value is dropped. The table is examined
    /// again now and when the compaction ends.
    pub fn claim(self: &Arc<Self>, table: TableId, claim: Claim) -> Claimed {
        let mut state = self.state.lock();
        let others = state.under_way.get(&table);
        let is_free = others.is_none_or(|others| others.iter().all(|(_, other)| !other.meets(&claim)));
        assert!(is_free, "a pick meets no compaction under way");
        let number = state.next_claim;
        state.next_claim += 1;
        state.under_way.entry(table).or_default().push((number, claim));
        state.picked.remove(&table);
        state.changed.insert(table);
        drop(state);
        Claimed { picks: self.clone(), table, number }
    }

    /// Adds the tables that `edits` have changed to the tables to examine. The edits are installed already.
    pub fn note(&self, edits: &[Edit]) {
        let mut tables = edits.iter().filter_map(Edit::table).peekable();
        if tables.peek().is_some() {
            self.state.lock().changed.extend(tables);
        }
    }

    /// Returns the tables to examine `now`, and forgets that they changed. `oldest` is the oldest version that a
    /// reader may read at. The caller passes each of these tables to [`Picks::examined`], [`Picks::put_off`] or
    /// [`Picks::forget`].
    pub fn take(&self, oldest: Version, now: Now) -> Vec<TableId> {
        let mut state = self.state.lock();
        let mut tables = std::mem::take(&mut state.changed);
        tables.extend(state.level0.take_resting(now));
        if state.oldest != oldest {
            state.oldest = oldest;
            tables.extend(state.waiting.iter().copied());
        }
        tables.into_iter().collect()
    }

    /// How level 0 of `table` is used. The table is being examined. `few` comes from
    /// [`level0::few_files`](super::level0::few_files), and `wastes` from [`waste::is_due`](super::waste::is_due).
    pub fn level0_use(&self, table: &TableFiles, now: Now, few: usize, wastes: bool) -> Level0Use {
        self.state.lock().level0.look(table, now, few, wastes)
    }

    /// How long it takes until the next table is at rest and therefore has to be examined; `None` if no table waits
    /// for that.
    pub fn next_rest(&self, now: Duration) -> Option<Duration> {
        self.state.lock().level0.next_rest(now)
    }

    /// Puts off the examination of `tables` to the next time. Forgets what was picked for these tables, because
    /// their files may change until then.
    pub fn put_off(&self, tables: impl IntoIterator<Item = TableId>) {
        let mut state = self.state.lock();
        for table in tables {
            state.picked.remove(&table);
            state.changed.insert(table);
        }
    }

    /// Stores what was picked for `table`, and whether to examine the table again when the oldest reader has
    /// ended.
    pub fn examined(&self, table: TableId, pick: Pick, is_waiting: bool) {
        let mut state = self.state.lock();
        #[cfg(test)]
        {
            state.examined += 1;
        }
        match pick {
            Pick::Nothing => state.picked.remove(&table),
            pick => state.picked.insert(table, pick),
        };
        if is_waiting {
            state.waiting.insert(table)
        } else {
            state.waiting.remove(&table)
        };
    }

    /// The oldest version that a reader could read at when the waiting tables were examined; `None` if no table waits.
    pub fn waits_for(&self) -> Option<Version> {
        let state = self.state.lock();
        (!state.waiting.is_empty()).then_some(state.oldest)
    }

    /// Forgets a table that no longer exists.
    pub fn forget(&self, table: TableId) {
        let mut state = self.state.lock();
        state.picked.remove(&table);
        state.waiting.remove(&table);
        state.level0.forget(table);
    }

    /// Among the picks for which `may` returns true, the pick with the highest score, with its table in the file
    /// set `files`.
    pub fn best<'f>(&self, files: &'f FileSet, may: impl Fn(TableId, &Pick) -> bool) -> Option<(&'f TableFiles, Pick)> {
        let state = self.state.lock();
        let picked = state.picked.iter().filter(|(table, pick)| may(**table, pick));
        let (table, pick) = picked.max_by(|(_, a), (_, b)| a.score().total_cmp(&b.score()))?;
        Some((files.tables.get(table)?, pick.clone()))
    }

    /// How many times a table was examined so far.
    #[cfg(test)]
    pub fn examined_count(&self) -> u64 {
        self.state.lock().examined
    }
}

#[cfg(test)]
mod tests;
