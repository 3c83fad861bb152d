//! What readers of one open database see: the newest view, the newest version, and the versions that readers keep.
//!
//! Invariants:
//! - A reader takes its view before its version, so that every file in the view is older than the version.
//! - The newest version only grows. A view that replaces another one as a whole comes with the version up to which it
//!   has every commit ([`Filled`]), and is refused if reads have seen a newer one.
//!
//! Thread safe. A reader takes the lock of the view for the time of one reference count.

use super::snapshots::{PinnedVersion, Snapshots};
use super::visible::Visible;
use crate::base::table::{TableId, TableInfo};
use crate::view::View;
use crate::view::ends::Ranges;
use os::sync::atomic::{AtomicU64, Ordering};
use os::sync::{Arc, Mutex, RwLock};
use sst::Version;

/// Which versions the reads of a database see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shows {
    /// The commits of this process.
    Own,
    /// What another process has put in files.
    Files,
    /// The commits of another process.
    Followed,
}

/// A view, and the newest version up to which it has every commit. They are kept in one value, because the version
/// is true only for this view.
#[derive(Debug)]
pub struct Filled {
    /// The view.
    pub view: View,
    /// It has every commit up to this one.
    pub version: Version,
}

/// A view was refused: it lacks commits that reads have seen, or belongs to another database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Behind {
    /// The newest version that reads have seen.
    pub seen: Version,
    /// The newest version up to which the view has every commit.
    pub filled: Version,
}

/// The views of one open database.
#[derive(Debug)]
pub struct Views {
    newest: RwLock<Arc<View>>,
    /// The view before it, until [`Views::take_replaced`].
    replaced: Mutex<Option<Arc<View>>>,
    /// The generation of the newest view. In a database opened read-only it never changes, because ranges go on in
    /// older files.
    generation: AtomicU64,
    /// The newest version that reads may see, and the later commits, which are being applied.
    visible: Visible,
    /// Which versions reads see.
    shows: Shows,
    /// The versions that readers keep.
    pub snapshots: Arc<Snapshots>,
    /// The ranges that are open.
    pub ranges: Arc<Ranges>,
}

impl Views {
    /// Shows `view` up to the version `visible`.
    pub fn new(view: View, visible: Version, shows: Shows) -> Self {
        Self {
            generation: AtomicU64::new(view.generation),
            newest: RwLock::new(Arc::new(view)),
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

    /// The newest version that reads may see. A reader takes its view first, so that every file in the view is older
    /// than the version.
    pub fn visible(&self) -> Version {
        self.visible.newest()
    }

    /// Lets reads see up to `version`. No commit is being applied, and the newest view has every commit up to
    /// `version`. If reads have seen a newer version, they go on seeing it.
    pub fn publish(&self, version: Version) {
        self.visible.advance(version);
    }

    /// What commits go through to become visible.
    pub fn visible_versions(&self) -> &Visible {
        &self.visible
    }

    /// The versions that a reader may read at, ascending: the pinned versions, the newest version, the version that
    /// a database opened read-only shows, and the versions that it may show after the next flushes.
    pub fn boundaries(&self) -> Vec<Version> {
        self.boundaries_without(&[])
    }

    /// As [`Views::boundaries`], for a flush that writes the memtables of all `logs` at once: no reader sees some of
    /// them without the others.
    pub fn boundaries_without(&self, logs: &[u64]) -> Vec<Version> {
        let mut boundaries = self.snapshots.boundaries(|| self.visible());
        let newest = *boundaries.last().expect("the newest version is one");
        let view = self.newest();
        let memory = view.memory.iter().filter(|memory| !logs.contains(&memory.log));
        let before_memory = memory.filter_map(|memory| memory.oldest().0.checked_sub(1).map(Version));
        boundaries.extend(before_memory.chain([view.files.flushed_version]).filter(|&version| version < newest));
        boundaries.sort_unstable();
        boundaries.dedup();
        boundaries
    }

    /// The oldest version that a reader may read at.
    pub fn oldest_seen(&self) -> Version {
        self.boundaries()[0]
    }

    /// What a read that begins now sees: a view, and the version at which the read sees it.
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

    /// Keeps the newest version for a reader.
    pub fn pin(&self) -> PinnedVersion {
        if self.shows == Shows::Own {
            return self.snapshots.pin(|| self.visible());
        }
        let (view, version) = self.now();
        self.snapshots.pin_in(view, version)
    }

    /// The newest view that shows the version of `pin`.
    pub fn of_pin(&self, pin: &PinnedVersion) -> Arc<View> {
        let newest = self.newest();
        match pin.view() {
            Some(own) if !self.is_shown_by(pin.version(), &newest) => own.clone(),
            _ => newest,
        }
    }

    /// A read at `version` began in an older view of a database opened read-only. Whether it can go on in the newest
    /// view.
    pub fn can_go_on(&self, version: Version) -> bool {
        self.is_shown_by(version, &self.newest())
    }

    fn is_shown_by(&self, version: Version, view: &View) -> bool {
        self.shows == Shows::Files && view.files.flushed_version == version
    }

    /// Makes a new view from the newest. Idle ranges keep the old one until [`Views::free_old`].
    pub fn change(&self, change: impl FnOnce(&mut View)) {
        let mut newest = self.newest.write();
        let mut next = View::clone(&newest);
        next.generation += 1;
        change(&mut next);
        let generation = next.generation;
        let old = std::mem::replace(&mut *newest, Arc::new(next));
        self.generation.store(generation, Ordering::Release);
        drop(newest);
        let older = self.replaced.lock().replace(old);
        drop(older);
    }

    /// Takes the view before the newest; `None` if an earlier call has taken it.
    pub fn take_replaced(&self) -> Option<Arc<View>> {
        self.replaced.lock().take()
    }

    /// Shows another view of a database opened read-only, at the version up to which it is filled. Open ranges keep
    /// their views.
    ///
    /// # Errors
    ///
    /// [`Behind`]: reads have seen a version that it does not reach. Then they go on seeing what they saw.
    pub fn renew(&self, filled: Filled) -> Result<(), Behind> {
        let Filled { view, version } = filled;
        let mut newest = self.newest.write();
        let seen = self.visible();
        if version < seen || view.files.database != newest.files.database {
            return Err(Behind { seen, filled: version });
        }
        let old = (!newest.shows_the_same_as(&view)).then(|| std::mem::replace(&mut *newest, Arc::new(view)));
        self.publish(version);
        drop(newest);
        drop(old);
        Ok(())
    }

    /// Takes older views away from ranges that are not in use, so that files and memory that are not in the newest
    /// view are freed. It looks at every open range, so it is not called under the lock of the manifest or of the
    /// writer.
    pub fn free_old(&self) {
        self.ranges.let_go(self.generation());
    }

    /// A table by id, if it still exists.
    pub fn table_info(&self, table: TableId) -> Option<Arc<TableInfo>> {
        self.newest().files.tables.get(&table).map(|table| table.info.clone())
    }
}
