//! Finds out which workers live. A worker makes a *beat* from time to time: a file whose name has a count that
//! grows with each beat. This module reads no clock and no disk.
//!
//! A worker lives if its count has grown lately. A beat that the writer finds at its first look proves nothing,
//! because its worker may have died long ago.

use std::collections::HashMap;
use std::time::Duration;

/// The workers whose beats were seen.
#[derive(Debug, Default)]
pub struct Alive {
    workers: HashMap<u64, Seen>,
}

#[derive(Debug)]
struct Seen {
    count: u64,
    /// When the current count was first seen.
    since: Duration,
    /// Whether the count has grown since the first look.
    has_grown: bool,
}

impl Alive {
    /// Takes note of `beats`, all that exist `now`. A worker without a beat is forgotten only after the time
    /// `dead`, because a listing may miss a beat that the worker is replacing.
    pub fn note(&mut self, beats: &[(u64, u64)], now: Duration, dead: Duration) {
        for &(worker, count) in beats {
            let seen = self.workers.entry(worker).or_insert(Seen { count, since: now, has_grown: false });
            if count > seen.count {
                *seen = Seen { count, since: now, has_grown: true };
            }
        }
        let is_there = |worker: &u64| beats.iter().any(|(there, _)| there == worker);
        self.workers.retain(|worker, seen| is_there(worker) || now.saturating_sub(seen.since) < dead);
    }

    /// Takes note that a worker has shown, by something other than a beat, that it lives.
    pub fn saw(&mut self, worker: u64, now: Duration) {
        let seen = self.workers.entry(worker).or_insert(Seen { count: 0, since: now, has_grown: true });
        (seen.since, seen.has_grown) = (now, true);
    }

    /// Whether `worker` lives: it has shown so within the time `dead` before `now`.
    pub fn has(&self, worker: u64, now: Duration, dead: Duration) -> bool {
        self.workers.get(&worker).is_some_and(|seen| seen.lives(now, dead))
    }

    /// The number of workers that live.
    pub fn count(&self, now: Duration, dead: Duration) -> usize {
        self.workers.values().filter(|seen| seen.lives(now, dead)).count()
    }

    /// Whether no worker is known, alive or not.
    pub fn is_empty(&self) -> bool {
        self.workers.is_empty()
    }

    /// Whether `worker` was seen and its count has not grown for `time`.
    pub fn is_silent_for(&self, worker: u64, time: Duration, now: Duration) -> bool {
        self.workers.get(&worker).is_some_and(|seen| now.saturating_sub(seen.since) >= time)
    }
}

impl Seen {
    fn lives(&self, now: Duration, dead: Duration) -> bool {
        self.has_grown && now.saturating_sub(self.since) < dead
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_lives_as_long_as_its_count_grows() {
        let at = Duration::from_secs;
        let mut alive = Alive::default();
        let dead = at(3);
        alive.note(&[(1, 7), (2, 1)], at(10), dead);
        assert_eq!(alive.count(at(10), dead), 0, "they may have died before the first look");
        alive.note(&[(1, 7), (1, 8), (2, 1)], at(11), dead);
        assert!(alive.has(1, at(13), dead) && !alive.has(2, at(13), dead));
        assert!(!alive.has(1, at(14), dead), "three seconds without a beat");
        assert!(alive.is_silent_for(2, at(4), at(14)) && !alive.is_silent_for(1, at(4), at(14)));
        alive.note(&[(1, 9)], at(20), dead);
        assert_eq!(alive.count(at(20), dead), 1);
        alive.note(&[], at(21), dead);
        assert!(alive.has(1, at(21), dead), "a list may miss a beat");
        alive.note(&[], at(23), dead);
        assert!(alive.is_empty(), "it has removed its beat");
        alive.saw(3, at(30));
        assert!(alive.has(3, at(30), dead), "it does something before its second beat");
    }
}
