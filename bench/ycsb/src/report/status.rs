//! The status line of YCSB's option `-s`.

use super::java::{date, remaining, short};
use crate::settings::Output;
use harness::{Interval, Measure};

/// Collects intervals, and makes status lines from them.
pub struct Status {
    label: String,
    every_nanos: u64,
    /// The number of operations of the whole run, if it is fixed.
    expected: Option<u64>,
    operations: u64,
    waiting: Vec<Interval>,
}

impl Status {
    /// Makes status lines in the form that `output` asks for. `expected` is the number of operations in the run, or
    /// `None` if the run ends after a time.
    pub fn new(output: &Output, expected: Option<u64>) -> Status {
        Status {
            label: output.label.clone(),
            every_nanos: output.status_seconds * 1_000_000_000,
            expected,
            operations: 0,
            waiting: Vec::new(),
        }
    }

    /// Takes the next interval of the run, which ended at `unix_millis`. Returns a line if it is time for one.
    /// Intervals of the warm-up are left out.
    pub fn interval(&mut self, unix_millis: u64, interval: &Interval) -> Option<String> {
        if interval.warming {
            return None;
        }
        self.operations += interval.operations + interval.failed;
        self.waiting.push(interval.clone());
        let first = self.waiting.first().map_or(0, |first| first.from_nanos);
        (interval.to_nanos - first >= self.every_nanos).then(|| self.take(unix_millis)).flatten()
    }

    /// The last status line. It covers the time since the previous line.
    pub fn last(&mut self, unix_millis: u64) -> Option<String> {
        self.take(unix_millis)
    }

    fn take(&mut self, unix_millis: u64) -> Option<String> {
        let intervals = std::mem::take(&mut self.waiting);
        let (first, last) = (intervals.first()?, intervals.last()?);
        let operations: u64 = intervals.iter().map(|interval| interval.operations + interval.failed).sum();
        let current = operations as f64 * 1e9 / (last.to_nanos - first.from_nanos) as f64;
        let overall = self.operations as f64 * 1e9 / last.to_nanos as f64;
        let [year, month, day, hour, minute, second, millis] = date(unix_millis);
        let mut line = format!(
            "{}{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}:{millis:03} {} sec: {} operations; {} \
             current ops/sec; ",
            self.label,
            last.to_nanos / 1_000_000_000,
            self.operations,
            short(current)
        );
        let left = self.expected.map_or(0, |expected| expected.saturating_sub(self.operations));
        if left > 0 && overall > 0.0 {
            line += &format!("est completion in {}", remaining((left as f64 / overall).ceil() as u64));
        }
        for name in super::lines::ORDER {
            let of_name = intervals.iter().flat_map(|interval| &interval.kinds).filter(|kind| kind.name == name);
            let measure = Measure::sum(of_name);
            let times = &measure.service;
            match times.is_empty() && measure.batched > 0 {
                true => line += &format!("[{name}: Count={}] ", measure.batched),
                false => line += &summary(name, times),
            }
            line += &summary(&format!("{name}-FAILED"), &measure.failed);
        }
        Some(line)
    }
}

/// As in the original, the line has every percentile, however few requests there are: its tools read the line by place.
fn summary(name: &str, times: &harness::Times) -> String {
    if times.is_empty() {
        return String::new();
    }
    let at = |quantile: f64| times.quantile(quantile) / 1000;
    format!(
        "[{name}: Count={}, Max={}, Min={}, Avg={}, 90={}, 99={}, 99.9={}, 99.99={}] ",
        times.count(),
        times.max() / 1000,
        times.min() / 1000,
        short(times.mean() / 1000.0),
        at(0.9),
        at(0.99),
        at(0.999),
        at(0.9999)
    )
}
