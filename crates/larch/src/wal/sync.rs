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

use crate::record::{LogError, LogFile, Result};

/// Makes a log file durable on behalf of many.
#[derive(Debug)]
pub struct SyncPoint {
    file: Arc<LogFile>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
enum State {
    Idle,
    Syncing,
    Failed(LogError),
}

impl SyncPoint {
    /// A sync point for `file`.
    pub fn new(file: Arc<LogFile>) -> Self {
        Self { file, state: Mutex::new(State::Idle), changed: Condvar::new() }
    }

    /// Returns once everything below `end` is durable; `end` is the end of a record that was appended.
    pub fn durable(&self, end: u64) -> Result<()> {
        assert!(end <= self.file.appended_end(), "only what was appended can become durable");
        let mut state = self.state.lock();
        loop {
            match &*state {
                State::Failed(error) => return Err(error.clone()),
                _ if self.file.synced_end() >= end => return Ok(()),
                State::Syncing => state = self.changed.wait(state),
                State::Idle => {
                    *state = State::Syncing;
                    drop(state);
                    let outcome = self.file.sync();
                    state = self.state.lock();
                    *state = match outcome {
                        Ok(_) => State::Idle,
                        Err(error) => State::Failed(error),
                    };
                    self.changed.notify_all();
                }
            }
        }
    }

    /// The error of the sync that failed, if one has.
    #[cfg(test)]
    pub fn failure(&self) -> Option<LogError> {
        match &*self.state.lock() {
            State::Failed(error) => Some(error.clone()),
            State::Idle | State::Syncing => None,
        }
    }
}

#[cfg(all(test, any(loom, shuttle)))]
mod schedules;
