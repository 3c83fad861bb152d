//! The system's clocks. This module does not know what is timed.

use crate::Clock;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Pauses up to this length spin on the processor, because a sleep takes about 55 us longer than asked for.
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
        // A system clock before 1970 counts as 1970.
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
