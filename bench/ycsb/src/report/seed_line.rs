//! One line about a whole workload, in a form in which results of distributed databases are published:
//!
//! ```text
//! 2024-03-26 12:18 UTC zipfian workload a: 345.4K Op/s, latency 99% 133.119 ms: 414848.7K oks, 0 not_found, 448 errors, 1201089 ms run time
//! ```

use super::java::date;
use harness::{Measured, Times};

/// The line for `workload`. Its keys were drawn by `distribution`. The latency covers all requests that did not
/// fail. Times count from when requests were due, if that is known.
pub fn seed_line(measured: &Measured, distribution: &str, workload: &str) -> String {
    let [year, month, day, hour, minute, ..] = date(measured.began_unix_millis);
    let requests =
        || measured.kinds.iter().filter(|kind| !matches!(kind.name.as_str(), "VERIFY" | "READ-MODIFY-WRITE"));
    let not_found: u64 = requests().map(|kind| kind.not_found).sum();
    let wrong: u64 = measured.kind("VERIFY").map_or(0, |checks| checks.failed_count());
    let times = Times::sum(requests().map(|kind| kind.times()));
    let millis = times.known_quantile(0.99).map(|nanos| format!("{}.{:03}", nanos / 1_000_000, nanos / 1000 % 1000));
    format!(
        "{year:04}-{month:02}-{day:02} {hour:02}:{minute:02} UTC {distribution} workload {workload}: {} Op/s, latency 99% \
         {} ms: {} oks, {} not_found, {} errors, {} ms run time",
        thousands(measured.per_second()),
        millis.unwrap_or_else(|| "-".to_owned()),
        thousands(measured.operations.saturating_sub(not_found) as f64),
        thousands(not_found as f64),
        thousands((measured.failed + wrong) as f64),
        measured.nanos / 1_000_000
    )
}

/// `448`, `9.9K`, `80124K`.
fn thousands(number: f64) -> String {
    if number < 1000.0 {
        return format!("{}", number.floor());
    }
    let tenths = (number / 100.0).round() as u64;
    match tenths % 10 {
        0 => format!("{}K", tenths / 10),
        tenth => format!("{}.{tenth}K", tenths / 10),
    }
}
