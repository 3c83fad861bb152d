//! The jobs of a follower: one looks at what the writer has done, some hundred times a second, and one shows new
//! files once their pages are loaded. This module does not know how the jobs' work is done.
//!
//! Each look costs ten system calls. A follower of commits looks again after a millisecond while commits come, and
//! after up to [`LONGEST_PAUSE`] when none have come for a while. A follower of files looks again after
//! [`FILES_PAUSE`]. In a store, where each look costs three requests, both look again after [`STORE_PAUSE`].

use crate::base::error::Error;
use crate::core::Core;
use crate::core::background::FollowWorkers;
use os::sync::atomic::{AtomicU64, Ordering};
use os::sync::{Arc, Weak};
use os::{Job, Polled, Priority};
use std::time::Duration;

const SHORTEST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(4);
const FILES_PAUSE: Duration = Duration::from_millis(50);
const STORE_PAUSE: Duration = Duration::from_millis(200);

/// Starts the jobs of a follower.
pub fn begin(core: &Arc<Core>) {
    let threads = &core.env.machine.threads;
    let weak = || Arc::downgrade(core);
    let look = LookJob { core: weak(), pause_nanos: AtomicU64::new(0) };
    core.background.begin_to_follow(FollowWorkers {
        look: threads.sleeping_worker(Priority::High, Arc::new(look)),
        show: threads.sleeping_worker(Priority::Normal, Arc::new(ShowJob(weak()))),
    });
    // Wake the job for the first time. From then on it wakes itself, which works only after `begin_to_follow`.
    core.background.wake_look_after(Duration::ZERO);
}

/// The job that looks at what the writer has done.
#[derive(Debug)]
struct LookJob {
    core: Weak<Core>,
    /// The pause before the last look, in nanoseconds.
    pause_nanos: AtomicU64,
}

impl Job for LookJob {
    fn poll(&self) -> Polled {
        let Some(core) = self.core.upgrade() else { return Polled::Idle };
        let Some(followed) = core.followed.get().filter(|_| !core.background.is_closing()) else {
            return Polled::Idle;
        };
        let troubles = &core.background.troubles;
        let pause = match core.look_at_writer(followed) {
            Err(error) => note_failure(&core, &error),
            Ok(seen) => {
                // A successful look clears an earlier failure. But if files wait to be shown, only showing them
                // does.
                if !seen.has_files {
                    troubles.follow_succeeded();
                } else if troubles.follow_waits(core.env.machine.clock.now()).is_none() {
                    core.background.wake_show();
                }
                match core.env.machine.disk.keeps_removed() {
                    Some(_) => STORE_PAUSE,
                    None => self.next_pause(followed.with_log, seen.has_more),
                }
            }
        };
        core.background.wake_look_after(pause);
        Polled::Idle
    }
}

impl LookJob {
    fn next_pause(&self, with_log: bool, has_more: bool) -> Duration {
        let last = Duration::from_nanos(self.pause_nanos.load(Ordering::Relaxed));
        let pause = match (with_log, has_more) {
            (false, _) => FILES_PAUSE,
            (true, true) => SHORTEST_PAUSE,
            (true, false) => (last * 2).clamp(SHORTEST_PAUSE, LONGEST_PAUSE),
        };
        self.pause_nanos.store(pause.as_nanos() as u64, Ordering::Relaxed);
        pause
    }
}

/// The job that shows new files.
#[derive(Debug)]
struct ShowJob(Weak<Core>);

impl Job for ShowJob {
    fn poll(&self) -> Polled {
        let Some(core) = self.0.upgrade() else { return Polled::Idle };
        let Some(followed) = core.followed.get().filter(|_| !core.background.is_closing()) else {
            return Polled::Idle;
        };
        match core.show_next_files(followed) {
            Ok(()) => {
                core.background.troubles.follow_succeeded();
                // Some commits may have had to wait for these files.
                core.background.wake_look_after(Duration::ZERO);
            }
            // The next look wakes this job again, when the pause after the failure is over.
            Err(error) => _ = note_failure(&core, &error),
        }
        Polled::Idle
    }
}

/// Remembers and reports a failure. Returns the time until the next try.
fn note_failure(core: &Core, error: &Error) -> Duration {
    let trouble = core.background.troubles.follow_failed(error, core.env.machine.clock.now());
    core.env.report(|| trouble.event());
    trouble.retry_in.unwrap_or(LONGEST_PAUSE)
}
