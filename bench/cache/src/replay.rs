//! One policy on one trace: what it finds, what it reads.
//!
//! The first use of a page that was read ahead is not a hit, just as it would be a miss without readahead. So hits
//! count what the cache kept, and policies can be compared with one that knows the future and reads nothing ahead.

use crate::policies::Kind;
use crate::recorded::{Recorded, What, index};
use pages::policy::Class;

/// What a policy came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Pages needed, index and data.
    pub needed: [u64; 2],
    /// The pages among these that had stayed in memory.
    pub hits: [u64; 2],
    /// Data pages needed for reads of one key, and those among them that had stayed.
    pub points: [u64; 2],
    /// Pages read, for need or ahead.
    pub reads: [u64; 2],
    /// Bytes of these.
    pub read_bytes: u64,
    /// Pages looked at for eviction.
    pub looks: u64,
    /// Pages that went.
    pub evicted: u64,
}

impl Tally {
    /// Hits of all that was needed, in percent; 100 if nothing was.
    pub fn hit_percent(&self) -> f64 {
        percent(self.hits.iter().sum(), self.needed.iter().sum())
    }

    /// The percentage of hits of one class.
    pub fn class_hit_percent(&self, class: Class) -> f64 {
        percent(self.hits[index(class)], self.needed[index(class)])
    }

    /// The percentage of hits among data pages in reads of one key.
    pub fn point_hit_percent(&self) -> f64 {
        percent(self.points[1], self.points[0])
    }

    /// Pages read.
    pub fn all_reads(&self) -> u64 {
        self.reads.iter().sum()
    }

    /// Pages looked at for one that went.
    pub fn looks_each(&self) -> f64 {
        self.looks as f64 / self.evicted.max(1) as f64
    }
}

fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 100.0 } else { part as f64 * 100.0 / whole as f64 }
}

/// Replays the trace with a cache of `budget` bytes, empty at first.
///
/// # Panics
///
/// If the policy holds more than its budget: it would win by that.
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
