//! `larch bench ycsb` without a word more: a million records on Larch in a temporary directory, all six workloads, in a
//! minute and a half.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a temporary directory, never simulated")]

use super::phase::{self, Done, Place, Work};
use super::stop::Stop;
use super::{Ending, ending, phases, usage};
use crate::args::{Action, YcsbArgs};
use crate::{print, results};
use harness::report::text;
use harness::{Failure, Opening, Scheme, Target};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// All of it takes no longer, unless the loads alone do.
const TIME: Duration = Duration::from_secs(80);
/// A workload is measured at most so long.
const LONGEST: Duration = Duration::from_secs(7);
const SHORTEST: Duration = Duration::from_secs(1);
/// Of each workload's time: left out.
const WARMUP: Duration = Duration::from_millis(500);
/// A load that takes longer than this is not made a second time.
const SLOW_LOAD: Duration = Duration::from_secs(25);

const RECORDS: &str = "1000000";
/// Memory for pages: less than the gigabyte of records, so that pages are read as well as found.
const CACHE: &str = "512MiB";
const RESULT: &str = "larch-ycsb.json";

/// A directory that goes when this does.
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        // After an error there is one to report already.
        fs::remove_dir_all(&self.0).unwrap_or_default();
    }
}

/// Measures.
pub fn run(args: &YcsbArgs, schemes: &[Scheme], stop: &Stop) -> Result<Ending, Failure> {
    let has_more =
        args.target.is_some() || !args.workload.is_empty() || args.time.is_some() || args.operations.is_some();
    if has_more {
        return Err(usage("say what to do with it: larch bench ycsb load, run or all"));
    }
    let started = Instant::now();
    let scheme =
        schemes.iter().find(|scheme| scheme.name == "larch").ok_or_else(|| usage("this binary has no Larch"))?;
    let directory = Temporary(std::env::temp_dir().join(format!("larch-ycsb-{}", std::process::id())));
    room(&std::env::temp_dir())?;
    let target = Target::parse(&format!("larch:{}?cache={CACHE}", directory.0.display()))?;
    let args = &defaults(args);
    let phases = phases(Action::All, args)?;
    eprintln!("YCSB on Larch: {RECORDS} records of 1000 bytes in {}, cache {CACHE}", directory.0.display());
    let mut done: Vec<Done> = Vec::new();
    let mut store = None;
    let mut load_time = Duration::ZERO;
    for (number, phase) in phases.iter().enumerate() {
        let loads_again = phase.work == Work::Load && number > 0;
        if loads_again && load_time > SLOW_LOAD {
            eprintln!("the load took {:.0} s: workload {} runs on what is there", load_time.as_secs_f64(), phase.name);
            continue;
        }
        if phase.work == Work::Load {
            drop(store.take());
            store = Some((scheme.open)(&target, &phase.settings.table(), Opening::Recreate)?);
        }
        let store = store.as_deref().expect("the first phase is a load");
        let mut of_phase = args.clone();
        if phase.work == Work::Run {
            let loads_left = if load_time > SLOW_LOAD || number > 6 { Duration::ZERO } else { load_time };
            let runs_left = phases[number..].iter().filter(|phase| phase.work == Work::Run).count() as u32;
            let left = TIME.saturating_sub(started.elapsed() + loads_left) / runs_left;
            of_phase.time = Some(left.saturating_sub(WARMUP).clamp(SHORTEST, LONGEST));
        }
        let before = Instant::now();
        let place = Place { target: &target, scheme, args: &of_phase, stop };
        let result = phase::run(phase, store, place)?;
        if phase.work == Work::Load {
            load_time = before.elapsed();
        }
        let is_last = result.run.measured.interrupted || result.run.error.is_some();
        done.push(result);
        if is_last {
            break;
        }
    }
    if let Some(store) = store {
        store.close()?;
    }
    let runs: Vec<_> = done.iter().map(|done| &done.run).collect();
    let out = args.out.as_deref().unwrap_or_else(|| Path::new(RESULT));
    results::write_report(out, &runs)?;
    print(&summary(&done))?;
    print(&format!("\nall of it: {}\n", out.display()))?;
    Ok(ending(&done))
}

/// What the command line does not say.
fn defaults(args: &YcsbArgs) -> YcsbArgs {
    let mut args = args.clone();
    args.property.insert(0, format!("recordcount={RECORDS}"));
    args.warmup = WARMUP;
    args
}

/// A line for each phase.
fn summary(done: &[Done]) -> String {
    let mut table = format!(
        "{:12} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>8}\n",
        "", "op/s", "mean", "p50", "p99", "p99.9", "max", "errors"
    );
    for Done { run, .. } in done {
        let measured = &run.measured;
        for (at, kind) in measured.kinds.iter().filter(|kind| !kind.times().is_empty()).enumerate() {
            if at == 0 {
                table.push_str(&format!(
                    "{:12} {:>10}{}\n",
                    run.name,
                    text::rate(measured.per_second()),
                    if measured.interrupted { "  interrupted" } else { "" }
                ));
            }
            let times = kind.times();
            let time = |nanos: u64| text::nanos(nanos as f64);
            table.push_str(&format!(
                "  {:21} {:>10} {:>10} {:>10} {:>10} {:>10} {:>8}\n",
                kind.name.to_lowercase(),
                text::nanos(times.mean()),
                time(times.quantile(0.5)),
                time(times.quantile(0.99)),
                time(times.quantile(0.999)),
                time(times.max()),
                kind.failed_count()
            ));
        }
    }
    table
}

/// Complains if the disk has no room for the records, what compactions take beside them, and some more.
fn room(place: &Path) -> Result<(), Failure> {
    const NEEDED_BYTES: u64 = 4 << 30;
    let about = rustix::fs::statvfs(place)
        .map_err(|error| Failure::session("io", format!("{}: {error}; set TMPDIR to a directory", place.display())))?;
    let room = about.f_bavail * about.f_frsize;
    if room < NEEDED_BYTES {
        let text = format!(
            "{} has room for {} MiB and this takes up to {} MiB: make room, or set TMPDIR to a directory that has more",
            place.display(),
            room >> 20,
            NEEDED_BYTES >> 20
        );
        return Err(Failure::session("io", text));
    }
    Ok(())
}
