//! The feed of committed changes. It gives the commits after a version in commit order, each whole and none twice.
//!
//! ```text
//! version     at + 1 ……………… v - 1      v          newest
//! changes    in files, not in logs   in a log     the newest durable version
//! ```
//!
//! A commit is read from its log while the log is there (`from_log`). Versions that no log has are looked up in files
//! (`from_files`): those of imports and large transactions, and those whose logs were removed after a flush.
//!
//! Invariants:
//! - The newest durable version is read first, then the view, and then the logs. So each commit up to that version is in
//!   the files of the view or in a log that the feed reads to its end.
//! - Files are asked only if they have all changes after `at`: the past is kept from `at` or from before it.
//!
//! One thread at a time uses a feed. It holds nothing of the writer back, but the space of a log that it reads, and of the
//! files in which it stands within a commit with many changes.

mod change;
mod filter;
mod from_files;
mod from_log;

pub use change::{Change, ChangeKind, ChangedParts};
pub(crate) use from_files::bad_parts;

use crate::base::bounds::{self, IntoKeyRange};
use crate::base::error::Result;
use crate::base::table::TableId;
use crate::core::Core;
use crate::core::handle::DatabaseHandle;
use crate::read::Reader;
use crate::view::View;
use filter::{Filter, Infos};
use from_files::{Found, Position, has_newer};
use from_log::{LogFeed, Logged};
use os::sync::Arc;
use sst::{KeyRange, Version};
use std::collections::VecDeque;
use std::time::Duration;

/// The commits of a database after a version, in commit order: [`Database::changes`](crate::Database::changes).
///
/// A feed is where its last change was. To go on in another process, store [`Changes::position`] with what was made of
/// the changes, and begin there.
#[derive(Debug)]
pub struct Changes {
    handle: Arc<DatabaseHandle>,
    /// The changes that the caller wants.
    tables: Option<Vec<TableId>>,
    keys: Option<KeyRange>,
    /// All commits up to this version were found.
    found: Version,
    /// All commits up to this version were given.
    given: Version,
    /// The commit of which a part was found.
    part: Option<Part>,
    ready: VecDeque<Change>,
    log: Option<LogFeed>,
    /// The tables that the feed has seen, and the generation of the view in which it has looked last.
    infos: Infos,
    generation: Option<u64>,
}

/// The commit after the versions that were found, if it has more changes than fit in a window. Files are read on after
/// `position`.
#[derive(Debug)]
struct Part {
    position: Position,
    /// All parts are read from one view, because range erases are cut in other places after a compaction.
    view: Arc<View>,
    /// The last change before `position`. It is given when it is known whether it is the last one of its commit.
    held: Change,
}

impl Changes {
    /// A feed of the commits after `after`.
    pub(crate) fn new(handle: Arc<DatabaseHandle>, after: Version) -> Self {
        let (tables, keys, part, log) = (None, Some(KeyRange::ALL), None, None);
        let (ready, infos, generation) = (VecDeque::new(), Infos::new(), None);
        Self { handle, tables, keys, found: after, given: after, part, ready, log, infos, generation }
    }

    /// Gives only changes of this table, and of those named by other calls.
    ///
    /// # Errors
    ///
    /// [`Error::ForeignTable`](crate::Error::ForeignTable) if the table belongs to another database.
    pub fn of(mut self, table: &Reader<'_>) -> Result<Self> {
        table.handle().check_handle(&self.handle)?;
        self.tables.get_or_insert_default().push(table.handle().id());
        Ok(self)
    }

    /// Gives only changes of keys in `range`. A range that was erased is cut to `range`.
    pub fn within(mut self, range: impl IntoKeyRange) -> Self {
        self.keys = bounds::keys(&range);
        self
    }

    /// All commits up to this version were given as a whole. A feed that begins here gives those after it.
    pub fn position(&self) -> Version {
        self.given
    }

    /// The next change; `None` if there is none at the moment. The changes of a commit come one after the other, ranges
    /// that were erased before rows, and the last one [says so](Change::is_last).
    ///
    /// In the process that writes, only durable commits are given. A follower gives those that it shows, which a power
    /// failure of the writer may take back unless the writer syncs each commit.
    ///
    /// # Errors
    ///
    /// * [`Error::ChangesGone`](crate::Error::ChangesGone) if the changes at this position were not kept. [Retain](crate::Database::retain) the
    ///   past for as long as a feed may lag.
    /// * [`Error::Page`](crate::Error::Page) or [`Error::Log`](crate::Error::Log) if a file or a log cannot be read; [`Error::BadParts`](crate::Error::BadParts) if one is damaged.
    ///
    /// After an error, the next call tries again.
    pub fn next_change(&mut self) -> Result<Option<Change>> {
        if self.ready.is_empty() {
            self.fill()?;
        }
        let next = self.ready.pop_front();
        match &next {
            Some(change) if change.is_last() => self.given = change.version(),
            Some(_) => {}
            None => self.given = self.found,
        }
        Ok(next)
    }

    /// All changes of the next commit that has some. Empty if there is none at the moment. The whole commit has to fit
    /// in memory; [`Changes::next_change`] needs less for a commit with many rows.
    ///
    /// # Errors
    ///
    /// As [`Changes::next_change`].
    pub fn next_commit(&mut self) -> Result<Vec<Change>> {
        let mut commit = Vec::new();
        while commit.last().is_none_or(|change: &Change| !change.is_last()) {
            match self.next_change() {
                Ok(Some(change)) => commit.push(change),
                Ok(None) => break,
                Err(error) => {
                    commit.into_iter().rev().for_each(|change| self.ready.push_front(change));
                    return Err(error);
                }
            }
        }
        Ok(commit)
    }

    /// Waits until there are commits that this feed has not found yet, at most for `time`. Returns whether there are
    /// some. Their changes may be of other tables or keys. In the process that writes, it makes commits durable.
    ///
    /// # Errors
    ///
    /// [`Error::OutcomeUnknown`](crate::Error::OutcomeUnknown) if a sync fails; otherwise as [`Database::wait_for`](crate::Database::wait_for).
    pub fn wait(&self, time: Duration) -> Result<bool> {
        if !self.ready.is_empty() {
            return Ok(true);
        }
        let core = self.handle.core();
        if !core.wait_for(Version(self.found.0 + 1), time)? {
            return Ok(false);
        }
        core.make_durable(core.views.visible())?;
        Ok(true)
    }

    /// Finds the next changes, if there are some.
    fn fill(&mut self) -> Result<()> {
        let core = self.handle.core().clone();
        let tables = self.tables.clone();
        let Some(keys) = self.keys.clone() else {
            self.found = newest(&core).max(self.found);
            return Ok(());
        };
        let filter = Filter { tables: tables.as_deref(), keys: &keys };
        while self.ready.is_empty() {
            if let Some(part) = &self.part {
                let (view, from) = (part.view.clone(), part.position.clone());
                self.take_from_files(&core, view, (from.version, Some(from)), &filter)?;
                continue;
            }
            let newest = newest(&core);
            if self.found >= newest {
                return Ok(());
            }
            let view = core.views.newest();
            let Logged { version, is_whole } = self.logged(&core, &view)?;
            let logged = version.filter(|logged| *logged <= newest);
            // Up to this version, no log has a commit.
            let last = logged.map_or(newest, |logged| Version(logged.0 - 1));
            if last == self.found {
                self.take_from_log(&core, &filter)?;
            } else if is_whole && !has_newer(&view, self.found, &filter) {
                // They are those of work on tables and indexes.
                self.found = last;
            } else {
                self.take_from_files(&core, view, (last, None), &filter)?;
            }
        }
        Ok(())
    }

    /// What the logs have after `found`.
    fn logged(&mut self, core: &Core, view: &View) -> Result<Logged> {
        if self.log.as_ref().is_some_and(|log| log.is_dropped(view)) {
            self.log = None;
        }
        if self.log.is_none() {
            self.log = LogFeed::open(core, view, self.found)?;
        }
        let Some(log) = &mut self.log else { return Ok(Logged { version: None, is_whole: false }) };
        let outcome = log.peek(core, view, self.found);
        if outcome.is_err() {
            // The next call opens it again.
            self.log = None;
        }
        outcome
    }

    fn take_from_log(&mut self, core: &Core, filter: &Filter<'_>) -> Result<()> {
        let Some(log) = &mut self.log else { return Ok(()) };
        // A table that the commit writes may be newer than the view in which its log was found, or dropped by now.
        if self.generation != Some(core.views.generation()) {
            let view = core.views.newest();
            self.infos.extend(view.files.tables.values().map(|table| (table.info.id, table.info.clone())));
            // In a read-only database, views have no generations.
            self.generation = core.views.has_generations().then_some(view.generation);
        }
        let (version, changes) = log.take(&self.infos, &core.env.row_clock, filter)?;
        self.ready.extend(changes);
        self.found = version;
        Ok(())
    }

    /// Looks up changes after `found` up to the version `last` in the files of `view`. If `from` is given, only those after it,
    /// which are the rest of the commit `last`.
    fn take_from_files(
        &mut self,
        core: &Core,
        view: Arc<View>,
        (last, from): (Version, Option<Position>),
        filter: &Filter<'_>,
    ) -> Result<()> {
        let found = from_files::find(core, &view, (self.found, last), from, filter)?;
        let held = self.part.take().map(|part| part.held);
        let (changes, through) = match found {
            Found::All(changes) => (changes, last),
            Found::Through(version, changes) => (changes, version),
            Found::Within(position, mut changes) => {
                self.ready.extend(held);
                let held = changes.pop().expect("a window that was cut has a change");
                self.ready.extend(changes);
                self.part = Some(Part { position, view, held });
                return Ok(());
            }
        };
        if let Some(mut held) = held {
            if changes.first().is_none_or(|next| next.version() > held.version()) {
                held.end_commit();
            }
            self.ready.push_back(held);
        }
        self.ready.extend(changes);
        self.found = through;
        Ok(())
    }
}

/// The newest version whose commit and all before it are durable and visible.
fn newest(core: &Core) -> Version {
    let shown = core.views.now().1;
    if core.env.options.read_only { shown } else { shown.min(core.writes.sync.durable()) }
}

#[cfg(test)]
mod tests;
