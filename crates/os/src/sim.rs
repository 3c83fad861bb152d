//! A machine in memory whose every choice follows from one seed: a disk that crashes, tears, fills up and fails on
//! request, clocks that move when told, workers without threads. It does not know what runs on it.

mod clock;
mod content;
mod disk;
mod faults;
mod file;
mod names;
mod random;
mod reads;
mod threads;

pub use clock::SimClock;
pub use disk::{DiskCounts, SimDisk};
pub use random::SimRandom;
pub use reads::SimReads;
pub use threads::SimThreads;

#[cfg(test)]
mod tests;
