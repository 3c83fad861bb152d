//! Draws lengths with the frequencies of a histogram: `HistogramGenerator`.
//!
//! The file has one line `BlockSize<TAB>bytes`, and then lines `bucket<TAB>count` in the order of the buckets, from
//! 0.

use crate::random::Random;
use thiserror::Error;

/// Draws lengths that are multiples of a block size.
#[derive(Clone, Debug)]
pub struct Histogram {
    block: i64,
    buckets: Vec<i64>,
    area: i32,
}

/// Why a text is not a histogram.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum BadHistogram {
    /// The first line is missing or wrong.
    #[error("line 1: expected `BlockSize<TAB>bytes`")]
    NoBlockSize,
    /// A line is not a bucket.
    #[error("line {0}: expected `bucket<TAB>count`, buckets in order from 0")]
    Line(usize),
    /// The counts are all zero, so no length could be drawn, or the sum of the counts is too large.
    #[error("counts add up to nothing, or to more than 2147483647")]
    Area,
}

impl Histogram {
    /// A histogram whose buckets are `block` bytes wide, with the count of each bucket.
    ///
    /// # Errors
    ///
    /// Returns [`BadHistogram::Area`] if no length could be drawn, or if the sum of the counts is too large.
    pub fn new(block: i64, buckets: Vec<i64>) -> Result<Histogram, BadHistogram> {
        let area = buckets.iter().try_fold(0_i64, |sum, count| sum.checked_add(*count));
        let area = area.and_then(|area| i32::try_from(area).ok()).filter(|area| *area > 0);
        Ok(Histogram { block, area: area.ok_or(BadHistogram::Area)?, buckets })
    }

    /// Reads a histogram file.
    ///
    /// # Errors
    ///
    /// Returns a [`BadHistogram`], which says what is wrong with the file.
    pub fn parse(text: &str) -> Result<Histogram, BadHistogram> {
        let mut lines = text.lines();
        let block = lines.next().and_then(|line| line.strip_prefix("BlockSize\t")).map(str::trim);
        let block = block.and_then(|bytes| bytes.parse::<i32>().ok()).filter(|bytes| *bytes > 0);
        let block = block.ok_or(BadHistogram::NoBlockSize)?;
        let mut buckets = Vec::new();
        for (index, line) in lines.enumerate() {
            let bad = || BadHistogram::Line(index + 2);
            let (bucket, count) = line.split_once('\t').ok_or_else(bad)?;
            let count: i32 = count.trim().parse().map_err(|_| bad())?;
            if bucket.parse() != Ok(buckets.len()) || count < 0 {
                return Err(bad());
            }
            buckets.push(i64::from(count));
        }
        Histogram::new(i64::from(block), buckets)
    }

    /// An upper bound on the lengths that are drawn.
    pub fn max(&self) -> i64 {
        self.block * i64::try_from(self.buckets.len()).expect("buckets are in memory")
    }

    /// The next length.
    pub fn next(&self, random: &mut Random) -> i64 {
        let mut number = i64::from(random.below(self.area));
        let all_but_last = self.buckets.len() - 1;
        let mut bucket = 0;
        for count in &self.buckets[..all_but_last] {
            number -= count;
            bucket += 1;
            if number <= 0 {
                return bucket * self.block;
            }
        }
        bucket * self.block
    }
}
