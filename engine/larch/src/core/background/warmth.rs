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
    /// Pages that the call read from disk.
    pub page_reads: u64,
    /// Whether all requested pages of the range are in memory now. If not, the cache had no room for the rest.
    pub is_whole: bool,
}

/// What was loaded from a warm state, the list of the pages that were in memory at the last close.
#[derive(Clone, Copy, Debug, Default)]
pub struct Restored {
    pub warmed: Warmed,
    /// Whether a warm state was found but could not be used.
    pub is_refused: bool,
}

/// What still has to be loaded, and how much was loaded.
#[derive(Debug, Default)]
pub struct Warmth {
    requests: Mutex<WarmRequests>,
    /// Memory of the pages that were loaded from the warm state, in bytes.
    pub restored_bytes: AtomicU64,
    /// How many warm states could not be used.
    pub refused: AtomicU64,
}

/// Pending requests.
#[derive(Debug, Default)]
pub struct WarmRequests {
    /// Load the tables that should stay in memory.
    pub tables: bool,
    /// Load the pages that were in memory at the last close.
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

    /// Counts what was loaded from a warm state.
    pub fn count(&self, restored: &Restored) {
        self.restored_bytes.fetch_add(restored.warmed.bytes, Ordering::Relaxed);
        self.refused.fetch_add(u64::from(restored.is_refused), Ordering::Relaxed);
    }
}
