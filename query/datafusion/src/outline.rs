//! Finds out, before a scan reads, how many rows it has, its first and last key, and where to divide its keys among
//! several readers. This reads pages of the index, a data page each for the first and the last key if their values
//! are needed, and a data page at each end of a range for an exact count.

use crate::columns::Columns;
use crate::fill::Filler;
use crate::key_set::{KeyRange, KeySet};
use crate::table_source::TableSource;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::stats::Precision;
use datafusion::common::{ColumnStatistics, ScalarValue, Statistics};
use larch::stats::{Estimate, RangeStats};
use larch::{Key, Readable};

/// The rows of each range are counted if the keys have at most this many ranges. Otherwise the number of rows is not
/// known before the scan.
const MAX_COUNTED_RANGES: usize = 64;

/// If the bounds of the estimate for a range differ by at most this many rows, the rows are counted exactly. Each
/// end of the range that lies within a file makes the bounds differ by up to a page of rows.
const MAX_UNCERTAIN_ROWS: u64 = 4096;

/// The least number of bytes that are worth another reader.
const MIN_PARTITION_BYTES: u64 = 256 << 10;

/// What is known about the keys of a scan.
#[derive(Debug)]
pub struct Outline {
    /// The ranges of each reader, in key order. At least one reader.
    pub partitions: Vec<Vec<KeyRange>>,
    /// How many leading fields of the key have a single value.
    pub pinned: usize,
    /// The statistics of the scan, with an entry for each column of the table.
    pub statistics: Statistics,
}

impl Outline {
    /// The outline of a scan of `keys`, which will read the columns of `projection` with at most `partitions`
    /// readers.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Reader::count`](larch::Reader::count).
    pub fn of(
        source: &TableSource,
        keys: KeySet,
        pinned: usize,
        projection: &[usize],
        partitions: usize,
    ) -> larch::Result<Self> {
        let groups = source.columns.groups_of(projection);
        let statistics = source.table.at(&source.snapshot)?;
        let ranges = keys.ranges();
        if ranges.len() > MAX_COUNTED_RANGES {
            let unknown = Statistics::new_unknown(&source.schema);
            let chunk = ranges.len().div_ceil(partitions.max(1));
            let partitions = ranges.chunks(chunk).map(<[KeyRange]>::to_vec).collect();
            return Ok(Self { partitions, pinned, statistics: unknown });
        }
        let (mut rows, mut bytes, mut of_ranges) = (Estimate::default(), 0_u64, Vec::new());
        for range in ranges {
            let mut stats = statistics.range_stats(range.bounds())?;
            if stats.rows.low < stats.rows.high && stats.rows.high - stats.rows.low <= MAX_UNCERTAIN_ROWS {
                let exact = statistics.count_exact(range.bounds())?;
                stats.rows = Estimate { low: exact, high: exact };
            }
            rows = Estimate { low: rows.low + stats.rows.low, high: rows.high + stats.rows.high };
            of_ranges.push(read_bytes(&stats, &groups));
            bytes = bytes.saturating_add(read_bytes(&stats, &groups));
        }
        let wanted = (bytes / MIN_PARTITION_BYTES).clamp(1, partitions.max(1) as u64);
        let share = bytes.div_ceil(wanted).max(1);
        let mut cut = Vec::new();
        for (range, bytes) in ranges.iter().zip(of_ranges) {
            let pieces = bytes.div_ceil(share).max(1);
            let points = if pieces > 1 { statistics.split_points(range.bounds(), pieces)? } else { Vec::new() };
            let piece_bytes = bytes / (points.len() as u64 + 1);
            let mut low = range.low.clone();
            for point in points {
                cut.push((KeyRange { low, high: Some(point.at.clone()) }, piece_bytes));
                low = point.at;
            }
            cut.push((KeyRange { low, high: range.high.clone() }, piece_bytes));
        }
        let mut statistics = Statistics::new_unknown(&source.schema);
        // Rows may expire between the plan and its run.
        statistics.num_rows = if source.table.may_expire() { precision(rows).to_inexact() } else { precision(rows) };
        statistics.total_byte_size = Precision::Inexact(usize::try_from(bytes).unwrap_or(usize::MAX));
        if rows.high > 0 {
            describe_key(source, ranges, pinned, projection, &mut statistics)?;
        }
        Ok(Self { partitions: shares(cut, wanted as usize, share), pinned, statistics })
    }

    /// The outline of a scan that another process has planned. Nothing is read for it.
    pub fn planned(partitions: Vec<Vec<KeyRange>>, pinned: usize, schema: &SchemaRef) -> Self {
        Self { partitions, pinned, statistics: Statistics::new_unknown(schema) }
    }
}

/// The number of bytes that a scan of `groups` reads: those of the main tree, which contains the keys, and of the
/// trees of the other groups.
fn read_bytes(stats: &RangeStats, groups: &[usize]) -> u64 {
    let beside = groups.iter().filter(|group| **group > 0).filter_map(|group| stats.groups.get(*group));
    let beside: u64 = beside.map(|group| group.bytes.high).sum();
    stats.data_bytes.high.saturating_add(beside).saturating_add(stats.memory_bytes)
}

/// An interval in DataFusion's form.
fn precision(rows: Estimate) -> Precision<usize> {
    let number = |rows: u64| usize::try_from(rows).unwrap_or(usize::MAX);
    match rows {
        Estimate { low, high } if low == high => Precision::Exact(number(low)),
        Estimate { low, high } => Precision::Inexact(number(low + (high - low) / 2)),
    }
}

/// Divides the pieces, in their order, among at most `count` readers, about `share` bytes each.
fn shares(cut: Vec<(KeyRange, u64)>, count: usize, share: u64) -> Vec<Vec<KeyRange>> {
    let mut partitions = vec![Vec::new()];
    let mut taken = 0_u64;
    for (range, bytes) in cut {
        let last = partitions.last_mut().expect("there is one at the start");
        // A piece goes to the next reader if half of it or more would exceed this reader's share.
        if !last.is_empty() && taken + bytes / 2 >= share && partitions.len() < count {
            partitions.push(Vec::new());
            taken = 0;
        }
        partitions.last_mut().expect("there is one at the start").push(range);
        taken += bytes;
    }
    partitions
}

/// Derives the least and greatest values of the key's columns from the first and the last key. They are known for
/// the first field, and for a later field if all fields before it have a single value.
fn describe_key(
    source: &TableSource,
    ranges: &[KeyRange],
    pinned: usize,
    projection: &[usize],
    statistics: &mut Statistics,
) -> larch::Result<()> {
    let columns = &source.columns;
    let Some(key) = columns.key() else { return Ok(()) };
    let numbers = columns.key_columns();
    for (field, number) in key.fields.iter().zip(&numbers) {
        if let (Some(number), false) = (number, field.field_type.is_optional) {
            statistics.column_statistics[*number].null_count = Precision::Exact(0);
        }
    }
    let wanted = key.fields.iter().zip(numbers).take(pinned + 1);
    let wanted =
        wanted.filter_map(|(field, number)| Some((field, number.filter(|number| projection.contains(number))?)));
    let wanted: Vec<_> = wanted.collect();
    if wanted.is_empty() {
        return Ok(());
    }
    let Some((first, last)) = ends(source, ranges)? else { return Ok(()) };
    for (field, number) in wanted {
        let Some([first, last]) = values(columns, number, [&first, &last]) else { continue };
        let (min, max) = if field.field_type.is_descending { (last, first) } else { (first, last) };
        let exact = |value| if source.table.may_expire() { Precision::Inexact(value) } else { Precision::Exact(value) };
        let known = |value: ScalarValue| if value.is_null() { Precision::Absent } else { exact(value) };
        let (min, max) = (known(min), known(max));
        let ColumnStatistics { min_value, max_value, .. } = &mut statistics.column_statistics[number];
        (*min_value, *max_value) = (min, max);
    }
    Ok(())
}

/// The first key of the first range and the last key of the last range, or `None` if one of these ranges has no
/// keys.
fn ends(source: &TableSource, ranges: &[KeyRange]) -> larch::Result<Option<(Key, Key)>> {
    let (Some(first), Some(last)) = (ranges.first(), ranges.last()) else { return Ok(None) };
    let keys = source.table.select([""; 0])?;
    let keys = source.snapshot.select(&keys)?;
    let first = keys.range(first.bounds()).limit(1).next().transpose()?;
    let last = keys.range(last.bounds()).limit(1).next_back().transpose()?;
    Ok(first.zip(last).map(|((first, _), (last, _))| (first, last)))
}

/// The values of a column in two keys, or `None` if one of them is not a valid key of the table.
fn values(columns: &Columns, column: usize, keys: [&Key; 2]) -> Option<[ScalarValue; 2]> {
    let mut filler = Filler::new(columns, &[column], &[], keys.len());
    for key in keys {
        filler.push(key, &[]).ok()?;
    }
    let array = filler.take().pop().expect("a column was asked for");
    let value = |row| ScalarValue::try_from_array(&array, row).ok();
    Some([value(0)?, value(1)?])
}
