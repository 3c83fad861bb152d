//! When the rows of a file expire: the part of a meta that files with such rows have. This module reads no page and
//! no clock.
//!
//! ```text
//! rows | earliest | latest - earliest      varints; rows counts versions that have a time, older ones, too
//! bits u8 | buckets u8                     a bucket covers 2^bits milliseconds
//! each bucket: number | bytes              varints: the number less that of the bucket before it; of the first one,
//!                                          the number itself, which is earliest / 2^bits
//! ```
//!
//! Times are in milliseconds since the beginning of 1970, see [`Until`]. The bytes of a bucket are those of keys and
//! values, as they were given to the builder.
//!
//! Rows arrive in the order of their keys, and their times in any order. A new bucket that is one too many makes all
//! buckets twice as wide. So the widths follow from the times alone, and few bytes describe any number of rows.

use super::varint;
use crate::row::Until;

/// The most buckets of a histogram. With 16, a file whose rows expire evenly is described in steps of at most an eighth
/// of its time, in about a hundred bytes.
pub const MAX_BUCKETS: usize = 16;

/// When the rows of a file expire.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expiry {
    rows: u64,
    earliest: u64,
    latest: u64,
    /// A bucket covers 2^`bits` milliseconds.
    bits: u8,
    /// The number of each bucket that has rows, and its bytes, in the order of the numbers.
    buckets: Vec<(u64, u64)>,
}

impl Expiry {
    /// That of rows with these times and bytes; `None` without rows.
    pub fn of(rows: impl IntoIterator<Item = (Until, u64)>) -> Option<Self> {
        let mut expiry = Self::default();
        rows.into_iter().for_each(|(until, bytes)| expiry.add(until, bytes));
        (expiry.rows > 0).then_some(expiry)
    }

    /// Adds a row with `bytes` of key and value.
    pub(crate) fn add(&mut self, until: Until, bytes: u64) {
        let time = until.millis();
        self.earliest = if self.rows == 0 { time } else { self.earliest.min(time) };
        self.latest = self.latest.max(time);
        self.rows += 1;
        let number = time >> self.bits;
        match self.buckets.binary_search_by_key(&number, |(number, _)| *number) {
            Ok(place) => self.buckets[place].1 += bytes,
            Err(place) => self.buckets.insert(place, (number, bytes)),
        }
        while self.buckets.len() > MAX_BUCKETS {
            self.bits += 1;
            self.buckets.iter_mut().for_each(|(number, _)| *number >>= 1);
            self.buckets.dedup_by(|next, kept| {
                let is_same = next.0 == kept.0;
                kept.1 += if is_same { next.1 } else { 0 };
                is_same
            });
        }
    }

    /// How many versions of rows have a time.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// The time at which the first row expires.
    pub fn earliest(&self) -> Until {
        Until::from_millis(self.earliest)
    }

    /// The time at which the last row expires.
    pub fn latest(&self) -> Until {
        Until::from_millis(self.latest)
    }

    /// The bytes of keys and values that have certainly expired at `now`, in milliseconds since 1970.
    pub fn expired_bytes(&self, now: u64) -> u64 {
        self.buckets.iter().take_while(|(number, _)| self.end_of(*number) <= now).map(|(_, bytes)| bytes).sum()
    }

    /// The first time at which [`Expiry::expired_bytes`] is at least `bytes`; `None` if it never is.
    pub fn time_of(&self, bytes: u64) -> Option<u64> {
        let mut sum = 0_u64;
        let bucket = self.buckets.iter().find(|(_, more)| {
            sum = sum.saturating_add(*more);
            sum >= bytes
        });
        bucket.map(|(number, _)| self.end_of(*number))
    }

    /// The buckets in the order of time: the time by which all rows of the bucket have expired, and their bytes.
    pub fn buckets(&self) -> impl Iterator<Item = (Until, u64)> {
        self.buckets.iter().map(|(number, bytes)| (Until::from_millis(self.end_of(*number)), *bytes))
    }

    /// The time by which all rows of a bucket have expired.
    fn end_of(&self, number: u64) -> u64 {
        let last = number << self.bits | !(u64::MAX << self.bits);
        last.min(self.latest)
    }

    /// The bytes of memory on the heap that this value takes.
    pub fn heap_bytes(&self) -> usize {
        self.buckets.capacity() * size_of::<(u64, u64)>()
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        for number in [self.rows, self.earliest, self.latest - self.earliest] {
            varint::put(out, number);
        }
        out.extend([self.bits, self.buckets.len() as u8]);
        let mut before = 0;
        for (number, bytes) in &self.buckets {
            varint::put(out, number - before);
            varint::put(out, *bytes);
            before = *number;
        }
    }

    /// Decodes the encoding at the front of `bytes`, and removes it from there; `None` if it is malformed.
    pub(super) fn decode(bytes: &mut &[u8]) -> Option<Self> {
        let (rows, earliest) = (varint::take(bytes)?, varint::take(bytes)?);
        let latest = earliest.checked_add(varint::take(bytes)?)?;
        let (&[bits, count], rest) = bytes.split_first_chunk()?;
        *bytes = rest;
        if rows == 0 || earliest == 0 || bits >= 64 || !(1..=MAX_BUCKETS).contains(&usize::from(count)) {
            return None;
        }
        let mut buckets: Vec<(u64, u64)> = Vec::with_capacity(count.into());
        for i in 0..count {
            let step = varint::take(bytes)?;
            if step == 0 && i > 0 {
                return None;
            }
            let number = buckets.last().map_or(0, |(number, _)| *number).checked_add(step)?;
            buckets.push((number, varint::take(bytes)?));
        }
        let ends = (buckets.first()?.0, buckets.last()?.0);
        (ends == (earliest >> bits, latest >> bits)).then_some(Self { rows, earliest, latest, bits, buckets })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};

    #[test]
    fn a_histogram_of_any_rows_says_at_most_what_has_expired_and_at_least_what_expired_two_buckets_before() {
        for seed in 0..200 {
            let mut rng = StdRng::seed_from_u64(seed);
            let (begin, spread) = (rng.random_range(1..1 << 41), 1_u64 << rng.random_range(0..40));
            let (mut expiry, mut rows) = (Expiry::default(), Vec::new());
            for _ in 0..rng.random_range(1..400) {
                let (time, bytes) = (begin + rng.random_range(0..spread), rng.random_range(0..100));
                expiry.add(Until::from_millis(time), bytes);
                rows.push((time, bytes));
            }
            let expired = |now: u64| rows.iter().filter(|(time, _)| *time <= now).map(|(_, bytes)| bytes).sum::<u64>();
            let width = 1 << expiry.bits;
            for _ in 0..50 {
                let now = begin + rng.random_range(0..2 * spread);
                let said = expiry.expired_bytes(now);
                assert!(said <= expired(now) && said >= expired(now.saturating_sub(width)), "seed {seed} at {now}");
            }
            assert_eq!(expiry.expired_bytes(expiry.latest), expired(u64::MAX), "seed {seed}");
            let half = expired(u64::MAX) / 2;
            let time = expiry.time_of(half).expect("it comes");
            assert!(expiry.expired_bytes(time) >= half, "seed {seed}");
            assert!(expiry.buckets.len() <= MAX_BUCKETS);
            let mut bytes = Vec::new();
            expiry.encode(&mut bytes);
            assert_eq!(Expiry::decode(&mut bytes.as_slice()), Some(expiry), "seed {seed}");
            for length in 0..bytes.len() {
                assert_eq!(Expiry::decode(&mut &bytes[..length]), None, "seed {seed} cut to {length}");
            }
        }
    }

    #[test]
    fn the_bytes_are_those_of_the_format() {
        let mut expiry = Expiry::default();
        expiry.add(Until::from_millis(300), 7);
        expiry.add(Until::from_millis(301), 8);
        let mut bytes = Vec::new();
        expiry.encode(&mut bytes);
        assert_eq!(bytes, [2, 0xac, 2, 1, 0, 2, 0xac, 2, 7, 1, 8]);
    }
}
