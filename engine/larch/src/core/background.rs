//! The background work of one open database: wakes jobs in the pool, lets threads wait for the progress of jobs, and
//! ends jobs. This module does not know what the jobs do.
//!
//! A sync that commits wait for is urgent. Flushes and syncs of a growing log have high priority, compactions normal
//! priority, and other work low priority. The drop of the last handle ends the work: it stops the jobs and waits for
//! those that are still running. A thread on [`Duty`] must not wait for jobs, because a job may be waiting for that
//! thread; if the last handle is dropped on such a thread, the pool finishes the close in the background. An open in
//! the same process that finds the directory locked waits for these background closes to end.
//!
//! This module is thread-safe. No lock is held while a job is polled, or while a thread waits for a job.

pub mod damage;
pub mod problem;
pub mod stall;
pub mod trouble;
pub mod waiting_tasks;
pub mod warmth;

use damage::Damage;
use os::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use os::sync::{Arc, Condvar, Mutex, OnceLock, Weak};
use os::{Duty, Worker};
use stall::Stalls;
use std::time::Duration;
use trouble::Troubles;
use waiting_tasks::Waiting;
use warmth::Warmth;

/// The jobs of a database, and the state that they share. A read-only database has jobs only if it follows a writer
/// in another process.
#[derive(Debug, Default)]
pub struct Background {
    workers: OnceLock<Workers>,
    follow: OnceLock<FollowWorkers>,
    /// The jobs of feeds that tasks read.
    feeds: OnceLock<Mutex<Vec<FeedWorker>>>,
    /// Notified when background work has made progress.
    progress: Condvar,
    /// Only grows, and only while `progress_lock` is held.
    progress_count: AtomicU64,
    progress_lock: Mutex<()>,
    closing: AtomicBool,
    /// Background work that failed and has not succeeded since then.
    pub troubles: Troubles,
    /// Commits that wait.
    pub stalls: Stalls,
    /// Tasks that wait.
    pub waiting: Waiting,
    /// Pages to load.
    pub warmth: Warmth,
    /// What the background scrub has found.
    pub damage: Damage,
}

#[derive(Debug)]
pub struct Workers {
    pub sync: Arc<dyn Worker>,
    pub flush: Box<dyn Worker>,
    pub log: Box<dyn Worker>,
    pub compact: Arc<[Box<dyn Worker>]>,
    pub offers: Box<dyn Worker>,
    pub warm: Box<dyn Worker>,
    pub scrub: Box<dyn Worker>,
    pub idle: Box<dyn Worker>,
    pub waiting: Box<dyn Worker>,
    /// Only if the database publishes its metrics.
    pub publish: Option<Box<dyn Worker>>,
}

/// The jobs of a follower.
#[derive(Debug)]
pub struct FollowWorkers {
    /// The job that looks at what the followed writer has done.
    pub look: Box<dyn Worker>,
    /// The job that shows new files of the writer.
    pub show: Box<dyn Worker>,
}

/// The job of a feed that a task reads.
#[derive(Clone, Debug)]
pub struct FeedWorker {
    /// Has the job polled.
    pub worker: Arc<dyn Worker>,
    /// Gone once the feed was dropped and its job does not run any more.
    pub alive: Weak<()>,
}

impl Workers {
    fn all(&self) -> impl Iterator<Item = &dyn Worker> {
        let others = [&*self.offers, &*self.warm, &*self.scrub, &*self.idle, &*self.waiting];
        [&*self.sync, &*self.flush, &*self.log]
            .into_iter()
            .chain(self.compact.iter().map(|worker| &**worker))
            .chain(others)
            .chain(self.publish.as_deref())
    }
}

impl Background {
    /// Stores the workers that poll the jobs. Called once.
    pub fn begin(&self, workers: Workers) {
        self.workers.set(workers).expect("a database is opened once");
    }

    /// Stores the workers of a follower. Called once.
    pub fn begin_to_follow(&self, workers: FollowWorkers) {
        self.follow.set(workers).expect("a database is opened once");
    }

    /// Adds the job of a feed, which ends with the background work at the latest.
    pub fn add_feed(&self, feed: FeedWorker) {
        let mut feeds = self.feeds.get_or_init(Mutex::default).lock();
        let gone: Vec<FeedWorker> = feeds.extract_if(.., |feed| feed.alive.strong_count() == 0).collect();
        feeds.push(feed);
        drop(feeds);
        drop(gone);
    }

    /// Calls `act` with the worker of each feed.
    #[inline]
    fn for_each_feed(&self, act: impl Fn(&dyn Worker)) {
        if let Some(feeds) = self.feeds.get() {
            let feeds = feeds.lock().clone();
            feeds.iter().for_each(|feed| act(&*feed.worker));
        }
    }

    /// The workers of all jobs, but for those of feeds.
    fn all(&self) -> impl Iterator<Item = &dyn Worker> {
        let following = self.follow.get().into_iter().flat_map(|workers| [&*workers.look, &*workers.show]);
        self.workers.get().into_iter().flat_map(|workers| workers.all()).chain(following)
    }

    /// After `time`, wakes the job that looks at what the followed writer has done.
    pub fn wake_look_after(&self, time: Duration) {
        if let Some(workers) = self.follow.get() {
            workers.look.wake_after(time);
        }
    }

    /// Wakes the job that shows new files of the writer.
    pub fn wake_show(&self) {
        if let Some(workers) = self.follow.get() {
            workers.show.wake();
        }
    }

    /// Whether the last handle is gone, so that running work should end early.
    pub fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }

    /// Wakes all threads that wait for progress of background work.
    pub fn tell_progress(&self) {
        let lock = self.progress_lock.lock();
        self.progress_count.fetch_add(1, Ordering::Release);
        drop(lock);
        self.progress.notify_all();
        if self.waiting.has_any_for_progress() {
            self.wake_waiting_after(Duration::ZERO);
        }
    }

    /// After `time`, wakes the job that wakes waiting tasks.
    pub fn wake_waiting_after(&self, time: Duration) {
        if let Some(workers) = self.workers.get() {
            match time.is_zero() {
                true => workers.waiting.wake(),
                false => workers.waiting.wake_after(time),
            }
        }
    }

    /// How many times background work has reported progress so far.
    pub fn progress_seen(&self) -> u64 {
        self.progress_count.load(Ordering::Acquire)
    }

    /// Waits until background work has reported progress more than `seen` times, `is_stopped` returns true, or the
    /// database is closing.
    pub fn wait_progress(&self, seen: u64, is_stopped: impl Fn() -> bool) {
        let mut lock = self.progress_lock.lock();
        while self.progress_seen() == seen && !is_stopped() && !self.is_closing() {
            lock = self.progress.wait(lock);
        }
    }

    /// Wakes the flush job, because a memtable may have been frozen.
    pub fn wake_flush(&self) {
        if let Some(workers) = self.workers.get() {
            workers.flush.wake();
        }
    }

    /// Wakes the flush job after `time`, for a retry.
    pub fn wake_flush_after(&self, time: Duration) {
        if let Some(workers) = self.workers.get() {
            workers.flush.wake_after(time);
        }
    }

    /// Wakes the job that makes a growing log durable.
    pub fn wake_log(&self) {
        if let Some(workers) = self.workers.get() {
            workers.log.wake();
        }
    }

    /// Wakes a compaction job after `time`, for a retry.
    pub fn wake_compact_after(&self, time: Duration) {
        if let Some(workers) = self.workers.get() {
            workers.compact[0].wake_after(time);
        }
    }

    /// Wakes the compaction jobs, because there may be something to compact.
    pub fn wake_compact(&self) {
        if let Some(workers) = self.workers.get() {
            workers.compact.iter().for_each(|worker| worker.wake());
        }
    }

    /// After `time`, wakes the job that looks at what compaction workers have done.
    pub fn wake_offers_after(&self, time: Duration) {
        if let Some(workers) = self.workers.get() {
            workers.offers.wake_after(time);
        }
    }

    /// After `time`, wakes the scrub to read its next pages.
    pub fn wake_scrub_after(&self, time: Duration) {
        if let Some(workers) = self.workers.get() {
            workers.scrub.wake_after(time);
        }
    }

    /// After `time`, wakes the idle job, which closes the log and the manifest if nothing was written meanwhile.
    pub fn wake_idle_after(&self, time: Duration) {
        if let Some(workers) = self.workers.get() {
            workers.idle.wake_after(time);
        }
    }

    /// After `time`, wakes the job that publishes the metrics.
    pub fn wake_publish_after(&self, time: Duration) {
        if let Some(worker) = self.workers.get().and_then(|workers| workers.publish.as_ref()) {
            worker.wake_after(time);
        }
    }

    /// Wakes the compaction jobs ahead of all other jobs, because writers wait for a compaction or are about to.
    pub fn wake_compact_first(&self) {
        if let Some(workers) = self.workers.get() {
            workers.compact.iter().for_each(|worker| worker.wake_first());
        }
    }

    /// Wakes the job that loads pages.
    pub fn wake_warm(&self) {
        if let Some(workers) = self.workers.get() {
            workers.warm.wake();
        }
    }

    /// On a machine without threads, polls the other compaction jobs. Called by a compaction before its install, so
    /// that in a simulation compactions begin and end while another one runs, as with real threads.
    pub fn let_others_compact(&self) {
        if let Some(workers) = self.workers.get() {
            workers.compact.iter().for_each(|worker| worker.drive());
        }
    }

    /// Polls the jobs on this thread if no other thread will: on a simulated machine, or where the system refuses to
    /// start threads.
    pub fn drive(&self) {
        // A commit on a simulated machine gets here. `for_each` takes fewer instructions than a loop over a chain.
        self.all().for_each(Worker::drive);
        self.for_each_feed(|worker| worker.drive());
    }

    /// Ends the background work: jobs are no longer polled, and a running job ends soon.
    pub fn stop(&self) {
        self.closing.store(true, Ordering::Release);
        self.tell_progress();
        self.all().for_each(Worker::stop);
        self.for_each_feed(|worker| worker.stop());
    }

    /// Waits until no job is running.
    pub fn join(&self) {
        self.all().for_each(Worker::join);
        self.for_each_feed(|worker| worker.join());
    }
}

/// A close that goes on in the background. Dropping this value marks its end.
#[derive(Debug)]
pub struct BackgroundClose(());

#[derive(Debug, Default)]
struct Closings {
    /// Closes under way, and closes that have ended.
    counts: Mutex<(usize, u64)>,
    ended: Condvar,
}

impl Closings {
    /// The closes that go on in the background in this process.
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

    /// How many background closes of this process have ended.
    pub fn ended() -> u64 {
        Closings::all().counts.lock().1
    }

    /// Waits until more than `seen` background closes have ended. Returns false at once if no close is under way, or
    /// if this thread is on duty and must not wait.
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
