//! Counts commits that wait for background work: what they wait for, how many wait, and how long. This module does
//! not decide which commits wait.
//!
//! This module is thread-safe. No lock is held while an event is reported.

use crate::base::event::{Event, StallReason};
use crate::core::environment::Environment;
use os::sync::Mutex;
use os::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The commits that wait, by reason.
#[derive(Debug, Default)]
pub struct Stalls {
    write_buffer: Stall,
    level0: Stall,
}

/// The commits that wait for one reason.
#[derive(Debug, Default)]
struct Stall {
    /// How many commits wait now, and when this number last rose from 0 to 1.
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

    /// How many commits have waited because of `reason`, and for how many microseconds in total.
    pub fn totals(&self, reason: StallReason) -> (u64, u64) {
        let stall = self.of(reason);
        (stall.commits.load(Ordering::Relaxed), stall.micros.load(Ordering::Relaxed))
    }
}

/// A commit that waits. The wait is over when this value is dropped.
pub struct StalledCommit<'c> {
    env: &'c Environment,
    stalls: &'c Stalls,
    reason: StallReason,
    since: Duration,
}

impl<'c> StalledCommit<'c> {
    /// Notes that a commit begins to wait.
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

    /// Why the commit waits.
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
