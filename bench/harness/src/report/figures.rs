//! All figures of a run, as one list. The files, the table for spreadsheets and the page of a result show this list,
//! so that a figure of the text is missing in none of them. Figures are in base units: nanoseconds, bytes, counts,
//! and percent.

pub mod said;

use super::Run;
use super::text::{bytes, grouped, nanos, rate, three};
use crate::measured::{Measure, Measured};
use crate::times::Times;
use serde::Serialize;

#[cfg(test)]
mod tests;

/// One figure of a result.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Figure {
    /// What the figure is about: a kind of request, `run`, or `store`.
    pub of: String,
    /// Its name.
    pub name: String,
    /// Its value. `None` if it was not measured, or if the figure is a text.
    pub value: Option<f64>,
    /// The unit of the value; empty for a count. Times are in `ns` and sizes in `B`.
    pub unit: &'static str,
    /// What a reader must know of the figure, or the text that the figure is.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub note: String,
}

/// The unit of times.
pub const NANOS: &str = "ns";
/// The unit of sizes.
pub const BYTES: &str = "B";
/// The unit of rates.
pub const PER_SECOND: &str = "1/s";
/// The unit of shares.
pub const PERCENT: &str = "%";

/// The quantiles of times that results show, by name.
pub const QUANTILES: [(&str, f64); 6] =
    [("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99), ("p99.9", 0.999), ("p99.99", 0.9999)];

impl Figure {
    /// The value for people, with its unit, and then the note. A value that is not known is a dash.
    pub fn shown(&self) -> String {
        let value = match (self.value, self.unit) {
            (None, _) if self.note.is_empty() => "-".to_owned(),
            (None, _) => String::new(),
            (Some(value), NANOS) => nanos(value),
            (Some(value), BYTES) => bytes(value as u64),
            (Some(value), PER_SECOND) => format!("{}/s", rate(value)),
            (Some(value), PERCENT) => format!("{value:.2} %"),
            (Some(value), unit) if value.fract() == 0.0 && value >= 0.0 => {
                format!("{} {unit}", grouped(value as u64)).trim_end().to_owned()
            }
            (Some(value), unit) => format!("{} {unit}", three(value)).trim_end().to_owned(),
        };
        [value.as_str(), &self.note].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; ")
    }
}

/// The names of the counters of a store that add up to the size of its data.
pub const DATA: [&str; 2] = ["file bytes", "memtable bytes"];
/// The counter of the bytes in a store's cache.
pub const CACHED: &str = "cache bytes";
/// The counters of pages that a store read.
pub const READS: &[&str] = &["page reads"];
/// The counters of pages that a store found in its cache.
pub const HITS: &[&str] = &["cache hits"];
/// The counters of the time for which writes waited for background work, of all clients together, in microseconds.
pub const WAITED: &[&str] = &["stalled micros", "stopped micros"];
/// The counters of flushes.
pub const FLUSHES: &[&str] = &["flushes"];
/// The counters of compactions.
pub const COMPACTIONS: &[&str] = &["compactions"];
/// The counters of stalls. A stall is a write that waits for room.
pub const STALLS: &[&str] = &["stops at level 0", "stops at the write buffer"];

/// A list of figures that grows.
#[derive(Clone, Debug, Default)]
pub struct Figures(pub Vec<Figure>);

impl Figures {
    /// Adds a figure.
    pub fn add(&mut self, of: &str, name: impl Into<String>, value: impl Into<Option<f64>>, unit: &'static str) {
        let value = value.into().filter(|value| value.is_finite());
        self.0.push(Figure { of: of.to_owned(), name: name.into(), value, unit, note: String::new() });
    }

    /// Adds counts.
    pub fn counts<'n>(&mut self, of: &str, counts: impl IntoIterator<Item = (&'n str, u64)>) {
        counts.into_iter().for_each(|(name, count)| self.add(of, name, count as f64, ""));
    }

    /// Adds a note to the last figure.
    pub fn note(&mut self, note: String) {
        if let Some(last) = self.0.last_mut() {
            last.note = note;
        }
    }

    /// Adds a text.
    pub fn text(&mut self, of: &str, name: &str, text: impl Into<String>) {
        self.0.push(Figure { of: of.to_owned(), name: name.to_owned(), note: text.into(), ..Figure::default() });
    }

    /// Adds the mean, the quantiles and the bounds of `times`. A quantile that the times are too few for has no
    /// value.
    pub fn times(&mut self, of: &str, what: &str, times: &Times) {
        let known = |nanos: f64| (!times.is_empty()).then_some(nanos);
        self.add(of, format!("{what} mean"), known(times.mean()), NANOS);
        self.add(of, format!("{what} least"), known(times.min() as f64), NANOS);
        for (name, quantile) in QUANTILES {
            self.add(of, format!("{what} {name}"), times.known_quantile(quantile).map(|nanos| nanos as f64), NANOS);
        }
        self.add(of, format!("{what} greatest"), known(times.max() as f64), NANOS);
    }
}

/// All figures of `run` that do not depend on its workload.
pub fn figures(run: &Run) -> Vec<Figure> {
    let measured = &run.measured;
    let mut all = Figures::default();
    whole(measured, &mut all);
    let sum = Measure { name: "all requests".to_owned(), ..Measure::sum(&measured.kinds) };
    let happened = |kind: &&Measure| kind.done() + kind.failed_count() + kind.retries > 0;
    for kind in measured.kinds.iter().filter(happened).chain([&sum]) {
        requests(kind, measured, &mut all);
    }
    for noted in &measured.counts {
        all.add("run", noted.name.clone(), noted.value as f64, "");
        all.add("run", format!("{} a second", noted.name), measured.rate(noted.value), PER_SECOND);
    }
    cost(run, &mut all);
    let operations = (measured.operations + measured.failed).max(1) as f64;
    for change in &measured.counters {
        match change.counted() {
            Some(count) => {
                all.add("store", change.name.clone(), count as f64, "");
                all.add("store", format!("{} an operation", change.name), count as f64 / operations, "");
            }
            None => all.add("store", format!("{} at the end", change.name), change.after as f64, ""),
        }
    }
    let data = measured.counters.iter().filter(|change| DATA.contains(&change.name.as_str()));
    let data: Vec<u64> = data.map(|change| change.after).collect();
    if !data.is_empty() {
        all.add("store", "data at the end", data.iter().sum::<u64>() as f64, BYTES);
    }
    if let Some(cached) = measured.counters.iter().find(|change| change.name == CACHED) {
        all.add("store", "cache at the end", cached.after as f64, BYTES);
    }
    for (kind, first) in &measured.failures {
        all.text("run", &format!("first {kind}"), first);
    }
    if measured.interrupted {
        all.text("run", "interrupted", "these are the figures until then");
    }
    run.error.iter().for_each(|error| all.text("run", "error", error));
    run.short_window().iter().chain(&run.warnings).for_each(|warning| all.text("run", "warning", warning));
    all.0
}

fn whole(measured: &Measured, all: &mut Figures) {
    all.add("run", "window", measured.nanos as f64, NANOS);
    all.add("run", "operations a second", measured.per_second(), PER_SECOND);
    let counts = [
        ("operations", measured.operations),
        ("retries", measured.retries),
        ("rolled back", measured.kinds.iter().map(|kind| kind.rolled_back).sum()),
        ("failed", measured.failed),
        ("clients", measured.clients),
        ("began before the window", measured.warmed),
        ("ended after the window", measured.cut),
        ("should have begun in the window", measured.unsent),
    ];
    all.counts("run", counts);
}

fn requests(kind: &Measure, measured: &Measured, all: &mut Figures) {
    let of = &kind.name;
    let counts = [
        ("requests", kind.done()),
        ("ok", kind.oks),
        ("no row", kind.not_found),
        ("gathered", kind.batched),
        ("retries", kind.retries),
        ("rolled back", kind.rolled_back),
        ("failed", kind.failed_count()),
        ("rows", kind.rows),
    ];
    all.counts(of, counts);
    all.add(of, "bytes of rows", kind.bytes as f64, BYTES);
    all.add(of, "requests a second", measured.rate(kind.done()), PER_SECOND);
    all.add(of, "rows a second", measured.rate(kind.rows), PER_SECOND);
    if let Some(response) = &kind.response {
        all.times(of, "response", response);
    }
    all.times(of, "service", &kind.service);
    if let Some(waited) = &kind.waited {
        all.times(of, "waited", waited);
    }
}

fn cost(run: &Run, all: &mut Figures) {
    let (measured, cost) = (&run.measured, &run.measured.cost);
    let operations = measured.operations + measured.failed;
    let of = "cost";
    if let Some(settled) = run.settled_nanos {
        all.add(of, "background work after the run", settled as f64, NANOS);
    }
    let client_nanos = cost.client_nanos as f64;
    for (name, nanos) in [
        ("processor", cost.process_nanos() as f64),
        ("processor in user mode", cost.user_nanos as f64),
        ("processor in the kernel", cost.system_nanos as f64),
        ("processor of clients an operation", client_nanos / operations.max(1) as f64),
        ("processor of clients an operation that did not fail", client_nanos / measured.operations.max(1) as f64),
        ("processor in the background", cost.background_nanos as f64),
    ] {
        all.add(of, name, nanos, NANOS);
    }
    if let Some(noop) = run.noop_nanos {
        all.add(of, "the client's own an operation", cost.own_nanos(noop, operations), NANOS);
        all.add(of, "the client's own", 100.0 * cost.own_share(noop, operations), PERCENT);
    }
    all.add(of, "memory at the end", cost.resident_bytes as f64, BYTES);
    all.add(of, "memory at most", cost.peak_bytes as f64, BYTES);
    all.counts(of, [("waits", cost.voluntary_switches), ("forced switches", cost.involuntary_switches)]);
    run.million(run.price).figures(all);
}
