//! Processes that share a simulated store. Each process is a machine of its own, with its own client of the store.
//! Their databases are small.

use larch::{Builder, Database};
use objects::{Outside, StoreDisk};
use os::sim::{SimClock, SimRandom, SimThreads};
use os::sync::Arc;
use os::{Machine, Store};
use std::path::Path;

/// A machine whose disk shows the files in `store` as if they were in the directory `directory`. Machines with
/// different seeds draw different numbers.
pub fn on_store(store: Arc<dyn Store>, directory: &str, clock: &Arc<SimClock>, seed: u64) -> Machine {
    let outside = outside(clock, seed);
    let (random, threads) = (outside.random.clone(), outside.threads.clone());
    let disk = StoreDisk::new(store, Path::new(directory), outside);
    Machine { disk, reads: Arc::new(os::io::CallerReads), clock: clock.clone(), random, threads }
}

/// The parts of such a machine that its journal needs.
pub fn outside(clock: &Arc<SimClock>, seed: u64) -> Outside {
    Outside {
        clock: clock.clone(),
        random: Arc::new(SimRandom::new(seed)),
        threads: Arc::new(SimThreads::new(clock.clone())),
        who: format!("machine {seed}"),
    }
}

/// A builder of a database with such small memory that a few rows fill its memtables and its cache.
pub fn small(machine: &Machine, directory: &str) -> Builder {
    let builder = Database::builder(directory).machine(machine.clone());
    builder.write_buffer_bytes(64 << 10).cache_bytes(1 << 20).reserve_bytes(0)
}

/// The number in an environment variable. By such a variable, a user runs one seed of a random test again, or runs
/// more seeds.
#[allow(clippy::disallowed_methods, reason = "a seed from the environment")]
pub fn number_of(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}
