//! Versions that reads see and compaction keeps.

use crate::read::View;
use os::sync::Arc;
use os::sync::Mutex;
use sst::Version;
use std::collections::BTreeMap;

/// The versions somebody reads at, and how many do.
#[derive(Debug, Default)]
pub struct Snapshots {
    pinned: Mutex<BTreeMap<Version, usize>>,
}

/// A version kept while this lives.
#[derive(Debug)]
pub struct Pin {
    version: Version,
    snapshots: Arc<Snapshots>,
    /// In a database opened read-only: where the version was seen. No writer knows that it is in use.
    view: Option<Arc<View>>,
}

impl Snapshots {
    /// Keeps the version that `newest` names. It is asked under the lock, so that no list made meanwhile misses it.
    pub fn pin(self: &Arc<Self>, newest: impl FnOnce() -> Version) -> Pin {
        self.pin_with(None, newest)
    }

    /// Keeps what `view` of a database opened read-only shows.
    pub fn pin_in(self: &Arc<Self>, view: Arc<View>) -> Pin {
        let version = view.files.flushed_version;
        self.pin_with(Some(view), || version)
    }

    fn pin_with(self: &Arc<Self>, view: Option<Arc<View>>, newest: impl FnOnce() -> Version) -> Pin {
        let mut pinned = self.pinned.lock();
        let version = newest();
        *pinned.entry(version).or_insert(0) += 1;
        Pin { version, snapshots: self.clone(), view }
    }

    /// The versions kept and the newest there is, ascending: what lies between two neighbours is seen by nobody.
    pub fn boundaries(&self, newest: impl FnOnce() -> Version) -> Vec<Version> {
        let pinned = self.pinned.lock();
        let newest = newest();
        let mut all: Vec<Version> = pinned.keys().copied().filter(|&version| version < newest).collect();
        all.push(newest);
        all
    }

    /// How many pins there are.
    pub fn count(&self) -> usize {
        self.pinned.lock().values().sum()
    }
}

impl Pin {
    /// The version.
    pub fn version(&self) -> Version {
        self.version
    }

    /// In a database opened read-only: a view that shows the version.
    pub fn view(&self) -> Option<&Arc<View>> {
        self.view.as_ref()
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        let mut pinned = self.snapshots.pinned.lock();
        if let Some(count) = pinned.get_mut(&self.version) {
            *count -= 1;
            if *count == 0 {
                pinned.remove(&self.version);
            }
        }
    }
}
