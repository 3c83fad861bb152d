//! The distributions of YCSB. If only one client draws, each distribution draws bit for bit the same numbers as the
//! original's class of the same name. Clients share nothing in this module; what they share is in `keyspace`.

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

/// Java's `Math.abs(random) % interval`. The result is negative if `random` is the least number of 64 bits,
/// because this number has no absolute value.
fn modulo(random: i64, interval: i64) -> i64 {
    random.wrapping_abs() % interval
}
