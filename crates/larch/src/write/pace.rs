//! Slows commits down before they have to wait: the rate falls as background work falls behind. It neither waits nor knows
//! what background work does.
//!
//! Thread safe.

use crate::options::LevelOptions;
use crate::read::View;
use os::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The fastest rate of slowed commits, in bytes a second.
const FAST: u64 = 64 << 20;

/// The slowest rate of slowed commits, in bytes a second.
const SLOW: u64 = 1 << 20;

/// Longest wait of one commit. If a large batch would have to wait longer, the commits after it wait for the rest.
const LONGEST_WAIT: Duration = Duration::from_millis(100);

/// The moment from which the next slowed commit may go on. All writers share it.
#[derive(Debug, Default)]
pub struct Pace {
    next_micros: AtomicU64,
}

impl Pace {
    /// Reserves the next `time` for the caller and returns how long to wait for its end.
    pub fn reserve(&self, now: Duration, time: Duration) -> Duration {
        let now = now.as_micros() as u64;
        // The moment may be far ahead if many writers came at once. Beyond this limit it is forgotten.
        let farthest = now + 10 * LONGEST_WAIT.as_micros() as u64;
        let step = time.as_micros() as u64;
        let update = |next: u64| Some((next.max(now) + step).min(farthest));
        let before = self.next_micros.fetch_update(Ordering::Relaxed, Ordering::Relaxed, update).unwrap_or(now);
        Duration::from_micros((before.max(now) + step).min(farthest) - now).min(LONGEST_WAIT)
    }
}

/// How long a commit of `bytes` takes at the rate that `view` allows; `None` if background work is not behind. The rate falls
/// from [`FAST`] to [`SLOW`] as level 0 grows from `slow_files` to three times as many files, or, during a flush, as the second
/// half of what it leaves of the write buffer fills.
pub fn slowed(view: &View, levels: &LevelOptions, buffer_bytes: u64, bytes: u64) -> Option<Duration> {
    let limit = levels.slow_files as u64;
    let files = share(view.files.tables.most_level0_files() as u64, limit, 3 * limit);
    let memory = match view.memory.as_slice() {
        [active, _, ..] => {
            let left = view.left_bytes(buffer_bytes);
            share(active.used_bytes(), left / 2, left)
        }
        _ => 0,
    };
    let behind = files.max(memory);
    let rate = FAST - (FAST - SLOW) / 1000 * behind;
    (behind > 0).then(|| Duration::from_micros(bytes * 1_000_000 / rate))
}

/// Where `value` is between `low` and `high`, in thousandths.
fn share(value: u64, low: u64, high: u64) -> u64 {
    value.saturating_sub(low).saturating_mul(1000).checked_div(high - low).unwrap_or(0).min(1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_pace_serves_all_writers_and_no_commit_waits_long() {
        let pace = Pace::default();
        let millis = Duration::from_millis;
        assert_eq!(pace.reserve(millis(1000), millis(20)), millis(20));
        assert_eq!(
            pace.reserve(millis(1000), millis(20)),
            millis(40),
            "the second writer waits for the first one's share"
        );
        assert_eq!(
            pace.reserve(millis(1000), millis(500)),
            LONGEST_WAIT,
            "a large batch leaves the rest to those after it"
        );
        assert_eq!(pace.reserve(millis(1100), millis(1)), LONGEST_WAIT);
        assert_eq!(pace.reserve(millis(1600), millis(1)), millis(1), "unused time is not saved up");
        for _ in 0..100 {
            pace.reserve(millis(2000), millis(1000));
        }
        assert_eq!(pace.reserve(millis(2000) + 10 * LONGEST_WAIT, millis(1)), millis(1), "the debt has a limit");
    }
}
