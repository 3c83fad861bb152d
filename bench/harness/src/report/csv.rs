//! Results as a table for spreadsheets and plots. For each interval of a run, the table has a line for each kind
//! and a line for all kinds. Then it has a line for each [figure](super::figures) of the run.

use super::Run;
use super::figures::{Figure, QUANTILES};
use crate::measured::{Interval, Measure};

const HEADER: [&str; 27] = [
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
    "rolled_back",
    "retries",
    "figure",
    "value",
    "unit",
    "note",
];

/// The column of the kind.
const KIND: usize = 5;
/// The first column of the figures.
const FIGURE: usize = 23;

/// The table. If the run had a schedule, the times of its requests are counted from the schedule (`response`).
/// Otherwise, the times are counted from the moment when a request was sent (`service`). A quantile that an interval
/// has too few requests for is empty.
pub fn csv<'r>(runs: impl IntoIterator<Item = &'r Run>) -> String {
    let mut table = ::csv::Writer::from_writer(Vec::new());
    let wrote = "a Vec takes every line, and all lines have the same columns";
    table.write_record(HEADER).expect(wrote);
    let mut put = |mut line: Vec<String>| {
        line.resize(HEADER.len(), String::new());
        table.write_record(line).expect(wrote);
    };
    for run in runs {
        for interval in &run.measured.intervals {
            put(all_kinds(run, interval));
            interval.kinds.iter().for_each(|measure| put(one_kind(run, interval, measure)));
        }
        run.all_figures().iter().for_each(|figure| put(of_figure(run, figure)));
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
    line.resize(FIGURE - 1, String::new());
    line.push(interval.retries.to_string());
    line
}

fn one_kind(run: &Run, interval: &Interval, measure: &Measure) -> Vec<String> {
    let mut line = place(run, interval);
    line.push(measure.name.clone());
    let counts = [measure.oks, measure.not_found, measure.batched, measure.failed_count()];
    line.extend(counts.map(|count| count.to_string()));
    line.push(per_second(measure.done(), interval));
    line.push(if measure.response.is_some() { "response" } else { "service" }.to_owned());
    let times = measure.times();
    if !times.is_empty() {
        line.extend([format!("{:.1}", times.mean()), times.min().to_string()]);
        let known = |(_, quantile)| times.known_quantile(quantile);
        line.extend(QUANTILES.map(|named| known(named).map_or(String::new(), |nanos| nanos.to_string())));
        line.push(times.max().to_string());
    }
    line.resize(FIGURE - 2, String::new());
    line.extend([measure.rolled_back, measure.retries].map(|count| count.to_string()));
    line
}

fn of_figure(run: &Run, figure: &Figure) -> Vec<String> {
    let mut line = vec![run.name.clone(), run.target.clone()];
    line.resize(KIND, String::new());
    line.push(figure.of.clone());
    line.resize(FIGURE, String::new());
    let value = figure.value.map_or(String::new(), |value| value.to_string());
    line.extend([figure.name.clone(), value, figure.unit.to_owned(), figure.note.clone()]);
    line
}
