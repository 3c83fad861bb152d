//! What readers of one open database see: the newest view, the newest version, and the pinned versions.
//!
//! Invariants:
//! - A reader takes its view before its version. So every file in the view is older than the version.
//! - The newest version only grows. In a read-only database, the view may be replaced by one made from newer files
//!   and logs ([`Filled`]), which comes with the version up to which it has every commit. It is refused if reads
//!   have seen a newer version.
//!
//! This module is thread-safe. Readers hold the lock of the view only to increment a reference count.

use super::snapshots::{PinnedVersion, Snapshots};
use super::visible::Visible;
use crate::base::boundaries::Boundaries;
use crate::base::retention::Showing;
use crate::base::table::{TableId, TableInfo};
use crate::view::View;
use crate::view::ends::Ranges;
use os::sync::atomic::{AtomicU64, Ordering};
use os::sync::hazard::{Hazards, Lease};
use os::sync::lendable::{Borrowed, Lendable};
use os::sync::{Arc, Mutex, RwLock};
use sst::Version;

/// Which versions the reads of a database see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shows {
    /// Reads see the commits of this process.
    Own,
    /// Reads see what a writer in another process has put in files.
    Files,
    /// Reads see the commits of a writer in another process.
    Followed,
}

/// A view, and the newest version up to which it has every commit.
#[derive(Debug)]
pub struct Filled {
    /// The view.
    pub view: View,
    /// The view has every commit up to this version.
    pub version: Version,
}

/// A view was refused because it lacks commits that reads have seen, or is of another database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Behind {
    /// The newest version that reads have seen.
    pub seen: Version,
    /// The refused view has every commit up to this version.
    pub filled: Version,
}

/// Which tables show `version` in `view`, in which `newest` is the newest version.
fn showing(version: Version, newest: Version, view: &View) -> Option<Showing> {
    if version == newest { Some(Showing::All) } else { view.files.showing(version).filter(|_| version < newest) }
}

/// The views of one open database.
#[derive(Debug)]
pub struct Views {
    newest: RwLock<Arc<View>>,
    /// The newest view, for reads that only borrow it.
    lendable: Lendable<View>,
    /// The view that the newest one has replaced, until [`Views::take_replaced`] takes it.
    replaced: Mutex<Option<Arc<View>>>,
    /// Grows when another view becomes the newest. In a read-only database it never changes, so that open ranges go
    /// on reading their older files.
    generation: AtomicU64,
    /// The newest version that reads see. Commits with later versions are still being applied.
    visible: Visible,
    /// Which commits reads see.
    shows: Shows,
    /// The pinned versions.
    pub snapshots: Arc<Snapshots>,
    /// The ranges that are open.
    pub ranges: Arc<Ranges>,
}

impl Views {
    /// Starts with `view` as the newest view, in which reads see the versions up to `visible`.
    pub fn new(view: View, visible: Version, shows: Shows) -> Self {
        let view = Arc::new(view);
        Self {
            generation: AtomicU64::new(view.generation),
            lendable: Lendable::new(view.clone(), Hazards::shared()),
            newest: RwLock::new(view),
            replaced: Mutex::default(),
            visible: Visible::new(visible),
            shows,
            snapshots: Arc::default(),
            ranges: Arc::default(),
        }
    }

    /// The newest view.
    pub fn newest(&self) -> Arc<View> {
        self.newest.read().clone()
    }

    /// The generation of the newest view.
    #[inline]
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Whether each view has a generation of its own, which is so in a database that is open for writing.
    pub fn has_generations(&self) -> bool {
        self.shows == Shows::Own
    }

    /// The newest version that reads may see. A reader takes its view first, so every file in the view is older than
    /// this version.
    pub fn visible(&self) -> Version {
        self.visible.newest()
    }

    /// Lets reads see the commits up to `version`. The caller makes sure that no commit is being applied and that
    /// the newest view has all these commits. Does nothing if reads already see a newer version.
    pub fn publish(&self, version: Version) {
        self.visible.advance(version);
    }

    /// Tracks which versions are applied and visible.
    pub fn visible_versions(&self) -> &Visible {
        &self.visible
    }

    /// All versions at which a reader may read: the pinned versions, those with names, those of the past that is kept,
    /// and the newest one. Also the versions at which a read-only database beside the writer reads: the version up to
    /// which rows are in files and, after later flushes, the last versions of the memtables.
    pub fn boundaries(&self) -> Boundaries {
        self.boundaries_without(&[])
    }

    /// Like [`Views::boundaries`], for a flush that writes the memtables of all `logs` at once. No reader sees only
    /// some of these, so the versions at which one of them ends and the next begins are left out.
    pub fn boundaries_without(&self, logs: &[u64]) -> Boundaries {
        let (view, mut boundaries) = loop {
            let view = self.newest();
            let boundaries = self.snapshots.boundaries(|| self.visible());
            // A version may lose its pin once it has a name, and its name once it has a pin. So the pins must be those of
            // a moment at which the names are known.
            if self.generation() == view.generation {
                break (view, boundaries);
            }
        };
        let newest = *boundaries.last().expect("the newest version is one");
        let memory = view.memory.iter().filter(|memory| !logs.contains(&memory.log));
        let before_memory = memory.filter_map(|memory| memory.oldest().0.checked_sub(1).map(Version));
        boundaries.extend(before_memory.chain([view.files.flushed_version]).filter(|&version| version < newest));
        // Until the logs are recovered, reads do not see all versions with names.
        boundaries.extend(view.files.all_kept().map(|kept| kept.version));
        Boundaries::new(boundaries, view.files.retained_from()).with_tables(view.files.own_pasts())
    }

    /// The oldest version at which a reader may read now or later.
    pub fn oldest_seen(&self) -> Version {
        self.boundaries().oldest()
    }

    /// The view and the version for a read that begins now.
    #[inline]
    pub fn now(&self) -> (Arc<View>, Version) {
        match self.shows {
            Shows::Own => {
                let view = self.newest();
                (view, self.visible())
            }
            Shows::Files => {
                let view = self.newest();
                let version = view.files.flushed_version;
                (view, version)
            }
            Shows::Followed => {
                let newest = self.newest.read();
                (newest.clone(), self.visible())
            }
        }
    }

    /// As [`Views::now`], or, with a pin, the newest view and the version of `pin`. But the view is only borrowed, so
    /// the read must end soon. `None` if the view cannot be borrowed now, and always in a database that follows a
    /// writer or has pinned a view.
    #[inline]
    pub fn borrow<'v>(
        &'v self,
        pin: Option<&PinnedVersion>,
        lease: &'v Lease,
    ) -> Option<(Borrowed<'v, View>, Version)> {
        let view = self.lendable.borrow(lease)?;
        let version = match (self.shows, pin) {
            (Shows::Own, None) => self.visible(),
            (Shows::Own, Some(pin)) => pin.version(),
            (Shows::Files, None) => view.files.flushed_version,
            (Shows::Files, Some(_)) | (Shows::Followed, _) => return None,
        };
        Some((view, version))
    }

    /// Pins the newest version for a reader.
    pub fn pin(&self) -> PinnedVersion {
        if self.shows == Shows::Own {
            return self.snapshots.pin(|| self.visible());
        }
        let (view, version) = self.now();
        self.snapshots.pin_in(view, version)
    }

    /// Pins `version`; `None` if no reader could see it, because it is neither kept nor pinned nor the newest.
    pub fn pin_at(&self, version: Version) -> Option<PinnedVersion> {
        if self.shows != Shows::Own {
            let (view, newest) = self.now();
            let showing = showing(version, newest, &view)?;
            return Some(self.snapshots.pin_in(view, version).showing(showing));
        }
        self.snapshots.pin_if(version, || showing(version, self.visible(), &self.newest()))
    }

    /// The newest view that still shows the version of `pin`.
    pub fn of_pin(&self, pin: &PinnedVersion) -> Arc<View> {
        let newest = self.newest();
        match pin.view() {
            Some(own) if !self.is_shown_by(pin.version(), &newest) => own.clone(),
            _ => newest,
        }
    }

    /// Whether a read at `version` that began in an older view can go on in the newest one. For read-only databases.
    pub fn can_go_on(&self, version: Version) -> bool {
        self.is_shown_by(version, &self.newest())
    }

    fn is_shown_by(&self, version: Version, view: &View) -> bool {
        let flushed = view.files.flushed_version;
        let is_kept = || version < flushed && view.files.showing(version) == Some(Showing::All);
        self.shows == Shows::Files && (version == flushed || is_kept())
    }

    /// Replaces the newest view with a changed copy. Idle ranges keep the old view until [`Views::free_old`] is
    /// called.
    pub fn change(&self, change: impl FnOnce(&mut View)) {
        let mut newest = self.newest.write();
        let mut next = View::clone(&newest);
        next.generation += 1;
        change(&mut next);
        let generation = next.generation;
        let next = Arc::new(next);
        let unused = self.lendable.replace(next.clone());
        let old = std::mem::replace(&mut *newest, next);
        self.generation.store(generation, Ordering::Release);
        drop(newest);
        let older = self.replaced.lock().replace(old);
        drop((older, unused));
    }

    /// Takes the view that the newest one has replaced, unless an earlier call has taken it.
    pub fn take_replaced(&self) -> Option<Arc<View>> {
        self.lendable.free_unused();
        self.replaced.lock().take()
    }

    /// Replaces the newest view of a read-only database. Reads then see the new view, up to its version. Open ranges
    /// keep their views.
    ///
    /// # Errors
    ///
    /// [`Behind`] if reads have seen a newer version than this view has, or if it is of another database. Reads then
    /// keep seeing the old view.
    pub fn renew(&self, filled: Filled) -> Result<(), Behind> {
        let Filled { view, version } = filled;
        let mut newest = self.newest.write();
        let seen = self.visible();
        if version < seen || view.files.database != newest.files.database {
            return Err(Behind { seen, filled: version });
        }
        let old = (!newest.shows_the_same_as(&view)).then(|| {
            let view = Arc::new(view);
            let unused = self.lendable.replace(view.clone());
            (std::mem::replace(&mut *newest, view), unused)
        });
        newest.rules.clock.raise(newest.files.latest_time());
        self.publish(version);
        drop(newest);
        drop(old);
        Ok(())
    }

    /// Makes open ranges that are idle release their older views, so that files and memory that only these use are
    /// freed. Looks at every open range, so the caller must not hold the lock of the manifest or of the writer.
    pub fn free_old(&self) {
        self.ranges.let_go(self.generation());
        self.lendable.free_unused();
    }

    /// The table with this id, if it still exists.
    pub fn table_info(&self, table: TableId) -> Option<Arc<TableInfo>> {
        self.newest().files.tables.get(&table).map(|table| table.info.clone())
    }
}
