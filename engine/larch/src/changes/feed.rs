//! Finds the commits after a version, in order, and has those that were not given yet. It may wait for the disk. This
//! module does not know who reads the changes.

use super::change::Change;
use super::filter::{Filter, Infos, WHAT};
use super::from_files::{self, Found, Position, has_newer};
use super::from_log::{LogFeed, Logged};
use crate::base::error::{Error, Result};
use crate::base::table::TableId;
use crate::core::Core;
use crate::view::View;
use os::sync::Arc;
use os::sync::atomic::{AtomicBool, Ordering};
use sst::{KeyRange, Version};
use std::collections::VecDeque;
use std::io;

/// How many bytes of changes a task is given at once. A commit is not cut for this.
const BATCH_BYTES: usize = 256 << 10;

/// How many commits without a wanted change a look that reads only logs passes by.
const MOST_PASSED: usize = if cfg!(test) { 3 } else { 4096 };

/// What a call may read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    /// Only logs, for a moment.
    Logs,
    /// Logs and files.
    All,
}

/// A place among the commits of a database.
#[derive(Debug)]
pub struct Feed {
    /// The changes that the caller wants.
    pub tables: Option<Vec<TableId>>,
    /// The keys that the caller wants; `None` if there are none.
    pub keys: Option<KeyRange>,
    /// All commits up to this version were found.
    pub found: Version,
    /// What was found.
    pub ready: VecDeque<Change>,
    /// The program sets this when it drops the feed. A look for changes that is under way then ends.
    pub is_dropped: Arc<AtomicBool>,
    /// Set while a call looks for changes, and for ever if it panics: what it had found may be lost.
    pub is_looking: bool,
    /// The commit of which a part was found.
    part: Option<Part>,
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

impl Feed {
    /// A feed of the commits after `after`.
    pub fn new(after: Version) -> Self {
        Self {
            tables: None,
            keys: Some(KeyRange::ALL),
            found: after,
            ready: VecDeque::new(),
            is_dropped: Arc::default(),
            is_looking: false,
            part: None,
            log: None,
            infos: Infos::new(),
            generation: None,
        }
    }

    /// As [`Feed::fill`], but finds more commits, as many as a task is given at once.
    ///
    /// # Errors
    ///
    /// As [`Feed::fill`], if nothing was found before the error.
    pub fn fill_much(&mut self, core: &Core, reads: Reads) -> Result<bool> {
        self.look(core, |feed| feed.find_much(core, reads))
    }

    /// Finds the next changes, if there are some. Returns false if it has not, because that may take long.
    ///
    /// # Errors
    ///
    /// As [`Changes::next_change`](super::Changes::next_change). The next call tries again, unless this one panics.
    pub fn fill(&mut self, core: &Core, reads: Reads) -> Result<bool> {
        self.look(core, |feed| feed.find(core, reads))
    }

    /// Calls `look`. If it panics, all later calls fail.
    pub fn look(&mut self, core: &Core, look: impl FnOnce(&mut Self) -> Result<bool>) -> Result<bool> {
        if self.is_looking {
            return Err(panicked(core));
        }
        self.is_looking = true;
        let outcome = look(self);
        self.is_looking = false;
        outcome
    }

    fn find_much(&mut self, core: &Core, reads: Reads) -> Result<bool> {
        let (mut batch, mut bytes) = (VecDeque::new(), 0);
        let outcome = loop {
            let outcome = self.find(core, reads);
            if outcome.is_err() || self.ready.is_empty() {
                break outcome;
            }
            bytes += self.ready.iter().map(Change::memory_bytes).sum::<usize>();
            batch.append(&mut self.ready);
            if bytes >= BATCH_BYTES {
                break Ok(true);
            }
        };
        self.ready = batch;
        // If the error lasts, the next call returns it.
        if self.ready.is_empty() { outcome } else { Ok(true) }
    }

    fn find(&mut self, core: &Core, reads: Reads) -> Result<bool> {
        let tables = self.tables.clone();
        let Some(keys) = self.keys.clone() else {
            self.found = newest(core).max(self.found);
            return Ok(true);
        };
        let is_dropped = self.is_dropped.clone();
        let filter = Filter { tables: tables.as_deref(), keys: &keys, is_dropped: &is_dropped };
        let mut passed = 0;
        while self.ready.is_empty() {
            if is_dropped.load(Ordering::Relaxed) {
                return Err(Error::Cancelled(WHAT));
            }
            if reads == Reads::Logs && self.part.is_some() {
                return Ok(false);
            }
            if let Some(part) = &self.part {
                let (view, from) = (part.view.clone(), part.position.clone());
                self.take_from_files(core, view, (from.version, Some(from)), &filter)?;
                continue;
            }
            let newest = newest(core);
            if self.found >= newest {
                return Ok(true);
            }
            let view = core.views.newest();
            let Logged { version, is_whole } = self.logged(core, &view)?;
            let logged = version.filter(|logged| *logged <= newest);
            // Up to this version, no log has a commit.
            let last = logged.map_or(newest, |logged| Version(logged.0 - 1));
            if last == self.found {
                if reads == Reads::Logs && passed == MOST_PASSED {
                    return Ok(false);
                }
                passed += 1;
                self.take_from_log(core, &filter)?;
            } else if is_whole && !has_newer(&view, self.found, &filter) {
                // They are those of work on tables and indexes.
                self.found = last;
            } else if reads == Reads::All {
                self.take_from_files(core, view, (last, None), &filter)?;
            } else {
                return Ok(false);
            }
        }
        Ok(true)
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

    /// Looks up changes after `found` up to the version `last` in the files of `view`. If `from` is given, only those
    /// after it, which are the rest of the commit `last`.
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

/// The error of a feed after a panic of a call that looked for changes.
pub fn panicked(core: &Core) -> Error {
    let why = "a read panicked, its message is on standard error; begin a new feed at the position of this one";
    Error::io("read the changes of", &core.env.directory, io::Error::other(why))
}

/// The newest version whose commit and all before it are durable and visible.
pub fn newest(core: &Core) -> Version {
    let shown = core.views.now().1;
    if core.env.options.read_only { shown } else { shown.min(core.writes.sync.durable()) }
}
