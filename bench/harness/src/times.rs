//! Distributions of times in whole nanoseconds. Distributions are added, never averaged.
//!
//! The buckets are the buckets of HdrHistogram with three significant digits, from 1 ns on:
//!
//! ```text
//!   group 0    0 ..  1023 ns   1024 buckets of 1 ns
//!   group 1 1024 ..  2047 ns   1024 buckets of 1 ns
//!   group 2 2048 ..  4095 ns   1024 buckets of 2 ns
//!   group g                    1024 buckets of 2^(g-1) ns
//! ```
//!
//! Threads count in a `Tally`. A group of buckets takes 4 KiB, which are allocated when the first time falls into
//! the group. So a hundred threads with a few tallies each do not need memory for the whole range. A [`Times`] is
//! the compact form in which a tally is kept.

mod form;
#[cfg(test)]
mod tests;

use hdrhistogram::Histogram;

/// The number of buckets in a group. Three digits need 2000 buckets. A group has half of them, rounded up to a power
/// of two.
const GROUP: usize = 1024;
/// The number of groups that cover all values of `u64`. The last group begins at 2^63.
const GROUPS: usize = 55;

/// A quantile is known if this many times are expected to be beyond it.
const LEAST_BEYOND: f64 = 10.0;

/// Whether `count` times are enough for a quantile: at least ten of them are expected to be beyond it.
pub fn is_known(count: u64, quantile: f64) -> bool {
    // 1 - 0.9999 is a little above a ten-thousandth as a floating-point number.
    count as f64 * (1.0 - quantile) >= LEAST_BEYOND - 1e-6
}

/// The bucket of a time.
#[inline]
fn bucket(nanos: u64) -> usize {
    let octave = 53 - (nanos | (2 * GROUP as u64 - 1)).leading_zeros() as usize;
    octave * GROUP + (nanos >> octave) as usize
}

/// The least time of a bucket.
fn least(bucket: usize) -> u64 {
    let octave = (bucket / GROUP).saturating_sub(1);
    ((bucket - octave * GROUP) as u64) << octave
}

/// The greatest time of a bucket.
fn greatest(bucket: usize) -> u64 {
    least(bucket) + ((1 << (bucket / GROUP).saturating_sub(1)) - 1)
}

/// The number type of a tally's counts: `u32` for one thread and interval, `u64` for sums.
pub(crate) trait Count: Copy + Default + Into<u64> {
    fn add(&mut self, count: u64);
}

impl Count for u32 {
    fn add(&mut self, count: u64) {
        *self += count as u32;
    }
}

impl Count for u64 {
    /// Saturates, because counts from files are added too, and a file may hold any number.
    fn add(&mut self, count: u64) {
        *self = self.saturating_add(count);
    }
}

/// A distribution that times are being added to.
pub(crate) struct Tally<C> {
    groups: [Option<Box<[C; GROUP]>>; GROUPS],
}

impl<C: Count> Default for Tally<C> {
    fn default() -> Self {
        Self::new()
    }
}

impl<C: Count> Tally<C> {
    pub(crate) fn new() -> Self {
        Self { groups: [const { None }; GROUPS] }
    }

    /// Counts one time. Allocates only if no earlier time fell into the same group.
    #[inline]
    pub(crate) fn record(&mut self, nanos: u64) {
        self.record_many(nanos, 1);
    }

    #[inline]
    fn record_many(&mut self, nanos: u64, count: u64) {
        let bucket = bucket(nanos);
        let group = &mut self.groups[bucket / GROUP];
        let counts = match group {
            Some(counts) => counts,
            None => Self::grow(group),
        };
        counts[bucket % GROUP].add(count);
    }

    #[cold]
    fn grow(group: &mut Option<Box<[C; GROUP]>>) -> &mut Box<[C; GROUP]> {
        group.insert(Box::new([C::default(); GROUP]))
    }

    /// Removes all times, but keeps the memory.
    pub(crate) fn clear(&mut self) {
        for counts in self.groups.iter_mut().flatten() {
            counts.fill(C::default());
        }
    }

    fn counts(&self) -> impl Iterator<Item = (usize, u64)> {
        let groups = self.groups.iter().enumerate();
        let groups = groups.filter_map(|(number, counts)| Some((number, counts.as_ref()?)));
        groups.flat_map(|(number, counts)| {
            let counts = counts.iter().enumerate().map(move |(index, count)| (number * GROUP + index, *count));
            counts.map(|(bucket, count)| (bucket, count.into())).filter(|(_, count)| *count > 0)
        })
    }

    /// The counted times.
    pub(crate) fn times(&self) -> Times {
        let mut times = Times::default();
        let mut before = 0;
        for (bucket, count) in self.counts() {
            put(&mut times.packed, (bucket - before) as u64);
            put(&mut times.packed, count);
            times.count = times.count.saturating_add(count);
            before = bucket;
        }
        times.packed.shrink_to_fit();
        times
    }
}

impl Tally<u64> {
    /// Adds the tally of a thread.
    pub(crate) fn add(&mut self, other: &Tally<u32>) {
        for (mine, theirs) in self.groups.iter_mut().zip(&other.groups) {
            let Some(theirs) = theirs else { continue };
            let mine = mine.get_or_insert_with(|| Box::new([0; GROUP]));
            for (mine, theirs) in mine.iter_mut().zip(theirs.iter()) {
                *mine += u64::from(*theirs);
            }
        }
    }

    /// Adds times that were kept.
    pub(crate) fn add_times(&mut self, other: &Times) {
        for (bucket, count) in other.buckets() {
            self.record_many(least(bucket), count);
        }
    }
}

/// Counted times: how many fell into each bucket. Empty buckets are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Times {
    count: u64,
    /// For each bucket that is not empty: the distance from the previous bucket that is not empty, and the count.
    /// Both are LEB128. A second of requests takes a few KiB in this form, and a run keeps every second.
    packed: Vec<u8>,
}

impl Times {
    /// The times of a histogram whose buckets are like ours: three digits, from 1 ns on.
    pub fn from_hdr(histogram: &Histogram<u64>) -> Self {
        let mut tally = Tally::<u64>::new();
        for value in histogram.iter_recorded() {
            tally.record_many(value.value_iterated_to(), value.count_at_value());
        }
        tally.times()
    }

    /// A distribution of `count` times, each of 0 ns.
    pub(crate) fn zeros(count: u64) -> Self {
        let mut tally = Tally::<u64>::new();
        if count > 0 {
            tally.record_many(0, count);
        }
        tally.times()
    }

    /// The number of times.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Whether it has no times.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The times of `self` and `other` together.
    pub fn merged(&self, other: &Self) -> Self {
        Self::sum([self, other])
    }

    /// The times of all of them together.
    pub fn sum<'t>(all: impl IntoIterator<Item = &'t Self>) -> Self {
        let mut tally = Tally::<u64>::new();
        for times in all {
            tally.add_times(times);
        }
        tally.times()
    }

    /// The time that the share `quantile` (0 to 1) of all times does not exceed, in nanoseconds. As in every
    /// HdrHistogram, the result is the greatest time of its bucket. It is 0 if there are no times. A figure that a
    /// result shows or a goal judges is a [`known_quantile`](Self::known_quantile) instead.
    pub fn quantile(&self, quantile: f64) -> u64 {
        let wanted = ((quantile.clamp(0.0, 1.0) * self.count as f64).ceil() as u64).max(1);
        let mut seen = 0;
        let found = self.buckets().find(|(_, count)| {
            seen += count;
            seen >= wanted
        });
        found.map_or(0, |(bucket, _)| greatest(bucket))
    }

    /// The [`quantile`](Self::quantile), if at least ten times are expected to be beyond it. From fewer than
    /// 10 / (1 - `quantile`) times, chance alone decides the value, so it is not shown.
    pub fn known_quantile(&self, quantile: f64) -> Option<u64> {
        is_known(self.count, quantile).then(|| self.quantile(quantile))
    }

    /// The shortest time in nanoseconds, rounded down to the least time of its bucket. The result is 0 if there are
    /// no times.
    pub fn min(&self) -> u64 {
        self.buckets().next().map_or(0, |(bucket, _)| least(bucket))
    }

    /// The longest time in nanoseconds, rounded up to the greatest time of its bucket. The result is 0 if there are
    /// no times.
    pub fn max(&self) -> u64 {
        self.buckets().last().map_or(0, |(bucket, _)| greatest(bucket))
    }

    /// The mean of the times, in nanoseconds. Each time is taken as the middle of its bucket. The mean is 0 if there
    /// are no times.
    pub fn mean(&self) -> f64 {
        if self.is_empty() {
            return 0.0;
        }
        let middle = |bucket| least(bucket) as f64 + ((greatest(bucket) - least(bucket)).div_ceil(2)) as f64;
        let total: f64 = self.buckets().map(|(bucket, count)| middle(bucket) * count as f64).sum();
        total / self.count as f64
    }

    /// The buckets that are not empty, in rising order: the least and the greatest time in nanoseconds, and the
    /// count.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64, u64)> {
        self.buckets().map(|(bucket, count)| (least(bucket), greatest(bucket), count))
    }

    /// The times as a histogram of the `hdrhistogram` crate, so that its tools can be used.
    pub fn hdr(&self) -> Histogram<u64> {
        let mut histogram = Histogram::new(3).expect("three digits are allowed");
        for (least, _, count) in self.iter() {
            histogram.record_n(least, count).expect("a histogram that grows takes every time");
        }
        histogram
    }

    fn buckets(&self) -> impl Iterator<Item = (usize, u64)> {
        let mut rest = self.packed.as_slice();
        let mut bucket = 0;
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            bucket += take(&mut rest) as usize;
            Some((bucket, take(&mut rest)))
        })
    }
}

fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn take(rest: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..).step_by(7) {
        let (byte, after) = rest.split_first().expect("only whole numbers were put");
        *rest = after;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            break;
        }
    }
    value
}
