//! The databases that a process opens to answer queries together with others, and the versions of them that it can
//! show.
//!
//! One process plans a query, and others read the rows. If they read different versions, rows might be missing or
//! counted twice. A process follows only the files of a database, so its version changes when the writer has written
//! rows to files, and not with each commit. It takes a snapshot of each version that it sees, and keeps it for a
//! while:
//!
//! ```text
//! version       17 ──────────────────── 18 ──────────────────── 19            shown by this process
//! a query at 17      planned   first task       last task                     reads the snapshot of 17
//! ```
//!
//! Two processes that show the same version show the same rows, however these are spread over files.

use crate::failure::external;
use datafusion::common::exec_err;
use datafusion::error::Result;
use larch::machine::Machine;
use larch::stats::PageKind;
use larch::{Database, Snapshot};
use os::sync::atomic::{AtomicU64, Ordering};
use os::sync::{Arc, Mutex, Weak};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

#[cfg(test)]
mod tests;

/// Opens the database in a directory or at a URL, as a follower of its files.
pub type Open = Arc<dyn Fn(&str) -> Result<Database> + Send + Sync>;

/// A part of the error about a version that a process no longer shows.
pub const MOVED_ON: &str = "is not shown any more";

/// How long a snapshot is kept that no query has asked for. A process asks for a query's snapshot when it begins its
/// first task of the query.
const KEPT_UNASKED: Duration = Duration::from_secs(60);

/// How long a snapshot is kept after a query last asked for it. The tasks of a query ask for it one after the other.
const KEPT_ASKED: Duration = Duration::from_secs(600);

/// How long a database stays open after a query last asked for it. An open database takes memory for pages, and
/// holds a lease on its files.
const KEPT_OPEN: Duration = Duration::from_secs(3600);

/// How long a process waits for a version that another process has already seen. Ballista gives up a task that
/// begins 20 seconds late.
const PATIENCE: Duration = Duration::from_secs(10);

/// The time between two checks for new versions, also while a query waits for one.
pub const PAUSE: Duration = Duration::from_millis(50);

/// Which database, and which version of it, a query reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The directory or URL at which every process that answers the query finds the database.
    pub database: String,
    /// The version that is read.
    pub version: u64,
}

/// The databases that a process has open. While one is being opened, only requests for the same one wait.
pub struct Databases {
    open: Open,
    shown: Mutex<BTreeMap<String, Arc<Slot>>>,
}

/// The entry for a database, locked while it is being opened.
type Slot = Mutex<Option<Arc<Shown>>>;

/// A database that is open.
pub struct Shown {
    pub database: Database,
    moments: Mutex<Vec<Moment>>,
    /// When a query last asked for the database, by the machine's clock.
    asked: Mutex<Duration>,
    /// How many partitions of scans this process has begun to read.
    pub partitions: AtomicU64,
}

/// A version that can be read.
struct Moment {
    snapshot: Snapshot,
    /// Until when the snapshot is kept, by the machine's clock.
    until: Duration,
}

/// How much was read from a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reads {
    /// The directory or the URL of the database.
    pub place: String,
    /// How many partitions of scans the process has begun to read.
    pub partitions: u64,
    /// The number of data pages that were read from the disk or the store.
    pub data_pages: u64,
    /// The number of pages of column groups other than the first that were read.
    pub group_pages: u64,
    /// The number of bytes in all pages that were read.
    pub bytes: u64,
}

impl Databases {
    /// No databases yet. `open` opens a database when a query first asks for it.
    pub fn new(open: Open) -> Arc<Self> {
        Arc::new(Self { open, shown: Mutex::default() })
    }

    /// Returns the database at a place, with a snapshot of the version that a query reads.
    ///
    /// # Errors
    ///
    /// Fails if the database cannot be opened, if this process does not see the version in time, or if it sees a
    /// later one and has no snapshot of the requested one.
    pub fn at(&self, place: &Place) -> Result<(Arc<Shown>, Snapshot)> {
        let shown = self.shown(&place.database)?;
        let snapshot = shown.at(place)?;
        Ok((shown, snapshot))
    }

    fn shown(&self, place: &str) -> Result<Arc<Shown>> {
        let slot = self.shown.lock().entry(place.to_owned()).or_default().clone();
        let mut opened = slot.lock();
        let now = Machine::real().clock.now();
        if let Some(shown) = &*opened {
            *shown.asked.lock() = now;
            return Ok(shown.clone());
        }
        let (database, asked) = ((self.open)(place)?, Mutex::new(now));
        let shown = Arc::new(Shown { database, moments: Mutex::default(), asked, partitions: AtomicU64::new(0) });
        shown.look();
        *opened = Some(shown.clone());
        Ok(shown)
    }

    /// The open databases. Forgets the places at which none could be opened.
    fn opened(&self) -> Vec<(String, Arc<Shown>)> {
        let mut all = self.shown.lock();
        let is_empty = |slot: &Arc<Slot>| Arc::strong_count(slot) == 1 && slot.lock().is_none();
        all.retain(|_, slot| !is_empty(slot));
        let opened = |(place, slot): (&String, &Arc<Slot>)| Some((place.clone(), slot.try_lock()?.clone()?));
        all.iter().filter_map(opened).collect()
    }

    /// Removes the databases that no task reads and no query has asked for since `then`. The next query that asks
    /// for one opens it again. The caller closes them by dropping them, which waits for their threads.
    #[must_use]
    fn take_unasked(&self, then: Duration) -> Vec<Arc<Shown>> {
        let is_unasked = |shown: &mut Arc<Shown>| Arc::strong_count(shown) == 1 && *shown.asked.lock() < then;
        let mut closed = Vec::new();
        for slot in self.shown.lock().values() {
            let Some(mut opened) = slot.try_lock() else { continue };
            closed.extend(opened.take_if(is_unasked));
        }
        closed
    }

    /// Forgets the database at a place. The next request opens whatever database is there then.
    pub fn forget(&self, place: &str) {
        self.shown.lock().remove(place);
    }

    /// How much was read so far at each place.
    pub fn reads(&self) -> Vec<Reads> {
        self.opened().iter().map(|(place, shown)| shown.reads(place)).collect()
    }

    /// Regularly looks for new versions and closes unused databases, until all other owners of `databases` are gone.
    pub async fn watch(databases: Weak<Self>) {
        while let Some(databases) = databases.upgrade() {
            let all = databases.opened();
            all.iter().for_each(|(_, shown)| shown.look());
            drop(all);
            let unasked = databases.take_unasked(Machine::real().clock.now().saturating_sub(KEPT_OPEN));
            drop(databases);
            if !unasked.is_empty() {
                // Closing may wait for a store that does not answer, so it is done on a thread that may block.
                tokio::task::spawn_blocking(move || drop(unasked));
            }
            // The engine does not report when a follower shows new files, so this looks again after a pause.
            tokio::time::sleep(PAUSE).await;
        }
    }
}

impl Shown {
    /// Takes a snapshot of a new version, and drops snapshots that have been kept long enough.
    fn look(&self) {
        let now = Machine::real().clock.now();
        let mut moments = self.moments.lock();
        let newest = moments.last().map(|moment| moment.snapshot.version());
        if newest != Some(self.database.version()) {
            moments.push(Moment { snapshot: self.database.snapshot(), until: Duration::ZERO });
        }
        if let Some(newest) = moments.last_mut() {
            newest.until = newest.until.max(now + KEPT_UNASKED);
        }
        moments.retain(|moment| moment.until > now);
    }

    fn at(&self, place: &Place) -> Result<Snapshot> {
        let clock = Machine::real().clock;
        let start = clock.now();
        loop {
            self.look();
            let now = clock.now();
            if let Some(moment) =
                self.moments.lock().iter_mut().find(|moment| moment.snapshot.version().0 == place.version)
            {
                moment.until = moment.until.max(now + KEPT_ASKED);
                return Ok(moment.snapshot.clone());
            }
            let shown = self.database.catch_up().map_err(external)?.0;
            let Place { database, version } = place;
            if shown > *version {
                return exec_err!("version {version} of {database} {MOVED_ON}, but version {shown}; ask again");
            }
            if shown < *version && now - start > PATIENCE {
                return exec_err!(
                    "{database} shows version {shown} to this process and version {version} to the one that asks; check that both \
                     read the same database"
                );
            }
            if shown < *version {
                clock.sleep(PAUSE);
            }
        }
    }

    fn reads(&self, place: &str) -> Reads {
        let metrics = self.database.metrics();
        let of_kind = |kind| metrics.pages.of_kind(kind).faults;
        Reads {
            place: place.to_owned(),
            partitions: self.partitions.load(Ordering::Relaxed),
            data_pages: of_kind(PageKind::Data),
            group_pages: of_kind(PageKind::Group),
            bytes: metrics.page_read_bytes,
        }
    }
}

impl fmt::Debug for Databases {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Databases").field("reads", &self.reads()).finish_non_exhaustive()
    }
}

impl fmt::Debug for Shown {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Shown").field("database", &self.database).finish_non_exhaustive()
    }
}

impl fmt::Display for Reads {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, partitions, data_pages, group_pages, bytes } = self;
        write!(
            out,
            "read of {place}: {partitions} partitions, {data_pages} data pages, {group_pages} pages of groups, {bytes} bytes"
        )
    }
}
