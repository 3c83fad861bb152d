//! Reads a feed for a task. A job of the pool does what may wait for the disk, so that no poll does. This module does
//! not know what the changes are.
//!
//! ```text
//! task      poll ──► asks ··············· pending ··············· woken ──► takes what was found
//!                     │                                             ▲
//! job                 └──► nothing new: watches the next version    │
//!                          not durable: waits for the sync          │
//!                          otherwise reads logs, or has the second  │
//!                          job read files ──────────────────────────┘
//! ```
//!
//! There are two jobs, because a commit in a log is read in microseconds, and files perhaps for seconds: the first has
//! a high priority, and the second waits its turn among the compactions.
//!
//! Invariants:
//! - What the job has found lies in the feed until a call takes it. So a future that is dropped loses nothing.
//! - The job works only while a task has asked. While it watches a version or waits for a sync, it takes no thread.
//! - Only the job calls the waker, and it holds no lock meanwhile, because wakers are code of the program.
//! - A job never waits for the lock of the feed. A call of the program that holds it wakes the job at its end.

use super::change::Change;
use super::feed::{Feed, Reads, newest, panicked};
use crate::base::error::Result;
use crate::core::Core;
use crate::core::background::FeedWorker;
use crate::core::handle::DatabaseHandle;
use os::sync::atomic::{AtomicBool, Ordering};
use os::sync::{Arc, Mutex, OnceLock, Weak};
use os::{Duty, Job, Polled, Priority, Worker};
use sst::Version;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::{Context, Poll, Waker};

/// What a task takes from a feed.
pub struct Taken {
    /// At least one change.
    pub changes: VecDeque<Change>,
    /// All commits up to this version were found.
    pub through: Version,
}

/// The task's side. Dropping it ends the job.
#[derive(Debug)]
pub struct Flow {
    shared: Arc<Shared>,
    /// The workers of the jobs that read logs and all.
    workers: [Arc<dyn Worker>; 2],
    is_dropped: Arc<AtomicBool>,
    /// While it is there, the job may run.
    #[expect(dead_code, reason = "it does its work by being dropped")]
    alive: Arc<()>,
}

#[derive(Debug)]
struct Shared {
    core: Weak<Core>,
    feed: Arc<Mutex<Feed>>,
    asked: Mutex<Asked>,
    /// The number under which the job watches versions.
    watcher: u64,
    /// As in [`Flow`].
    workers: OnceLock<[Weak<dyn Worker>; 2]>,
    alive: Weak<()>,
}

/// What a task has asked for.
#[derive(Debug, Default)]
struct Asked {
    /// The task that waits for an answer.
    waker: Option<Waker>,
    /// Whether the job has an error, or the feed has changes.
    outcome: Option<Result<()>>,
}

/// The job that reads so much.
struct FeedJob(Arc<Shared>, Reads);

impl Flow {
    /// Begins to read `feed`, a feed of the database `handle`.
    pub fn new(handle: &DatabaseHandle, feed: &Arc<Mutex<Feed>>) -> Self {
        let core = handle.core();
        let alive = Arc::new(());
        let shared = Arc::new(Shared {
            core: Arc::downgrade(core),
            feed: feed.clone(),
            asked: Mutex::default(),
            watcher: core.views.visible_versions().new_watcher(),
            workers: OnceLock::new(),
            alive: Arc::downgrade(&alive),
        });
        let threads = &core.env.machine.threads;
        let jobs = [(Priority::High, Reads::Logs), (Priority::Normal, Reads::All)];
        let workers = jobs.map(|(priority, reads)| -> Arc<dyn Worker> {
            threads.sleeping_worker(priority, Arc::new(FeedJob(shared.clone(), reads))).into()
        });
        shared.workers.set(workers.each_ref().map(Arc::downgrade)).expect("it is set once");
        for worker in &workers {
            core.background.add_feed(FeedWorker { worker: worker.clone(), alive: Arc::downgrade(&alive) });
        }
        let is_dropped = feed.lock().is_dropped.clone();
        Self { shared, workers, is_dropped, alive }
    }

    /// Takes what was found. If nothing was, asks the job to find something and to wake the task.
    ///
    /// # Errors
    ///
    /// An error of the job. The next call asks again.
    pub fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<Taken>> {
        let mut has_asked = false;
        loop {
            let mut asked = self.shared.asked.lock();
            if let Some(outcome) = asked.outcome.take() {
                let before = asked.waker.take();
                drop(asked);
                drop(before);
                outcome?;
                let mut feed = self.shared.feed.lock();
                let taken = Taken { changes: std::mem::take(&mut feed.ready), through: feed.found };
                drop(feed);
                if !taken.changes.is_empty() {
                    return Poll::Ready(Ok(taken));
                }
                // A call that is no future has taken them.
                has_asked = false;
                continue;
            }
            if has_asked {
                return Poll::Pending;
            }
            let before = asked.waker.replace(context.waker().clone());
            drop(asked);
            if before.is_some() {
                drop(before);
                return Poll::Pending;
            }
            has_asked = true;
            let [logs, all] = &self.workers;
            logs.wake();
            // On a machine without threads, this thread does the work of the jobs.
            [logs, all, logs].into_iter().for_each(|worker| worker.drive());
        }
    }

    /// Has the job look again that may have found the feed locked. Called after the lock was released.
    pub fn look_again(&self) {
        let is_asked = self.shared.asked.lock().waker.is_some();
        if is_asked {
            self.workers[0].wake();
        }
    }
}

impl Drop for Flow {
    fn drop(&mut self) {
        self.is_dropped.store(true, Ordering::Relaxed);
        // In a forked child, a thread that exists only in the parent may hold a lock.
        let Some(core) = self.shared.core.upgrade().filter(|core| core.env.check_origin().is_ok()) else { return };
        core.views.visible_versions().unwatch(self.shared.watcher);
        self.workers.iter().for_each(|worker| worker.stop());
        let waker = self.shared.asked.lock().waker.take();
        drop(waker);
        // A job that still runs ends soon. Otherwise, this releases the log that the feed reads.
        if let Some(mut feed) = self.shared.feed.try_lock() {
            *feed = Feed::new(feed.found);
        }
    }
}

impl Job for FeedJob {
    fn poll(&self) -> Polled {
        let shared = &*self.0;
        let Some(_alive) = shared.alive.upgrade() else { return Polled::Idle };
        let Some(core) = shared.core.upgrade() else { return Polled::Idle };
        if shared.asked.lock().waker.is_none() {
            return Polled::Idle;
        }
        // A job that panics is never polled again, and then the task would wait for ever.
        let found = catch_unwind(AssertUnwindSafe(|| shared.find(&core, self.1)));
        match found.unwrap_or_else(|_| Err(panicked(&core))) {
            Ok(polled) => polled,
            Err(error) => shared.answer(Err(error)),
        }
    }
}

impl Shared {
    /// Finds changes, or arranges that a job is woken when there may be some. Returns whether to call it again.
    fn find(&self, core: &Core, reads: Reads) -> Result<Polled> {
        let Some([logs, all]) = self.workers.get() else { return Ok(Polled::Idle) };
        let found = {
            // A thread of the program may be reading files. It wakes this job at its end, and so does the other job.
            let Some(mut feed) = self.feed.try_lock() else { return Ok(Polled::Idle) };
            let is_whole = feed.fill_much(core, reads)?;
            if !feed.ready.is_empty() {
                drop(feed);
                return Ok(self.answer(Ok(())));
            }
            if !is_whole {
                drop(feed);
                all.upgrade().iter().for_each(|all| all.wake());
                return Ok(Polled::Idle);
            }
            feed.found
        };
        let Some(logs) = logs.upgrade() else { return Ok(Polled::Idle) };
        // It is read before the newest durable version, so that a commit in between is not missed.
        let visible = core.views.visible();
        if newest(core) > found {
            return Ok(Polled::Worked);
        }
        if visible > found && !core.env.options.read_only {
            // Only durable commits are given.
            let later = core.writes.sync.call_later(visible, Box::new(move || logs.wake()));
            if later.is_none() {
                return Ok(Polled::Idle);
            }
            core.durable_outcome(visible).transpose()?;
            return Ok(Polled::Worked);
        }
        let next = Version(visible.max(found).0 + 1);
        let watches = core.views.visible_versions().watch(self.watcher, next, logs);
        let watches = watches.map_err(|broken| core.commit_broke(broken))?;
        Ok(if watches { Polled::Idle } else { Polled::Worked })
    }

    /// Wakes the task.
    fn answer(&self, outcome: Result<()>) -> Polled {
        let mut asked = self.asked.lock();
        asked.outcome = Some(outcome);
        let waker = asked.waker.take();
        drop(asked);
        // A waker may drop a database. That must not wait for background work, which this thread may have to do.
        let _duty = Duty::take();
        // A waker that panics must not end the job.
        catch_unwind(AssertUnwindSafe(|| waker.map(Waker::wake))).ok();
        Polled::Idle
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
