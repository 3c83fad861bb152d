//! Which tables a compaction examines: those that changed since they were examined last, so that its work does not grow
//! with the number of tables. It remembers what was picked for each table and which compactions are under way, and does
//! not know why.
//!
//! Thread safe. An install may note tables at any time, and a compaction may end. All other calls are made by the
//! thread that chooses, see [`Picks::try_choose`].

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

/// What is known of the tables without examining them.
#[derive(Debug, Default)]
pub struct Picks {
    state: Mutex<PickState>,
    /// Held by the thread that chooses the next compaction.
    choosing: Mutex<()>,
}

#[derive(Debug, Default)]
struct PickState {
    /// Tables that were not examined since they changed.
    changed: BTreeSet<TableId>,
    /// What was picked for the tables that need something.
    picked: BTreeMap<TableId, Pick>,
    /// Tables for which there may be more to do once the oldest readers are gone.
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

/// A compaction under way, from before it begins until it was installed or has failed.
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
    /// For a database that was just opened: each table is to be examined.
    pub fn of(files: &FileSet) -> Arc<Self> {
        let changed = files.tables.keys().copied().collect();
        Arc::new(Self { state: Mutex::new(PickState { changed, ..PickState::default() }), choosing: Mutex::default() })
    }

    /// Until the result is dropped, only this thread chooses the next compaction. `None` if another thread chooses.
    pub fn try_choose(&self) -> Option<MutexGuard<'_, ()>> {
        self.choosing.try_lock()
    }

    /// What the compactions under way have claimed.
    pub fn under_way(&self) -> BTreeMap<TableId, Vec<Claim>> {
        let claims = |claims: &Vec<(u64, Claim)>| claims.iter().map(|(_, claim)| claim.clone()).collect();
        self.state.lock().under_way.iter().map(|(table, all)| (*table, claims(all))).collect()
    }

    /// How many compactions are under way.
    pub fn under_way_count(&self) -> usize {
        self.state.lock().under_way.values().map(Vec::len).sum()
    }

    /// Notes that a compaction of `table` begins, until the result is dropped. The table is examined again when it
    /// begins and when it ends.
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

    /// Notes the tables that were changed by `edits`, which are installed.
    pub fn note(&self, edits: &[Edit]) {
        let mut tables = edits.iter().filter_map(Edit::table).peekable();
        if tables.peek().is_some() {
            self.state.lock().changed.extend(tables);
        }
    }

    /// Takes the tables to examine `now`, while `oldest` is the oldest version that a reader may read at. The caller
    /// passes each of them to [`Picks::examined`], [`Picks::put_off`] or [`Picks::forget`].
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

    /// How level 0 of `table`, which is being examined, is used. `few` is from
    /// [`level0::few_files`](super::level0::few_files), and `wastes` from [`waste::is_due`](super::waste::is_due).
    pub fn level0_use(&self, table: &TableFiles, now: Now, few: usize, wastes: bool) -> Level0Use {
        self.state.lock().level0.look(table, now, few, wastes)
    }

    /// How long it takes until the next table is at rest and therefore has to be examined; `None` if there is no
    /// such table.
    pub fn next_rest(&self, now: Duration) -> Option<Duration> {
        self.state.lock().level0.next_rest(now)
    }

    /// Leaves tables for the next time. What was picked for them before is forgotten, because their files may have
    /// changed by then.
    pub fn put_off(&self, tables: impl IntoIterator<Item = TableId>) {
        let mut state = self.state.lock();
        for table in tables {
            state.picked.remove(&table);
            state.changed.insert(table);
        }
    }

    /// Notes what was picked for a table, and whether to examine it again when the oldest reader is gone.
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

    /// Forgets a table that is gone.
    pub fn forget(&self, table: TableId) {
        let mut state = self.state.lock();
        state.picked.remove(&table);
        state.waiting.remove(&table);
        state.level0.forget(table);
    }

    /// The pick with the highest score among those that `may` be done now, with the files that its table has in
    /// `files`.
    pub fn best<'f>(&self, files: &'f FileSet, may: impl Fn(TableId, &Pick) -> bool) -> Option<(&'f TableFiles, Pick)> {
        let state = self.state.lock();
        let picked = state.picked.iter().filter(|(table, pick)| may(**table, pick));
        let (table, pick) = picked.max_by(|(_, a), (_, b)| a.score().total_cmp(&b.score()))?;
        Some((files.tables.get(table)?, pick.clone()))
    }

    /// How many tables were examined so far.
    #[cfg(test)]
    pub fn examined_count(&self) -> u64 {
        self.state.lock().examined
    }
}

#[cfg(test)]
mod tests;
