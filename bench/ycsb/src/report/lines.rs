//! The lines of a result: metric, measurement, value.

use crate::settings::{MeasurementInterval, MeasurementType, Output};
use harness::{Measure, Measured, Times};
use std::borrow::Cow;

/// The original prints kinds in the order of a hash table of their names. This is the order that results.
pub const ORDER: [&str; 6] = ["READ", "READ-MODIFY-WRITE", "UPDATE", "INSERT", "VERIFY", "SCAN"];

/// One line.
#[derive(Clone, Debug, PartialEq)]
pub struct ResultLine {
    pub metric: String,
    pub measurement: String,
    pub value: Value,
}

/// A number in one of Java's types.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    Whole(i64),
    Real(f64),
}

/// The name with which a metric's lines begin, and the times that the lines show.
pub struct Metric<'m> {
    pub name: String,
    /// The requests of the metric.
    pub kind: &'m Measure,
    /// Whether the metric's times count from when requests were due. Otherwise they count from when they were sent.
    intended: bool,
    /// Whether the metric counts failed operations.
    failed: bool,
    /// Whether the metric has lines for the returned statuses.
    has_returns: bool,
}

impl Metric<'_> {
    /// The times of `kind` that belong to the metric. `kind` must have the name of the metric's kind, but it may
    /// contain the measurements of only a part of the run.
    pub fn times<'k>(&self, kind: &'k Measure) -> Cow<'k, Times> {
        let times = if self.intended { kind.times() } else { &kind.service };
        match (self.failed, kind.name.as_str()) {
            (true, _) => Cow::Borrowed(&kind.failed),
            // The times of checks that failed are added to the times of checks that succeeded, because failed
            // checks have no metric of their own.
            (false, "VERIFY") => Cow::Owned(times.merged(&kind.failed)),
            (false, _) => Cow::Borrowed(times),
        }
    }
}

/// The metrics of `measured`, in the order in which they are printed.
pub fn metrics<'m>(measured: &'m Measured, output: &Output) -> Vec<Metric<'m>> {
    let mut metrics = Vec::new();
    let passes: &[bool] = match output.interval {
        MeasurementInterval::Operation => &[false],
        MeasurementInterval::Intended => &[true],
        MeasurementInterval::Both => &[false, true],
    };
    for &intended in passes {
        let both = intended && output.interval == MeasurementInterval::Both;
        for kind in ORDER.iter().filter_map(|name| measured.kind(name)) {
            let is_check = kind.name == "VERIFY";
            // A check sends no request, so it has no intended time.
            if is_check && both {
                continue;
            }
            let name = if both { format!("Intended-{}", kind.name) } else { kind.name.clone() };
            let has_returns = !both && kind.name != "READ-MODIFY-WRITE";
            let failed = Metric { name: format!("{name}-FAILED"), kind, intended, failed: true, has_returns: false };
            let metric = Metric { name, kind, intended, failed: false, has_returns };
            let is_empty = metric.times(kind).is_empty() && kind.failed.is_empty();
            if !is_empty || kind.name != "READ-MODIFY-WRITE" && !returns(kind).is_empty() {
                metrics.push(metric);
                if !is_check && !intended && !kind.failed.is_empty() {
                    metrics.push(failed);
                }
            }
        }
    }
    metrics
}

/// All lines of `measured`.
pub fn of(measured: &Measured, output: &Output) -> Vec<ResultLine> {
    let mut lines = Lines { output, lines: Vec::new() };
    lines.whole("OVERALL", "RunTime(ms)", measured.nanos / 1_000_000);
    lines.real("OVERALL", "Throughput(ops/sec)", measured.per_second());
    metrics(measured, output).iter().for_each(|metric| lines.metric(measured, metric));
    lines.lines
}

/// The status of an insert that was written together with others.
const BATCHED: &str = "BATCHED_OK";

struct Lines<'o> {
    output: &'o Output,
    lines: Vec<ResultLine>,
}

impl Lines<'_> {
    fn push(&mut self, metric: &str, measurement: impl Into<String>, value: Value) {
        self.lines.push(ResultLine { metric: metric.to_owned(), measurement: measurement.into(), value });
    }

    fn whole(&mut self, metric: &str, measurement: impl Into<String>, value: u64) {
        self.push(metric, measurement, Value::Whole(value.cast_signed()));
    }

    fn real(&mut self, metric: &str, measurement: impl Into<String>, value: f64) {
        self.push(metric, measurement, Value::Real(value));
    }

    /// The number of requests of a metric. The number includes requests that have no time of their own because
    /// they were written together with others.
    fn operations(&mut self, name: &str, times: &Times, returns: &[(String, u64)]) {
        let batched = returns.iter().filter(|(status, _)| status == BATCHED).map(|(_, count)| count).sum::<u64>();
        self.whole(name, "Operations", times.count() + batched);
    }

    /// The lines of one metric, in the format that `measurementtype` names.
    fn metric(&mut self, measured: &Measured, metric: &Metric<'_>) {
        let name = &metric.name;
        let times = &*metric.times(metric.kind);
        let returns = if metric.has_returns { returns(metric.kind) } else { Vec::new() };
        if times.is_empty() && metric.kind.batched > 0 {
            // The rows were written together, so the time of a single row is not known.
            self.operations(name, times, &returns);
            return self.returns(name, &returns);
        }
        match self.output.measure {
            MeasurementType::Hdr => self.hdr(name, times, &returns),
            MeasurementType::Buckets => self.buckets(name, times, &returns),
            MeasurementType::HdrAndBuckets => {
                self.hdr(&format!("Hdr{name}"), times, &returns);
                self.buckets(&format!("Bucket{name}"), times, &[]);
            }
            MeasurementType::Series => self.series(measured, metric, times, &returns),
            MeasurementType::Raw => self.raw(name, times, &returns),
            MeasurementType::HdrAndRaw => {
                self.hdr(&format!("Hdr{name}"), times, &returns);
                self.raw(&format!("Raw{name}"), times, &[]);
            }
        }
    }

    /// The original prints every percentile, however few requests there are, and its tools expect each line. Our own
    /// text and files leave blank what few requests do not tell.
    fn hdr(&mut self, name: &str, times: &Times, returns: &[(String, u64)]) {
        self.operations(name, times, returns);
        self.real(name, "AverageLatency(us)", mean_micros(times));
        self.whole(name, "MinLatency(us)", min_micros(times));
        self.whole(name, "MaxLatency(us)", times.max() / 1000);
        for percentile in &self.output.percentiles {
            let micros = times.quantile(percentile / 100.0) / 1000;
            self.whole(name, format!("{}PercentileLatency(us)", ordinal(*percentile)), micros);
        }
        self.returns(name, returns);
        if self.output.verbose {
            let mut micros: Vec<(u64, u64)> = Vec::new();
            for (_, nanos, count) in times.iter() {
                match micros.last_mut() {
                    Some((last, sum)) if *last == nanos / 1000 => *sum += count,
                    _ => micros.push((nanos / 1000, count)),
                }
            }
            for (micros, count) in micros {
                self.real(name, micros.to_string(), count as f64);
            }
        }
    }

    fn buckets(&mut self, name: &str, times: &Times, returns: &[(String, u64)]) {
        let mut buckets = vec![0; self.output.buckets as usize];
        let (mut over, mut squares) = (0, 0.0);
        for (least, greatest, count) in times.iter() {
            let middle = least + (greatest - least) / 2;
            squares += (middle as f64 / 1000.0).powi(2) * count as f64;
            match buckets.get_mut((middle / 1_000_000) as usize) {
                Some(bucket) => *bucket += count,
                None => over += count,
            }
        }
        let mean = mean_micros(times);
        self.operations(name, times, returns);
        self.real(name, "AverageLatency(us)", mean);
        self.real(name, "LatencyVariance(us)", squares / times.count() as f64 - mean * mean);
        self.whole(name, "MinLatency(us)", min_micros(times));
        self.whole(name, "MaxLatency(us)", times.max() / 1000);
        // A percentile that lies above the last bucket is not known.
        for (percentile, share) in [("95th", 0.95), ("99th", 0.99)] {
            let mut seen = 0;
            let bucket = buckets.iter().position(|count| {
                seen += count;
                seen as f64 / times.count() as f64 >= share
            });
            if let Some(millis) = bucket {
                self.whole(name, format!("{percentile}PercentileLatency(us)"), millis as u64 * 1000);
            }
        }
        self.returns(name, returns);
        if self.output.verbose {
            for (millis, count) in buckets.iter().enumerate() {
                self.whole(name, millis.to_string(), *count);
            }
            self.whole(name, format!(">{}", buckets.len()), over);
        }
    }

    /// The lines with the average of each interval. The run must have been kept in intervals of
    /// `timeseries.granularity`.
    fn series(&mut self, measured: &Measured, metric: &Metric<'_>, times: &Times, returns: &[(String, u64)]) {
        let name = &metric.name;
        self.operations(name, times, returns);
        self.real(name, "AverageLatency(us)", mean_micros(times));
        self.whole(name, "MinLatency(us)", min_micros(times));
        self.whole(name, "MaxLatency(us)", times.max() / 1000);
        self.returns(name, returns);
        for interval in measured.window() {
            let Some(kind) = interval.kinds.iter().find(|kind| kind.name == metric.kind.name) else { continue };
            let times = metric.times(kind);
            if !times.is_empty() {
                self.real(name, (interval.from_nanos / 1_000_000).to_string(), mean_micros(&times));
            }
        }
    }

    /// The lines with a summary of single times. The original sorts all times; here they are in a histogram.
    fn raw(&mut self, name: &str, times: &Times, returns: &[(String, u64)]) {
        self.whole(name, "Total Operations", times.count());
        if !times.is_empty() && self.output.raw_summary {
            self.push(name, "Below is a summary of latency in microseconds:", Value::Whole(-1));
            self.real(name, "Average", mean_micros(times));
            self.whole(name, "Min", min_micros(times));
            self.whole(name, "Max", times.max() / 1000);
            for (percentile, share) in [
                ("p1", 0.01),
                ("p5", 0.05),
                ("p50", 0.5),
                ("p90", 0.9),
                ("p95", 0.95),
                ("p99", 0.99),
                ("p99.9", 0.999),
                ("p99.99", 0.9999),
            ] {
                let before = (times.count() as f64 * share) as u64;
                self.whole(name, percentile, nanos_after(times, before) / 1000);
            }
        }
        self.returns(name, returns);
    }

    fn returns(&mut self, name: &str, returns: &[(String, u64)]) {
        for (status, count) in returns {
            self.whole(name, format!("Return={status}"), *count);
        }
    }
}

/// The statuses that requests returned, each with its count.
fn returns(measure: &Measure) -> Vec<(String, u64)> {
    let good = [
        ("OK", measure.oks),
        ("NOT_FOUND", measure.not_found),
        (BATCHED, measure.batched),
        ("ROLLED_BACK", measure.rolled_back),
    ];
    let good = good.into_iter().map(|(status, count)| (status.to_owned(), count));
    let bad = measure.failures.iter().map(|(kind, count)| (kind.to_uppercase().replace([' ', '-'], "_"), *count));
    good.chain(bad).filter(|(_, count)| *count > 0).collect()
}

fn mean_micros(times: &Times) -> f64 {
    if times.is_empty() { f64::NAN } else { times.mean() / 1000.0 }
}

/// The time at index `before` of all times in ascending order. A histogram does not keep exact times, so the result
/// is the middle of a bucket.
fn nanos_after(times: &Times, before: u64) -> u64 {
    let mut seen = 0;
    let mut buckets = times.iter();
    let found = buckets.find(|(_, _, count)| {
        seen += count;
        seen > before
    });
    found.map_or(0, |(least, greatest, _)| least + (greatest - least) / 2)
}

fn min_micros(times: &Times) -> u64 {
    // This is the value that the histogram of Java returns if it is empty.
    if times.is_empty() { i64::MAX.cast_unsigned() } else { times.min() / 1000 }
}

/// `95th`, `1st`, `99.9`.
fn ordinal(percentile: f64) -> String {
    if percentile.fract() != 0.0 {
        return super::double(percentile);
    }
    let number = percentile as u64;
    let suffix = match (number % 100, number % 10) {
        (11..=13, _) => "th",
        (_, 1) => "st",
        (_, 2) => "nd",
        (_, 3) => "rd",
        _ => "th",
    };
    format!("{number}{suffix}")
}
