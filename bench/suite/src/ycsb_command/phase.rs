//! A phase of `larch bench ycsb`: one load or one run, with its result.

use super::usage;
use crate::args::YcsbArgs;
use crate::ending::{Ended, Ran, failed_much};
use crate::live::Live;
use crate::live::view::Head;
use crate::results;
use crate::say;
use crate::workers::Process;
use harness::report::{self, Pair};
use harness::{Failure, Interval, Length, Measured, Pace, Plan, Prometheus, Scheme, Store, Target, Workload};
use std::fmt;
use std::path::Path;
use ycsb::{Load, Output, Properties, RawLog, Run, Settings, Status};

/// What a phase does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Inserts the records.
    Load,
    /// Runs operations on the records.
    Run,
}

impl fmt::Display for Work {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Load => "load",
            Self::Run => "run",
        })
    }
}

/// A load or a run of a workload.
pub struct Phase {
    /// The name of the workload.
    pub name: String,
    pub work: Work,
    /// The parsed properties.
    pub settings: Settings,
    /// The properties as they were given.
    pub properties: Properties,
    /// The seed of all operations. Each phase has another one. With the same seed, a phase would ask for the keys
    /// of the previous phase in the same order, and find them in memory.
    pub seed: u64,
}

/// The result of a phase.
pub struct Done {
    /// The name of the workload.
    pub name: String,
    pub work: Work,
    /// The distribution of the keys.
    pub distribution: &'static str,
    /// How to print the result in YCSB's format.
    pub output: Output,
    /// Whether the properties choose an exporter.
    pub exporter_is_set: bool,
    /// Whether the store, or a thread of the client, was lost.
    pub is_store_lost: bool,
    /// The number of warnings in `run` that were already printed before the phase.
    pub warnings_before: usize,
    /// The result, with the settings that produced it.
    pub run: report::Run,
}

/// The number of operations on the no-op store that measure the cost of the client alone. They take a tenth of a
/// second.
const NOOP_OPERATIONS: u64 = 500_000;

/// The target and the options of phases.
#[derive(Clone, Copy)]
pub struct Setup<'a> {
    /// The target.
    pub target: &'a Target,
    /// The scheme of the target.
    pub scheme: &'a Scheme,
    /// The command line.
    pub args: &'a YcsbArgs,
}

/// Checks the settings of a phase, before a store is opened.
pub fn check(phase: &Phase, args: &YcsbArgs) -> Result<(), Failure> {
    if phase.work == Work::Load {
        phase.settings.check_load().map_err(|error| usage(error.to_string()))?;
    }
    let plan = plan(phase, args)?;
    raw_log(phase, &plan).map(drop)
}

/// Opens the log of single request times, if the properties ask for it.
fn raw_log(phase: &Phase, plan: &Plan) -> Result<Option<RawLog>, Failure> {
    RawLog::open(&phase.settings.output, plan).map_err(|error| usage(error.to_string()))
}

/// Returns a function that shows the progress of a phase on `target`.
pub fn watcher<'w>(
    phase: &'w Phase,
    target: &Target,
    args: &'w YcsbArgs,
    metrics: Option<&'w Prometheus>,
) -> Result<impl FnMut(&Interval) + 'w, Failure> {
    let what = title(phase);
    let plan = plan(phase, args)?;
    let expected = match plan.length {
        Length::Operations(operations) => Some(operations),
        Length::All => Some(phase.settings.records.span.unsigned_abs()),
        Length::Time(_) => None,
    };
    let mut status = Status::new(&phase.settings.output, expected);
    let has_status = args.status || phase.settings.output.status;
    let mut live =
        Live::new(Head::of_plan(what.clone(), &target.text, &plan), !args.quiet && !args.plain && !has_status);
    Ok(move |interval: &Interval| {
        if let Some(metrics) = metrics {
            metrics.add(interval);
        }
        if args.quiet || live.add(interval) {
            return;
        }
        if has_status {
            status.interval(unix_millis(), interval).iter().for_each(|line| say(line));
        } else {
            say(&format!("{what:10} {}", report::text::line(interval)));
        }
    })
}

/// Writes the files that YCSB's properties ask for.
pub fn write_logs(done: &mut Done) {
    for (path, log) in ycsb::hdr_logs(&done.run.measured, &done.output) {
        if let Err(unwritten) = results::write(Path::new(&path), log.as_bytes()) {
            done.run.error.get_or_insert_with(|| unwritten.to_string());
        }
    }
}

/// Fails if the phase cannot be shared among processes.
pub fn check_together(phase: &Phase) -> Result<(), Failure> {
    match phase.settings.output.measure.is_raw() {
        true => Err(usage("single times (measurementtype=raw) are written by one process: leave --workers out")),
        false => Ok(()),
    }
}

/// Runs this process's share of a phase on an open store.
pub fn run(phase: &Phase, store: &dyn Store, setup: Setup<'_>, process: Process<'_>) -> Result<Done, Failure> {
    let settings = &phase.settings;
    let (plan, share) = (plan(phase, setup.args)?, process.share);
    match phase.work {
        Work::Load => {
            let load = Load::new(settings, phase.seed);
            let wanted = harness::share::dealt(load.records(), plan.clients, &share.stretch(plan.clients));
            let mut done = measured(phase, store, setup, process, &plan, &load)?;
            let run = &mut done.run;
            if run.error.is_some() || run.measured.interrupted {
                return Ok(done);
            }
            let loaded = run.measured.operations;
            if loaded < wanted {
                run.error = Some(format!("only {loaded} of {wanted} records were loaded"));
                return Ok(done);
            }
            let clock = harness::Clock::start();
            match store.settle() {
                Ok(()) => run.settled_nanos = Some(clock.nanos()),
                Err(failure) => {
                    run.error = Some(format!("the background work after the load failed: {failure}"));
                    done.is_store_lost = true;
                }
            }
            Ok(done)
        }
        Work::Run => {
            let work = Run::of_share(settings, phase.seed, share);
            let mut done = measured(phase, store, setup, process, &plan, &work)?;
            if setup.scheme.name != harness::noop::SCHEME.name && done.run.error.is_none() {
                let (error, warning) = missing(&done.run.measured);
                done.run.error = error.or_else(|| unlike(&done.run.measured));
                done.run.warnings.extend(warning);
            }
            Ok(done)
        }
    }
}

/// The error about rows that were not as written, which property `dataintegrity` checks.
fn unlike(measured: &Measured) -> Option<String> {
    let checks = measured.kind("VERIFY")?;
    let (wrong, all) = (checks.failed_count(), checks.oks + checks.failed_count());
    (wrong > 0).then(|| format!("{wrong} of {all} rows that were read are not as `dataintegrity` has them written"))
}

/// Returns the (error, warning) about requests that found no row: an error if none found any, a warning if more
/// than one in a hundred found none.
fn missing(measured: &Measured) -> (Option<String>, Option<String>) {
    const ADVICE: &str = "was the table loaded, and with this recordcount, insertstart, insertorder and zeropadding?";
    let asked = measured.kinds.iter().filter(|kind| matches!(kind.name.as_str(), "READ" | "UPDATE" | "SCAN"));
    let asked: Vec<_> = asked.filter(|kind| kind.oks + kind.not_found > 0).collect();
    let met = asked.iter().any(|kind| kind.rows > 0 || (kind.name == "UPDATE" && kind.oks > 0));
    if !asked.is_empty() && !met {
        return (Some(format!("no request found a row: {ADVICE}")), None);
    }
    let not_found: u64 = asked.iter().map(|kind| kind.not_found).sum();
    let all: u64 = asked.iter().map(|kind| kind.oks + kind.not_found).sum();
    let is_much = not_found * 100 > all;
    (None, is_much.then(|| format!("{not_found} of {all} requests found no row: {ADVICE}")))
}

/// The plan of a phase. A command-line option overrides the property of the same meaning.
pub fn plan(phase: &Phase, args: &YcsbArgs) -> Result<Plan, Failure> {
    let loads = phase.work == Work::Load;
    let mut plan = phase.settings.plan(loads);
    plan.clients = args.threads.map_or(plan.clients, |threads| threads as usize);
    plan.workers = args.threads_of_clients()?;
    plan.pace = args.rate.map_or(plan.pace, |per_second| Pace::Open { per_second });
    plan.ramp = args.ramp;
    if loads {
        return Ok(plan);
    }
    plan.warmup = args.warmup;
    if let Some(operations) = args.operations {
        plan.length = Length::Operations(operations);
        plan.limit = args.time.or(plan.limit);
    } else if let Some(time) = args.time {
        plan.length = Length::Time(time);
    } else if plan.length == Length::All {
        let text = "give the length of the run: --time 60s, --operations N, or -p operationcount=N or maxexecutiontime=SECONDS";
        plan.length = Length::Time(plan.limit.ok_or_else(|| usage(text))?);
    }
    Ok(plan)
}

fn measured<W: Workload>(
    phase: &Phase,
    store: &dyn Store,
    setup: Setup<'_>,
    process: Process<'_>,
    whole: &Plan,
    workload: &W,
) -> Result<Done, Failure> {
    let args = setup.args;
    let Process { share, stop, metrics, begin, watch } = process;
    let plan = share.plan(whole).map_err(usage)?;
    let workload = &share.part(workload, whole.clients);
    let what = title(phase);
    if let Some(metrics) = metrics {
        metrics.begin(&what, &setup.target.text, &store.counters());
    }
    let raw = raw_log(phase, &plan)?;
    let ended = match &raw {
        None => harness::run_from(store, workload, &plan, stop.flag(), begin, watch),
        Some(raw) => raw.run(store, workload, &plan, stop.flag(), watch),
    };
    let Ended { measured, mut error, is_lost } = Ended::of(ended)?;
    if let Some(Err(unwritten)) = raw.map(RawLog::finish) {
        error.get_or_insert_with(|| unwritten.to_string());
    }
    let mut run = report::Run::new(what, &setup.target.text, &plan, measured);
    run.settings = store.settings().into_iter().map(Pair::from).collect();
    run.workload = phase.properties.iter().map(|(name, value)| Pair::property(name, value)).collect();
    run.seed = phase.seed;
    run.share = (!share.is_whole()).then_some(share);
    run.price = args.price;
    run.warnings.clone_from(&phase.settings.warnings);
    if setup.scheme.networked {
        run.warnings.extend(run.measured.cost.warning(run.measured.nanos, processors()));
        run.warnings.extend(crowded(&plan, &run.measured));
    } else if error.is_none() && !run.measured.interrupted {
        let cost = &run.measured.cost;
        // For comparable costs, the single thread gets what each client thread had in the run: the same number of
        // clients, and of requests in flight.
        let depth = cost.depth.map(|depth| usize::try_from(depth).unwrap_or(usize::MAX));
        let clients = depth.map_or(1, |_| plan.clients.div_ceil(cost.client_threads.max(1) as usize));
        run.noop_nanos = harness::noop_nanos(workload, clients, depth, NOOP_OPERATIONS, stop.flag()).ok();
    }
    run.error = error.or_else(|| failed_much(&run.measured));
    Ok(done(phase, Ran { run, is_lost }))
}

/// The result of a phase.
pub fn done(phase: &Phase, ran: Ran) -> Done {
    Done {
        name: phase.name.clone(),
        work: phase.work,
        distribution: phase.settings.operations.keys.name(),
        output: phase.settings.output.clone(),
        exporter_is_set: phase.properties.get("exporter").is_some(),
        is_store_lost: ran.is_lost,
        warnings_before: phase.settings.warnings.len(),
        run: ran.run,
    }
}

/// A warning if there are more clients than requests can be in flight, so that clients wait for each other.
fn crowded(plan: &Plan, measured: &Measured) -> Option<String> {
    let waits = measured.kinds.iter().any(|kind| kind.response.is_some());
    (plan.pace == Pace::Closed && waits).then(|| {
        format!(
            "the {} clients wait for each other, since fewer requests may be under way at once: raise `connections` or \
             `pipeline` of the target, or --client-threads",
            plan.clients
        )
    })
}

/// The title of the phase: `load a`, `workload c`.
pub fn title(phase: &Phase) -> String {
    match phase.work {
        Work::Load => format!("load {}", phase.name),
        Work::Run => format!("workload {}", phase.name),
    }
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

#[allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "status lines say the time of day")]
fn unix_millis() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

impl Done {
    /// Whether the run failed or measured nothing.
    pub fn is_bad(&self) -> bool {
        let measured = &self.run.measured;
        self.run.error.is_some() || (measured.operations == 0 && !measured.interrupted)
    }

    /// The result as a table.
    pub fn table(&self) -> String {
        report::text::text(&self.run)
    }

    /// The result in YCSB's format.
    pub fn exported(&self) -> String {
        let mut text = ycsb::export(&self.run.measured, &self.output);
        if !text.ends_with('\n') {
            text.push('\n');
        }
        text
    }

    /// The summary line of a run that `ycsb all` prints at the end.
    pub fn seed_line(&self) -> Option<String> {
        (self.work == Work::Run).then(|| ycsb::seed_line(&self.run.measured, self.distribution, &self.name))
    }
}
