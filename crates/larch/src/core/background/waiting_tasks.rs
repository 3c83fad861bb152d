//! The tasks that wait for a time, or for progress of background work. This module does not know who wakes the
//! tasks.

use os::sync::Mutex;
use std::collections::BTreeMap;
use std::task::Waker;
use std::time::Duration;

/// The waiting tasks, shared by all threads.
#[derive(Debug, Default)]
pub struct Waiting(pub Mutex<WaitingTasks>);

/// The tasks that wait.
#[derive(Debug, Default)]
pub struct WaitingTasks {
    /// The place that the next waiting task gets.
    pub next: u64,
    /// The tasks that wait for a time, ordered by this time and then by place.
    pub by_time: BTreeMap<(Duration, u64), Waker>,
    /// For each place, a task that waits for progress, with the progress that the task has already seen.
    pub for_progress: BTreeMap<u64, (u64, Waker)>,
}

impl Waiting {
    /// Whether a task waits for progress.
    pub fn has_any_for_progress(&self) -> bool {
        !self.0.lock().for_progress.is_empty()
    }

    /// Takes the tasks to wake: those whose time has come at `now`, and those for which `progress` is more than they
    /// have seen. If tasks for a later time are left, calls `wake_after` with the time until the first of them. This
    /// call happens under the lock, so no other thread can come in between.
    pub fn take_ready(&self, now: Duration, progress: u64, wake_after: impl FnOnce(Duration)) -> Vec<Waker> {
        let mut tasks = self.0.lock();
        let mut ready = Vec::new();
        while let Some(first) = tasks.by_time.first_entry().filter(|first| first.key().0 <= now) {
            ready.push(first.remove());
        }
        ready.extend(tasks.for_progress.extract_if(.., |_, (seen, _)| *seen != progress).map(|(_, (_, waker))| waker));
        if let Some(((next, _), _)) = tasks.by_time.first_key_value() {
            wake_after(next.saturating_sub(now));
        }
        ready
    }
}
