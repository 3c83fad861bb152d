//! Random numbers for identifiers. Tests do not use them: they have seeds of their own.

use std::fmt::Debug;

/// A source of random numbers. Thread safe.
pub trait Random: Send + Sync + Debug {
    /// The next number, uniform over all values.
    fn next_u64(&self) -> u64;
}
