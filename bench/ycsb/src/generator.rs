//! The distributions of YCSB. As long as one client draws, each distribution draws bit for bit what the class of the
//! same name draws in the original. Clients share only a counter of `keyspace`; nothing in this module is shared.

mod discrete;
mod exponential;
mod histogram;
mod hotspot;
mod scrambled;
#[cfg(test)]
mod tests;
mod uniform;
mod zipfian;

pub use discrete::Discrete;
pub use exponential::Exponential;
pub use histogram::{BadHistogram, Histogram};
pub use hotspot::Hotspot;
pub use scrambled::Scrambled;
pub use uniform::Uniform;
pub use zipfian::{Constants, Zipfian};

/// Java's `Math.abs(random) % interval`: negative for the one number that has no absolute value.
fn modulo(random: i64, interval: i64) -> i64 {
    random.wrapping_abs() % interval
}
