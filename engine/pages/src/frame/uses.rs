//! How a page was used since the policy last looked at it: how often, and which of its parts. One word that readers
//! change without a lock. This module does not know what the parts are.
//!
//! ```text
//! bits 0, 1     uses, up to 3
//! bit 2         whether the page was used by readers that note no parts
//! bits 3..9     uses of which the part is known, up to 63
//! bits 9..64    buckets of parts that were used
//! ```
//!
//! Of two concurrent changes one may be lost, because all of this is a hint. A page that is used again and again for
//! the same parts is not written to any more.

use os::sync::atomic::{AtomicU64, Ordering};

/// The most uses that are counted between two looks of the policy, which does not distinguish higher counts.
const MOST_USES: u64 = 3;

/// The most uses that are counted of those whose part is known.
const MOST_NOTED: u64 = 63;

const OF_ALL: u64 = 1 << 2;
const NOTED_AT: u32 = 3;
const BUCKETS_AT: u32 = 9;

/// The number of buckets.
const BUCKETS: u32 = u64::BITS - BUCKETS_AT;

/// The uses of a page.
#[derive(Debug, Default)]
pub(crate) struct Uses(AtomicU64);

/// One of `of` parts of a page, numbered from 0.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// Its number.
    pub number: u32,
    /// How many parts the page has, at least one.
    pub of: u32,
}

impl Part {
    /// The bucket of the part. A page of few parts has a bucket for each.
    #[inline]
    fn bucket(self) -> u32 {
        let Self { number, of } = self;
        let bucket =
            if of <= BUCKETS { number } else { (u64::from(number) * u64::from(BUCKETS) / u64::from(of)) as u32 };
        bucket.min(BUCKETS - 1)
    }
}

/// The uses of a page at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Used(u64);

impl Uses {
    /// Counts a use.
    #[inline]
    pub fn count(&self) {
        let word = self.0.load(Ordering::Relaxed);
        if word & MOST_USES < MOST_USES {
            self.change(word, word + 1);
        }
    }

    /// Notes which part a use is about, which is counted apart.
    #[inline]
    pub fn note(&self, part: Part) {
        let word = self.0.load(Ordering::Relaxed);
        let mut next = word | 1 << (BUCKETS_AT + part.bucket());
        if word >> NOTED_AT & MOST_NOTED < MOST_NOTED {
            next += 1 << NOTED_AT;
        }
        if next != word {
            self.change(word, next);
        }
    }

    /// Notes a reader that notes no parts.
    #[inline]
    pub fn note_all(&self) {
        let word = self.0.load(Ordering::Relaxed);
        if word & OF_ALL == 0 {
            self.change(word, word | OF_ALL);
        }
    }

    /// Changes the word, unless another thread was faster or another page is here by now.
    #[inline]
    fn change(&self, before: u64, next: u64) {
        self.0.compare_exchange(before, next, Ordering::Relaxed, Ordering::Relaxed).ok();
    }

    /// The uses so far.
    pub fn get(&self) -> Used {
        Used(self.0.load(Ordering::Relaxed))
    }

    /// The uses so far, which are forgotten.
    pub fn take(&self) -> Used {
        let used = self.get();
        if used.0 > 0 {
            self.0.store(0, Ordering::Relaxed);
        }
        used
    }
}

impl Used {
    /// How often; 3 stands for 3 or more.
    pub fn times(self) -> u8 {
        (self.0 & MOST_USES) as u8
    }

    /// How many uses there were of which the part is known; 63 stands for 63 or more.
    pub fn noted(self) -> u8 {
        (self.0 >> NOTED_AT & MOST_NOTED) as u8
    }

    /// Whether readers used the page that note no parts.
    pub fn is_of_all(self) -> bool {
        self.0 & OF_ALL != 0
    }

    /// Whether the page was used, the parts of its uses are known, and they were at most three quarters of its parts.
    pub fn is_partial(self, of: u32) -> bool {
        let noted = u64::from(self.noted());
        let used = (self.0 >> BUCKETS_AT).count_ones();
        noted > 0 && !self.is_of_all() && noted >= self.0 & MOST_USES && 4 * used <= 3 * of.min(BUCKETS)
    }

    /// Whether the part was used, or one in the same bucket.
    pub fn has(self, part: Part) -> bool {
        self.0 >> (BUCKETS_AT + part.bucket()) & 1 == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_partial_if_all_uses_are_known_and_few_parts_were_used() {
        let uses = Uses::default();
        assert!(!uses.get().is_partial(16), "it was not used");
        for number in [3, 3, 9] {
            uses.count();
            uses.note(Part { number, of: 16 });
        }
        let used = uses.take();
        assert_eq!(used.times(), 3);
        assert!(used.is_partial(16) && used.is_partial(3) && !used.is_partial(2));
        let parts: Vec<u32> = (0..16).filter(|&number| used.has(Part { number, of: 16 })).collect();
        assert_eq!(parts, [3, 9]);
        assert_eq!(uses.take(), Used(0));
        uses.count();
        uses.count();
        uses.note(Part { number: 3, of: 16 });
        assert!(!uses.get().is_partial(16), "the part of one use is not known");
        uses.take();
        for _ in 0..2 * MOST_NOTED {
            uses.note(Part { number: 3, of: 16 });
        }
        assert!(u64::from(uses.get().noted()) == MOST_NOTED && uses.get().is_partial(16));
        uses.note_all();
        assert!(uses.get().is_of_all() && !uses.get().is_partial(16), "a reader used all of the page");
    }

    #[test]
    fn every_part_has_a_bucket_and_neighbours_share_one() {
        for of in [1, 2, 54, 55, 56, 148, 5000, u32::MAX] {
            let parts = [0, of / 3, of / 2, of - 1];
            for number in parts {
                let uses = Uses::default();
                uses.note(Part { number, of });
                assert!(uses.get().has(Part { number, of }), "{number} of {of}");
                assert_eq!(
                    uses.get().0 >> BUCKETS_AT,
                    1 << (u64::from(number) * 55.min(u64::from(of)) / u64::from(of))
                );
            }
        }
    }
}
