//! The lines of a result: metric, measurement, value.

use crate::settings::{Interval, Measure, Output};
use harness::{Measured, Times};

/// The original prints kinds in the order in which a hash table of their names has them. This is it.
pub const ORDER: [&str; 6] = ["READ", "READ-MODIFY-WRITE", "UPDATE", "INSERT", "VERIFY", "SCAN"];

/// One line.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    pub metric: String,
    pub measurement: String,
    pub value: Value,
}

/// A number, as Java's types have it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    Whole(u64),
    Real(f64),
}

/// All lines of `measured`.
pub fn of(measured: &Measured, output: &Output) -> Vec<Line> {
    let mut lines = Lines { output, lines: Vec::new() };
    lines.whole("OVERALL", "RunTime(ms)", measured.nanos / 1_000_000);
    lines.real("OVERALL", "Throughput(ops/sec)", measured.per_second());
    let passes: &[bool] = match output.interval {
        Interval::Operation => &[false],
        Interval::Intended => &[true],
        Interval::Both => &[false, true],
    };
    for intended in passes {
        for name in ORDER {
            if let Some(measure) = measured.kind(name) {
                lines.kind(measured, measure, *intended);
            }
        }
    }
    lines.lines
}

struct Lines<'o> {
    output: &'o Output,
    lines: Vec<Line>,
}

impl Lines<'_> {
    fn push(&mut self, metric: &str, measurement: impl Into<String>, value: Value) {
        self.lines.push(Line { metric: metric.to_owned(), measurement: measurement.into(), value });
    }

    fn whole(&mut self, metric: &str, measurement: impl Into<String>, value: u64) {
        self.push(metric, measurement, Value::Whole(value));
    }

    fn real(&mut self, metric: &str, measurement: impl Into<String>, value: f64) {
        self.push(metric, measurement, Value::Real(value));
    }

    /// Operations of one kind, from when they were sent or from when they should have been.
    fn kind(&mut self, measured: &Measured, measure: &harness::Measure, intended: bool) {
        let is_check = measure.name == "VERIFY";
        // A check is not sent, so it has no time that was meant.
        if is_check && intended && self.output.interval == Interval::Both {
            return;
        }
        let times = if intended { measure.times() } else { &measure.service };
        // A check that fails took its time all the same, and has no metric of its own.
        let all = is_check.then(|| times.merged(&measure.failed));
        let times = all.as_ref().unwrap_or(times);
        let failed = if is_check || intended { None } else { Some(&measure.failed) };
        let returns = if measure.name == "READ-MODIFY-WRITE" { Vec::new() } else { returns(measure) };
        if times.is_empty() && returns.is_empty() && measure.failed.is_empty() {
            return;
        }
        let both = intended && self.output.interval == Interval::Both;
        let name = if both { format!("Intended-{}", measure.name) } else { measure.name.clone() };
        let returns = if both { &[][..] } else { &returns[..] };
        self.metric(measured, &name, &measure.name, times, returns);
        if let Some(failed) = failed.filter(|failed| !failed.is_empty()) {
            self.metric(measured, &format!("{name}-FAILED"), "", failed, &[]);
        }
    }

    /// One metric in the form that `measurementtype` asks for.
    fn metric(&mut self, measured: &Measured, name: &str, kind: &str, times: &Times, returns: &[(String, u64)]) {
        match self.output.measure {
            Measure::Hdr => self.hdr(name, times, returns),
            Measure::Buckets => self.buckets(name, times, returns),
            Measure::HdrAndBuckets => {
                self.hdr(&format!("Hdr{name}"), times, returns);
                self.buckets(&format!("Bucket{name}"), times, &[]);
            }
            Measure::Series => self.series(measured, name, kind, times, returns),
        }
    }

    fn hdr(&mut self, name: &str, times: &Times, returns: &[(String, u64)]) {
        self.whole(name, "Operations", times.count());
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
        self.whole(name, "Operations", times.count());
        self.real(name, "AverageLatency(us)", mean);
        self.real(name, "LatencyVariance(us)", squares / times.count() as f64 - mean * mean);
        self.whole(name, "MinLatency(us)", min_micros(times));
        self.whole(name, "MaxLatency(us)", times.max() / 1000);
        // Percentiles beyond the last bucket are not known.
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

    /// The average of each interval; the run has to be kept in intervals of `timeseries.granularity`.
    fn series(&mut self, measured: &Measured, name: &str, kind: &str, times: &Times, returns: &[(String, u64)]) {
        self.whole(name, "Operations", times.count());
        self.real(name, "AverageLatency(us)", mean_micros(times));
        self.whole(name, "MinLatency(us)", min_micros(times));
        self.whole(name, "MaxLatency(us)", times.max() / 1000);
        self.returns(name, returns);
        let intended = name.starts_with("Intended-") || self.output.interval == Interval::Intended;
        for interval in measured.window() {
            let Some(measure) = interval.kinds.iter().find(|measure| measure.name == kind) else { continue };
            let times = if intended { measure.times() } else { &measure.service };
            if !times.is_empty() {
                self.real(name, (interval.from_nanos / 1_000_000).to_string(), mean_micros(times));
            }
        }
    }

    fn returns(&mut self, name: &str, returns: &[(String, u64)]) {
        for (status, count) in returns {
            self.whole(name, format!("Return={status}"), *count);
        }
    }
}

/// How often each status came back.
fn returns(measure: &harness::Measure) -> Vec<(String, u64)> {
    let good = [("OK", measure.oks), ("NOT_FOUND", measure.not_found), ("BATCHED_OK", measure.batched)];
    let good = good.into_iter().map(|(status, count)| (status.to_owned(), count));
    let bad = measure.failures.iter().map(|(kind, count)| (kind.to_uppercase().replace([' ', '-'], "_"), *count));
    good.chain(bad).filter(|(_, count)| *count > 0).collect()
}

fn mean_micros(times: &Times) -> f64 {
    if times.is_empty() { f64::NAN } else { times.mean() / 1000.0 }
}

fn min_micros(times: &Times) -> u64 {
    // What Java's histogram says when it is empty.
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
