//! Time: a monotonic clock, the wall clock, and waiting. It does not know what is timed.

use std::fmt::Debug;
use std::time::Duration;

/// A source of time. Thread safe.
pub trait Clock: Send + Sync + Debug {
    /// Monotonic time since an arbitrary start.
    fn now(&self) -> Duration;
    /// Time since the Unix epoch.
    fn wall(&self) -> Duration;
    /// Waits; a simulated clock moves itself forward instead.
    fn sleep(&self, time: Duration);
}
