//! Requests to load pages in the background, and counts of what was loaded. This module does not know how pages are
//! loaded.
//!
//! This module is thread-safe.

use os::sync::Mutex;
use os::sync::atomic::{AtomicU64, Ordering};

/// What a call of [`Table::warm`](crate::Table::warm) has loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Warmed {
    /// Memory of the pages that the call loaded or found in memory, in bytes.
    pub bytes: u64,
    /// How many pages the call read from disk.
    pub page_reads: u64,
    /// Whether all pages of the range that was to be loaded are in memory now. If some pages are missing, the
    /// cache had no room for them.
    pub is_whole: bool,
}

/// What was loaded because of a warm state.
#[derive(Clone, Copy, Debug, Default)]
pub struct Restored {
    pub warmed: Warmed,
    /// Whether a warm state was found but could not be used. A warm state is the list of the pages that were in
    /// memory at the last close.
    pub is_refused: bool,
}

/// What still has to be loaded, and how much was loaded.
#[derive(Debug, Default)]
pub struct Warmth {
    requests: Mutex<WarmRequests>,
    /// Memory of the pages that were loaded after the open because of the warm state, in bytes.
    pub restored_bytes: AtomicU64,
    /// How many warm states could not be used.
    pub refused: AtomicU64,
}

/// The open requests to load pages.
#[derive(Debug, Default)]
pub struct WarmRequests {
    /// Whether the tables that should stay in memory have to be loaded.
    pub tables: bool,
    /// Whether the pages that were in memory at the last close have to be loaded.
    pub state: bool,
}

impl Warmth {
    /// Requests to load the tables that should stay in memory.
    pub fn request_tables(&self) {
        self.requests.lock().tables = true;
    }

    /// Requests to load the pages that were in memory at the last close.
    pub fn request_state(&self) {
        self.requests.lock().state = true;
    }

    /// Takes all requests.
    pub fn take(&self) -> WarmRequests {
        std::mem::take(&mut *self.requests.lock())
    }

    /// Counts what was loaded because of a warm state.
    pub fn count(&self, restored: &Restored) {
        self.restored_bytes.fetch_add(restored.warmed.bytes, Ordering::Relaxed);
        self.refused.fetch_add(u64::from(restored.is_refused), Ordering::Relaxed);
    }
}
