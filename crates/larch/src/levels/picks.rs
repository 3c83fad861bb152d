//! Knows which tables a compaction has to examine: the tables that changed since they were examined last. So its
//! work does not grow with the number of tables. It remembers what was picked for each table and which compactions
//! are under way. This module does not know why something was picked.
//!
//! Thread safe. Installs may note tables at any time, and compactions may end at any time. The thread that chooses
//! the next compaction makes all other calls, see [`Picks::try_choose`].

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

/// What is known about the tables without examining them again.
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
    /// The tables for which there may be more to do when the oldest readers are gone.
    waiting: BTreeSet<TableId>,
    /// How level 0 of each table is used.
    level0: Watch,
    /// The compactions under way, with a number for each.
    under_way: BTreeMap<TableId, Vec<(u64, Claim)>>,
    next_claim: u64,
    /// How many tables were examined so far.
    #[cfg(test)]
    examined: u64,
    /// The oldest version that a reader could read at when the tables in `waiting` were examined last.
    oldest: Version,
}

/// A compaction under way. This value exists from before the compaction begins until it is installed or has failed.
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

    /// Until the result is dropped, only this thread chooses the next compaction. `None` if another thread is
    /// choosing.
    pub fn try_choose(&self) -> Option<MutexGuard<'_, ()>> {
        self.choosing.try_lock()
    }

    /// What the compactions under way have claimed, by table.
    pub fn under_way(&self) -> BTreeMap<TableId, Vec<Claim>> {
        let claims = |claims: &Vec<(u64, Claim)>| claims.iter().map(|(_, claim)| claim.clone()).collect();
        self.state.lock().under_way.iter().map(|(table, all)| (*table, claims(all))).collect()
    }

    /// The number of compactions under way.
    pub fn under_way_count(&self) -> usize {
        self.state.lock().under_way.values().map(Vec::len).sum()
    }

    /// Notes that a compaction of `table` begins. It ends when the result is dropped. The table is examined again
    /// when the compaction begins and when it ends.
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

    /// Notes the tables that `edits` have changed. The edits are installed already.
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

    /// Leaves `tables` for the next examination. It forgets what was picked for them before, because their files
    /// may have changed by then.
    pub fn put_off(&self, tables: impl IntoIterator<Item = TableId>) {
        let mut state = self.state.lock();
        for table in tables {
            state.picked.remove(&table);
            state.changed.insert(table);
        }
    }

    /// Notes what was picked for `table`, and whether to examine the table again when the oldest reader is gone.
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

    /// The pick with the highest score among the picks for which `may` returns true. It is returned with the files
    /// that its table has in `files`.
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
