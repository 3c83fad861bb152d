//! `larch bench ycsb` without an action: loads a million records into Larch in a temporary directory and runs all
//! six workloads for ten seconds each, in less than two minutes. The cache takes the memory that is free.
//! Workload C runs a second time, at the end, with a cache that holds about half of the data.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a temporary directory, never simulated")]

use super::phase::{self, Done, Phase, Work};
use super::{Measuring, ending, phases, usage};
use crate::args::{Action, YcsbArgs};
use crate::ending::Ending;
use crate::stop::Stop;
use crate::{metrics, print, results, say};
use harness::report::figures::{CACHED, DATA};
use harness::report::{Run, text};
use harness::{Failure, Opening, Scheme, Target};
use kit::Scratch;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The time budget of the whole command. A workload that does not fit into it is left out.
const TIME: Duration = Duration::from_secs(110);
/// The measured time of a workload without `--time`. A shorter window says too little.
const WINDOW: Duration = Duration::from_secs(10);
/// The warm-up of each workload.
const WARMUP: Duration = Duration::from_millis(500);
/// If the first load takes longer than this, the second one is skipped.
const SLOW_LOAD: Duration = Duration::from_secs(25);

const RECORDS: &str = "1000000";
/// The cache of the second run of workload C. The records take a gigabyte, so some reads go to disk.
const SMALL_CACHE_BYTES: u64 = 512 << 20;
/// The name of that run.
const IN_SMALL_CACHE: &str = "c in 512 MiB";
const RESULT: &str = "larch-ycsb.json";
/// The page is written beside the result.
const PAGE: &str = "larch-report.html";

/// Runs the command.
pub fn run(args: &YcsbArgs, schemes: &[Scheme], stop: &Stop) -> Result<Ending, Failure> {
    check_options(args)?;
    let scheme =
        schemes.iter().find(|scheme| scheme.name == "larch").ok_or_else(|| usage("this binary has no Larch"))?;
    let args = &defaults(args);
    let mut phases = phases(Action::All, args)?;
    phases.push(Phase { name: IN_SMALL_CACHE.to_owned(), ..super::phase("c", Work::Run, &["c"], args)? });
    for phase in &phases {
        phase::check(phase, args)?;
    }
    results::check(args, [])?;
    let refused = |why| Failure::session("io", why);
    let records = &phases[0].settings.records;
    // Room for records of a thousand bytes, for the files that compactions write, and a reserve.
    let needed_bytes = records.count.unsigned_abs().saturating_mul(4 << 10).max(64 << 20);
    let advice = "make room, or set TMPDIR to a directory that has more";
    kit::scratch::check_room(&std::env::temp_dir(), needed_bytes, advice).map_err(refused)?;
    let directory = Scratch::new_in(&std::env::temp_dir(), "ycsb").map_err(refused)?;
    stop.removes(directory.path());
    let target = Target::parse(&format!("larch:{}?cache=free", directory.path().display()))?;
    let count = text::grouped(records.count.unsigned_abs());
    say(&format!("YCSB on Larch: {count} records in {}", directory.path().display()));
    for warning in &phases[0].settings.warnings {
        say(&format!("larch: {warning}"));
    }

    let metrics = metrics::serve(args.metrics.as_deref())?;
    let mut measuring =
        Measuring { args, scheme, target, stop, metrics: metrics.as_ref(), store: None, done: Vec::new() };
    let ended = measuring.all_in_time(&phases);
    let closed = measuring.store.take().map_or(Ok(()), |store| store.close());
    let done = measuring.done;
    if done.is_empty() {
        ended.and(closed)?;
        return Ok(Ending::Bad);
    }
    let runs: Vec<&Run> = done.iter().map(|done| &done.run).collect();
    let page = args.files.out.as_ref().map(|out| out.with_file_name(PAGE));
    let written = results::write_all(args, &runs);
    let written = written.and_then(|()| page.as_ref().map_or(Ok(()), |page| results::write_page(page, &runs)));
    let mut told = summary(&done);
    if let (Ok(()), Some(out), Some(page)) = (&written, &args.files.out, &page) {
        told.push_str(&format!("\nall of it: {}\nas a page: {}\n", out.display(), page.display()));
    }
    let told = print(&told);
    let ending = ending(&done);
    ended.and(closed).and(written).and(told)?;
    Ok(ending)
}

/// Fails on options that need an action.
fn check_options(args: &YcsbArgs) -> Result<(), Failure> {
    let more = [
        ("--target", args.target.is_some()),
        ("--workload", !args.workload.is_empty()),
        ("--operations", args.operations.is_some()),
        ("--recreate", args.recreate),
        ("--format", args.format.is_some()),
        ("--workers", !args.processes().workers.is_empty()),
        ("--share", args.together.share.is_some()),
    ];
    match more.iter().find(|(_, is_given)| *is_given) {
        Some((name, _)) => Err(usage(format!("{name} needs an action: larch bench ycsb load, run or all"))),
        None => Ok(()),
    }
}

/// Fills in the command's own defaults.
fn defaults(args: &YcsbArgs) -> YcsbArgs {
    let mut args = args.clone();
    args.property.insert(0, format!("recordcount={RECORDS}"));
    if args.warmup.is_zero() {
        args.warmup = WARMUP;
    }
    args.files.out.get_or_insert_with(|| PathBuf::from(RESULT));
    args
}

impl Measuring<'_> {
    /// Measures all phases in a bounded time.
    fn all_in_time(&mut self, phases: &[Phase]) -> Result<(), Failure> {
        let started = Instant::now();
        let mut load_time = Duration::ZERO;
        for (number, phase) in phases.iter().enumerate() {
            let loads_again = phase.work == Work::Load && number > 0;
            if phase.work == Work::Run && self.args.time.is_none() && started.elapsed() + WINDOW > TIME {
                let seconds = TIME.as_secs();
                say(&format!(
                    "{} is left out: {seconds} s are over; --time says how long each is measured",
                    phase.name
                ));
                continue;
            }
            if loads_again && load_time > SLOW_LOAD {
                let seconds = load_time.as_secs_f64();
                say(&format!("the load took {seconds:.0} s: workload {} runs on the rows that are there", phase.name));
                continue;
            }
            if phase.work == Work::Load {
                self.store.take().map_or(Ok(()), |store| store.close())?;
                self.store = Some((self.scheme.open)(&self.target, &phase.settings.table(), Opening::Recreate)?);
            }
            let store = self.store.as_deref().expect("the first phase is a load");
            if phase.name == IN_SMALL_CACHE && !store.set_cache_bytes(SMALL_CACHE_BYTES)? {
                continue;
            }
            let mut of_phase = self.args.clone();
            if phase.work == Work::Run && self.args.time.is_none() {
                of_phase.time = Some(WINDOW);
            }
            let before = Instant::now();
            let result = self.run(phase, &of_phase)?;
            if phase.work == Work::Load {
                load_time = before.elapsed();
            }
            let is_last = result.run.measured.interrupted || result.run.error.is_some();
            self.done.push(result);
            if is_last {
                break;
            }
        }
        Ok(())
    }
}

/// `1.1 GiB of data, 512.0 MiB in the cache; 0.71 page reads an operation`
fn sizes(run: &Run) -> String {
    let change = |name: &str| run.measured.counters.iter().find(|change| change.name == name);
    let now = |name| change(name).map_or(0, |change| change.after);
    let data = text::bytes(DATA.map(now).iter().sum());
    let cached = change(CACHED).map(|cached| format!(", {} in the cache", text::bytes(cached.after)));
    let reads = change("page reads").and_then(|change| change.counted()).unwrap_or(0);
    let operations = (run.measured.operations + run.measured.failed).max(1);
    let (cached, reads) = (cached.unwrap_or_default(), reads as f64 / operations as f64);
    format!("{data} of data{cached}; {reads:.2} page reads an operation")
}

/// The summary, with a line for each phase.
pub fn summary(done: &[Done]) -> String {
    let mut table = format!(
        "{:20} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>8} {:>12} {:>8}\n",
        "", "op/s", "mean", "p50", "p99", "p99.9", "max", "retries", "rolled back", "failed"
    );
    for Done { run, .. } in done {
        let measured = &run.measured;
        for (at, kind) in measured.kinds.iter().filter(|kind| !kind.times().is_empty()).enumerate() {
            if at == 0 {
                table.push_str(&format!(
                    "{:20} {:>10}  {}{}\n",
                    run.name,
                    text::rate(measured.per_second()),
                    sizes(run),
                    if measured.interrupted { "  interrupted" } else { "" }
                ));
            }
            let times = kind.times();
            let time = |quantile| text::nanos_or_blank(times.known_quantile(quantile));
            table.push_str(&format!(
                "  {:29} {:>10} {:>10} {:>10} {:>10} {:>10} {:>8} {:>12} {:>8}\n",
                kind.name.to_lowercase(),
                text::nanos(times.mean()),
                time(0.5),
                time(0.99),
                time(0.999),
                text::nanos(times.max() as f64),
                text::grouped(kind.retries),
                text::grouped(kind.rolled_back),
                text::grouped(kind.failed_count())
            ));
        }
        if let Some(short) = run.short_window() {
            table.push_str(&format!("  WARNING: {short}\n"));
        }
        if let Some(million) = run.million(run.price).text() {
            table.push_str(&format!("  a million operations: {million}\n"));
        }
    }
    table
}
