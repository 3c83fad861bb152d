//! Processes of a simulated store: each sees it by a client of its own, as a machine of its own.

use objects::{Outside, StoreDisk};
use os::sim::{SimClock, SimRandom, SimThreads};
use os::sync::Arc;
use os::{Machine, Store};
use std::path::Path;

/// A machine whose disk has the files in `store`, as if they were in `directory`. Machines of other seeds draw other numbers.
pub fn on_store(store: Arc<dyn Store>, directory: &str, clock: &Arc<SimClock>, seed: u64) -> Machine {
    let outside = outside(clock, seed);
    let (random, threads) = (outside.random.clone(), outside.threads.clone());
    let disk = StoreDisk::new(store, Path::new(directory), outside);
    Machine { disk, reads: Arc::new(os::io::CallerReads), clock: clock.clone(), random, threads }
}

/// What the journal of such a machine needs of it.
pub fn outside(clock: &Arc<SimClock>, seed: u64) -> Outside {
    Outside {
        clock: clock.clone(),
        random: Arc::new(SimRandom::new(seed)),
        threads: Arc::new(SimThreads::new(clock.clone())),
        who: format!("machine {seed}"),
    }
}
