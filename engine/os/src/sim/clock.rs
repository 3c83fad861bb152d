//! A clock that stands still until it is moved. This module does not know the time of the system.

use crate::Clock;
use crate::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The wall time at the start of the simulation: 2020-01-01, so that times do not look like counters.
const START: Duration = Duration::from_secs(1_577_836_800);

/// A clock that only [`Clock::sleep`] and [`SimClock::advance`] move.
#[derive(Debug, Default)]
pub struct SimClock {
    nanos: AtomicU64,
}

impl SimClock {
    /// A clock at 0.
    pub fn new() -> SimClock {
        SimClock::default()
    }

    /// Moves the clock forward.
    pub fn advance(&self, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).expect("a simulation lasts less than 584 years");
        self.nanos.fetch_add(nanos, Ordering::Relaxed);
    }
}

impl Clock for SimClock {
    fn now(&self) -> Duration {
        Duration::from_nanos(self.nanos.load(Ordering::Relaxed))
    }

    fn wall(&self) -> Duration {
        START + self.now()
    }

    fn sleep(&self, time: Duration) {
        self.advance(time);
    }
}
