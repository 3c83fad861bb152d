//! Replays one trace with one policy, and counts hits and reads.
//!
//! The first use of a page that was read ahead is not counted as a hit, because without readahead it would be a
//! miss. So hits count only pages that the policy has kept. These hits can be compared with the hits of the policy
//! that knows the future, because that policy reads nothing ahead.

use crate::policies::Kind;
use crate::recorded::{Recorded, What, index};
use pages::policy::Class;

/// The results of a policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// The number of needed pages: first of index pages, then of data pages.
    pub needed: [u64; 2],
    /// How many of the needed pages had stayed in memory.
    pub hits: [u64; 2],
    /// The number of data pages that reads of one key needed, and how many of these pages had stayed in memory.
    pub points: [u64; 2],
    /// The number of pages that were read, because a client needed them or because they were read ahead.
    pub reads: [u64; 2],
    /// The bytes of the pages that were read.
    pub read_bytes: u64,
    /// The number of pages that were looked at for eviction.
    pub looks: u64,
    /// The number of evicted pages.
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

    /// The number of pages that were read.
    pub fn all_reads(&self) -> u64 {
        self.reads.iter().sum()
    }

    /// The average number of pages that were looked at to evict one page.
    pub fn looks_each(&self) -> f64 {
        self.looks as f64 / self.evicted.max(1) as f64
    }
}

fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 100.0 } else { part as f64 * 100.0 / whole as f64 }
}

/// Replays the trace with a cache of `budget` bytes. The cache is empty at first.
///
/// # Panics
///
/// Panics if the policy holds more bytes than its budget, because that would be an unfair advantage.
pub fn replay(recorded: &Recorded, kind: Kind, budget: u64) -> Tally {
    let mut policy = kind.policy(recorded, budget);
    let mut tally = Tally::default();
    let mut is_ahead = vec![false; recorded.pages.len()];
    for event in &recorded.events {
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
    (tally.looks, tally.evicted) = policy.looks();
    tally
}

#[cfg(test)]
mod tests;
