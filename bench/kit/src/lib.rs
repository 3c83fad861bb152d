//! Code that the command, benchmarks and tests share: sizes and times as text, an allocator that counts, instruction
//! counts, temporary directories, medians, goals, hints, and the cost of a client. This crate knows nothing about the engine,
//! so the tests of every crate may use it.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "it measures the machine and is never simulated"
)]

pub mod allocations;
pub mod callgrind;
pub mod client_cost;
pub mod goals;
pub mod hints;
pub mod median;
pub mod program;
pub mod scratch;
pub mod size;
pub mod time;

pub use goals::Bound;
pub use median::{median, spread};
pub use scratch::Scratch;
