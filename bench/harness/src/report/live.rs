//! Formats the table that gets a new line every second of a run. It has the columns of scylla-bench:
//!
//! ```text
//!  time   ops/s  rows/s errors max    99.9th 99th   95th   90th   median mean
//!    1s    4706    4706      0 35ms   30ms   27ms   25ms   24ms   21ms   21ms
//! ```

#[cfg(test)]
mod tests;

use crate::measured::{Interval, Measure};

/// Which times a table shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// The table has no columns of times.
    Nothing,
    /// The times from when requests were sent until they were served.
    Service,
    /// The times from when operations were due until they were served. If an operation had no due time, its time is
    /// counted from the moment when it was sent.
    Response,
}

/// The first line of the table.
pub fn head(shown: Shown) -> String {
    let times = ["max", "99.9th", "99th", "95th", "90th", "median", "mean"];
    row(["time", "ops/s", "rows/s", "errors"], (shown != Shown::Nothing).then_some(times))
}

/// The line of an interval. A quantile that the interval has too few requests for is a dash.
pub fn line(interval: &Interval, shown: Shown) -> String {
    let sum = Measure::sum(&interval.kinds);
    let nanos = interval.to_nanos.saturating_sub(interval.from_nanos).max(1);
    let a_second = |count: u64| format!("{:.0}", count as f64 * 1e9 / nanos as f64);
    let times = match shown {
        Shown::Nothing | Shown::Service => &sum.service,
        Shown::Response => sum.times(),
    };
    let bound = |nanos: f64| if times.is_empty() { "-".to_owned() } else { short(nanos) };
    let quantile = |quantile| times.known_quantile(quantile).map_or("-".to_owned(), |nanos| short(nanos as f64));
    row(
        [&since(interval.to_nanos), &a_second(interval.operations), &a_second(sum.rows), &interval.failed.to_string()],
        (shown != Shown::Nothing).then_some([
            &bound(times.max() as f64),
            &quantile(0.999),
            &quantile(0.99),
            &quantile(0.95),
            &quantile(0.9),
            &quantile(0.5),
            &bound(times.mean()),
        ]),
    )
}

fn row([time, ops, rows, errors]: [&str; 4], times: Option<[&str; 7]>) -> String {
    let Some([max, p999, p99, p95, p90, median, mean]) = times else {
        return format!("{time:>5} {ops:>7} {rows:>7} {errors:>6}\n");
    };
    format!(
        "{time:>5} {ops:>7} {rows:>7} {errors:>6} {max:<6} {p999:<6} {p99:<6} {p95:<6} {p90:<6} {median:<6} {mean}\n"
    )
}

/// Time since the beginning, to the tenth of a second: `1s`, `3.1s`.
fn since(nanos: u64) -> String {
    let tenths = (nanos as f64 / 1e8).round() as u64;
    match tenths % 10 {
        0 => format!("{}s", tenths / 10),
        tenth => format!("{}.{tenth}s", tenths / 10),
    }
}

/// A time in five characters at most: `850us`, `3.4ms`, `35ms`, `1.2s`.
fn short(nanos: f64) -> String {
    match nanos {
        _ if nanos < 999.5e3 => format!("{:.0}us", nanos / 1e3),
        _ if nanos < 9.95e6 => format!("{:.1}ms", nanos / 1e6),
        _ if nanos < 999.5e6 => format!("{:.0}ms", nanos / 1e6),
        _ => format!("{:.1}s", nanos / 1e9),
    }
}
