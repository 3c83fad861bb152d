//! This crate is the only code that touches the machine: disk, clock, free memory, randomness and threads. It has a
//! real machine and a simulated one. It knows nothing of pages, keys or databases.
//!
//! All other crates get a [`Machine`] and reach the outside world through it. So a whole database can run in one
//! thread on an in-memory disk, and one seed determines everything that happens.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "os is the door the lint points everyone else to"
)]

pub mod block;
pub mod clock;
pub mod disk;
pub mod failure;
pub mod free_memory;
pub mod io;
pub mod job;
pub mod machine;
pub mod memory;
pub mod process;
pub mod random;
pub mod real;
pub mod sim;
pub mod store;
pub mod sync;

pub use block::BLOCK_BYTES;
pub use clock::Clock;
pub use disk::{Access, DirectoryEntry, Disk, File, FileReader, Lock, OpenSource, ReadSource, hold, read_whole};
pub use free_memory::{FreeMemory, MemoryReading, ScopeMemory};
pub use io::{Done, ReadLoad, ReadRequest, Reads, Urgency, Usage};
pub use job::{Duty, Job, Polled, Priority, Threads, Worker};
pub use machine::Machine;
pub use memory::{Arena, Buffer};
pub use random::Random;
pub use store::{Store, StoreObject, StoredObject, Upload};
