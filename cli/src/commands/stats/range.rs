//! `larch stats` for a range of keys: prints how much the range contains, and how the content is spread over the
//! range. The numbers come from the indexes, unless the exact number is asked for.

use super::Keys;
use crate::args::Stats;
use crate::database;
use crate::failure::Result;
use crate::layout::Layout;
use crate::output::Output;
use crate::size;
use larch::Table;
use larch::stats::{Bucket, Estimate, Metric, RangeStats, Resolution};
use serde::Serialize;
use std::fmt;
use std::ops::Bound;

/// The number of buckets if none is given.
const BUCKETS: u64 = 10;

/// The width of the longest bar in characters.
const BAR: u64 = 30;

/// The most characters of a key that are printed on a line.
const KEY: usize = 40;

/// An interval in which a number is known to lie. Both ends are included.
#[derive(Clone, Copy, Serialize)]
pub struct Interval {
    low: u64,
    high: u64,
}

impl Interval {
    /// Whether both ends of the interval are `number`.
    pub fn is_exactly(self, number: u64) -> bool {
        self.low == number && self.high == number
    }
}

impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&between(Estimate { low: self.low, high: self.high }))
    }
}

impl From<Estimate> for Interval {
    fn from(Estimate { low, high }: Estimate) -> Self {
        Self { low, high }
    }
}

/// [`RangeStats`] and a histogram, in a form that is printed as JSON.
#[derive(Serialize)]
struct Report {
    /// Name of the table.
    table: String,
    /// The first key that was asked for.
    from: Option<String>,
    /// The key before which the range stops.
    to: Option<String>,
    /// The number of rows.
    rows: Interval,
    /// The exact number of rows, if it was asked for.
    exact_rows: Option<u64>,
    /// The versions of rows in files. A key that is in several files is counted once for each file.
    stored_rows: Interval,
    /// The number of erases in files.
    erased_rows: Interval,
    /// The bytes in files, without the bytes of indexes.
    file_bytes: Interval,
    /// The part of the file bytes that is in data pages. In a table with groups, these are the data pages of the
    /// first group.
    data_bytes: Interval,
    /// The part of the file bytes that is in each group.
    groups: Vec<Group>,
    /// The part of the file bytes that older versions take.
    history_bytes: Interval,
    /// The levels that have files in the range.
    levels: Vec<Level>,
    /// The versions that are not in files yet.
    memory_rows: u64,
    /// The memory of these versions.
    memory_bytes: u64,
    /// How bytes and rows are spread over the range.
    buckets: Vec<Part>,
}

#[derive(Serialize)]
struct Group {
    name: String,
    bytes: Interval,
}

#[derive(Serialize)]
struct Level {
    level: usize,
    files: u64,
    rows: Interval,
    bytes: Interval,
}

/// The rows between two keys.
#[derive(Serialize)]
pub struct Part {
    /// The first key, in the form that `--from` takes, or `None` if nothing comes before the part.
    pub from: Option<String>,
    /// The key before which the part stops, in the form that `--to` takes, or `None` if nothing comes after the
    /// part.
    pub to: Option<String>,
    /// Whether the table certainly has a row with the key `to`. If not, `to` may be a string between two keys.
    pub to_is_key: bool,
    /// The number of rows.
    pub rows: Interval,
    /// The bytes in files and in memory.
    pub bytes: Interval,
    #[serde(skip)]
    to_text: Option<Vec<u8>>,
    /// Whether the part stops at a cut, and not at the end of the requested range.
    #[serde(skip)]
    is_cut: bool,
}

impl Part {
    /// The number of rows as a single number: the middle of the interval.
    pub fn rows_about(&self) -> u64 {
        middle(self.rows)
    }

    /// The number of bytes as a single number: the middle of the interval.
    pub fn bytes_about(&self) -> u64 {
        middle(self.bytes)
    }

    fn stops_between_keys(&self) -> bool {
        self.is_cut && !self.to_is_key
    }

    /// The key before which the part stops, as the bytes that `--to` takes.
    pub fn to_text(&self) -> Option<&[u8]> {
        self.to_text.as_deref()
    }
}

fn middle(Interval { low, high }: Interval) -> u64 {
    low + (high - low) / 2
}

/// Cuts `range` at `points`, which must be in ascending order. The flag of a point says whether the point is a
/// key.
pub fn parts(table: &Table, layout: &Layout, range: &Keys, points: Vec<(Vec<u8>, bool)>) -> Result<Vec<Part>> {
    let readable = |text: &[u8]| String::from_utf8_lossy(text).into_owned();
    let text_of = |bound: &Bound<Vec<u8>>| match bound {
        Bound::Unbounded => None,
        Bound::Included(key) | Bound::Excluded(key) => Some(layout.text_of_bound(key)),
    };
    let mut parts = Vec::with_capacity(points.len() + 1);
    let mut low = range.0.clone();
    let cuts = points.into_iter().map(|(point, is_key)| (Bound::Excluded(point), is_key, true));
    for (high, to_is_key, is_cut) in cuts.chain([(range.1.clone(), false, false)]) {
        let part = (low.clone(), high.clone());
        let to_text = text_of(&high);
        parts.push(Part {
            from: text_of(&low).map(|text| readable(&text)),
            to: to_text.as_deref().map(readable),
            to_is_key,
            rows: table.count(part.clone())?.into(),
            bytes: table.size(part)?.into(),
            to_text,
            is_cut,
        });
        low = match high {
            Bound::Excluded(key) => Bound::Included(key),
            other => other,
        };
    }
    Ok(parts)
}

/// Runs the command for one table.
pub fn run(table: &Table, args: &Stats, output: &mut Output) -> Result<()> {
    let layout = database::layout(table, &args.types)?;
    let range = super::keys_between(&layout, args.from.as_deref(), args.to.as_deref())?;
    let stats = table.range_stats(range.clone())?;
    let exact = if args.exact { Some(table.count_exact(range.clone())?) } else { None };
    let buckets = Resolution::Buckets(args.buckets.unwrap_or(BUCKETS));
    let histogram = table.histogram(range.clone(), Metric::Bytes, buckets)?;
    let ends = histogram.buckets.into_iter().filter_map(|Bucket { end, .. }| end.map(|end| (end.at, end.is_key)));
    let buckets = parts(table, &layout, &range, ends.collect())?;
    if args.json {
        return output.json(&report(table, args, &stats, exact, buckets));
    }
    let mut row = |name: &str, text: String| output.line(format!("  {name:<14}{text}"));
    row("rows", rows(&stats, exact))?;
    if stats.erased_rows.high > 0 {
        row("of these", format!("{} deletions in files, hidden with what they delete", between(stats.erased_rows)))?;
    }
    row("in files", format!("{}, {}", bytes_between(stats.file_bytes), versions(stats.stored_rows)))?;
    for group in &stats.groups {
        row("  group", format!("{}: {}", group.name, bytes_between(group.bytes)))?;
    }
    if stats.history_bytes.high > 0 {
        row("  history", bytes_between(stats.history_bytes))?;
    }
    for level in &stats.levels {
        let name = format!("  level {}", level.level);
        let (files, versions) = (size::of(level.files, "file"), versions(level.rows));
        row(&name, format!("{files}, {}, {versions}", bytes_between(level.bytes)))?;
    }
    if stats.memory_rows > 0 {
        let versions = size::of(stats.memory_rows, "version");
        row("not in files", format!("{versions}, {}", size::bytes(stats.memory_bytes)))?;
    }
    histogram_lines(&buckets, output)
}

/// The number of rows, in words.
fn rows(stats: &RangeStats, exact: Option<u64>) -> String {
    match (exact, stats.rows) {
        (Some(count), _) => format!("{}, counted", size::count(count)),
        (None, rows) if rows.is_exact() => format!("{}, exactly", size::count(rows.low)),
        (None, rows) => format!("{}, as far as indexes tell", between(rows)),
    }
}

/// The number of versions.
fn versions(number: Estimate) -> String {
    if number.high == 1 { "1 version".to_owned() } else { format!("{} versions", between(number)) }
}

/// A number, or the two numbers between which it lies.
fn between(Estimate { low, high }: Estimate) -> String {
    if low == high { size::count(low) } else { format!("{} to {}", size::count(low), size::count(high)) }
}

fn bytes_between(Estimate { low, high }: Estimate) -> String {
    let (low, high) = (size::bytes(low), size::bytes(high));
    if low == high { low } else { format!("{low} to {high}") }
}

/// Prints a line for each bucket. All buckets have about the same number of bytes, so the bars show the numbers of
/// rows.
fn histogram_lines(buckets: &[Part], output: &mut Output) -> Result<()> {
    let total: u64 = buckets.iter().map(Part::bytes_about).sum();
    if total == 0 {
        return Ok(());
    }
    let most = buckets.iter().map(Part::rows_about).max().unwrap_or(0).max(1);
    let ends: Vec<String> = buckets.iter().map(end).collect();
    let width = ends.iter().map(|end| end.chars().count()).max().unwrap_or(0);
    output.line(format!("  {:<width$}  {:>12}  {:>10}  {:>6}", "keys", "rows", "bytes", "so far"))?;
    let mut so_far = 0;
    for (bucket, end) in buckets.iter().zip(&ends) {
        so_far += bucket.bytes_about();
        let rows = bucket.rows_about();
        let bar = "#".repeat((u128::from(rows) * u128::from(BAR)).div_ceil(u128::from(most)) as usize);
        let (count, bytes, percent) =
            (size::count(rows), size::bytes(bucket.bytes_about()), 100.0 * so_far as f64 / total as f64);
        output.line(format!("  {end:<width$}  {count:>12}  {bytes:>10}  {percent:>4.0} %  {bar}").trim_end())?;
    }
    if buckets.iter().any(Part::stops_between_keys) {
        output
            .line("  ~ stands after a string between two keys; rows and bytes are the middle of what indexes tell")?;
    }
    Ok(())
}

/// Where a bucket ends, in words.
fn end(bucket: &Part) -> String {
    let Some(to) = &bucket.to else { return "to the end".to_string() };
    let mut shown: String = to.chars().take(KEY).collect();
    if shown.len() < to.len() {
        shown.push('…');
    }
    format!("< {shown:?}{}", if bucket.stops_between_keys() { "~" } else { "" })
}

fn report(table: &Table, args: &Stats, stats: &RangeStats, exact: Option<u64>, buckets: Vec<Part>) -> Report {
    let text = |text: &Option<std::ffi::OsString>| text.as_ref().map(|text| text.to_string_lossy().into_owned());
    let groups = stats.groups.iter().map(|group| Group { name: group.name.clone(), bytes: group.bytes.into() });
    let levels = stats.levels.iter().map(|level| Level {
        level: level.level,
        files: level.files,
        rows: level.rows.into(),
        bytes: level.bytes.into(),
    });
    Report {
        table: table.name().to_string(),
        from: text(&args.from),
        to: text(&args.to),
        rows: stats.rows.into(),
        exact_rows: exact,
        stored_rows: stats.stored_rows.into(),
        erased_rows: stats.erased_rows.into(),
        file_bytes: stats.file_bytes.into(),
        data_bytes: stats.data_bytes.into(),
        groups: groups.collect(),
        history_bytes: stats.history_bytes.into(),
        levels: levels.collect(),
        memory_rows: stats.memory_rows,
        memory_bytes: stats.memory_bytes,
        buckets,
    }
}
