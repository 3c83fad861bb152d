//! The machine the process runs on: its file system, reads under way, clocks, randomness and threads. It does not know
//! the simulated one.

mod clock;
mod disk;
mod file;
mod guard;
mod held;
mod lock;
mod place;
mod random;
mod reads;
mod threads;

pub use clock::RealClock;
pub use disk::RealDisk;
pub use random::RealRandom;
pub use reads::{ReadsChoice, RealReads};
pub use threads::ThreadPool;

#[cfg(test)]
pub(crate) mod tests;
