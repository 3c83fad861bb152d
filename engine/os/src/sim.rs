//! The simulated machine, in memory, whose every choice follows from one seed: a disk that crashes, tears writes,
//! fills up and fails on request, a store that loses answers, a clock that moves when told, and workers without
//! threads. This module does not know what runs on the machine.

mod clock;
mod content;
mod disk;
mod faults;
mod file;
mod free_memory;
mod names;
mod random;
mod reads;
mod state;
mod store;
mod threads;

pub use clock::SimClock;
pub use disk::SimDisk;
pub use free_memory::SimFreeMemory;
pub use random::SimRandom;
pub use reads::SimReads;
pub use state::DiskCounts;
pub use store::{SimStore, SimStoreClient, StoreCounts, StoreTrouble};
pub use threads::SimThreads;

#[cfg(test)]
mod tests;
