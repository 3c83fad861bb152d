//! The clock by which rows expire. It is the wall clock of the machine, but it never goes back: not in a process, and
//! not behind a time at which the database has dropped rows because they had expired. This module does not know rows.
//!
//! Thread safe.

use os::Clock;
use os::sync::Arc;
use os::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use sst::{RowKind, Until};
use std::time::Duration;

/// The time until which a row is there, from a time since the beginning of 1970. Fractions of a millisecond are cut
/// off.
pub fn until(time: Duration) -> Until {
    Until::from_millis(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}

/// As the time since the beginning of 1970.
pub fn time_of(until: Until) -> Duration {
    Duration::from_millis(until.millis())
}

/// The time that comes `time` after `now`, which is in milliseconds since 1970.
pub fn after(now: u64, time: Duration) -> Duration {
    Duration::from_millis(now).saturating_add(time)
}

/// The clock by which the rows of one open database expire.
#[derive(Debug)]
pub struct RowClock {
    machine: Arc<dyn Clock>,
    /// The latest time that a reader has seen, in milliseconds since 1970.
    latest: AtomicU64,
    /// Whether rows of the database may have times. While none has, no write has to ask for the times of older rows.
    has_times: AtomicBool,
    /// Whether the current log and all later ones may have rows with times: their headers say so.
    log_takes_times: AtomicBool,
}

impl RowClock {
    /// A clock that follows `machine`.
    pub fn new(machine: Arc<dyn Clock>) -> Arc<Self> {
        let (latest, has_times, log_takes_times) = (AtomicU64::new(0), AtomicBool::default(), AtomicBool::default());
        Arc::new(Self { machine, latest, has_times, log_takes_times })
    }

    /// The time now, in milliseconds since 1970.
    pub fn now(&self) -> u64 {
        let wall = u64::try_from(self.machine.wall().as_millis()).unwrap_or(u64::MAX);
        let latest = self.latest.load(Ordering::Acquire);
        if wall > latest { wall.max(self.latest.fetch_max(wall, Ordering::AcqRel)) } else { latest }
    }

    /// The time that comes `time` after now, since the beginning of 1970.
    pub fn after(&self, time: Duration) -> Duration {
        after(self.now(), time)
    }

    /// From now on, the clock is not behind `millis` milliseconds since 1970.
    pub fn raise(&self, millis: u64) {
        self.latest.fetch_max(millis, Ordering::AcqRel);
    }

    /// Whether a row with this time has expired.
    pub fn has_passed(&self, until: Until) -> bool {
        until.millis() <= self.now()
    }

    /// Whether a row of this kind has a value now. A merge always makes one. `until` gives the time of a row that has one.
    #[inline(always)]
    pub fn shows(&self, kind: RowKind, until: impl FnOnce() -> Option<Until>) -> bool {
        match kind {
            RowKind::Put | RowKind::Merge => true,
            RowKind::PutUntil => self.shows_until(until()),
            RowKind::Erase => false,
        }
    }

    #[cold]
    #[inline(never)]
    fn shows_until(&self, until: Option<Until>) -> bool {
        until.is_some_and(|until| !self.has_passed(until))
    }

    /// Whether rows of the database may have times.
    pub fn has_times(&self) -> bool {
        self.has_times.load(Ordering::Acquire)
    }

    /// Notes that rows of the database may have times.
    pub fn note_times(&self) {
        self.has_times.store(true, Ordering::Release);
    }

    /// Whether the current log and all later ones may have rows with times.
    #[inline]
    pub fn log_takes_times(&self) -> bool {
        self.log_takes_times.load(Ordering::Acquire)
    }

    /// Notes that the current log and all later ones may have rows with times.
    pub fn note_log_takes_times(&self) {
        self.log_takes_times.store(true, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A wall clock that a test sets.
    #[derive(Debug, Default)]
    struct Wall(AtomicU64);

    impl Clock for Wall {
        fn now(&self) -> Duration {
            Duration::ZERO
        }

        fn wall(&self) -> Duration {
            Duration::from_millis(self.0.load(Ordering::Relaxed))
        }

        fn sleep(&self, _: Duration) {}
    }

    #[test]
    fn the_clock_never_goes_back() {
        let wall = Arc::new(Wall::default());
        let clock = RowClock::new(wall.clone());
        for (set, shown) in [(100, 100), (50, 100), (120, 120), (0, 120)] {
            wall.0.store(set, Ordering::Relaxed);
            assert_eq!(clock.now(), shown);
        }
        clock.raise(200);
        assert_eq!(clock.now(), 200);
        clock.raise(150);
        assert_eq!(clock.now(), 200);
        assert!(clock.has_passed(Until::from_millis(200)) && !clock.has_passed(Until::from_millis(201)));
    }

    #[test]
    fn erases_and_puts_after_their_time_show_no_value() {
        let clock = RowClock::new(Arc::new(Wall(AtomicU64::new(10))));
        let at = |millis: u64| Some(Until::from_millis(millis));
        assert!(clock.shows(RowKind::Put, || panic!("it has no time")));
        assert!(clock.shows(RowKind::PutUntil, || at(11)) && !clock.shows(RowKind::PutUntil, || at(10)));
        assert!(!clock.shows(RowKind::Erase, || None) && clock.shows(RowKind::Merge, || None));
    }
}
