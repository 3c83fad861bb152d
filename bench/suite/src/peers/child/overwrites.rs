//! Overwrites of rows, with the bytes that they cause. What the store has still to do when the window ends is left undone, so
//! that the bytes are those of the window.

use super::super::disk;
use super::super::orders::{Answer, Overwrite, Overwritten, Sample};
use super::super::tasks::{Single, Singles};
use super::{missing, run};
use harness::{Change, Length, Measured, Pace, Plan, Store, Times};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Measures what `overwrite` says on `store`, whose files lie in `directory`.
pub fn measure(store: &dyn Store, directory: &Path, overwrite: &Overwrite) -> Answer {
    let plan = Plan {
        pace: overwrite.per_second.map_or(Pace::Closed, |per_second| Pace::Open { per_second }),
        warmup: Duration::from_millis(overwrite.warmup_millis),
        length: Length::Time(Duration::from_millis(overwrite.millis)),
        ..Plan::default()
    };
    let singles = Singles { what: Single::Overwrite, records: overwrite.records, seed: overwrite.seed };
    let before = disk::written_by_this_process();
    let measured = run(store, &singles, &plan, &AtomicBool::new(false))?;
    let written = disk::written_since(before);
    if measured.failed > 0 {
        return Err(format!("{} overwrites failed: {:?}", measured.failed, measured.failures));
    }
    if missing(&measured) > 0 {
        return Err(format!("{} overwrites met no row: the table is not what it should be", missing(&measured)));
    }
    let times = Times::sum(measured.kinds.iter().map(|kind| kind.times()));
    let overwritten = Overwritten {
        p50_nanos: times.quantile(0.5),
        p99_nanos: times.quantile(0.99),
        p999_nanos: times.quantile(0.999),
        p9999_nanos: times.quantile(0.9999),
        longest_nanos: times.max(),
        unsent: measured.unsent,
        log_bytes: counted(&measured, "log bytes"),
        flush_bytes: counted(&measured, "flush bytes"),
        compaction_bytes: counted(&measured, "compaction bytes"),
        file_bytes: disk::bytes_under(directory),
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

/// What the store counted in the window under `name`; `None` if it does not count that.
fn counted(measured: &Measured, name: &str) -> Option<u64> {
    measured.counters.iter().find(|change| change.name == name).and_then(Change::counted)
}

/// Of the `bytes` of a whole run, those of its window: the part that its operations are of all.
fn of_window(bytes: u64, measured: &Measured) -> u64 {
    let warm_up: u64 = measured.intervals.iter().filter(|it| it.warming).map(|it| it.operations).sum();
    let window = u128::from(measured.operations);
    let all = window + u128::from(warm_up + measured.warmed + measured.cut);
    (u128::from(bytes) * window / all.max(1)) as u64
}
