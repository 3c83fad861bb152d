//! The versions that readers see and that compactions keep for them. It does not know what a version contains.
//!
//! Thread safe.

use crate::read::View;
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

#[derive(Debug, Default)]
struct PinCounts {
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
    /// In a database opened read-only: the view in which the version was seen. No writer knows that it is in use.
    view: Option<Arc<View>>,
}

impl Snapshots {
    /// Keeps the version that `newest` returns. `newest` is called under the lock, so that no list that is made
    /// meanwhile lacks it.
    pub fn pin(self: &Arc<Self>, newest: impl FnOnce() -> Version) -> PinnedVersion {
        self.pin_with(None, newest)
    }

    /// Keeps what `view` of a database opened read-only shows.
    pub fn pin_in(self: &Arc<Self>, view: Arc<View>) -> PinnedVersion {
        let version = view.files.flushed_version;
        self.pin_with(Some(view), || version)
    }

    fn pin_with(self: &Arc<Self>, view: Option<Arc<View>>, newest: impl FnOnce() -> Version) -> PinnedVersion {
        let mut pinned = self.pinned.lock();
        let version = newest();
        *pinned.counts.entry(version).or_insert(0) += 1;
        PinnedVersion { version, snapshots: self.clone(), view }
    }

    /// The versions that are kept, and the newest version, ascending. No reader sees a version between two neighbours.
    pub fn boundaries(&self, newest: impl FnOnce() -> Version) -> Vec<Version> {
        let pinned = self.pinned.lock();
        let newest = newest();
        let mut all: Vec<Version> = pinned.counts.keys().copied().filter(|&version| version < newest).collect();
        all.push(newest);
        all
    }

    /// The oldest version that is kept; `None` if no reader keeps one.
    pub fn oldest(&self) -> Option<Version> {
        self.pinned.lock().counts.first_key_value().map(|(version, _)| *version)
    }

    /// How many pins there are.
    pub fn count(&self) -> usize {
        self.pinned.lock().counts.values().sum()
    }

    /// Calls `gone` from now on each time when the watched readers are gone. The thread that drops the last of them
    /// calls it, under no lock of this file.
    pub fn on_gone(&self, gone: impl Fn() + Send + Sync + 'static) {
        self.gone.set(Box::new(gone)).ok();
    }

    /// Watches the readers at `oldest` and before, or no readers any more. If there are none already, nothing is called
    /// later, so the caller looks at [`Snapshots::boundaries`] again after this.
    pub fn watch(&self, oldest: Option<Version>) {
        let mut pinned = self.pinned.lock();
        let first = pinned.counts.first_key_value().map(|(version, _)| *version);
        pinned.watched = oldest.filter(|oldest| first.is_some_and(|first| first <= *oldest));
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
        if let Some(count) = pinned.counts.get_mut(&self.version) {
            *count -= 1;
            if *count == 0 {
                pinned.counts.remove(&self.version);
            }
        }
        let oldest = pinned.counts.first_key_value().map(|(version, _)| *version);
        let are_gone = pinned.watched.take_if(|watched| oldest.is_none_or(|oldest| oldest > *watched)).is_some();
        drop(pinned);
        if are_gone && let Some(gone) = self.snapshots.gone.get() {
            gone();
        }
    }
}
