//! Workers without threads: a job is polled on the thread that drives its worker. This module does not know what
//! the jobs do.

use crate::sim::SimClock;
use crate::sync::Arc;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::{Clock, Job, Polled, Priority, Threads, Worker};
use std::fmt;
use std::io;
use std::time::Duration;

/// Workers that poll on the thread that drives them.
#[derive(Clone, Debug)]
pub struct SimThreads {
    clock: Arc<SimClock>,
}

impl SimThreads {
    /// Workers whose timed wakes follow this clock.
    pub fn new(clock: Arc<SimClock>) -> SimThreads {
        SimThreads { clock }
    }
}

impl Threads for SimThreads {
    fn sleeping_worker(&self, _priority: Priority, job: Arc<dyn Job>) -> Box<dyn Worker> {
        Box::new(SimWorker {
            clock: self.clock.clone(),
            job,
            woken: AtomicBool::new(false),
            due_nanos: AtomicU64::new(NEVER),
            polling: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
        })
    }

    fn start(&self) -> io::Result<()> {
        Ok(())
    }

    fn hand_over(&self, work: Box<dyn FnOnce() + Send>) {
        work();
    }

    fn are_real(&self) -> bool {
        false
    }
}

struct SimWorker {
    clock: Arc<SimClock>,
    job: Arc<dyn Job>,
    /// Set by each wake, and cleared before the job is polled. So a wake during a poll causes another poll.
    woken: AtomicBool,
    /// When the worker is to be woken, or [`NEVER`].
    due_nanos: AtomicU64,
    /// Set while the job is polled. A job may drive its own worker, directly or indirectly, and must not be polled
    /// again meanwhile.
    polling: AtomicBool,
    stopped: AtomicBool,
}

/// The time of a worker that no timed wake is to wake.
const NEVER: u64 = u64::MAX;

impl SimWorker {
    /// Whether the job is to be polled. Every commit asks this of all workers, so it takes few instructions if not.
    #[inline]
    fn is_woken(&self) -> bool {
        let due_nanos = self.due_nanos.load(Ordering::Acquire);
        self.woken.load(Ordering::Acquire) || due_nanos != NEVER && due_nanos <= nanos(self.clock.now())
    }

    /// Whether the job is to be polled. Clears the wake.
    fn take_wake(&self) -> bool {
        let is_woken = self.is_woken();
        if is_woken {
            self.woken.swap(false, Ordering::AcqRel);
            self.due_nanos.store(NEVER, Ordering::Release);
        }
        is_woken && !self.stopped.load(Ordering::Acquire)
    }
}

fn nanos(time: Duration) -> u64 {
    time.as_nanos() as u64
}

impl Worker for SimWorker {
    fn wake(&self) {
        self.woken.store(true, Ordering::Release);
    }

    fn wake_first(&self) {
        self.wake();
    }

    fn wake_after(&self, time: Duration) {
        self.due_nanos.store(nanos(self.clock.now() + time), Ordering::Release);
    }

    fn drive(&self) {
        if !self.is_woken() || self.polling.swap(true, Ordering::Acquire) {
            return;
        }
        let _polling = Polling(&self.polling);
        let is_stopped = || self.stopped.load(Ordering::Acquire);
        while self.take_wake() {
            while !is_stopped() && self.job.poll() == Polled::Worked {}
        }
    }

    fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
    }

    fn join(&self) {}
}

impl fmt::Debug for SimWorker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimWorker")
            .field("woken", &self.woken)
            .field("due_nanos", &self.due_nanos)
            .finish_non_exhaustive()
    }
}

/// Clears `polling` when the polling ends, even if the job panics.
struct Polling<'a>(&'a AtomicBool);

impl Drop for Polling<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}
