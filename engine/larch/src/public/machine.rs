//! What a database runs on: disk, clock, free memory, randomness and threads. A program can replace each of these, for
//! example to run tests on an in-memory disk that fails on demand.
//!
//! ```
//! # fn main() -> larch::Result<()> {
//! use larch::machine::{Machine, SimDisk};
//!
//! let disk = SimDisk::new(1);
//! let open = || larch::Database::builder("db").machine(Machine::simulated_on(disk.clone(), 1)).open();
//! open()?.table("fruit")?.insert("apple", "red")?;
//!
//! disk.crash_keeping_nothing(); // what was not synced is gone
//! assert!(open()?.table("fruit")?.contains_key("apple")?);
//! # Ok(())
//! # }
//! ```

pub use os::Machine;
pub use os::real::ThreadPool;
pub use os::sim::SimDisk;
