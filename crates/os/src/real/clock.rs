//! The system's clocks. This module does not know what is timed.

use crate::Clock;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The longest pause that is spent in a loop on the processor. A sleep takes about 55 us longer than asked for.
pub(super) const LONGEST_SPIN: Duration = Duration::from_micros(20);

/// The system's clocks. Monotonic time starts when this value is made.
#[derive(Clone, Copy, Debug)]
pub struct RealClock {
    start: Instant,
}

impl RealClock {
    /// A clock that starts now.
    #[expect(clippy::new_without_default, reason = "a default that reads the clock would surprise")]
    pub fn new() -> RealClock {
        RealClock { start: Instant::now() }
    }
}

impl Clock for RealClock {
    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn wall(&self) -> Duration {
        // If the system clock is set to a time before 1970, the result is 0, as if there were no clock.
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
    }

    fn sleep(&self, time: Duration) {
        thread::sleep(time);
    }

    fn pause(&self, time: Duration) {
        if time > LONGEST_SPIN {
            return thread::sleep(time);
        }
        let start = Instant::now();
        while start.elapsed() < time {
            std::hint::spin_loop();
        }
    }
}
