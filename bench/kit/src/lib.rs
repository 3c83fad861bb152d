//! What benchmarks share with the tests that count: an allocator that counts, instructions, temporary directories,
//! medians, goals, what a client costs. It knows nothing of the engine, so that the tests of every crate may use it.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "it measures the machine and is never simulated"
)]

pub mod allocations;
pub mod callgrind;
pub mod client_cost;
pub mod goals;
pub mod median;
pub mod scratch;

pub use goals::Bound;
pub use median::{median, spread};
pub use scratch::Scratch;
