//! The child process of a comparison: keeps an engine's database open and carries out the parent's orders, one JSON
//! line each on standard input. Its first line of output says that it has started.

#![allow(clippy::disallowed_methods, reason = "a benchmark's threads are the machine's")]

mod beside;
mod overwrites;
#[cfg(test)]
mod tests;
mod transactions;

use super::orders::{Answer, Beside, Fill, Operate, Order, Sample, Shrunk, Task, WorkDone};
use super::tasks::{KEYS, Single, Singles, SortedRows, VALUE_BYTES};
use super::{fio, raw};
use crate::disk::{self, DiskCounts};
use harness::{Change, Clock, Length, Measured, Opening, Plan, Scheme, Store, Table, Target, Times, Workload};
use std::io::{BufRead as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use suite::targets;
use ycsb::{Load, Run, Settings};

/// Serves orders on the store `target` until standard input ends.
pub fn serve(target: &str, schemes: &[Scheme]) -> ExitCode {
    die_with_the_parent();
    let mut schemes = schemes.to_vec();
    schemes.extend([raw::SCHEME, fio::SCHEME]);
    let mut held = match Held::new(target, schemes) {
        Ok(held) => held,
        Err(failure) => {
            eprintln!("larch: {failure}");
            return ExitCode::from(2);
        }
    };
    // From now on this process cannot outlive its parent, so the parent may stop it.
    let mut is_heard = tell(&Ok(Sample::default()));
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        if !is_heard {
            break;
        }
        let answer: Answer = match serde_json::from_str(&line) {
            Ok(order) => held.obey(&order),
            Err(error) => Err(format!("cannot read the order `{line}`: {error}")),
        };
        is_heard = tell(&answer);
    }
    ExitCode::SUCCESS
}

/// Writes an answer to standard output. Returns `false` if the parent is gone.
fn tell(answer: &Answer) -> bool {
    let mut text = serde_json::to_string(answer).expect("answers are plain data");
    text.push('\n');
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_ok()
}

/// Asks the kernel to kill this process when its parent ends.
fn die_with_the_parent() {
    let signal = Some(rustix::process::Signal::KILL);
    if let Err(error) = rustix::process::set_parent_process_death_signal(signal) {
        eprintln!("larch: this process may outlive the one that started it: {error}");
    }
}

struct Held {
    target: Target,
    schemes: Vec<Scheme>,
    directory: PathBuf,
    table: Table,
    store: Option<Box<dyn Store>>,
}

impl Held {
    fn new(target: &str, schemes: Vec<Scheme>) -> Result<Self, harness::Failure> {
        let target = Target::parse(target)?;
        let directory = target.directory()?.to_owned();
        targets::find_key_value(&schemes, &target)?;
        Ok(Self { target, schemes, directory, table: Table::numbered("usertable", "field", 1), store: None })
    }

    fn obey(&mut self, order: &Order) -> Answer {
        // An open starts the counter at zero.
        let before = if matches!(order, Order::Open { .. }) { None } else { self.level0_stops() };
        let sample = self.carry_out(order)?;
        let stops = self.level0_stops().map(|stops| stops - before.unwrap_or(0));
        Ok(Sample { level0_stops: stops, ..sample })
    }

    /// How often the store has stopped writes because level 0 was full, since it was opened.
    fn level0_stops(&self) -> Option<u64> {
        let counters = self.store.as_ref()?.counters();
        counters.iter().find(|counter| counter.name == "stops at level 0").map(|counter| counter.value)
    }

    fn carry_out(&mut self, order: &Order) -> Answer {
        match order {
            Order::Open { anew } => self.open(*anew),
            Order::Close => self.close().map(|()| Sample::default()),
            Order::Settle => {
                self.store()?.settle().map_err(|failure| failure.to_string())?;
                Ok(Sample { file_bytes: disk::bytes_under(&self.directory), ..Sample::default() })
            }
            Order::Fill { how, records, limit_millis } => {
                self.fill(*how, *records, Duration::from_millis(*limit_millis))
            }
            Order::Measure(measure) if self.target.scheme == fio::SCHEME.name => self.measure_with_fio(measure),
            Order::Measure(measure) => self.measure(measure),
            Order::Overwrite(overwrite) => overwrites::measure(self.store()?, &self.directory, overwrite),
            Order::Transact(transact) => transactions::measure(self.store()?, transact),
            Order::Shrink { load, cache_bytes } => self.shrink(load, *cache_bytes),
        }
    }

    fn store(&self) -> Result<&dyn Store, String> {
        self.store.as_deref().ok_or_else(|| "no store is open".to_owned())
    }

    fn open(&mut self, anew: bool) -> Answer {
        self.close()?;
        let opening = if anew { Opening::Recreate } else { Opening::Existing };
        let scheme = targets::find_key_value(&self.schemes, &self.target).map_err(|failure| failure.to_string())?;
        let store = (scheme.open)(&self.target, &self.table, opening).map_err(|failure| failure.to_string())?;
        let settings = told(&*store);
        self.store = Some(store);
        Ok(Sample { settings, ..Sample::default() })
    }

    fn close(&mut self) -> Result<(), String> {
        self.store.take().map_or(Ok(()), |store| store.close().map_err(|failure| failure.to_string()))
    }

    fn fill(&self, how: Fill, records: u64, limit: Duration) -> Answer {
        let store = self.store()?;
        // Write back what is dirty, so that the disk's counters include all writes of this load and no earlier
        // ones.
        disk::write_back(&self.directory)?;
        let before = DiskCounts::of(&self.directory);
        let written_before = disk::written_by_this_process();
        let clock = Clock::start();
        let loaded = match how {
            Fill::Sorted => store.bulk_load(&mut SortedRows::new(records)).map_err(|failure| failure.to_string())?,
            Fill::Random => None,
        };
        let rows = match loaded {
            Some(rows) => rows,
            None => {
                let properties = [("recordcount", records.to_string()), ("insertorder", insert_order(how).to_owned())];
                let settings = settings("a", &properties)?;
                let limit = (how == Fill::Random).then_some(limit);
                let plan = Plan { loading: true, limit, ..Plan::default() };
                let measured = run(store, &Load::new(&settings, 0), &plan, &AtomicBool::new(false))?;
                if measured.failed > 0 {
                    return Err(format!("{} inserts failed: {:?}", measured.failed, measured.failures));
                }
                measured.operations
            }
        };
        let nanos = clock.nanos();
        let was_cut = how == Fill::Random && u128::from(nanos) >= limit.as_nanos();
        if rows == 0 || (rows != records && !was_cut) {
            return Err(format!("of {records} rows {rows} were loaded"));
        }
        store.settle().map_err(|failure| failure.to_string())?;
        let mut sample = Sample { operations: rows, rows, nanos, settings: told(store), ..Sample::default() };
        sample.process_bytes = disk::written_since(written_before);
        disk::write_back(&self.directory)?;
        sample.file_bytes = disk::bytes_under(&self.directory);
        since(&mut sample, before, DiskCounts::of(&self.directory));
        Ok(sample)
    }

    fn measure_with_fio(&self, measure: &Operate) -> Answer {
        let before = DiskCounts::of(&self.directory);
        let mut sample = fio::measure(&self.target, measure)?;
        // Keep fio's own number of reads: it covers the window alone, the system's covers the whole run.
        let reads = sample.disk_reads;
        since(&mut sample, before, DiskCounts::of(&self.directory));
        sample.disk_reads = sample.disk_reads.and(reads);
        Ok(sample)
    }

    fn measure(&self, measure: &Operate) -> Answer {
        let store = self.store()?;
        let Some(what) = measure.beside else { return self.load(measure, &AtomicBool::new(false)) };
        if what == Beside::Compaction {
            beside::disturb(store)?;
        }
        with_beside(store, what, Duration::from_millis(measure.millis), |stop| self.load(measure, stop))
    }

    /// Measures `load`, and changes the size of the store's cache a third into its window.
    fn shrink(&self, load: &Operate, cache_bytes: u64) -> Answer {
        let store = self.store()?;
        let from_start = Duration::from_millis(load.warmup_millis + load.millis / 3);
        let never = AtomicBool::new(false);
        let (sample, shrunk): (Answer, Result<Shrunk, String>) = std::thread::scope(|scope| {
            let shrunk = scope.spawn(|| beside::shrink(store, cache_bytes, from_start));
            let sample = self.load(load, &never);
            (sample, shrunk.join().unwrap_or_else(|_| Err("the change of the budget panicked".to_owned())))
        });
        both(sample, shrunk).map(|(sample, shrunk)| Sample { shrunk, ..sample })
    }

    /// Runs the task of `measure` until it is done or `stop` is set. Does not start the work beside it.
    fn load(&self, measure: &Operate, stop: &AtomicBool) -> Answer {
        let store = self.store()?;
        let time = Duration::from_millis(measure.millis);
        let mut plan = Plan {
            clients: measure.threads,
            warmup: Duration::from_millis(measure.warmup_millis),
            length: measure.operations.map_or(Length::Time(time), Length::Operations),
            limit: Some(time),
            ..Plan::default()
        };
        if measure.beside == Some(Beside::Compaction) {
            plan = Plan { warmup: Duration::ZERO, length: Length::Time(LONGEST_WORK), limit: None, ..plan };
        }
        let before = DiskCounts::of(&self.directory);
        let single = |what| Singles { what, records: measure.records, seed: measure.seed };
        let measured = match &measure.task {
            Task::Workload { name, keys } => {
                let records = measure.records.to_string();
                let order = insert_order(measure.filled).to_owned();
                let mut properties = vec![("recordcount", records), ("insertorder", order)];
                if !keys.is_empty() {
                    properties.push(("requestdistribution", keys.clone()));
                }
                if let Some(share) = measure.hot_share {
                    properties.push(("hotspotdatafraction", share.to_string()));
                    properties.push(("hotspotopnfraction", "0.95".to_owned()));
                }
                // Inserts use keys after the loaded ones, so a later repeat overwrites what an earlier one
                // inserted.
                let settings = settings(name, &properties)?;
                run(store, &Run::new(&settings, measure.seed), &plan, stop)
            }
            Task::Absent => run(store, &single(Single::Absent), &plan, stop),
            Task::Many(keys) => run(store, &single(Single::Many(*keys)), &plan, stop),
            Task::Puts => run(store, &single(Single::Put), &plan, stop),
            Task::Scan => {
                let once = Plan { length: Length::Operations(1), limit: None, warmup: Duration::ZERO, ..plan };
                run(store, &single(Single::Scan), &once, stop)
            }
        }?;
        if measured.failed > 0 {
            return Err(format!("{} operations failed: {:?}", measured.failed, measured.failures));
        }
        // A look-up that finds nothing is faster, so every row has to be found. The clients of other tasks check
        // their results themselves.
        let missing = missing(&measured);
        if missing > 0 && matches!(measure.task, Task::Workload { .. }) {
            return Err(format!("{missing} requests met no row: the table is not what it should be"));
        }
        let cost = &measured.cost;
        let mut sample = Sample {
            operations: measured.operations,
            rows: measured.kinds.iter().map(|kind| kind.rows).sum(),
            nanos: measured.nanos,
            cpu_nanos: cost.user_nanos + cost.system_nanos,
            resident_bytes: cost.resident_bytes,
            p99_nanos: Times::sum(measured.kinds.iter().map(|kind| &kind.service)).known_quantile(0.99),
            point_hits: counted(&measured, "point row pages found"),
            point_reads: counted(&measured, "point row pages read"),
            ..Sample::default()
        };
        since(&mut sample, before, DiskCounts::of(&self.directory));
        sample.disk_reads = sample.disk_reads.map(|reads| reads_of_window(reads, &measured));
        Ok(sample)
    }
}

/// Runs `load` while another thread does `what`. If that is a compaction, the window goes on for `after` beyond its
/// end.
fn with_beside(store: &dyn Store, what: Beside, after: Duration, load: impl FnOnce(&AtomicBool) -> Answer) -> Answer {
    let (is_over, stop) = (AtomicBool::new(false), AtomicBool::new(false));
    let (sample, done): (Answer, Result<WorkDone, String>) = std::thread::scope(|scope| {
        let beside = scope.spawn(|| beside::run(store, what, after, &is_over, &stop));
        let sample = load(&stop);
        is_over.store(true, Ordering::Relaxed);
        (sample, beside.join().unwrap_or_else(|_| Err("what went on beside it panicked".to_owned())))
    });
    both(sample, done).map(|(sample, beside)| Sample { beside, ..sample })
}

/// Combines the results of a load and of the work beside it. If both failed, either may be the cause, so both are
/// reported.
fn both<T>(sample: Answer, beside: Result<T, String>) -> Result<(Sample, T), String> {
    match (sample, beside) {
        (Ok(sample), Ok(beside)) => Ok((sample, beside)),
        (Err(why), Err(beside)) => Err(format!("{why}; beside it: {beside}")),
        (Err(why), _) | (_, Err(why)) => Err(why),
    }
}

/// The time limit for a compaction or an index build, after which it counts as failed.
const LONGEST_WORK: Duration = Duration::from_secs(1800);

/// The growth of the store's counter `name` in the window, or 0 if there is no such counter.
fn counted(measured: &Measured, name: &str) -> u64 {
    let change = measured.counters.iter().find(|change| change.name == name);
    change.and_then(Change::counted).unwrap_or(0)
}

/// Estimates how many of a run's `reads` fell into the window, assuming that every operation, also of the warm-up,
/// caused the same number of reads.
fn reads_of_window(reads: u64, measured: &Measured) -> u64 {
    let warm_up: u64 = measured.intervals.iter().filter(|it| it.warming).map(|it| it.operations + it.failed).sum();
    let window = u128::from(measured.operations);
    let all = window + u128::from(warm_up + measured.warmed + measured.cut);
    (u128::from(reads) * window / all.max(1)) as u64
}

/// Requests that found no row.
fn missing(measured: &Measured) -> u64 {
    measured.kinds.iter().map(|kind| kind.not_found).sum()
}

/// The settings of the store.
fn told(store: &dyn Store) -> Vec<(String, String)> {
    store.settings().into_iter().map(|setting| (setting.name.to_owned(), setting.value)).collect()
}

/// YCSB's name for the order in which rows are loaded.
fn insert_order(how: Fill) -> &'static str {
    match how {
        Fill::Sorted => "ordered",
        Fill::Random => "hashed",
    }
}

/// The settings of a YCSB workload with 20-byte keys and one field of 100 bytes.
fn settings(name: &str, more: &[(&str, String)]) -> Result<Settings, String> {
    let mut properties = ycsb::built_in(name).ok_or_else(|| format!("there is no workload `{name}`"))?;
    properties.set("fieldcount", "1");
    properties.set("fieldlength", VALUE_BYTES.to_string());
    properties.set("zeropadding", KEYS.zero_padding.to_string());
    properties.set("operationcount", "0");
    for (name, value) in more {
        properties.set(*name, value.clone());
    }
    Settings::new(&properties, &|_| Err("no file is named".to_owned())).map_err(|error| error.to_string())
}

fn run<W: Workload>(store: &dyn Store, workload: &W, plan: &Plan, stop: &AtomicBool) -> Result<Measured, String> {
    harness::run(store, workload, plan, stop, &mut |_| ()).map_err(|error| error.to_string())
}

fn since(sample: &mut Sample, before: Option<DiskCounts>, after: Option<DiskCounts>) {
    if let (Some(before), Some(after)) = (before, after) {
        let counts = after.since(before);
        sample.disk_reads = Some(counts.reads);
        sample.disk_read_bytes = counts.read_bytes;
        sample.disk_written_bytes = counts.written_bytes;
    }
}
