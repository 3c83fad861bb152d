//! Replays a trace with a policy, and counts hits and reads.
//!
//! The first use of a page that was read ahead does not count as a hit, because without readahead it would be a
//! miss. So hits count only pages that the policy kept, and can be compared with OPT's, which reads nothing ahead.

use crate::cache::policies::Kind;
use crate::cache::recorded::{Recorded, What, index};
use pages::policy::Class;
use serde::{Deserialize, Serialize};

/// The results of a policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Pages needed: index pages, data pages.
    pub needed: [u64; 2],
    /// How many of them had stayed in memory.
    pub hits: [u64; 2],
    /// Data pages needed by reads of one key, and how many of them had stayed in memory.
    pub points: [u64; 2],
    /// Pages read, on demand or ahead: index pages, data pages.
    pub reads: [u64; 2],
    /// Bytes of these reads.
    pub read_bytes: u64,
    /// Pages looked at for eviction.
    pub looks: u64,
    /// Pages evicted.
    pub evicted: u64,
}

impl Tally {
    /// Hits as a percentage of all needed pages; 100 if no page was needed.
    pub fn hit_percent(&self) -> f64 {
        percent(self.hits.iter().sum(), self.needed.iter().sum())
    }

    /// Hits as a percentage of the needed pages of one class.
    pub fn class_hit_percent(&self, class: Class) -> f64 {
        percent(self.hits[index(class)], self.needed[index(class)])
    }

    /// Hits as a percentage of the data pages that were needed for reads of one key.
    pub fn point_hit_percent(&self) -> f64 {
        percent(self.points[1], self.points[0])
    }

    /// Pages read, of both classes.
    pub fn all_reads(&self) -> u64 {
        self.reads.iter().sum()
    }

    /// Pages looked at per eviction.
    pub fn looks_each(&self) -> f64 {
        self.looks as f64 / self.evicted.max(1) as f64
    }
}

fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 100.0 } else { part as f64 * 100.0 / whole as f64 }
}

/// Replays the trace with an initially empty cache of `budget` bytes. Counts what happens after the warm-up.
///
/// # Panics
///
/// Panics if the policy exceeds its budget, which would be an unfair advantage.
pub fn replay(recorded: &Recorded, kind: Kind, budget: u64) -> Tally {
    let mut policy = kind.policy(recorded, budget);
    let mut tally = Tally::default();
    let mut is_ahead = vec![false; recorded.pages.len()];
    let mut looks_before = (0, 0);
    for (number, event) in recorded.events.iter().enumerate() {
        if number == recorded.warm_up {
            (tally, looks_before) = (Tally::default(), policy.looks());
        }
        let page = &recorded.pages[event.page as usize];
        let class = index(page.class);
        let is_ahead = &mut is_ahead[event.page as usize];
        let is_needed = match event.what {
            What::Needed => true,
            What::Ahead => false,
            What::Dead => {
                policy.remove(event.page);
                continue;
            }
        };
        let has = policy.has(event.page);
        if !is_needed && (has || !policy.reads_ahead()) {
            continue;
        }
        tally.needed[class] += u64::from(is_needed);
        let is_point = is_needed && event.is_point && page.class == Class::Data;
        tally.points[0] += u64::from(is_point);
        if has {
            let is_hit = !std::mem::take(is_ahead);
            tally.hits[class] += u64::from(is_hit);
            tally.points[1] += u64::from(is_hit && is_point);
            policy.hit(event.page);
        } else {
            *is_ahead = !is_needed;
            tally.reads[class] += 1;
            tally.read_bytes += u64::from(page.bytes);
            policy.admit(event.page, is_needed);
            assert!(policy.bytes() <= budget, "{} exceeds the budget", kind.name());
        }
    }
    let (looks, evicted) = policy.looks();
    (tally.looks, tally.evicted) = (looks - looks_before.0, evicted - looks_before.1);
    tally
}

#[cfg(test)]
mod tests;
