//! The times of a run: ramp, warm-up, window, intervals, and the schedule of an open loop. This module only does
//! arithmetic on nanoseconds of the run's clock.
//!
//! ```text
//!   origin          start                                end
//!     | ramp, warm-up | window                            |
//!     |  0  |  1  | 2 |  3  |  4  |  5  |  …              |     intervals; the last before the window may be short
//! ```

#[cfg(test)]
mod tests;

use crate::plan::{Length, Pace, Plan};

/// The times of one run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timeline {
    /// When the first client may begin.
    pub(crate) origin: u64,
    /// When the window begins.
    pub(crate) start: u64,
    /// The latest end of the window; `u64::MAX` if something else ends it.
    pub(crate) end: u64,
    interval: u64,
    ramp: u64,
    clients: u64,
    slack: u64,
    /// How many operations of an open loop begin in a million seconds. The number is whole, so that the schedule is
    /// exact.
    rate: Option<u64>,
}

/// The number of nanoseconds in 10^6 seconds. A rate is kept as the number of operations in 10^6 seconds.
const NANOS_OF_RATE: u128 = 1_000_000_000_000_000;

impl Timeline {
    pub(crate) fn new(plan: &Plan, origin: u64) -> Self {
        let nanos = |time: std::time::Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let start = origin.saturating_add(nanos(plan.ramp)).saturating_add(nanos(plan.warmup));
        let length = match plan.length {
            Length::Time(time) => nanos(time),
            Length::Operations(_) | Length::All => u64::MAX,
        };
        let length = length.min(plan.limit.map_or(u64::MAX, nanos));
        let rate = match plan.pace {
            Pace::Closed => None,
            Pace::Open { per_second } => Some((per_second * 1e6).round() as u64),
        };
        Self {
            origin,
            start,
            end: start.saturating_add(length),
            interval: nanos(plan.interval),
            ramp: nanos(plan.ramp),
            clients: plan.clients as u64,
            slack: nanos(plan.slack),
            rate,
        }
    }

    /// The number of the interval that contains `at`. `at` is not before the origin.
    pub(crate) fn interval(&self, at: u64) -> usize {
        let number = match at.checked_sub(self.start) {
            Some(since) => self.warming() + since / self.interval,
            None => (at - self.origin) / self.interval,
        };
        number as usize
    }

    /// Where interval `number` begins and ends, and whether the interval lies before the window.
    pub(crate) fn bounds(&self, number: usize) -> (u64, u64, bool) {
        match (number as u64).checked_sub(self.warming()) {
            Some(number) => {
                let from = self.start.saturating_add(number.saturating_mul(self.interval));
                (from, from.saturating_add(self.interval).min(self.end), false)
            }
            None => {
                let from = self.origin + number as u64 * self.interval;
                (from, from.saturating_add(self.interval).min(self.start), true)
            }
        }
    }

    /// The number of intervals before the window.
    fn warming(&self) -> u64 {
        (self.start - self.origin).div_ceil(self.interval)
    }

    /// When client `number` begins.
    pub(crate) fn ramp(&self, number: usize) -> u64 {
        let share = u128::from(self.ramp) * number as u128 / u128::from(self.clients);
        self.origin + share as u64
    }

    /// The time at which a thread that sleeps until `at` wakes up.
    pub(crate) fn wake(&self, at: u64) -> u64 {
        if self.is_exact() { at } else { at.checked_next_multiple_of(self.slack).unwrap_or(u64::MAX) }
    }

    /// Whether threads wake up as exactly as they can.
    pub(crate) fn is_exact(&self) -> bool {
        self.slack == 0
    }

    /// The schedule of client `number`; `None` in a closed loop.
    pub(crate) fn schedule(&self, number: usize) -> Option<Schedule> {
        let rate = self.rate?;
        let (clients, number) = (self.clients, number as u64);
        // The first operation that is not due before the client's own beginning.
        let ramp = u128::from(self.ramp(number as usize) - self.origin);
        let first = whole((ramp * u128::from(rate)).div_ceil(NANOS_OF_RATE));
        let skipped = first.saturating_sub(number).div_ceil(clients).saturating_mul(clients);
        Some(Schedule { origin: self.origin, rate, clients, next: number.saturating_add(skipped) })
    }
}

/// The times at which the operations of one client should begin. Operation n of all clients together begins n/rate
/// after the origin. Client i of C has the operations n = i, C + i, 2C + i, … No operation is skipped, however late
/// the client is.
#[derive(Clone, Debug)]
pub(crate) struct Schedule {
    origin: u64,
    rate: u64,
    clients: u64,
    next: u64,
}

impl Schedule {
    /// The next time.
    pub(crate) fn next(&mut self) -> u64 {
        let nanos = u128::from(self.next) * NANOS_OF_RATE / u128::from(self.rate);
        // Even at the highest rate of a plan, 2^64 operations would take longer than any run.
        self.next = self.next.saturating_add(self.clients);
        self.origin.saturating_add(whole(nanos))
    }

    /// How many of the remaining operations are due at `from` or later, and before `to`.
    pub(crate) fn left_between(&self, from: u64, to: u64) -> u64 {
        // floor(n * N / rate) < t  <=>  n < ceil(t * rate / N), for whole t
        let before = |time: u64| {
            whole((u128::from(time.saturating_sub(self.origin)) * u128::from(self.rate)).div_ceil(NANOS_OF_RATE))
        };
        // The number of this client's remaining operations before operation n.
        let mine = |n: u64| n.saturating_sub(self.next).div_ceil(self.clients);
        mine(before(to)).saturating_sub(mine(before(from)))
    }
}

/// A number that is too large for `u64` lies beyond the end of every run.
fn whole(number: u128) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}
