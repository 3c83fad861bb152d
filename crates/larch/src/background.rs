//! The background work of one open database: its jobs in the pool of threads, who waits for their progress, and their end.
//!
//! Flushes have high priority, compactions normal, warming low. The last handle ends the work: it stops the jobs and waits
//! for those that are running. A thread on [`Duty`] may not wait, since a job may be waiting for it; there the pool finishes
//! the close, and an open of any database in this process that finds its directory locked waits for that.
//!
//! Thread safe. Nothing is polled or waited for under the lock around the workers.

mod idle;
pub mod jobs;
pub mod trouble;

use crate::inspect::damage::Damage;
use crate::warm::requests::Warmth;
use crate::write::stall::Stalls;
use os::sync::atomic::{AtomicBool, Ordering};
use os::sync::{Arc, Condvar, Mutex, OnceLock};
use os::{Duty, Worker};
use std::time::Duration;
use trouble::Troubles;

/// Jobs of a database, and what they know. A database opened read-only has none.
#[derive(Debug, Default)]
pub struct Background {
    workers: OnceLock<Workers>,
    /// Notified whenever background work has changed what there is to do.
    progress: Condvar,
    progress_count: Mutex<u64>,
    closing: AtomicBool,
    /// What failed and is tried again.
    pub troubles: Troubles,
    /// Commits that wait.
    pub stalls: Stalls,
    /// What is to be brought to memory.
    pub warmth: Warmth,
    /// What the scrub found.
    pub damage: Damage,
}

#[derive(Debug)]
struct Workers {
    flush: Box<dyn Worker>,
    compact: Arc<dyn Worker>,
    warm: Box<dyn Worker>,
    scrub: Box<dyn Worker>,
    idle: Box<dyn Worker>,
}

impl Workers {
    fn all(&self) -> [&dyn Worker; 5] {
        [&*self.flush, &*self.compact, &*self.warm, &*self.scrub, &*self.idle]
    }
}

impl Background {
    /// Takes the workers of the jobs; once.
    fn begin(&self, workers: Workers) {
        self.workers.set(workers).expect("a database is opened once");
    }

    /// Whether the last handle is gone: what is under way ends early.
    pub fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }

    /// Wakes everybody who waits for background work.
    pub fn tell_progress(&self) {
        *self.progress_count.lock() += 1;
        self.progress.notify_all();
    }

    /// How often there was progress.
    pub fn progress_seen(&self) -> u64 {
        *self.progress_count.lock()
    }

    /// Waits until there was progress since `seen`, unless `is_stopped` or the database is closing.
    pub fn wait_progress(&self, seen: u64, is_stopped: impl Fn() -> bool) {
        let mut count = self.progress_count.lock();
        while *count == seen && !is_stopped() && !self.is_closing() {
            count = self.progress.wait(count);
        }
    }

    /// Says that a memtable may want flushing.
    pub fn wake_flush(&self) {
        if let Some(workers) = self.workers.get() {
            workers.flush.wake();
        }
    }

    /// Says that a flush is to be tried again after this time.
    pub fn wake_flush_after(&self, time: Duration) {
        if let Some(workers) = self.workers.get() {
            workers.flush.wake_after(time);
        }
    }

    /// Says that a compaction is to be tried again after this time.
    pub fn wake_compact_after(&self, time: Duration) {
        if let Some(workers) = self.workers.get() {
            workers.compact.wake_after(time);
        }
    }

    /// Says that levels may want compacting.
    pub fn wake_compact(&self) {
        if let Some(workers) = self.workers.get() {
            workers.compact.wake();
        }
    }

    /// Says that the next pages are to be read by the scrub after this time.
    pub fn wake_scrub_after(&self, time: Duration) {
        if let Some(workers) = self.workers.get() {
            workers.scrub.wake_after(time);
        }
    }

    /// Says that log or manifest are open, to be closed if nothing is written for this time.
    pub fn wake_idle_after(&self, time: Duration) {
        if let Some(workers) = self.workers.get() {
            workers.idle.wake_after(time);
        }
    }

    /// Says that writers wait for a compaction, or soon will.
    pub fn wake_compact_first(&self) {
        if let Some(workers) = self.workers.get() {
            workers.compact.wake_first();
        }
    }

    /// Says that something is to be brought to memory.
    pub fn wake_warm(&self) {
        if let Some(workers) = self.workers.get() {
            workers.warm.wake();
        }
    }

    /// Polls the jobs on this thread, where no thread will: on a simulated machine, or if the system refuses threads.
    pub fn drive(&self) {
        for worker in self.workers.get().iter().flat_map(|workers| workers.all()) {
            worker.drive();
        }
    }

    /// Ends the work: no job is polled any more, and one that is running ends soon.
    pub fn stop(&self) {
        self.closing.store(true, Ordering::Release);
        self.tell_progress();
        self.workers.get().iter().flat_map(|workers| workers.all()).for_each(Worker::stop);
    }

    /// Waits for the jobs that are running.
    pub fn join(&self) {
        self.workers.get().iter().flat_map(|workers| workers.all()).for_each(Worker::join);
    }
}

/// A close that goes on in the background, until dropped.
#[derive(Debug)]
pub struct BackgroundClose(());

#[derive(Debug, Default)]
struct Closings {
    /// How many are under way, and how many have ended.
    counts: Mutex<(usize, u64)>,
    ended: Condvar,
}

impl Closings {
    /// Those of the process.
    fn all() -> &'static Self {
        static ALL: OnceLock<Closings> = OnceLock::new();
        ALL.get_or_init(Self::default)
    }
}

impl BackgroundClose {
    pub fn begin() -> Self {
        Closings::all().counts.lock().0 += 1;
        Self(())
    }

    /// How many closes of the process went on in the background and have ended.
    pub fn ended() -> u64 {
        Closings::all().counts.lock().1
    }

    /// Waits until one more than `seen` has ended; false if none is under way, or this thread may not wait for it.
    pub fn wait_for_next(seen: u64) -> bool {
        let all = Closings::all();
        let mut counts = all.counts.lock();
        while counts.1 == seen {
            if counts.0 == 0 || Duty::is_taken() {
                return false;
            }
            counts = all.ended.wait(counts);
        }
        true
    }
}

impl Drop for BackgroundClose {
    fn drop(&mut self) {
        let all = Closings::all();
        let mut counts = all.counts.lock();
        counts.0 -= 1;
        counts.1 += 1;
        drop(counts);
        all.ended.notify_all();
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
