//! What makes the budget of a cache elastic: what is free, how large the budget should be for that, and the worker that
//! asks again and again. This module does not know the cache.

use crate::elastic::{Elastic, Steering};
use os::sync::Arc;
use os::{FreeMemory, Job, Priority, Threads, Worker};
use std::fmt;
use std::ptr;
use std::time::Duration;

/// The time between two readings. A reading costs up to 130 us of one processor, so the governor costs up to 0.5 % of it.
/// What others take between two readings comes out of the headroom.
pub(super) const PERIOD: Duration = Duration::from_millis(25);

/// Decides the budget of one cache.
pub(super) struct Governor {
    steering: Steering,
    memory: Arc<dyn FreeMemory>,
    job: Arc<dyn Job>,
    worker: Arc<dyn Worker>,
    /// The worker's threads, which end with their last handle.
    _threads: Arc<dyn Threads>,
}

impl Governor {
    /// A governor whose readings are taken by `job`, soon for the first time.
    pub fn new(
        elastic: Elastic,
        memory: Arc<dyn FreeMemory>,
        threads: Arc<dyn Threads>,
        job: Arc<dyn Job>,
    ) -> Governor {
        let worker = threads.worker(Priority::Urgent, Arc::clone(&job)).into();
        Governor { steering: Steering::new(elastic), memory, job, worker, _threads: threads }
    }

    /// Whether `job` takes the readings. It does not if it belongs to an earlier governor.
    pub fn is_of(&self, job: &dyn Job) -> bool {
        ptr::addr_eq(Arc::as_ptr(&self.job), job)
    }

    /// Takes a reading. Returns the next limit of a cache that has the given `limit` and for which the system gives
    /// `backed` bytes.
    pub fn next(&mut self, limit: u64, backed: u64) -> u64 {
        self.steering.next(limit, backed, self.memory.read().as_ref())
    }

    /// Has the job polled again after a period.
    pub fn rest(&self) {
        self.worker.wake_after(PERIOD);
    }

    /// The worker of the job.
    #[cfg(test)]
    pub fn worker(&self) -> Arc<dyn Worker> {
        Arc::clone(&self.worker)
    }
}

impl fmt::Debug for Governor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Governor")
            .field("steering", &self.steering)
            .field("memory", &self.memory)
            .finish_non_exhaustive()
    }
}
