//! Runs a YCSB workload on a store, and keeps the times of each kind of request and the counts of pages and bytes.

#[cfg(test)]
mod tests;

use crate::disk::read_by_this_process;
use harness::{
    Counter, Failure, Length, Measure, Measured, Million, Opening, Plan, Rows, RunError, Scheme, Store, Strings,
    Target, Workload,
};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use suite::stop::Stop;
use ycsb::{Load, Properties, Settings};

/// Fields of a row. This and the next are YCSB's defaults.
pub const FIELDS: u64 = 10;
/// Bytes of a field.
pub const FIELD_BYTES: u64 = 100;

/// The settings of YCSB's workload `name` on `records` records, with values that can be checked and keys of 20
/// digits, so that they sort in the order of their hashes. `more` overrides properties.
pub fn settings(name: &str, records: u64, more: &[(&str, &str)]) -> Settings {
    let mut properties: Properties = ycsb::built_in(name).expect("it is one of the six");
    for (name, value) in [
        ("recordcount", &*records.to_string()),
        ("fieldlength", &*FIELD_BYTES.to_string()),
        ("zeropadding", "20"),
        ("dataintegrity", "true"),
    ]
    .iter()
    .chain(more)
    {
        properties.set(*name, *value);
    }
    Settings::new(&properties, &|path| Err(format!("{path} is not read"))).expect("all of them are properties")
}

/// How long a workload runs: for a time or a number of operations, whichever ends first.
#[derive(Clone, Copy, Debug)]
pub struct Until {
    /// The warm-up.
    pub warmup: Duration,
    /// Upper limit.
    pub time: Duration,
    /// Upper limit.
    pub operations: u64,
}

/// The measurements of one run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct YcsbRun {
    pub operations: u64,
    pub nanos: u64,
    /// What ended it: `time` or `operations`.
    pub ended_by: String,
    pub kinds: Vec<Kind>,
    /// Pages of all kinds that the store read from files.
    pub page_reads: u64,
    /// Index nodes and flat lists among them.
    pub index_page_reads: u64,
    /// Bytes of these pages.
    pub read_bytes: u64,
    /// Bytes of log, flushes and compactions that are due to the window: the bytes from the start of the run until
    /// the store has settled after it, times the window's share of the bytes that requests wrote.
    pub written_bytes: u64,
    /// The bytes read from disk as the system counts them, divided by the store's own count. Both include the
    /// warm-up.
    pub disk_share: Option<f64>,
    /// Bytes of rows that requests returned.
    pub returned_bytes: u64,
    /// Bytes of rows and fields that requests wrote.
    pub given_bytes: u64,
    /// Bytes of index pages in the cache at the end.
    pub cached_index_bytes: u64,
    /// Memory of the database at the end, as it reports it.
    pub memory_bytes: u64,
    /// Time of background work after the run.
    pub settle_nanos: u64,
    /// What a million operations cost.
    pub million: Million,
}

/// Requests of one kind. Times are in microseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Kind {
    pub name: String,
    pub count: u64,
    pub average: f64,
    pub least: f64,
    /// `None` here and below if there were too few requests for the percentile.
    pub percentile_95: Option<f64>,
    pub percentile_99: Option<f64>,
}

impl YcsbRun {
    pub fn per_second(&self) -> f64 {
        self.operations as f64 * 1e9 / self.nanos.max(1) as f64
    }

    pub fn kind(&self, name: &str) -> Option<&Kind> {
        self.kinds.iter().find(|kind| kind.name == name)
    }

    /// Requests of one kind in a second.
    pub fn kind_per_second(&self, name: &str) -> Option<f64> {
        Some(self.kind(name)?.count as f64 * 1e9 / self.nanos.max(1) as f64)
    }

    /// `count` per operation.
    pub fn each(&self, count: u64) -> f64 {
        count as f64 / self.operations.max(1) as f64
    }

    /// Bytes that the store read and wrote, divided by the bytes that requests returned and wrote.
    pub fn amplification(&self) -> f64 {
        let asked = self.returned_bytes + self.given_bytes;
        (self.read_bytes + self.written_bytes) as f64 / asked.max(1) as f64
    }

    /// The 99th percentile of the kind with the most requests.
    pub fn percentile_99(&self) -> Option<f64> {
        self.kinds.iter().max_by_key(|kind| kind.count)?.percentile_99
    }
}

/// Calls `run` with a factor for its time: 1, and then 10 and 100 if it measured nothing, which happens on a busy
/// machine.
pub fn in_longer_times(
    stop: &Stop,
    mut run: impl FnMut(u32) -> Result<Measured, RunError>,
) -> Result<Measured, RunError> {
    let mut ended = run(1);
    for times in [10, 100] {
        let is_short = matches!(&ended, Err(RunError::NothingMeasured { partial }) if partial.failed == 0);
        if !is_short || stop.is_pressed() {
            break;
        }
        ended = run(times);
    }
    ended
}

/// Runs `workload` on `store`. A row that is missing or not as written is a failure. If no operation finishes in
/// the time, the workload runs again for longer.
///
/// # Errors
///
/// Fails if the store failed, if rows are not as written, or if nothing was measured. After ^C, the result is an
/// empty run.
pub fn run<W: Workload>(
    store: &dyn Store,
    workload: &W,
    key_bytes: u64,
    clients: usize,
    until: Option<Until>,
    stop: &Stop,
) -> Result<YcsbRun, Failure> {
    let plan = |times: u32| Plan {
        clients,
        warmup: until.map_or(Duration::ZERO, |until| until.warmup),
        length: until.map_or(Length::All, |until| Length::Operations(until.operations)),
        limit: until.map(|until| times * until.time),
        loading: until.is_none(),
        ..Plan::default()
    };
    let (before, disk_before) = (store.counters(), read_by_this_process());
    let run = |times| harness::run(store, workload, &plan(times), stop.flag(), &mut |_| {});
    let measured = match in_longer_times(stop, run) {
        _ if stop.is_pressed() => return Ok(YcsbRun::default()),
        Err(RunError::NothingMeasured { partial }) if partial.failed > 0 => return Err(wrong(&partial)),
        Err(error @ RunError::NothingMeasured { .. }) => {
            return Err(Failure::session(crate::NOTHING, error.to_string()));
        }
        ended => ended.map_err(|error| Failure::session("run", error.to_string()))?,
    };
    let disk_read_bytes = disk_before.zip(read_by_this_process()).map(|(before, after)| after.saturating_sub(before));
    let after_run = store.counters();
    let unlike: u64 = measured.kinds.iter().map(|kind| kind.not_found + kind.failed_count()).sum();
    if measured.failed + unlike > 0 {
        return Err(wrong(&measured));
    }
    let given = |kinds: &[Measure]| {
        let count =
            |name: &str| kinds.iter().filter(|kind| kind.name == name).map(|kind| kind.oks + kind.batched).sum::<u64>();
        count("UPDATE") * (key_bytes + FIELD_BYTES) + count("INSERT") * (key_bytes + FIELDS * FIELD_BYTES)
    };
    let clock = harness::Clock::start();
    if given(&measured.kinds) > 0 {
        store.settle()?;
    }
    let after = store.counters();
    let counted = |name: &str| {
        let change = measured.counters.iter().find(|change| change.name == name);
        change.and_then(harness::Change::counted).unwrap_or(0)
    };
    let value = |counters: &[Counter], name: &str| counters.iter().find(|it| it.name == name).map_or(0, |it| it.value);
    let grown = |name: &str| value(&after, name).saturating_sub(value(&before, name));
    let given_bytes = given(&measured.kinds);
    let all_given_bytes: u64 = measured.intervals.iter().map(|interval| given(&interval.kinds)).sum();
    let store_read_bytes = value(&after_run, "bytes read").saturating_sub(value(&before, "bytes read"));
    let share = |bytes: u64| (bytes as f64 * given_bytes as f64 / all_given_bytes.max(1) as f64) as u64;
    Ok(YcsbRun {
        operations: measured.operations,
        nanos: measured.nanos,
        ended_by: if until.is_some_and(|until| measured.operations < until.operations) { "time" } else { "operations" }
            .to_owned(),
        kinds: kinds(&measured),
        page_reads: counted("page reads"),
        index_page_reads: counted("index page reads"),
        read_bytes: counted("bytes read"),
        written_bytes: share(grown("log bytes") + grown("bytes written")),
        disk_share: disk_read_bytes
            .filter(|_| store_read_bytes > 0)
            .map(|bytes| bytes as f64 / store_read_bytes as f64),
        returned_bytes: measured.kinds.iter().map(|kind| kind.bytes).sum(),
        given_bytes,
        cached_index_bytes: value(&after, "index bytes in cache"),
        memory_bytes: value(&after, "memory bytes"),
        settle_nanos: clock.nanos(),
        million: Million::of(&measured, None, None),
    })
}

/// Bulk-loads the `rows` rows of `settings` in key order, not all of them after ^C.
///
/// # Errors
///
/// Fails if the store failed or did not take all rows.
pub fn fill(scheme: &Scheme, target: &str, settings: &Settings, rows: u64, stop: &Stop) -> Result<(), Failure> {
    let store = (scheme.open)(&Target::parse(target)?, &settings.table(), Opening::OrCreate)?;
    let load = Load::new(settings, 1);
    let written = store.bulk_load(&mut UntilStopped { inner: &mut load.in_order(), stop })?;
    store.close()?;
    match written {
        Some(written) if written == rows => Ok(()),
        written => Err(Failure::session(crate::WRONG, format!("{written:?} of {rows} rows were written"))),
    }
}

/// Ends the rows after ^C.
struct UntilStopped<'r, R> {
    inner: &'r mut R,
    stop: &'r Stop,
}

impl<R: Rows> Rows for UntilStopped<'_, R> {
    fn next_row(&mut self, key: &mut Vec<u8>, record: &mut Strings) -> bool {
        !self.stop.is_pressed() && self.inner.next_row(key, record)
    }
}

/// The kinds of requests in the run.
pub fn kinds(measured: &Measured) -> Vec<Kind> {
    let there = measured.kinds.iter().filter(|kind| kind.oks + kind.batched > 0 && kind.name != "VERIFY");
    let micros = |nanos: u64| nanos as f64 / 1e3;
    there
        .map(|kind| Kind {
            name: kind.name.clone(),
            count: kind.oks + kind.batched,
            average: kind.times().mean() / 1e3,
            least: micros(kind.times().min()),
            percentile_95: kind.times().known_quantile(0.95).map(micros),
            percentile_99: kind.times().known_quantile(0.99).map(micros),
        })
        .collect()
}

fn wrong(measured: &Measured) -> Failure {
    let mut text = String::from("rows are not what was written");
    for kind in measured.kinds.iter().filter(|kind| kind.not_found + kind.failed_count() > 0) {
        let (failed, missing) = (kind.failed_count(), kind.not_found);
        text.push_str(&format!("; {}: {failed} failed, {missing} found no row", kind.name));
    }
    for (kind, first) in &measured.failures {
        text.push_str(&format!("; first {kind}: {first}"));
    }
    Failure::session(crate::WRONG, text)
}
