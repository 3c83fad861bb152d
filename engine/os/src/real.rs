//! The real machine: its file system, reads, clocks, free memory, randomness and threads. This module does not know the simulated
//! machine.

mod clock;
mod disk;
mod file;
mod free_memory;
mod guard;
mod held;
mod lock;
mod place;
mod random;
mod reads;
mod threads;

pub use clock::RealClock;
pub use disk::RealDisk;
pub use free_memory::RealFreeMemory;
pub use random::RealRandom;
pub use reads::{ReadsChoice, RealReads};
pub use threads::ThreadPool;

#[cfg(test)]
pub(crate) mod tests;
