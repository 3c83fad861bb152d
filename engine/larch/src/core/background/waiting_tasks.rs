//! The tasks that wait for a time, or for progress of background work. This module does not know who wakes them.

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
    /// The last place number that was given to a waiting task.
    pub next: u64,
    /// Wakers of tasks that wait for a time, by this time and the task's place number.
    pub by_time: BTreeMap<(Duration, u64), Waker>,
    /// Wakers of tasks that wait for progress, by place number, each with the progress that the task has already
    /// seen.
    pub for_progress: BTreeMap<u64, (u64, Waker)>,
}

impl Waiting {
    /// Whether any task waits for progress.
    pub fn has_any_for_progress(&self) -> bool {
        !self.0.lock().for_progress.is_empty()
    }

    /// Takes the wakers of the tasks that can go on: tasks whose time has come at `now`, and tasks that have seen
    /// less progress than `progress`. If other tasks wait for a later time, calls `wake_after` with the time until
    /// the earliest, under the lock, so that no task can be added in between.
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
