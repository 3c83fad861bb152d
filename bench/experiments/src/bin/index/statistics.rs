//! The statistics that are timed: row counts and sizes of ranges, and histograms, over all files of a data set. All
//! pages are in memory; tests of the engine count the pages that statistics read.

use crate::Result;
use crate::data::Opened;
use crate::rows::Probe;
use pages::retry;
use sst::stats::{HistogramSource, Metric, histogram};
use std::ops::Bound;

/// Buckets of a histogram.
pub const BUCKETS: u64 = 10;

/// The ranges between consecutive probes. Both ends are random keys, so a range has a third of the rows on average.
fn ranges(probes: &[Probe]) -> impl Iterator<Item = (Bound<&[u8]>, Bound<&[u8]>)> {
    probes.iter().zip(probes.iter().cycle().skip(1)).map(|(one, other)| {
        let (low, high) = if one.key <= other.key { (one, other) } else { (other, one) };
        (Bound::Included(&low.key[..]), Bound::Included(&high.key[..]))
    })
}

/// Estimates the rows and bytes of each range over all files. Returns the sum of the lower and upper ends of the
/// estimates.
pub fn count(data: &Opened, probes: &[Probe]) -> Result<u64> {
    let mut sum = 0u64;
    for (low, high) in ranges(probes) {
        for sst in &data.files {
            let totals = retry(&data.session, || sst.totals_between(&data.session, low, high))?;
            sum = sum.wrapping_add(totals.rows.low + totals.rows.high + totals.bytes.low + totals.bytes.high);
        }
    }
    Ok(sum)
}

/// Counts the rows of each range over all files. Returns their sum.
pub fn exact(data: &Opened, probes: &[Probe]) -> Result<u64> {
    let mut sum = 0u64;
    for (low, high) in ranges(probes) {
        for sst in &data.files {
            let totals = retry(&data.session, || sst.exact_between(&data.session, low, high))?;
            sum = sum.wrapping_add(totals.rows);
        }
    }
    Ok(sum)
}

/// For each probe, makes a histogram of [`BUCKETS`] buckets over all files. Bucket bounds may differ between B-tree
/// and flat index, so the returned sum has only the totals, which do not.
pub fn histograms(data: &Opened, probes: &[Probe]) -> Result<u64> {
    let sources: Vec<HistogramSource<'_>> = data.files.iter().map(|sst| HistogramSource::File(sst)).collect();
    let resolution = data.shape.rows.div_ceil(BUCKETS);
    let mut sum = 0u64;
    for _ in probes {
        let found = histogram(&data.session, &sources, Bound::Unbounded, Bound::Unbounded, Metric::Rows, resolution)?;
        if found.buckets.len() < BUCKETS as usize / 2 {
            return Err(format!("a histogram of {} buckets instead of about {BUCKETS}", found.buckets.len()).into());
        }
        sum = sum.wrapping_add(found.total.low + found.total.high);
    }
    Ok(sum)
}
