//! `larch bench kv`: runs the key-value driver on a target, and prints its table and its result in the format of
//! scylla-bench.

#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a time series begins at the real time")]

mod lines;
pub mod rated;

use crate::args::kv::{HdrUnits, KvArgs, LatencyType};
use crate::ending::{Ended, Ending, Ran, failed_much};
use crate::live::Live;
use crate::live::view::Head;
use crate::stop::Stop;
use crate::targets::{self, Task};
use crate::workers::{Process, Workers};
use crate::{metrics, print, results, say};
use harness::report::live::{self, Shown};
use harness::report::{self, Pair, hdr_log};
use harness::{Failure, Interval, Length, Measure, Measured, Opening, Pace, Plan, Share, Store, Target};
use kv::{Content, Database, KvScheme, Mode, Options, RowSize, ServerOptions, Setup, Work, Workload};
use std::cell::RefCell;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

fn usage(text: impl Into<String>) -> Failure {
    Failure::session("target", text)
}

/// The parsed command line.
struct Asked<'s> {
    options: Options,
    target: Target,
    scheme: &'s KvScheme,
    /// Options that were given but have no effect.
    notes: Vec<String>,
}

impl<'s> Asked<'s> {
    fn new(args: &KvArgs, schemes: &'s [KvScheme]) -> Result<Self, Failure> {
        let options = args.options(now()).map_err(usage)?;
        let text = match (&args.target, &args.nodes) {
            (Some(target), _) => target.clone(),
            (None, nodes) => format!("cassandra://{}", nodes.as_deref().unwrap_or_default()),
        };
        let target = Target::parse(&text)?;
        let scheme = targets::find(schemes, |scheme| scheme.name, Task::Kv, &target)?;
        Ok(Self { notes: notes(args, scheme), options, target, scheme })
    }

    fn is_mixed(&self) -> bool {
        self.options.mode == Mode::Mixed
    }

    fn name(&self) -> String {
        format!("kv {}", self.options.mode.name())
    }
}

/// Nanoseconds since 1970.
fn now() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    i64::try_from(now).unwrap_or(i64::MAX)
}

/// Runs the command.
pub fn run(args: &KvArgs, schemes: &[KvScheme]) -> Result<Ending, Failure> {
    let asked = Asked::new(args, schemes)?;
    let hdr_log = args.hdr_latency_file.as_deref().map(|path| ("-hdr-latency-file", path));
    results::check_all(args.files.named().chain(hdr_log))?;
    let workers = Workers::of(&args.together, &asked.target)?;
    asked.notes.iter().for_each(|note| say(&format!("larch: {note}")));
    let stop = Stop::catch()?;
    let metrics = metrics::serve(args.metrics.as_deref())?;
    let shown = match (args.measure_latency, args.latency_type) {
        (false, _) => Shown::Nothing,
        (true, LatencyType::Raw) => Shown::Service,
        (true, LatencyType::FixedCoordinatedOmission) => Shown::Response,
    };
    let setup = setup(args, &asked.options, Share::WHOLE);
    let mut intro = lines::block(&lines::configuration(args, &asked.options, &setup, asked.scheme));
    let whole = plan(args, &asked.options, &setup);
    let mut view = Live::new(Head::of_plan(asked.name(), &asked.target.text, &whole), !args.quiet && !args.plain);
    if !args.quiet && !view.is_wanted() {
        intro.push_str(&format!("\n{}", live::head(shown)));
    }
    let printed = RefCell::new(Ok(()));
    let put = |text: &str| {
        let mut printed = printed.borrow_mut();
        if printed.is_ok() {
            *printed = print(text);
        }
    };
    let mut watch = |interval: &Interval| {
        if let Some(metrics) = &metrics {
            metrics.add(interval);
        }
        if !args.quiet && !view.add(interval) {
            put(&live::line(interval, shown));
        }
    };
    let ran = match workers {
        None => {
            let (share, metrics) = (args.together.own_share(), metrics.as_ref());
            let begin = &mut || put(&intro);
            measured_as(args, &asked, Process { share, stop: &stop, metrics, begin, watch: &mut watch })?
        }
        Some(workers) => {
            put(&intro);
            if let Some(metrics) = &metrics {
                metrics.begin(&asked.name(), &asked.target.text, &[]);
            }
            let mut told = crate::workers::args_of_process();
            if args.start_timestamp == 0 && asked.options.start_timestamp != 0 {
                told.push(format!("--start-timestamp={}", asked.options.start_timestamp));
            }
            workers.run(&told, &stop, &mut watch)?
        }
    };
    drop(view);
    printed.into_inner()?;
    let text = lines::results(&ran.run, args.measure_latency, asked.is_mixed());
    let printed = print(&text);
    let written = results::write_files(&args.files, &[&ran.run]);
    let logged = args.hdr_latency_file.as_deref().map_or(Ok(()), |path| {
        let log = hdr(&ran.run, args.hdr_latency_units, asked.is_mixed());
        results::write(path, log.as_bytes())
    });
    for warning in ran.run.warnings.iter().filter(|warning| !asked.notes.contains(warning)) {
        say(&format!("larch: {warning}"));
    }
    ran.say_what_failed();
    printed.and(written).and(logged)?;
    Ok(ran.ending())
}

/// Opens the database and runs the clients of one process.
pub fn measured(args: &KvArgs, schemes: &[KvScheme], process: Process<'_>) -> Result<Ran, Failure> {
    measured_as(args, &Asked::new(args, schemes)?, process)
}

fn measured_as(args: &KvArgs, asked: &Asked<'_>, process: Process<'_>) -> Result<Ran, Failure> {
    let database = (asked.scheme.open)(&asked.target, &setup(args, &asked.options, process.share))?;
    let ended = measure(&*database, args, asked, process);
    let closed = database.close();
    let ran = ended?;
    closed?;
    Ok(ran)
}

fn setup(args: &KvArgs, options: &Options, share: Share) -> Setup {
    let content = options.mode.content();
    let concurrency = share.stretch(options.concurrency).len().max(1);
    Setup {
        // A mode that only reads needs rows that exist already, so it does not create the database.
        opening: if options.mode.writes() { Opening::OrCreate } else { Opening::Existing },
        keyspace: args.keyspace.clone().unwrap_or_else(|| Setup::default().keyspace),
        table: match content {
            Content::Values => args.table.clone(),
            Content::Counters => format!("{}_counters", args.table),
        },
        content,
        concurrency,
        threads: (args.threads as usize).min(concurrency),
        connections: args.connection_count as usize,
        page_rows: args.page_size,
        timeout: args.timeout,
        server: ServerOptions {
            consistency_level: args.consistency_level.clone(),
            replication_factor: args.replication_factor,
            client_compression: args.client_compression,
            host_selection_policy: args.host_selection_policy.clone(),
            bypass_cache: args.bypass_cache,
        },
    }
}

/// Options that were given but have no effect.
fn notes(args: &KvArgs, scheme: &KvScheme) -> Vec<String> {
    let default = Setup::default();
    let given = [
        ("keyspace", args.keyspace.is_some()),
        ("consistency-level", args.consistency_level.is_some()),
        ("replication-factor", args.replication_factor.is_some()),
        ("client-compression", args.client_compression.is_some()),
        ("host-selection-policy", args.host_selection_policy.is_some()),
        ("bypass-cache", args.bypass_cache.is_some()),
        ("connection-count", args.connection_count as usize != default.connections),
        ("page-size", args.page_size != default.page_rows),
        ("timeout", args.timeout != default.timeout),
    ];
    let mut notes: Vec<String> = Vec::new();
    for (name, _) in given.into_iter().filter(|(_, is_given)| *is_given) {
        if let Some(why) = unused(scheme, name) {
            notes.push(format!("-{name} has no effect: {why}"));
        }
    }
    if args.hdr_latency_sig != 3 {
        notes.push("-hdr-latency-sig has no effect: times have three digits".to_owned());
    }
    notes
}

fn unused(scheme: &KvScheme, name: &str) -> Option<&'static str> {
    scheme.unused.iter().find(|(unused, _)| *unused == name).map(|(_, why)| *why)
}

fn plan(args: &KvArgs, options: &Options, setup: &Setup) -> Plan {
    let time = (!args.duration.is_zero()).then_some(args.duration);
    // `sequential` and `scan` end when their rows are used up. The other workloads would never end.
    let has_end = matches!(options.workload, Workload::Sequential | Workload::Scan);
    let (length, limit) = match (args.operations, time) {
        (Some(operations), limit) => (Length::Operations(operations), limit),
        (None, Some(time)) if !has_end => (Length::Time(time), None),
        (None, limit) => (Length::All, limit),
    };
    Plan {
        clients: options.concurrency,
        workers: setup.threads,
        pace: options.max_rate.map_or(Pace::Closed, |per_second| Pace::Open { per_second }),
        warmup: args.warmup.unwrap_or_default(),
        length,
        limit,
        interval: Duration::from_secs(1),
        ..Plan::default()
    }
}

fn measure(database: &dyn Database, args: &KvArgs, asked: &Asked<'_>, process: Process<'_>) -> Result<Ran, Failure> {
    let Asked { options, target, scheme, notes } = asked;
    let share = process.share;
    let setup = setup(args, options, share);
    if args.truncate_table && share.is_first() {
        say(&format!("larch: truncating the table {}", setup.table));
        database.truncate()?;
    }
    let whole = plan(args, options, &setup);
    let plan = share.plan(&whole).map_err(usage)?;
    let (work, name) = (Work::new(options.clone()), asked.name());
    let store: &dyn Store = database;
    if let Some(metrics) = process.metrics {
        metrics.begin(&name, &target.text, &store.counters());
    }
    let Process { stop, begin, watch, .. } = process;
    let part = share.part(&work, whole.clients);
    let ended = harness::run_from(store, &part, &plan, stop.flag(), begin, watch);
    let Ended { measured, mut error, is_lost } = Ended::of(ended)?;
    let findings = work.findings();
    let is_noop = scheme.name == kv::noop::SCHEME.name;
    let (missing, warning) = if is_noop { (None, None) } else { missing(options, &measured) };
    let wrong = (findings.wrong_rows > 0).then(|| {
        let first = findings.first_wrong_row.as_deref().unwrap_or("none is known");
        format!("{} rows are not as -validate-data writes them; the first: {first}", findings.wrong_rows)
    });
    error = match is_lost {
        true => crate::ending::joined([error, wrong]),
        false => wrong.or(findings.limit).or(error).or(missing).or_else(|| failed_much(&measured)),
    };
    let mut run = report::Run::new(name, &target.text, &plan, measured);
    run.settings = database.settings().into_iter().map(Pair::from).collect();
    let configuration = lines::configuration(args, options, &self::setup(args, options, Share::WHOLE), scheme);
    run.workload = configuration.iter().map(|(name, value)| Pair::new(name.trim(), value)).collect();
    run.seed = options.seed;
    run.share = (!share.is_whole()).then_some(share);
    run.price = args.price;
    run.warnings.clone_from(notes);
    run.warnings.extend(warning);
    run.noop_nanos = match &error {
        None => noop_nanos(scheme, options, &setup, &run.measured, stop),
        Some(_) => None,
    };
    run.error = error;
    Ok(Ran { run, is_lost })
}

/// Returns the (error, warning) about reads that found no row: an error if no read found any.
fn missing(options: &Options, measured: &Measured) -> (Option<String>, Option<String>) {
    if options.mode != Mode::Scan && !options.mode.reads() {
        return (None, None);
    }
    let read = Measure::sum(measured.kinds.iter().filter(|kind| !matches!(kind.name.as_str(), "WRITE")));
    let asked = read.oks + read.not_found;
    if asked == 0 || measured.interrupted && read.rows == 0 {
        return (None, None);
    }
    let hint = "write them first, with -mode write or counter_update and the same -partition-count, -clustering-row-count \
                and -partition-offset";
    match (read.rows, read.not_found) {
        (0, _) => (Some(format!("no row was read: {hint}")), None),
        (_, 0) => (None, None),
        (_, missing) => (None, Some(format!("{missing} of {asked} reads met no row: {hint}"))),
    }
}

/// Limits on the run that measures the client's own cost: bytes of values, and operations.
const NOOP_BYTES: u64 = 64 << 20;
const NOOP_OPERATIONS: u64 = 500_000;

/// The processor time of an operation on the no-op store. For a database in the client's process, it separates the
/// client's share of the cost from the database's.
fn noop_nanos(scheme: &KvScheme, options: &Options, setup: &Setup, measured: &Measured, stop: &Stop) -> Option<f64> {
    if scheme.networked || measured.interrupted || measured.operations == 0 {
        return None;
    }
    let size = match options.clustering_row_size {
        RowSize::Fixed(bytes) | RowSize::Uniform(_, bytes) => bytes,
    };
    let bytes = size.saturating_mul(options.rows_per_request).max(1);
    let operations = NOOP_OPERATIONS.min(NOOP_BYTES / bytes).max(1000);
    let clients = setup.requests_a_session();
    harness::noop_nanos(&Work::new(options.clone()), clients, Some(clients), operations, stop.flag()).ok()
}

/// The histograms in HdrHistogram's log format, under scylla-bench's tags.
fn hdr(run: &report::Run, units: HdrUnits, is_mixed: bool) -> String {
    let unit_nanos = match units {
        HdrUnits::Ns => 1,
        HdrUnits::Us => 1_000,
        HdrUnits::Ms => 1_000_000,
    };
    hdr_log::log_of(run, unit_nanos, |interval, line| {
        let sum = Measure::sum(&interval.kinds);
        line("co-fixed", sum.times());
        line("raw", &sum.service);
        for kind in interval.kinds.iter().filter(|_| is_mixed) {
            let name = kind.name.to_lowercase();
            line(&format!("co-fixed-{name}"), kind.times());
            line(&format!("raw-{name}"), &kind.service);
        }
    })
}
