//! The jobs of a follower: one takes notice of what the writer does, some hundred times a second, and one shows new
//! files once their pages are loaded. They do not know how that is done.
//!
//! A look costs ten calls of the system. A follower of commits looks again after a millisecond while commits come,
//! and after [`LONGEST_PAUSE`] when no commits came for a while. A follower of files looks again after
//! [`FILES_PAUSE`]. On a store, where a look costs three requests, both kinds of followers look again after
//! [`STORE_PAUSE`].

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

/// Begins the jobs of a database that follows another process.
pub fn begin(core: &Arc<Core>) {
    let threads = &core.env.machine.threads;
    let weak = || Arc::downgrade(core);
    let look = LookJob { core: weak(), pause_nanos: AtomicU64::new(0) };
    core.background.begin_to_follow(FollowWorkers {
        look: threads.sleeping_worker(Priority::High, Arc::new(look)),
        show: threads.sleeping_worker(Priority::Normal, Arc::new(ShowJob(weak()))),
    });
    // The job is woken only now, because from here on it can be woken again.
    core.background.wake_look_after(Duration::ZERO);
}

/// The job that looks at what the writer has done.
#[derive(Debug)]
struct LookJob {
    core: Weak<Core>,
    /// How long it waited before this look, in nanoseconds.
    pause_nanos: AtomicU64,
}

impl Job for LookJob {
    fn poll(&self) -> Polled {
        let Some(core) = self.core.upgrade() else { return Polled::Idle };
        let Some(following) = core.following.get().filter(|_| !core.background.is_closing()) else {
            return Polled::Idle;
        };
        let troubles = &core.background.troubles;
        let pause = match core.look_at_writer(following) {
            Err(error) => note_failure(&core, &error),
            Ok(seen) => {
                // As long as files wait to be shown, only showing them is a success.
                if !seen.has_files {
                    troubles.follow_succeeded();
                } else if troubles.follow_waits(core.env.machine.clock.now()).is_none() {
                    core.background.wake_show();
                }
                match core.env.machine.disk.keeps_removed() {
                    Some(_) => STORE_PAUSE,
                    None => self.next_pause(following.with_log, seen.has_more),
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
        let Some(following) = core.following.get().filter(|_| !core.background.is_closing()) else {
            return Polled::Idle;
        };
        match core.show_next_files(following) {
            Ok(()) => {
                core.background.troubles.follow_succeeded();
                // Commits may have waited for the files.
                core.background.wake_look_after(Duration::ZERO);
            }
            // A look after this time wakes the job again.
            Err(error) => _ = note_failure(&core, &error),
        }
        Polled::Idle
    }
}

/// Remembers and reports a failure, and returns the time until the next try.
fn note_failure(core: &Core, error: &Error) -> Duration {
    let trouble = core.background.troubles.follow_failed(error, core.env.machine.clock.now());
    core.env.report(|| trouble.event());
    trouble.retry_in.unwrap_or(LONGEST_PAUSE)
}
