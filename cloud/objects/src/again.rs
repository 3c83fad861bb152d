//! Repeats a request to a store as long as a later attempt may get another answer. This module does not know what
//! the request is.

use os::Clock;
use os::store::is_certain;
use os::{Random, sync::Arc};
use std::io::{self, ErrorKind};
use std::time::Duration;

/// The longest time from the start of the first attempt to the start of the last. The client of a networked store
/// already repeats a request for longer than this, so a request that failed there is not repeated here.
const DEADLINE: Duration = Duration::from_secs(30);

/// The first and the longest value of a time that doubles. Each pause is a random part of it.
const WAITS: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(2));

/// Decides when to repeat a request.
#[derive(Debug)]
pub struct Again {
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    begin: Duration,
    wait: Duration,
}

impl Again {
    /// Starts counting the time.
    pub fn new(clock: &Arc<dyn Clock>, random: &Arc<dyn Random>) -> Again {
        Again { clock: clock.clone(), random: random.clone(), begin: clock.now(), wait: WAITS.0 }
    }

    /// Sleeps for a random part of a time that doubles with each call. Returns false at once if the pause would end
    /// after [`DEADLINE`].
    pub fn pause(&mut self) -> bool {
        let part = (self.random.next_u64() >> 32) as u32;
        let pause = self.wait.mul_f64(f64::from(part) / f64::from(u32::MAX));
        if self.clock.now() + pause > self.begin + DEADLINE {
            return false;
        }
        self.clock.sleep(pause);
        self.wait = (2 * self.wait).min(WAITS.1);
        true
    }

    /// Makes the request, and repeats it until the answer is final or the next attempt would start after
    /// [`DEADLINE`]. An answer is final if a later attempt would get the same, as with `AlreadyExists`.
    ///
    /// # Errors
    ///
    /// The last error of the store.
    pub fn ask<T>(mut self, mut request: impl FnMut() -> io::Result<T>) -> io::Result<T> {
        loop {
            match request() {
                Ok(answer) => return Ok(answer),
                Err(error) if is_certain(error.kind()) || error.kind() == ErrorKind::AlreadyExists => {
                    return Err(error);
                }
                Err(error) => {
                    if !self.pause() {
                        return Err(error);
                    }
                }
            }
        }
    }
}
