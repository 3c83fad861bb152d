//! A cache whose budget is elastic: how its governor is made, and how the budget moves. This module does not know how
//! large the budget should be; [`elastic`](crate::elastic) decides that.
//!
//! A cache has one governor, however many databases share it. The governor ends when the cache is dropped, or when its
//! budget is set to a number.

use super::PageCache;
use super::governor::Governor;
use crate::elastic::Elastic;
use os::sync::{Arc, Weak};
use os::{FreeMemory, Job, Polled, Threads};

/// A shrinking budget gives back at most this many bytes at a time, so that others need not wait for the last one.
const PIECE_BYTES: u64 = 64 << 20;

/// Takes the readings of a cache's governor.
struct GovernorJob(Weak<PageCache>);

impl PageCache {
    /// Makes the budget elastic: from now on it follows `memory`, within the bounds of `elastic`, until it is
    /// [set](PageCache::set_budget). Where the system does not say what is free, the budget is the least one. One of
    /// `threads` reads the memory; it should not have long jobs as well.
    pub fn set_elastic(self: &Arc<Self>, elastic: Elastic, memory: Arc<dyn FreeMemory>, threads: Arc<dyn Threads>) {
        let mut governor = self.governor.lock();
        let limit = self.budget.limit().min(elastic.most_bytes).max(elastic.least_bytes);
        self.move_budget(limit);
        self.budget.set_least(elastic.least_bytes);
        let job = Arc::new(GovernorJob(Arc::downgrade(self)));
        *governor = Some(Governor::new(elastic, memory, threads, job));
        drop(governor);
        self.budget.room_appeared();
    }

    /// Whether the budget follows the memory that is free.
    pub fn is_elastic(&self) -> bool {
        self.governor.lock().is_some()
    }

    /// Takes a reading and changes the budget, unless `job` is not the one of the governor any more.
    fn govern(&self, job: &GovernorJob) {
        let mut current = self.governor.lock();
        let Some(governor) = current.as_mut().filter(|governor| governor.is_of(job)) else { return };
        let limit = self.budget.limit();
        let next = governor.next(limit, self.memory.backed_bytes());
        // Pages that were pinned when the budget fell may be free by now.
        if next != limit || self.budget.excess() > 0 {
            self.move_budget(next);
        }
        governor.rest();
        drop(current);
        self.budget.room_appeared();
    }

    /// Changes the budget, and gives memory back piece by piece.
    fn move_budget(&self, bytes: u64) {
        let mut limit = self.budget.limit().min(self.budget.used().max(bytes));
        while limit > bytes.saturating_add(PIECE_BYTES) {
            limit -= PIECE_BYTES;
            self.change_budget(limit);
        }
        self.change_budget(bytes);
    }
}

impl Job for GovernorJob {
    fn poll(&self) -> Polled {
        if let Some(cache) = self.0.upgrade() {
            cache.govern(self);
        }
        Polled::Idle
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
