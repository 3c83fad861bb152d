//! How the rows of a range are spread over its keys: histograms, cut points and samples. Histograms and cut points
//! count the rows that are stored in files and in memory: a key in several files or memtables counts once for each.

use super::memory::InMemory;
use super::stretches::{Placed, files_in};
use super::{estimate, memory};
use crate::base::bounds;
use crate::base::error::Result;
use crate::view::TableView;
use crate::view::point::PointRead;
use crate::view::value::Key;
use os::sync::Arc;
use pages::{Admit, PageCache, Reason, Session, retry};
use sst::KeyRange;
use sst::stats::{self, CutPoint, Estimate, Histogram, HistogramSource, MemoryRun, Metric};
use std::collections::BTreeSet;

/// How many histogram buckets there are for each part when split points are chosen. With this many, the end of a part
/// is off by at most a sixteenth of a part and a data page of each file.
const BUCKETS_A_PART: u64 = 8;

/// How many runs the rows in memory are cut into for each bucket of a histogram.
const RUNS_A_BUCKET: u64 = 8;

/// How fine a histogram is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolution {
    /// About this many buckets of equal size.
    Buckets(u64),
    /// About this many rows or bytes in each bucket.
    Units(u64),
}

/// The most buckets of a histogram. Each may cost a descent in the index of every file.
const MAX_BUCKETS: u64 = 1 << 16;

/// A histogram of `span`.
pub fn histogram(
    session: &Session,
    table: TableView<'_>,
    span: &KeyRange,
    metric: Metric,
    resolution: Resolution,
) -> Result<Histogram> {
    let files = files_in(table, span);
    let resolution = match resolution {
        Resolution::Units(units) => units,
        Resolution::Buckets(buckets) => {
            let held = memory::held(table, span);
            let units = stored(session, &files, held, metric)?;
            units.middle().div_ceil(buckets.clamp(1, MAX_BUCKETS))
        }
    };
    let resolution = resolution.max(1);
    let run = match metric {
        Metric::Rows => (resolution.div_ceil(RUNS_A_BUCKET), u64::MAX),
        Metric::Bytes => (u64::MAX, resolution.div_ceil(RUNS_A_BUCKET)),
    };
    let in_memory: Vec<Vec<MemoryRun>> =
        table.memtables().map(|memtable| memory::runs(memtable, span, run.0, run.1)).collect();
    let sources: Vec<HistogramSource<'_>> = in_memory
        .iter()
        .map(|runs| HistogramSource::Memory(runs))
        .chain(files.iter().map(|placed| HistogramSource::File(&placed.file.sst)))
        .collect();
    Ok(stats::histogram(session, &sources, span.low(), span.high(), metric, resolution)?)
}

/// The rows or bytes that are stored in files and in memory.
fn stored(session: &Session, files: &[Placed<'_>], held: InMemory, metric: Metric) -> Result<Estimate> {
    let places: Vec<(&Placed<'_>, &KeyRange)> = files.iter().map(|placed| (placed, &placed.span)).collect();
    let mut sum = Estimate::exact(match metric {
        Metric::Rows => held.rows,
        Metric::Bytes => held.bytes,
    });
    for totals in estimate::totals(session, &places)? {
        sum += match metric {
            Metric::Rows => totals.rows,
            Metric::Bytes => totals.bytes.plus(totals.beside_bytes),
        };
    }
    Ok(sum)
}

/// The keys that cut `range` of `table` into `parts` parts of about the same number of bytes.
pub fn split_points_between(
    cache: &Arc<PageCache>,
    table: TableView<'_>,
    range: &bounds::Owned,
    parts: u64,
) -> Result<Vec<CutPoint>> {
    let session = Session::new(cache, Reason::Statistics, Admit::Keep);
    match bounds::keys(range) {
        Some(span) => split_points(&session, table, &span, parts),
        None => Ok(Vec::new()),
    }
}

/// At most `parts - 1` points that cut `span` into parts of about the same number of bytes.
pub fn split_points(session: &Session, table: TableView<'_>, span: &KeyRange, parts: u64) -> Result<Vec<CutPoint>> {
    if parts < 2 {
        return Ok(Vec::new());
    }
    let parts = parts.min(MAX_BUCKETS);
    let buckets = Resolution::Buckets(parts.saturating_mul(BUCKETS_A_PART));
    let histogram = histogram(session, table, span, Metric::Bytes, buckets)?;
    let total = histogram.buckets.last().map_or(0, |bucket| bucket.value);
    let ends: Vec<(&CutPoint, u64)> =
        histogram.buckets.iter().filter_map(|bucket| Some((bucket.end.as_ref()?, bucket.value))).collect();
    let mut points: Vec<CutPoint> = Vec::new();
    let mut next = 0;
    for part in 1..parts {
        if next >= ends.len() {
            break;
        }
        let target = (u128::from(total) * u128::from(part) / u128::from(parts)) as u64;
        let behind = next + ends[next..].partition_point(|&(_, value)| value < target);
        let nearest = (behind.saturating_sub(1).max(next)..=behind)
            .filter(|&i| i < ends.len())
            .min_by_key(|&i| ends[i].1.abs_diff(target));
        let Some(nearest) = nearest else { break };
        let (point, _) = ends[nearest];
        // If the point is nearer to the end of the next part, that part gets it and this one gets none.
        let after = (u128::from(total) * u128::from(part + 1) / u128::from(parts)) as u64;
        if part + 1 < parts && ends[nearest].1.abs_diff(after) < ends[nearest].1.abs_diff(target) {
            continue;
        }
        next = nearest + 1;
        if span.start < point.at && span.ends_after(&point.at) {
            points.push(point.clone());
        }
    }
    Ok(points)
}

/// Two points of `span` around its `n`-th visible row, if it has more than `n`: the row is at or after the first
/// point and before the second. `None` stands for the start or the end of `span`.
pub fn nth_between(
    session: &Session,
    table: TableView<'_>,
    span: &KeyRange,
    n: u64,
) -> Result<(Option<CutPoint>, Option<CutPoint>)> {
    /// About how many points the two are chosen from.
    const BUCKETS: u64 = 64;
    let histogram = histogram(session, table, span, Metric::Rows, Resolution::Buckets(BUCKETS))?;
    let points: Vec<CutPoint> = histogram.buckets.into_iter().filter_map(|bucket| bucket.end).collect();
    let before = |point: &CutPoint| match KeyRange::new(span.start.clone(), Some(point.at.clone())) {
        Some(span) => estimate::count(session, table, &span),
        None => Ok(Estimate::default()),
    };
    // The estimates need not grow from point to point, so these searches may miss the best points. But the points
    // that they return are right, because the estimate of each was computed.
    let (mut low, mut high) = (None, None);
    let (mut start, mut end) = (0, points.len());
    while start < end {
        let middle = start + (end - start) / 2;
        if before(&points[middle])?.high <= n {
            (low, start) = (Some(middle), middle + 1);
        } else {
            end = middle;
        }
    }
    (start, end) = (low.map_or(0, |low| low + 1), points.len());
    while start < end {
        let middle = start + (end - start) / 2;
        if before(&points[middle])?.low > n {
            (high, end) = (Some(middle), middle);
        } else {
            start = middle + 1;
        }
    }
    Ok((low.map(|i| points[i].clone()), high.map(|i| points[i].clone())))
}

/// The sorted keys of at most `count` rows that a reader sees, without duplicates. The rows in files and in memory
/// are divided into `count` equal pieces, and one row is drawn at random from each.
pub fn sample(session: &Session, table: TableView<'_>, span: &KeyRange, count: u64, seed: u64) -> Result<Vec<Key>> {
    /// How many rows are drawn from a piece at most, until a reader sees one of them.
    const DRAWS: u64 = 4;
    let files = files_in(table, span);
    let memtables: Vec<_> = table.memtables().collect();
    // Numbers all stored rows: first those of each file, then those in memory. `places` has the first number of each
    // file.
    let mut places = Vec::with_capacity(files.len());
    let mut total = 0_u64;
    for placed in &files {
        let sst = &placed.file.sst;
        let rows = retry(session, || sst.rows_between(session, placed.span.low(), placed.span.high()))?;
        let seen = sst.rows().within(rows);
        places.push((total, seen.clone()));
        total += seen.count();
    }
    let in_files = total;
    let mut in_memory = Vec::with_capacity(memtables.len());
    for memtable in &memtables {
        let runs = memory::runs(memtable, span, RUN_ROWS, u64::MAX);
        for run in runs {
            in_memory.push((total, memtable, run.first_key));
            total += run.rows;
        }
    }
    let mut random = SplitMix64(seed);
    let mut keys = BTreeSet::new();
    let count = count.min(total);
    for stratum in 0..count {
        let place = |i: u64| (u128::from(total) * u128::from(i) / u128::from(count)) as u64;
        let (start, end) = (place(stratum), place(stratum + 1));
        for _ in 0..DRAWS {
            let row = start + random.below((end - start).max(1));
            let mut key = Vec::new();
            if row < in_files {
                let file = places.partition_point(|(first, _)| *first <= row) - 1;
                let (first, seen) = &places[file];
                let Some(row) = nth_of(seen, row - first) else { continue };
                let sst = &files[file].file.sst;
                retry(session, || {
                    key.clear();
                    sst.key_of(session, row, &mut key)
                })?;
            } else {
                let run = in_memory.partition_point(|(first, ..)| *first <= row) - 1;
                let (first, memtable, first_key) = &in_memory[run];
                key = memory::nth_key(memtable, first_key, row - first).unwrap_or_default();
            }
            let mut read = PointRead::new(table, &key);
            if retry(session, || read.find(session))?.is_some() {
                keys.insert(Key::from(key));
                break;
            }
        }
    }
    Ok(keys.into_iter().collect())
}

/// The number of keys in a run of rows in memory. Finding a key walks through its run.
const RUN_ROWS: u64 = 64;

/// The `n`-th of `rows`.
fn nth_of(rows: &sst::RowRanges, n: u64) -> Option<u64> {
    let mut left = n;
    for range in rows.iter() {
        let count = range.end - range.start;
        if left < count {
            return Some(range.start + left);
        }
        left -= count;
    }
    None
}

/// Pseudo-random numbers from a seed: SplitMix64 of Steele, Lea and Flood (2014).
struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A random number below `end`, nearly uniform.
    fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(end)) >> 64) as u64
    }
}
