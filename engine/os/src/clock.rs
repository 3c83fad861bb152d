//! Time: a monotonic clock, the wall clock, and waiting. This module does not know what is timed.

use std::fmt::Debug;
use std::time::Duration;

/// A source of time. Thread safe.
pub trait Clock: Send + Sync + Debug {
    /// Monotonic time since an arbitrary start.
    fn now(&self) -> Duration;
    /// Time since the Unix epoch.
    fn wall(&self) -> Duration;
    /// Waits for `time`. A simulated clock moves itself forward instead.
    fn sleep(&self, time: Duration);
    /// Waits for `time` as exactly as possible. A time that is too short for a sleep is spent spinning.
    fn pause(&self, time: Duration) {
        self.sleep(time);
    }
}
