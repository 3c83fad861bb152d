//! The versions that readers have pinned. Compactions keep the rows that these readers see. This module does not
//! know what a version contains.
//!
//! This module is thread-safe.

use crate::base::retention::Showing;
use crate::base::table::TableId;
use crate::view::View;
use os::sync::{Arc, Mutex, OnceLock};
use sst::Version;
use std::collections::BTreeMap;
use std::fmt::{self, Debug};

/// The pinned versions, each with the number of its readers.
#[derive(Default)]
pub struct Snapshots {
    pinned: Mutex<PinCounts>,
    /// Called when the watched readers are gone.
    gone: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

/// Pin counts. Most readers pin the newest version for a short time, and such a pin changes only `last_count`.
#[derive(Debug, Default)]
struct PinCounts {
    /// The latest version that was ever pinned. It need not be pinned now.
    last: Version,
    last_count: usize,
    /// The pinned versions before `last`, each with the number of its readers.
    counts: BTreeMap<Version, usize>,
    /// How many of these pins are of versions that only some tables show.
    in_parts: BTreeMap<Version, usize>,
    /// A compaction waits until no reader at this or an older version is left.
    watched: Option<Version>,
}

impl Debug for Snapshots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshots").field("pinned", &self.pinned).finish_non_exhaustive()
    }
}

/// A version that stays pinned until this value is dropped.
#[derive(Debug)]
pub struct PinnedVersion {
    version: Version,
    snapshots: Arc<Snapshots>,
    /// The view in which the version was seen, in a read-only database only: the writer does not know about this
    /// reader, so the reader must keep its files itself.
    view: Option<Arc<View>>,
    /// Which tables show the version.
    showing: Showing,
}

impl Snapshots {
    /// Pins the version that `newest` returns. `newest` is called under the lock, so a concurrent call of
    /// [`Snapshots::boundaries`] cannot miss this version.
    pub fn pin(self: &Arc<Self>, newest: impl FnOnce() -> Version) -> PinnedVersion {
        self.pin_with(None, newest)
    }

    /// Pins `version`, and keeps the `view` that shows it. For read-only databases.
    pub fn pin_in(self: &Arc<Self>, view: Arc<View>, version: Version) -> PinnedVersion {
        self.pin_with(Some(view), || version)
    }

    /// Pins `version` if it is pinned already, or if `showing` returns the tables that show it. The call holds the lock
    /// while it calls `showing`, so a compaction that asks for the boundaries sees the pin if this call has found the
    /// version.
    pub fn pin_if(
        self: &Arc<Self>,
        version: Version,
        showing: impl FnOnce() -> Option<Showing>,
    ) -> Option<PinnedVersion> {
        let mut pinned = self.pinned.lock();
        let showing = if pinned.is_pinned_whole(version) { Showing::All } else { showing()? };
        pinned.add(version);
        if showing != Showing::All {
            *pinned.in_parts.entry(version).or_insert(0) += 1;
        }
        Some(PinnedVersion { version, snapshots: self.clone(), view: None, showing })
    }

    fn pin_with(self: &Arc<Self>, view: Option<Arc<View>>, newest: impl FnOnce() -> Version) -> PinnedVersion {
        let mut pinned = self.pinned.lock();
        let version = newest();
        pinned.add(version);
        PinnedVersion { version, snapshots: self.clone(), view, showing: Showing::All }
    }

    /// The pinned versions and the newest version, in ascending order. No reader reads at a version between two
    /// neighbours in this list.
    pub fn boundaries(&self, newest: impl FnOnce() -> Version) -> Vec<Version> {
        let pinned = self.pinned.lock();
        let newest = newest();
        let mut all: Vec<Version> = pinned.versions().filter(|&version| version < newest).collect();
        all.push(newest);
        all
    }

    /// The oldest pinned version, or `None` if no version is pinned.
    pub fn oldest(&self) -> Option<Version> {
        self.pinned.lock().versions().next()
    }

    /// The number of pins.
    pub fn count(&self) -> usize {
        let pinned = self.pinned.lock();
        pinned.last_count + pinned.counts.values().sum::<usize>()
    }

    /// From now on, calls `gone` each time the watched readers are gone. The thread that drops the last of these
    /// readers makes the call, and holds no lock of this file.
    pub fn on_gone(&self, gone: impl Fn() + Send + Sync + 'static) {
        self.gone.set(Box::new(gone)).ok();
    }

    /// Begins to watch the readers at `oldest` and older versions; `None` ends the watch. If there are no such
    /// readers any more, `gone` is not called, so the caller must look at [`Snapshots::boundaries`] again after this
    /// call.
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

    /// Whether `version` has a pin since all tables show it.
    fn is_pinned_whole(&self, version: Version) -> bool {
        let all = if version == self.last { self.last_count } else { self.counts.get(&version).copied().unwrap_or(0) };
        all > self.in_parts.get(&version).copied().unwrap_or(0)
    }

    #[cold]
    #[inline(never)]
    fn remove_in_parts(&mut self, version: Version) {
        if let Some(count) = self.in_parts.get_mut(&version) {
            *count -= 1;
            if *count == 0 {
                self.in_parts.remove(&version);
            }
        }
    }

    /// The pinned versions, in ascending order.
    fn versions(&self) -> impl Iterator<Item = Version> {
        self.counts.keys().copied().chain((self.last_count > 0).then_some(self.last))
    }
}

impl PinnedVersion {
    /// The version.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Says that only these tables show the version. A read-only database calls this; it does not count its pins.
    pub fn showing(mut self, showing: Showing) -> Self {
        self.showing = showing;
        self
    }

    /// Whether `table` shows the version.
    #[inline]
    pub fn shows(&self, table: TableId) -> bool {
        self.showing.shows(table)
    }

    /// Whether all tables show the version.
    pub fn is_whole(&self) -> bool {
        self.showing == Showing::All
    }

    /// The view that shows the version, or `None` if the database is open for writing.
    pub fn view(&self) -> Option<&Arc<View>> {
        self.view.as_ref()
    }
}

impl Drop for PinnedVersion {
    fn drop(&mut self) {
        let mut pinned = self.snapshots.pinned.lock();
        pinned.remove(self.version);
        if self.showing != Showing::All && self.view.is_none() {
            pinned.remove_in_parts(self.version);
        }
        let oldest = pinned.versions().next();
        let are_gone = pinned.watched.take_if(|watched| oldest.is_none_or(|oldest| oldest > *watched)).is_some();
        drop(pinned);
        if are_gone && let Some(gone) = self.snapshots.gone.get() {
            gone();
        }
    }
}
