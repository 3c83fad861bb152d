//! Requests to load pages in the background, and counts of what was loaded. It does not know how pages are loaded.
//!
//! Thread safe.

use os::sync::Mutex;
use os::sync::atomic::{AtomicU64, Ordering};

/// What [`Table::warm`](crate::Table::warm) loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Warmed {
    /// Memory of the pages that it loaded or found in memory, in bytes.
    pub bytes: u64,
    /// Pages that it read from disk.
    pub page_reads: u64,
    /// Whether all pages of the range are in memory now. If not, there was no room for the missing pages.
    pub is_whole: bool,
}

/// What was loaded from a warm state.
#[derive(Clone, Copy, Debug, Default)]
pub struct Restored {
    pub warmed: Warmed,
    /// Whether a warm state was found that could not be used.
    pub is_refused: bool,
}

/// What is still to be loaded, and how much was loaded.
#[derive(Debug, Default)]
pub struct Warmth {
    requests: Mutex<WarmRequests>,
    /// Memory of the pages that were loaded from the warm state after the open, in bytes.
    pub restored_bytes: AtomicU64,
    /// Warm states that could not be used.
    pub refused: AtomicU64,
}

/// What is to be loaded.
#[derive(Debug, Default)]
pub struct WarmRequests {
    /// The tables that are to be in memory.
    pub tables: bool,
    /// The pages that were in memory at the last close.
    pub state: bool,
}

impl Warmth {
    /// Requests the tables that are to be in memory.
    pub fn request_tables(&self) {
        self.requests.lock().tables = true;
    }

    /// Requests the pages that were in memory at the last close.
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
