//! Makes the page cache of a database, and changes its budget. This module does not know what is in the cache.

use crate::base::budget::Budget;
use os::real::ThreadPool;
use os::sync::Arc;
use os::{Machine, Threads};
use pages::{Elastic, PageCache};

/// A cache with this budget. If the budget is elastic, it follows the memory that `machine` says is free.
pub fn new_cache(budget: Budget, open_files: usize, machine: &Machine) -> Arc<PageCache> {
    let Some(elastic) = budget.elastic() else {
        return PageCache::new(budget.least_bytes(), open_files, sst::validate).cutting(sst::CUTTER);
    };
    let cache = PageCache::growing(elastic.least_bytes, elastic.most_bytes, open_files, sst::validate);
    let cache = cache.cutting(sst::CUTTER);
    begin_governor(&cache, elastic, machine);
    cache
}

/// Changes the budget of `cache`.
pub fn set_budget(cache: &Arc<PageCache>, budget: Budget, machine: &Machine) {
    match budget.elastic() {
        Some(elastic) => begin_governor(cache, elastic, machine),
        None => cache.set_budget(budget.least_bytes()),
    }
}

fn begin_governor(cache: &Arc<PageCache>, elastic: Elastic, machine: &Machine) {
    // The threads of databases may be busy for longer than others can wait for memory.
    let are_real = machine.threads.are_real();
    let threads: Arc<dyn Threads> = if are_real { ThreadPool::of_governors() } else { machine.threads.clone() };
    cache.set_elastic(elastic, machine.memory.clone(), threads);
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
