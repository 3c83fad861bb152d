//! One sync for everybody who waits. It knows offsets in a log file, not what lies between them.
//!
//! Whoever finds no sync running runs one, for everything appended up to then; those who come meanwhile wait for it and
//! then find themselves covered, or one of them runs the next. So a hundred commits that wait together cost two syncs.
//!
//! Invariants: at most one sync runs at a time. Once a sync has failed no call succeeds any more, not even for bytes
//! that were durable before: the caller must stop taking writes at once.
//!
//! Thread safety: shared by all committers. Nobody waits but for a sync that another thread is running, so on a machine
//! without threads nobody waits.

use os::sync::{Arc, Condvar, Mutex};

use crate::log::record::{LogFile, Result};

/// Makes a log file durable on behalf of many.
#[derive(Debug)]
pub struct SyncPoint {
    file: Arc<LogFile>,
    state: Mutex<SyncState>,
    changed: Condvar,
}

#[derive(Debug, PartialEq, Eq)]
enum SyncState {
    Idle,
    Syncing,
}

/// Ends a sync, also one that panics, and wakes all who wait for it.
struct EndSync<'a>(&'a SyncPoint);

impl Drop for EndSync<'_> {
    fn drop(&mut self) {
        *self.0.state.lock() = SyncState::Idle;
        self.0.changed.notify_all();
    }
}

impl SyncPoint {
    /// A sync point for `file`.
    pub fn new(file: Arc<LogFile>) -> Self {
        Self { file, state: Mutex::new(SyncState::Idle), changed: Condvar::new() }
    }

    /// Returns once everything below `end` is durable; `end` is the end of a record that was appended.
    pub fn durable(&self, end: u64) -> Result<()> {
        assert!(end <= self.file.appended_end(), "only what was appended can become durable");
        let mut state = self.state.lock();
        loop {
            self.file.check()?;
            if self.file.synced_end() >= end {
                return Ok(());
            }
            if *state == SyncState::Syncing {
                state = self.changed.wait(state);
                continue;
            }
            *state = SyncState::Syncing;
            drop(state);
            let syncing = EndSync(self);
            let outcome = self.file.sync();
            drop(syncing);
            outcome?;
            state = self.state.lock();
        }
    }
}

#[cfg(all(test, any(loom, shuttle)))]
mod schedules;
