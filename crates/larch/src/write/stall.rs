//! Commits that wait for background work: why, how many did, and for how long. It does not decide who waits.
//!
//! Thread safe. Events are reported without a lock.

use crate::core::environment::Environment;
use crate::event::{Event, StallReason};
use os::sync::Mutex;
use os::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Commits that wait, by reason.
#[derive(Debug, Default)]
pub struct Stalls {
    write_buffer: Stall,
    level0: Stall,
}

/// Commits that wait for one reason.
#[derive(Debug, Default)]
struct Stall {
    /// How many wait now, and since when there is one.
    waiting: Mutex<(usize, Duration)>,
    commits: AtomicU64,
    micros: AtomicU64,
}

impl Stalls {
    fn of(&self, reason: StallReason) -> &Stall {
        match reason {
            StallReason::WriteBuffer => &self.write_buffer,
            StallReason::Level0 => &self.level0,
        }
    }

    /// Commits that waited so far for this reason, and the sum of their times in microseconds.
    pub fn totals(&self, reason: StallReason) -> (u64, u64) {
        let stall = self.of(reason);
        (stall.commits.load(Ordering::Relaxed), stall.micros.load(Ordering::Relaxed))
    }
}

/// A commit that waits, until dropped.
pub struct StalledCommit<'c> {
    env: &'c Environment,
    stalls: &'c Stalls,
    reason: StallReason,
    since: Duration,
}

impl<'c> StalledCommit<'c> {
    /// A commit begins to wait.
    pub fn begin(env: &'c Environment, stalls: &'c Stalls, reason: StallReason) -> Self {
        let since = env.machine.clock.now();
        let stall = stalls.of(reason);
        stall.commits.fetch_add(1, Ordering::Relaxed);
        let mut waiting = stall.waiting.lock();
        waiting.0 += 1;
        let is_first = waiting.0 == 1;
        if is_first {
            waiting.1 = since;
        }
        drop(waiting);
        if is_first {
            env.report(|| Event::Stalled { reason });
        }
        Self { env, stalls, reason, since }
    }

    /// What it waits for.
    pub fn reason(&self) -> StallReason {
        self.reason
    }
}

impl Drop for StalledCommit<'_> {
    fn drop(&mut self) {
        let Self { env, stalls, reason, since } = *self;
        let now = env.machine.clock.now();
        let stall = stalls.of(reason);
        stall.micros.fetch_add((now - since).as_micros() as u64, Ordering::Relaxed);
        let mut waiting = stall.waiting.lock();
        waiting.0 -= 1;
        let (left, first) = *waiting;
        drop(waiting);
        if left == 0 {
            env.report(|| Event::Resumed { reason, time: now - first });
        }
    }
}
