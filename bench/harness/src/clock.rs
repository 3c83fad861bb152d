//! The one clock of a run.

#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a benchmark measures the time of the machine")]

use std::time::Instant;

/// Nanoseconds since the run began; never goes back. Copies of a clock agree.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: Instant,
}

impl Clock {
    /// A clock that begins at 0 now.
    pub fn start() -> Self {
        Self { start: Instant::now() }
    }

    /// Nanoseconds since [`Clock::start`].
    #[inline]
    pub fn nanos(&self) -> u64 {
        // A `u64` has room for 584 years.
        self.start.elapsed().as_nanos() as u64
    }
}
