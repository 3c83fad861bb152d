//! One sync for all threads that wait. It knows offsets in a log file, not what lies between them.
//!
//! A thread that finds no sync running runs one, for everything that was appended up to then. Threads that come meanwhile wait
//! for it. After it their bytes are durable, or one of them runs the next sync. So a hundred commits that wait together cost
//! two syncs.
//!
//! Invariants: at most one sync runs at a time. Once a sync has failed no call succeeds any more, not even for bytes that were
//! durable before, so that the caller takes no more writes.
//!
//! Thread safety: all threads that commit share it. A thread waits only for a sync that another thread is running, so on a
//! machine without threads it never waits.

use os::sync::{Arc, Condvar, Mutex};

use crate::log::record::{LogFile, Result};

/// Makes a log file durable for many threads.
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

/// Ends a sync when dropped, even after a panic, and wakes the threads that wait for it.
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

    /// Returns once everything below `end` is durable. `end` is the end of a record that was appended.
    ///
    /// # Errors
    ///
    /// A sync failed, now or before.
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
