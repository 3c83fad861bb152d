//! What is to be brought to memory in the background, and counts of what was brought.

use super::state::Restored;
use os::sync::Mutex;
use os::sync::atomic::{AtomicU64, Ordering};

/// What is left to do, and what was done.
#[derive(Debug, Default)]
pub struct Warmth {
    left: Mutex<WarmRequests>,
    /// Memory brought back after the last open, in bytes.
    pub restored_bytes: AtomicU64,
    /// Warm states that could not be used.
    pub refused: AtomicU64,
}

/// What is wanted.
#[derive(Debug, Default)]
pub struct WarmRequests {
    /// Pages of tables that are to be in memory.
    pub tables: bool,
    /// What was in memory when the database was closed last.
    pub state: bool,
}

impl Warmth {
    /// Asks for pages of tables that are to be in memory.
    pub fn want_tables(&self) {
        self.left.lock().tables = true;
    }

    /// Asks for what was in memory when the database was closed last.
    pub fn want_state(&self) {
        self.left.lock().state = true;
    }

    /// Takes what is wanted now.
    pub fn take(&self) -> WarmRequests {
        std::mem::take(&mut *self.left.lock())
    }

    /// Counts a restored state.
    pub fn count(&self, restored: &Restored) {
        self.restored_bytes.fetch_add(restored.warmed.bytes, Ordering::Relaxed);
        self.refused.fetch_add(u64::from(restored.is_refused), Ordering::Relaxed);
    }
}
