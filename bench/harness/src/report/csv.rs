//! Results as a table for spreadsheets and plots. For each interval of a run, the table has a line for each kind
//! and a line for all kinds.

use super::Run;
use crate::measured::{Interval, Measure};

const HEADER: [&str; 21] = [
    "run",
    "target",
    "warming",
    "from_seconds",
    "to_seconds",
    "kind",
    "oks",
    "not_found",
    "batched",
    "failed",
    "per_second",
    "times",
    "mean_nanos",
    "min_nanos",
    "p50_nanos",
    "p90_nanos",
    "p95_nanos",
    "p99_nanos",
    "p99_9_nanos",
    "p99_99_nanos",
    "max_nanos",
];

/// The table. If the run had a schedule, the times of its requests are counted from the schedule (`response`).
/// Otherwise, the times are counted from the moment when a request was sent (`service`). A kind without requests in
/// an interval has no times.
pub fn csv<'r>(runs: impl IntoIterator<Item = &'r Run>) -> String {
    let mut table = ::csv::Writer::from_writer(Vec::new());
    let wrote = "a Vec takes every line, and all lines have the same columns";
    table.write_record(HEADER).expect(wrote);
    for run in runs {
        for interval in &run.measured.intervals {
            table.write_record(all_kinds(run, interval)).expect(wrote);
            for measure in &interval.kinds {
                table.write_record(one_kind(run, interval, measure)).expect(wrote);
            }
        }
    }
    String::from_utf8(table.into_inner().expect(wrote)).expect("made of text")
}

fn place(run: &Run, interval: &Interval) -> Vec<String> {
    let seconds = |nanos: u64| format!("{:.3}", nanos as f64 / 1e9);
    vec![
        run.name.clone(),
        run.target.clone(),
        u8::from(interval.warming).to_string(),
        seconds(interval.from_nanos),
        seconds(interval.to_nanos),
    ]
}

fn per_second(count: u64, interval: &Interval) -> String {
    let nanos = interval.to_nanos - interval.from_nanos;
    if nanos == 0 { String::new() } else { format!("{:.1}", count as f64 * 1e9 / nanos as f64) }
}

/// The line for the operations of all kinds together.
fn all_kinds(run: &Run, interval: &Interval) -> Vec<String> {
    let mut line = place(run, interval);
    line.extend(["OPERATIONS".to_owned(), interval.operations.to_string()]);
    line.extend([String::new(), String::new(), interval.failed.to_string()]);
    line.push(per_second(interval.operations, interval));
    line.resize(HEADER.len(), String::new());
    line
}

fn one_kind(run: &Run, interval: &Interval, measure: &Measure) -> Vec<String> {
    let mut line = place(run, interval);
    let failed = measure.failed_count();
    let done = measure.done();
    line.push(measure.name.clone());
    line.extend([measure.oks, measure.not_found, measure.batched, failed].map(|count| count.to_string()));
    line.push(per_second(done, interval));
    line.push(if measure.response.is_some() { "response" } else { "service" }.to_owned());
    let times = measure.times();
    if !times.is_empty() {
        let quantiles = [0.5, 0.9, 0.95, 0.99, 0.999, 0.9999].map(|quantile| times.quantile(quantile).to_string());
        line.extend([format!("{:.1}", times.mean()), times.min().to_string()]);
        line.extend(quantiles);
        line.push(times.max().to_string());
    }
    line.resize(HEADER.len(), String::new());
    line
}
