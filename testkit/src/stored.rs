//! Machines for processes that share a simulated store, each with its own client of the store, and small databases
//! in it.

use larch::{Builder, Database};
use objects::{Outside, StoreDisk};
use os::sim::{SimClock, SimFreeMemory, SimRandom, SimThreads};
use os::sync::Arc;
use os::{Machine, Store};
use std::path::Path;

/// A machine whose disk shows the database in `store` as the directory `directory`. Its random numbers follow from
/// `seed`.
pub fn on_store(store: Arc<dyn Store>, directory: &str, clock: &Arc<SimClock>, seed: u64) -> Machine {
    let outside = outside(clock, seed);
    let (random, threads) = (outside.random.clone(), outside.threads.clone());
    let disk = StoreDisk::new(store, Path::new(directory), outside);
    let memory = Arc::new(SimFreeMemory::default());
    Machine { disk, reads: Arc::new(os::io::CallerReads), clock: clock.clone(), memory, random, threads }
}

/// The parts of a machine on a store that the journal of its database needs.
pub fn outside(clock: &Arc<SimClock>, seed: u64) -> Outside {
    Outside {
        clock: clock.clone(),
        random: Arc::new(SimRandom::new(seed)),
        threads: Arc::new(SimThreads::new(clock.clone())),
        who: format!("machine {seed}"),
    }
}

/// A builder of a database with little memory: a few rows fill its memtables and its cache.
pub fn small(machine: &Machine, directory: &str) -> Builder {
    let builder = Database::builder(directory).machine(machine.clone());
    builder.write_buffer_bytes(64 << 10).cache_bytes(1 << 20).reserve_bytes(0)
}

/// The number in an environment variable, by which a user runs one seed of a random test again, or more seeds.
#[allow(clippy::disallowed_methods, reason = "a seed from the environment")]
pub fn number_of(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}
