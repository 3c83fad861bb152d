//! The levels lock: any number of compactions share it, and a change that depends on whole levels takes it
//! exclusively. Which compactions may run at the same time is decided by their claims, not by this lock. This
//! module does not know what the holders of the lock change.
//!
//! Thread safe. No compaction begins while a change waits for the lock, so the change waits only for compactions
//! that already run.

use os::sync::{Arc, Condvar, Mutex};

/// The levels lock of a database, for all tables.
#[derive(Debug, Default)]
pub struct LevelsLock {
    state: Mutex<LockState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct LockState {
    /// The number of compactions that share the lock.
    sharing: usize,
    is_taken: bool,
    /// The number of threads that wait to take the lock exclusively.
    waiting: usize,
}

/// The right to change the levels that a claim names.
#[derive(Debug)]
pub struct SharedLevels(Arc<LevelsLock>);

/// The right to change all levels.
#[derive(Debug)]
pub struct OwnedLevels<'l>(&'l LevelsLock);

impl LevelsLock {
    /// Shares the lock; `None` if a thread holds it exclusively or waits to. That thread wakes the compaction job
    /// after it has released the lock.
    pub fn try_share(self: &Arc<Self>) -> Option<SharedLevels> {
        let mut state = self.state.lock();
        if state.is_taken || state.waiting > 0 {
            return None;
        }
        state.sharing += 1;
        Some(SharedLevels(self.clone()))
    }

    /// Whether a thread waits to take the lock exclusively.
    pub fn is_wanted(&self) -> bool {
        self.state.lock().waiting > 0
    }

    /// Whether nobody holds the lock.
    #[cfg(test)]
    pub fn is_free(&self) -> bool {
        let state = self.state.lock();
        !state.is_taken && state.sharing == 0
    }

    /// Takes the lock exclusively: nothing else can change levels until the returned value is dropped.
    pub fn own(&self) -> OwnedLevels<'_> {
        let mut state = self.state.lock();
        state.waiting += 1;
        while state.is_taken || state.sharing > 0 {
            state = self.changed.wait(state);
        }
        state.waiting -= 1;
        state.is_taken = true;
        OwnedLevels(self)
    }
}

impl Drop for SharedLevels {
    fn drop(&mut self) {
        self.0.state.lock().sharing -= 1;
        self.0.changed.notify_all();
    }
}

impl Drop for OwnedLevels<'_> {
    fn drop(&mut self) {
        self.0.state.lock().is_taken = false;
        self.0.changed.notify_all();
    }
}

#[cfg(all(test, shuttle))]
mod schedules;
