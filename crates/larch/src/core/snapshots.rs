//! The versions that readers see and that compactions keep for them. It does not know what a version contains.
//!
//! Thread safe.

use crate::view::View;
use os::sync::{Arc, Mutex, OnceLock};
use sst::Version;
use std::collections::BTreeMap;
use std::fmt::{self, Debug};

/// The versions that readers read at, with the number of readers.
#[derive(Default)]
pub struct Snapshots {
    pinned: Mutex<PinCounts>,
    /// Called when the watched readers are gone.
    gone: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

/// Most readers keep the newest version for a short time. That changes only the first count.
#[derive(Debug, Default)]
struct PinCounts {
    /// A version that is or was kept. No later version is kept.
    last: Version,
    last_count: usize,
    /// The versions before it.
    counts: BTreeMap<Version, usize>,
    /// A compaction waits until no reader reads at this version or an older one.
    watched: Option<Version>,
}

impl Debug for Snapshots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshots").field("pinned", &self.pinned).finish_non_exhaustive()
    }
}

/// A version that is kept while this lives.
#[derive(Debug)]
pub struct PinnedVersion {
    version: Version,
    snapshots: Arc<Snapshots>,
    /// In a database opened read-only: the view in which the version was seen. No writer knows that this version is
    /// in use.
    view: Option<Arc<View>>,
}

impl Snapshots {
    /// Keeps the version that `newest` returns. `newest` is called under the lock, so that no list of versions that
    /// is made meanwhile lacks this version.
    pub fn pin(self: &Arc<Self>, newest: impl FnOnce() -> Version) -> PinnedVersion {
        self.pin_with(None, newest)
    }

    /// Keeps what `view` of a database opened read-only shows at `version`.
    pub fn pin_in(self: &Arc<Self>, view: Arc<View>, version: Version) -> PinnedVersion {
        self.pin_with(Some(view), || version)
    }

    fn pin_with(self: &Arc<Self>, view: Option<Arc<View>>, newest: impl FnOnce() -> Version) -> PinnedVersion {
        let mut pinned = self.pinned.lock();
        let version = newest();
        pinned.add(version);
        PinnedVersion { version, snapshots: self.clone(), view }
    }

    /// The versions that are kept, and the newest version, ascending. No reader sees a version between two neighbours.
    pub fn boundaries(&self, newest: impl FnOnce() -> Version) -> Vec<Version> {
        let pinned = self.pinned.lock();
        let newest = newest();
        let mut all: Vec<Version> = pinned.versions().filter(|&version| version < newest).collect();
        all.push(newest);
        all
    }

    /// The oldest version that is kept; `None` if no reader keeps one.
    pub fn oldest(&self) -> Option<Version> {
        self.pinned.lock().versions().next()
    }

    /// The number of pins.
    pub fn count(&self) -> usize {
        let pinned = self.pinned.lock();
        pinned.last_count + pinned.counts.values().sum::<usize>()
    }

    /// Calls `gone` from now on each time when the watched readers are gone. The thread that drops the last of them
    /// calls it, under no lock of this file.
    pub fn on_gone(&self, gone: impl Fn() + Send + Sync + 'static) {
        self.gone.set(Box::new(gone)).ok();
    }

    /// Watches the readers at `oldest` and before; `None` ends the watch. If no such readers exist now, nothing will
    /// be called later. So the caller looks at [`Snapshots::boundaries`] again after this call.
    pub fn watch(&self, oldest: Option<Version>) {
        let mut pinned = self.pinned.lock();
        let first = pinned.versions().next();
        pinned.watched = oldest.filter(|oldest| first.is_some_and(|first| first <= *oldest));
    }
}

impl PinCounts {
    #[inline]
    fn add(&mut self, version: Version) {
        if version > self.last {
            if self.last_count > 0 {
                self.counts.insert(self.last, self.last_count);
            }
            (self.last, self.last_count) = (version, 0);
        }
        if version == self.last {
            self.last_count += 1;
        } else {
            *self.counts.entry(version).or_insert(0) += 1;
        }
    }

    #[inline]
    fn remove(&mut self, version: Version) {
        if version == self.last {
            self.last_count -= 1;
        } else if let Some(count) = self.counts.get_mut(&version) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&version);
            }
        }
    }

    /// The versions that are kept, ascending.
    fn versions(&self) -> impl Iterator<Item = Version> {
        self.counts.keys().copied().chain((self.last_count > 0).then_some(self.last))
    }
}

impl PinnedVersion {
    /// The version.
    pub fn version(&self) -> Version {
        self.version
    }

    /// In a database opened read-only: a view that shows the version.
    pub fn view(&self) -> Option<&Arc<View>> {
        self.view.as_ref()
    }
}

impl Drop for PinnedVersion {
    fn drop(&mut self) {
        let mut pinned = self.snapshots.pinned.lock();
        pinned.remove(self.version);
        let oldest = pinned.versions().next();
        let are_gone = pinned.watched.take_if(|watched| oldest.is_none_or(|oldest| oldest > *watched)).is_some();
        drop(pinned);
        if are_gone && let Some(gone) = self.snapshots.gone.get() {
            gone();
        }
    }
}
