//! The tasks that wait for a time or for progress of background work, as data. It does not know who wakes them.

use os::sync::Mutex;
use std::collections::BTreeMap;
use std::task::Waker;
use std::time::Duration;

/// The tasks that wait, for all threads.
#[derive(Debug, Default)]
pub struct Waiting(pub Mutex<WaitingTasks>);

/// The tasks that wait.
#[derive(Debug, Default)]
pub struct WaitingTasks {
    /// The place of the next task that comes.
    pub next: u64,
    /// The tasks that wait for a time, by this time and their place.
    pub by_time: BTreeMap<(Duration, u64), Waker>,
    /// The tasks that wait for progress, by their place, with the progress that they have seen.
    pub for_progress: BTreeMap<u64, (u64, Waker)>,
}

impl Waiting {
    /// Whether a task waits for progress.
    pub fn has_any_for_progress(&self) -> bool {
        !self.0.lock().for_progress.is_empty()
    }

    /// The tasks that are to be woken because their time has come at `now`, or because there is now more `progress`
    /// than they have seen. `wake_after` is called with the time until the next task. This happens under the lock,
    /// so that no other call comes between.
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
