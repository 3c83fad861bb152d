//! Which tables a compaction looks at: those that changed since it looked last, so that its work does not grow with the
//! number of tables. It does not know what is picked, or why.
//!
//! Thread safe. An install notes tables at any time; only who changes levels looks.

use super::pick::Choice;
use crate::manifest::{Edit, FileSet, TableFiles, TableId};
use os::sync::Mutex;
use sst::Version;
use std::collections::{BTreeMap, BTreeSet};

/// What is known of the tables without looking at them.
#[derive(Debug, Default)]
pub struct Picks {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Not looked at since they changed.
    changed: BTreeSet<TableId>,
    /// What those want that want something.
    wanted: BTreeMap<TableId, Choice>,
    /// Of these there may be more to do once no reader is older.
    waiting: BTreeSet<TableId>,
    #[cfg(test)]
    looked_at: u64,
    /// The oldest version that a reader could read at when the tables in `waiting` were examined last.
    oldest: Version,
}

impl Picks {
    /// For a database that was just opened: each table is to be looked at.
    pub fn of(files: &FileSet) -> Self {
        let changed = files.tables.keys().copied().collect();
        Self { state: Mutex::new(State { changed, ..State::default() }) }
    }

    /// Notes the tables that `edits`, which are installed, have changed.
    pub fn note(&self, edits: &[Edit]) {
        let mut tables = edits.iter().filter_map(Edit::table).peekable();
        if tables.peek().is_some() {
            self.state.lock().changed.extend(tables);
        }
    }

    /// Takes the tables to examine while `oldest` is the oldest version that a reader may read at. The caller passes each of
    /// them to [`Picks::looked`] or to [`Picks::put_off`].
    pub fn take(&self, oldest: Version) -> Vec<TableId> {
        let mut state = self.state.lock();
        let mut tables = std::mem::take(&mut state.changed);
        if state.oldest != oldest {
            state.oldest = oldest;
            tables.extend(state.waiting.iter().copied());
        }
        tables.into_iter().collect()
    }

    /// Leaves tables for the next time.
    pub fn put_off(&self, tables: impl IntoIterator<Item = TableId>) {
        self.state.lock().changed.extend(tables);
    }

    /// Notes what a table wants, and whether it is to be looked at again when the oldest reader is gone.
    pub fn looked(&self, table: TableId, choice: Choice, is_waiting: bool) {
        let mut state = self.state.lock();
        #[cfg(test)]
        {
            state.looked_at += 1;
        }
        match choice {
            Choice::Nothing => state.wanted.remove(&table),
            choice => state.wanted.insert(table, choice),
        };
        if is_waiting {
            state.waiting.insert(table)
        } else {
            state.waiting.remove(&table)
        };
    }

    /// If a table waits for its oldest readers to end: the oldest version that a reader could read at when it was examined.
    pub fn waits_for(&self) -> Option<Version> {
        let state = self.state.lock();
        (!state.waiting.is_empty()).then_some(state.oldest)
    }

    /// Forgets what a table wanted: it was done, or the table is gone.
    pub fn forget(&self, table: TableId) {
        let mut state = self.state.lock();
        state.wanted.remove(&table);
        state.waiting.remove(&table);
    }

    /// What is most wanted of the tables that `may` be compacted, with the table's files in `files`.
    pub fn most_wanted<'f>(
        &self,
        files: &'f FileSet,
        may: impl Fn(TableId) -> bool,
    ) -> Option<(&'f TableFiles, Choice)> {
        let state = self.state.lock();
        let wanted = state.wanted.iter().filter(|(table, _)| may(**table));
        let (table, choice) = wanted.max_by(|(_, a), (_, b)| a.score().total_cmp(&b.score()))?;
        Some((files.tables.get(table)?, choice.clone()))
    }

    /// How many tables were looked at so far.
    #[cfg(test)]
    pub fn looked_at(&self) -> u64 {
        self.state.lock().looked_at
    }
}

#[cfg(test)]
mod tests;
