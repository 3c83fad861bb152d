//! The background work of one open database: its jobs in the pool of threads, who waits for their progress, and their end.
//!
//! Flushes have high priority, compactions normal, warming low. The last handle ends the work: it stops the jobs and waits
//! for those that are running. A thread on [`Duty`] may not wait, since a job may be waiting for it; there the pool finishes
//! the close, and an open of any database in this process that finds its directory locked waits for that.
//!
//! Thread safe. Nothing is polled or waited for under the lock around the workers.

mod idle;
pub mod trouble;

use crate::compact::CompactJob;
use crate::core::Core;
use crate::inspect::scrub::ScrubJob;
use crate::warm::job::{WarmJob, has_kept_tables};
use crate::write::flush::FlushJob;
use crate::write::stall::Stalls;
use idle::{IDLE_TIME, IdleJob};
use os::process::Origin;
use os::sync::atomic::{AtomicBool, Ordering};
use os::sync::{Arc, Condvar, Mutex, OnceLock};
use os::{Duty, Priority, Worker};
use std::ops::Deref;
use std::time::Duration;
use trouble::Troubles;

/// Jobs of a database. Those of one that is opened read-only are none.
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
    fn stop(&self) {
        self.closing.store(true, Ordering::Release);
        self.tell_progress();
        self.workers.get().iter().flat_map(|workers| workers.all()).for_each(Worker::stop);
    }

    /// Waits for the jobs that are running.
    fn join(&self) {
        self.workers.get().iter().flat_map(|workers| workers.all()).for_each(Worker::join);
    }
}

impl Core {
    /// Begins the background work of a database that was opened for writing.
    pub fn start_background(self: &Arc<Self>) {
        let threads = &self.machine.threads;
        let core = || Arc::downgrade(self);
        let workers = Workers {
            flush: threads.worker(Priority::High, Arc::new(FlushJob(core()))),
            compact: threads.worker(Priority::Normal, Arc::new(CompactJob(core()))).into(),
            warm: threads.worker(Priority::Low, Arc::new(WarmJob(core()))),
            scrub: threads.worker(Priority::Low, Arc::new(ScrubJob(core()))),
            idle: threads.worker(Priority::Low, Arc::new(IdleJob::new(core()))),
        };
        // Readers may go after the last handle, and in a process that was forked.
        let (compact, origin) = (Arc::downgrade(&workers.compact), Origin::here());
        self.snapshots.on_gone(move || {
            if let Some(compact) = compact.upgrade().filter(|_| origin.is_here()) {
                compact.wake();
            }
        });
        self.background.workers.set(workers).expect("a database is opened once");
        let core = core();
        self.log_disk.on_open(move || {
            if let Some(core) = core.upgrade() {
                core.background.wake_idle_after(IDLE_TIME);
            }
        });
    }

    /// Waits until there was progress since `seen`, or does the work here where no thread does it.
    pub fn wait_progress(&self, seen: u64) {
        let background = &self.background;
        background.drive();
        if !self.machine.threads.are_real() {
            return;
        }
        let mut count = background.progress_count.lock();
        while *count == seen && self.check_writable().is_ok() && !background.is_closing() {
            count = background.progress.wait(count);
        }
    }

    /// Brings pages of tables that are to be in memory, in the background; nothing if there is no such table.
    pub fn warm_kept_tables(&self) {
        if has_kept_tables(self) {
            self.warmth.want_tables();
            self.background.wake_warm();
        }
    }
}

/// What the handles of a database share: the core, whose background work ends with the last of them.
#[derive(Debug)]
pub struct LastHandle(Option<Arc<Core>>);

impl LastHandle {
    /// Of a database that was just opened.
    pub fn new(core: Arc<Core>) -> Self {
        Self(Some(core))
    }
}

impl Deref for LastHandle {
    type Target = Arc<Core>;

    fn deref(&self) -> &Arc<Core> {
        self.0.as_ref().expect("it is taken when dropped")
    }
}

impl Drop for LastHandle {
    fn drop(&mut self) {
        let Some(core) = self.0.take() else { return };
        if core.check_origin().is_err() {
            // Threads and log are those of the process that was forked: all is left as it is.
            std::mem::forget(core);
            return;
        }
        core.background.stop();
        let threads = core.machine.threads.clone();
        if Duty::is_taken() && threads.are_real() {
            *core.closing.lock() = Some(Closing::begin());
            // Even what is left to do when nothing runs may need a lock that this thread has.
            threads.hand_over(Box::new(move || drop(core)));
        } else {
            core.background.join();
        }
    }
}

/// A close that goes on in the background, until dropped.
#[derive(Debug)]
pub struct Closing(());

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

impl Closing {
    fn begin() -> Self {
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

impl Drop for Closing {
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
