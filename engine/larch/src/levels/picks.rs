//! Remembers the pick for each table, the compactions under way, and the tables that have changed since they were
//! examined, so that choosing a compaction does not examine all tables. This module does not know why a compaction
//! was picked.
//!
//! Thread safe. Installs may report changed tables, and compactions may end, at any time. All other calls come from
//! the one thread that chooses the next compaction, see [`Picks::try_choose`].

use super::claim::Claim;
use super::level0::{Level0Use, Now, Watch};
use super::pick::Pick;
use crate::base::boundaries::Boundaries;
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
    /// Held by the thread that chooses the next compaction.
    choosing: Mutex<()>,
}

#[derive(Debug, Default)]
struct PickState {
    /// The tables that have changed since they were examined.
    changed: BTreeSet<TableId>,
    /// The pick for each table that needs a compaction.
    picked: BTreeMap<TableId, Pick>,
    /// When a compaction may next remove rows of a table because they have expired, in milliseconds since 1970.
    expiring: BTreeMap<TableId, u64>,
    /// The tables in which a compaction may remove more once the oldest readers have ended.
    waiting: BTreeSet<TableId>,
    /// How level 0 of each table is used.
    level0: Watch,
    /// The compactions under way, with a number for each.
    under_way: BTreeMap<TableId, Vec<(u64, Claim)>>,
    next_claim: u64,
    /// How many tables were examined so far.
    #[cfg(test)]
    examined: u64,
    /// The oldest version that a reader could read at when the tables in `waiting` were last examined.
    oldest: Version,
    /// What tables with a past of their own kept then.
    pasts: Vec<(TableId, Option<Version>)>,
}

/// A compaction under way, from before it begins until it is installed or has failed.
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
    /// The picks of a database that was just opened, with all tables to be examined.
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

    /// Adds a compaction of `table` to those under way until the returned value is dropped. The table is to be
    /// examined again now and after that.
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

    /// Notes the tables that the installed `edits` have changed.
    pub fn note(&self, edits: &[Edit]) {
        let mut tables = edits.iter().filter_map(Edit::table).peekable();
        if tables.peek().is_some() {
            self.state.lock().changed.extend(tables);
        }
    }

    /// Takes the tables to examine `now`. Readers read at `boundaries`. The caller passes each table to
    /// [`Picks::examined`], [`Picks::put_off`] or [`Picks::forget`].
    pub fn take(&self, boundaries: &Boundaries, now: Now) -> Vec<TableId> {
        let oldest = boundaries.oldest();
        let mut state = self.state.lock();
        let mut tables = std::mem::take(&mut state.changed);
        tables.extend(state.level0.take_resting(now));
        if state.oldest != oldest || state.pasts != boundaries.tables() {
            state.oldest = oldest;
            state.pasts = boundaries.tables().to_vec();
            tables.extend(state.waiting.iter().copied());
        }
        tables.into_iter().collect()
    }

    /// The use of level 0 of `table`, which is being examined. `few` comes from
    /// [`level0::few_files`](super::level0::few_files), and `wastes` from [`waste::is_due`](super::waste::is_due).
    pub fn level0_use(&self, table: &TableFiles, now: Now, few: usize, wastes: bool) -> Level0Use {
        self.state.lock().level0.look(table, now, few, wastes)
    }

    /// Notes that the table is to be examined again at the time `next`, in milliseconds since 1970, because rows of it
    /// will have expired by then; `None` if none will.
    pub fn note_expiry(&self, table: TableId, next: Option<u64>) {
        let mut state = self.state.lock();
        match next {
            Some(time) => state.expiring.insert(table, time),
            None => state.expiring.remove(&table),
        };
    }

    /// Lets the tables be examined again of which rows have expired by `now`, in milliseconds since 1970.
    pub fn wake_expired(&self, now: u64) {
        let mut state = self.state.lock();
        let due: Vec<TableId> =
            state.expiring.iter().filter(|(_, time)| **time <= now).map(|(table, _)| *table).collect();
        for table in due {
            state.expiring.remove(&table);
            state.changed.insert(table);
        }
    }

    /// The next time at which a table is to be examined because rows of it have expired; `None` if there is none.
    pub fn next_expiry(&self) -> Option<u64> {
        self.state.lock().expiring.values().copied().min()
    }

    /// How long until the next table is at rest and has to be examined; `None` if no table waits for that.
    pub fn next_rest(&self, now: Duration) -> Option<Duration> {
        self.state.lock().level0.next_rest(now)
    }

    /// Puts off the examination of `tables`, and drops their picks, because their files may change until then.
    pub fn put_off(&self, tables: impl IntoIterator<Item = TableId>) {
        let mut state = self.state.lock();
        for table in tables {
            state.picked.remove(&table);
            state.changed.insert(table);
        }
    }

    /// Stores the pick for `table`, and whether to examine it again when the oldest reader has ended.
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
        state.expiring.remove(&table);
        state.level0.forget(table);
    }

    /// The pick with the highest score among those that `may` allows, with its table in `files`.
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
