//! The databases that a process opens to answer queries together with other processes. For each of them, the
//! process can show certain versions. This module knows no plans.
//!
//! One process plans a query, and other processes read the rows. All of them must read the same version. If two
//! processes read different versions, rows might be missing or might be counted twice. A process follows only the
//! files of a database. Therefore the version that it shows changes when the writer has written rows to files, and
//! not with each commit. A process takes a snapshot of each version that it sees, and keeps this snapshot for a
//! while:
//!
//! ```text
//! version       17 ──────────────────── 18 ──────────────────── 19            shown by this process
//! a query at 17      planned   first task       last task                     reads the snapshot of 17
//! ```
//!
//! Two processes that show the same version of a database show the same rows, even if the rows are spread differently
//! over files.

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

/// A function that opens the database in a directory or at a URL, as a follower of its files.
pub type Open = Arc<dyn Fn(&str) -> Result<Database> + Send + Sync>;

/// The error about a version that a process no longer shows contains these words.
pub const MOVED_ON: &str = "is not shown any more";

/// How long a snapshot is kept if no query asks for it. After a query was planned, each process asks for the
/// snapshot of the query when it begins its first task of the query.
const KEPT_UNASKED: Duration = Duration::from_secs(60);

/// How long a snapshot is kept after the last time that a query asked for it. The tasks of a query ask for the
/// snapshot one after the other.
const KEPT_ASKED: Duration = Duration::from_secs(600);

/// How long a database stays open after the last time that a query asked for it. An open database takes memory for
/// pages, and a lease of the files that it shows.
const KEPT_OPEN: Duration = Duration::from_secs(3600);

/// How long a process waits until it sees a version that another process has already seen. Ballista gives up a
/// task that begins 20 seconds late.
const PATIENCE: Duration = Duration::from_secs(10);

/// How often a process checks whether its databases have new versions. While a query waits for a version, the
/// process also checks as often as this.
pub const PAUSE: Duration = Duration::from_millis(50);

/// The place and the version of the database that a query reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The directory of the database or the URL of the database. Every process that answers the query finds the
    /// database there.
    pub database: String,
    /// The version that is read.
    pub version: u64,
}

/// The databases that a process has open. If it takes long to open a database, only requests for the same database
/// wait.
pub struct Databases {
    open: Open,
    shown: Mutex<BTreeMap<String, Arc<Slot>>>,
}

/// The entry for a database, which is locked while the database is opened.
type Slot = Mutex<Option<Arc<Shown>>>;

/// A database that is open.
pub struct Shown {
    pub database: Database,
    moments: Mutex<Vec<Moment>>,
    /// When a query last asked for the database, as a time on the machine's clock.
    asked: Mutex<Duration>,
    /// How many partitions of scans this process has begun to read.
    pub partitions: AtomicU64,
}

/// A version that can be read.
struct Moment {
    snapshot: Snapshot,
    /// The time on the machine's clock until which the snapshot is kept.
    until: Duration,
}

/// How much was read from a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reads {
    /// The directory or the URL of the database.
    pub place: String,
    /// How many partitions of scans the process has begun to read.
    pub partitions: u64,
    /// The number of pages with rows that were read from the disk or the store.
    pub data_pages: u64,
    /// The number of pages that were read from all column groups except the first.
    pub group_pages: u64,
    /// The number of bytes in all pages that were read.
    pub bytes: u64,
}

impl Databases {
    /// No databases yet. `open` is called to open a database when a query asks for this database for the first
    /// time.
    pub fn new(open: Open) -> Arc<Self> {
        Arc::new(Self { open, shown: Mutex::default() })
    }

    /// Returns the database at a place, with a snapshot of the version that a query reads.
    ///
    /// # Errors
    ///
    /// Fails if the database cannot be opened, or if this process does not see the version in time. Also fails if
    /// this process sees a later version and has kept no snapshot of the requested one.
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

    /// The databases that are open. Forgets the places at which no database could be opened.
    fn opened(&self) -> Vec<(String, Arc<Shown>)> {
        let mut all = self.shown.lock();
        let is_empty = |slot: &Arc<Slot>| Arc::strong_count(slot) == 1 && slot.lock().is_none();
        all.retain(|_, slot| !is_empty(slot));
        let opened = |(place, slot): (&String, &Arc<Slot>)| Some((place.clone(), slot.try_lock()?.clone()?));
        all.iter().filter_map(opened).collect()
    }

    /// Removes and returns the databases that no task reads and that no query has asked for since `then`. The next
    /// query that asks for such a database opens it again. The caller closes the returned databases by dropping
    /// them. Dropping them waits for their threads.
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

    /// Forgets the database at a place. The next request for this place opens the database that is there then.
    pub fn forget(&self, place: &str) {
        self.shown.lock().remove(place);
    }

    /// How much was read so far at each place.
    pub fn reads(&self) -> Vec<Reads> {
        self.opened().iter().map(|(place, shown)| shown.reads(place)).collect()
    }

    /// Regularly looks for new versions and closes unused databases. The task ends when it is the last owner of
    /// the databases.
    pub async fn watch(databases: Weak<Self>) {
        while let Some(databases) = databases.upgrade() {
            let all = databases.opened();
            all.iter().for_each(|(_, shown)| shown.look());
            drop(all);
            let unasked = databases.take_unasked(Machine::real().clock.now().saturating_sub(KEPT_OPEN));
            drop(databases);
            if !unasked.is_empty() {
                // Closing may wait for a store that does not answer, so it is done on a thread that may wait.
                tokio::task::spawn_blocking(move || drop(unasked));
            }
            // The engine does not report that a follower shows new files. Therefore the process looks again after
            // each pause.
            tokio::time::sleep(PAUSE).await;
        }
    }
}

impl Shown {
    /// If there is a new version, takes a snapshot of it. Also drops the snapshots that need not be kept any
    /// longer.
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
