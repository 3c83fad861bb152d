//! Slows commits down before they would have to stall: the further background work is behind, the lower the allowed
//! rate. This module does not wait, and does not know what background work does.
//!
//! All writers share one allowed rate. Writers below this rate never wait; above it, each commit waits some
//! microseconds. Each further step by which background work falls behind cuts the rate by the same factor. So
//! writers slow down to the speed of background work before its backlog reaches the limit.
//!
//! This module is thread-safe.

use crate::base::options::LevelOptions;
use crate::view::View;
use os::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The rate at which slowing down begins, in bytes a second. Few writers are that fast.
const FAST: f64 = (256 << 20) as f64;

/// How many times the rate is halved on the way to the limit, down to 1 MiB a second.
const HALVINGS: f64 = 8.0;

/// The longest wait of one commit. If a large batch would have to wait longer, later commits wait for the rest.
const LONGEST_WAIT: Duration = Duration::from_millis(100);

/// The time before which the next slowed commit must not go on, shared by all writers.
#[derive(Debug, Default)]
pub struct Pace {
    next_nanos: AtomicU64,
}

impl Pace {
    /// Reserves a span of `time` for the caller's commit, after the spans of earlier commits. Returns how long the
    /// caller has to wait until these are over.
    pub fn reserve(&self, now: Duration, time: Duration) -> Duration {
        let (now, time) = (now.as_nanos() as u64, time.as_nanos() as u64);
        // If many writers come at once, their spans may reach far into the future. What exceeds this limit is
        // forgotten.
        let farthest = now + 10 * LONGEST_WAIT.as_nanos() as u64;
        let update = |next: u64| Some((next.max(now) + time).min(farthest));
        let before = self.next_nanos.fetch_update(Ordering::Relaxed, Ordering::Relaxed, update).unwrap_or(now);
        Duration::from_nanos(before.saturating_sub(now)).min(LONGEST_WAIT)
    }

    /// Whether a commit can go on at `now` without waiting.
    pub fn is_free(&self, now: Duration) -> bool {
        self.next_nanos.load(Ordering::Relaxed) <= now.as_nanos() as u64
    }

    /// Gives a reserved `time` back, because the commit was not made.
    pub fn give_back(&self, time: Duration) {
        let time = time.as_nanos() as u64;
        let update = |next: u64| Some(next.saturating_sub(time));
        self.next_nanos.fetch_update(Ordering::Relaxed, Ordering::Relaxed, update).expect("it always has a value");
    }
}

/// How long a commit of `bytes` takes at the rate that `view` allows, or `None` if background work is not behind.
/// The rate falls while level 0 grows from `slow_files` to three times as many files. During a flush it also falls
/// once commits have filled half of the write buffer that is left to them, until that is full.
pub fn slowed(view: &View, levels: &LevelOptions, buffer_bytes: u64, bytes: u64) -> Option<Duration> {
    let limit = levels.slow_files as u64;
    let files = share(view.files.tables.most_level0_files() as u64, limit, 3 * limit);
    let memory = match view.memory.as_slice() {
        [active, _, ..] => {
            let left = view.left_bytes(buffer_bytes);
            share(active.used_bytes(), left / 2, left)
        }
        _ => 0.0,
    };
    time_of(bytes, files.max(memory))
}

/// How long a commit of `bytes` takes if background work is `behind` by this much: 0 is not at all, 1 is the limit.
fn time_of(bytes: u64, behind: f64) -> Option<Duration> {
    let rate = FAST / (HALVINGS * behind).exp2();
    (behind > 0.0).then(|| Duration::from_secs_f64(bytes as f64 / rate))
}

/// How far `value` is on the way from `low` to `high`, from 0 to 1.
fn share(value: u64, low: u64, high: u64) -> f64 {
    (value.saturating_sub(low) as f64 / (high - low).max(1) as f64).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_pace_serves_all_writers_and_no_commit_waits_long() {
        let pace = Pace::default();
        let millis = Duration::from_millis;
        assert_eq!(pace.reserve(millis(1000), millis(20)), millis(0), "no commit was before it");
        assert_eq!(
            pace.reserve(millis(1000), millis(20)),
            millis(20),
            "the second writer waits for the first one's share"
        );
        assert_eq!(pace.reserve(millis(1000), millis(500)), millis(40));
        assert_eq!(
            pace.reserve(millis(1000), millis(1)),
            LONGEST_WAIT,
            "a large batch leaves the rest to those after it"
        );
        assert_eq!(pace.reserve(millis(1600), millis(1)), millis(0), "unused time is not saved up");
        for _ in 0..100 {
            pace.reserve(millis(2000), millis(1000));
        }
        assert_eq!(pace.reserve(millis(2000) + 10 * LONGEST_WAIT, millis(1)), millis(0), "the debt has a limit");
    }

    #[test]
    fn a_commit_that_is_not_made_gives_its_time_back() {
        let pace = Pace::default();
        let millis = Duration::from_millis;
        assert!(pace.is_free(millis(1000)));
        pace.reserve(millis(1000), millis(20));
        assert!(!pace.is_free(millis(1019)) && pace.is_free(millis(1020)));
        pace.reserve(millis(1000), millis(50));
        pace.give_back(millis(50));
        assert_eq!(pace.reserve(millis(1000), millis(1)), millis(20));
    }

    #[test]
    fn writers_below_the_allowed_rate_never_wait() {
        let pace = Pace::default();
        for commit in 0..1000 {
            let wait = pace.reserve(Duration::from_micros(4 * commit), Duration::from_micros(3));
            assert_eq!(wait, Duration::ZERO, "commit {commit}");
        }
    }

    #[test]
    fn the_time_of_a_commit_grows_from_less_than_a_microsecond_by_small_steps() {
        let micros = |behind| time_of(240, behind).map(|time| time.as_secs_f64() * 1e6);
        assert_eq!(micros(0.0), None);
        let times: Vec<f64> = (1..=100).filter_map(|percent| micros(f64::from(percent) / 100.0)).collect();
        assert!(times[0] < 1.0 && times[99] > 200.0, "{times:?}");
        assert!(times.windows(2).all(|pair| pair[1] > pair[0] && pair[1] < 1.06 * pair[0]), "{times:?}");
    }
}
