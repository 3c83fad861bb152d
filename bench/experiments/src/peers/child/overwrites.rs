//! Measures overwrites, and the bytes written because of them until the end of the window. Background work left by
//! then is not waited for.

use super::super::orders::{Answer, Beside, Overwrite, Overwritten, Sample};
use super::super::tasks::{Single, Singles};
use super::{LONGEST_WORK, missing, run, with_beside};
use crate::disk;
use harness::{Change, Length, Measured, Pace, Plan, Store, Times};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Measures `overwrite` on `store`, whose files are in `directory`.
pub fn measure(store: &dyn Store, directory: &Path, overwrite: &Overwrite) -> Answer {
    if !overwrite.builds_index {
        let time = Duration::from_millis(overwrite.millis);
        return measure_until(store, directory, overwrite, time, &AtomicBool::new(false));
    }
    let without_warmup = Overwrite { warmup_millis: 0, ..*overwrite };
    let sample = with_beside(store, Beside::IndexBuild, Duration::ZERO, |stop| {
        measure_until(store, directory, &without_warmup, LONGEST_WORK, stop)
    });
    // Drop the index even after an error: the next measurement needs a table without one.
    let checked = store.check_and_drop_index().map_err(|failure| failure.to_string());
    let sample = sample?;
    let entries = checked?;
    if entries != overwrite.records {
        return Err(format!("the index has {entries} entries for {} rows", overwrite.records));
    }
    Ok(sample)
}

/// Measures for `time`, or until `stop` is set.
fn measure_until(
    store: &dyn Store,
    directory: &Path,
    overwrite: &Overwrite,
    time: Duration,
    stop: &AtomicBool,
) -> Answer {
    let plan = Plan {
        pace: overwrite.per_second.map_or(Pace::Closed, |per_second| Pace::Open { per_second }),
        warmup: Duration::from_millis(overwrite.warmup_millis),
        length: Length::Time(time),
        ..Plan::default()
    };
    let singles =
        Singles { what: Single::Overwrite(overwrite.filled), records: overwrite.records, seed: overwrite.seed };
    let before = disk::written_by_this_process();
    let measured = run(store, &singles, &plan, stop)?;
    let written = disk::written_since(before);
    if measured.failed > 0 {
        return Err(format!("{} overwrites failed: {:?}", measured.failed, measured.failures));
    }
    if missing(&measured) > 0 {
        return Err(format!("{} overwrites met no row: the table is not what it should be", missing(&measured)));
    }
    let times = Times::sum(measured.kinds.iter().map(|kind| kind.times()));
    let overwritten = Overwritten {
        p50_nanos: times.known_quantile(0.5),
        p99_nanos: times.known_quantile(0.99),
        p999_nanos: times.known_quantile(0.999),
        p9999_nanos: times.known_quantile(0.9999),
        longest_nanos: times.max(),
        unsent: measured.unsent,
        log_bytes: counted(&measured, "log bytes"),
        flush_bytes: counted(&measured, "flush bytes"),
        compaction_bytes: counted(&measured, "compaction bytes"),
        file_bytes: disk::bytes_under(directory),
        records: overwrite.records,
    };
    Ok(Sample {
        operations: measured.operations,
        rows: measured.operations,
        nanos: measured.nanos,
        cpu_nanos: measured.cost.process_nanos(),
        process_bytes: written.map(|bytes| of_window(bytes, &measured)),
        resident_bytes: measured.cost.resident_bytes,
        overwritten,
        ..Sample::default()
    })
}

/// The growth of the store's counter `name` in the window; `None` if there is no such counter.
fn counted(measured: &Measured, name: &str) -> Option<u64> {
    measured.counters.iter().find(|change| change.name == name).and_then(Change::counted)
}

/// Estimates how many of the run's `bytes` were written in the window, assuming that every operation, also of the
/// warm-up, caused the same number.
fn of_window(bytes: u64, measured: &Measured) -> u64 {
    let warm_up: u64 = measured.intervals.iter().filter(|it| it.warming).map(|it| it.operations).sum();
    let window = u128::from(measured.operations);
    let all = window + u128::from(warm_up + measured.warmed + measured.cut);
    (u128::from(bytes) * window / all.max(1)) as u64
}
