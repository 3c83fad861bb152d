//! `larch bench rows`: measures row access on a target, and prints results and the history of runs.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "sessions are threads of a real machine, never simulated"
)]

mod batches;
mod report;

pub use report::Report;

use crate::args::{CleanArgs, ResultsArgs, RowsCommand, RunArgs, SetupArgs};
use crate::ending::Ending;
use crate::live::Live;
use crate::live::view::{Head, KnownBy};
use crate::stop::Stop;
use crate::targets::{self, Task};
use crate::workers::{Process, Workers};
use crate::{metrics, print, results, say};
use batches::{Batches, Seconds};
use harness::report::Meter;
use harness::report::Pair;
use harness::{Failure, Interval, Length, Plan, Target};
use os::sync::atomic::{AtomicBool, Ordering};
use row_access::batch::{Order, no_sql};
use row_access::run::{Manner, Ran, Ranges};
use row_access::setup::Ended;
use row_access::{
    Access, Database, Opening, RowAccessScheme, RunParameters, SetupParameters, Statement, history, parameters,
};
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

/// The least time between two lines that a session prints. With `--compat`, every batch gets its line.
const LINE_EVERY: Duration = Duration::from_millis(500);

/// Runs the command.
pub fn run(command: &RowsCommand, schemes: &[RowAccessScheme]) -> Result<Ending, Failure> {
    match command {
        RowsCommand::Setup(args) => setup(args, schemes),
        RowsCommand::Run(args) => run_sessions(args, schemes),
        RowsCommand::Results(args) => print_history(args, schemes),
        RowsCommand::Clean(args) => clean(args, schemes),
    }
}

/// Parses a target and finds its scheme.
fn find<'s>(schemes: &'s [RowAccessScheme], text: &str) -> Result<(Target, &'s RowAccessScheme), Failure> {
    let target = Target::parse(text)?;
    let scheme = targets::find(schemes, |scheme| scheme.name, Task::Rows, &target)?;
    Ok((target, scheme))
}

fn open(schemes: &[RowAccessScheme], text: &str, opening: Opening) -> Result<Box<dyn Database>, Failure> {
    let (target, scheme) = find(schemes, text)?;
    (scheme.open)(&target, opening)
}

/// Sets the parameters given as options, and then those in `arguments`, which have ybio's notation.
fn set_all<'a>(
    options: impl IntoIterator<Item = (&'a str, Option<&'a str>)>,
    arguments: &[String],
    mut set: impl FnMut(&str, &str) -> Result<(), Failure>,
) -> Result<(), Failure> {
    for (name, text) in options {
        text.map_or(Ok(()), |text| set(name, text))?;
    }
    for argument in arguments {
        for (name, text) in parameters::pairs(argument)? {
            set(&name, &text)?;
        }
    }
    Ok(())
}

/// The numbers of `count` tables, starting with `first`.
fn numbers(first: u32, count: u32) -> Result<Vec<u32>, Failure> {
    let last = first + count - 1;
    if last > 9999 {
        return Err(Failure::session("target", format!("tab_num {last} has more than four digits: make fewer tables")));
    }
    Ok((first..=last).collect())
}

/// Calls `each` for every item, each on its own thread. Returns the results in the order of the items.
fn beside<I: Sync, T: Send>(items: &[I], each: impl Fn(usize, &I) -> T + Sync) -> Vec<T> {
    thread::scope(|scope| {
        let each = &each;
        let threads: Vec<_> =
            items.iter().enumerate().map(|(number, item)| scope.spawn(move || each(number, item))).collect();
        let joined = threads.into_iter().map(|thread| thread.join());
        joined.map(|joined| joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    })
}

fn setup(args: &SetupArgs, schemes: &[RowAccessScheme]) -> Result<Ending, Failure> {
    let mut parameters = SetupParameters::default();
    set_all(args.options(), &args.parameters, |name, text| parameters.set(name, text))?;
    let tables: Vec<SetupParameters> = numbers(parameters.tab_num, args.tables)?
        .into_iter()
        .map(|tab_num| SetupParameters { tab_num, ..parameters.clone() })
        .collect();
    // Check `orderby` before a database or a table is created.
    if let (Order::Sql(expression), false) = (&parameters.orderby, find(schemes, &args.at.target)?.1.orders_by_sql) {
        return Err(no_sql(expression));
    }
    let stop = Stop::catch()?;
    let database = open(schemes, &args.at.target, Opening::OrCreate)?;
    let ended = beside(&tables, |number, table| {
        let seed = args.seed.wrapping_add(number as u64);
        row_access::setup::setup(&*database, table, args.is_compat(), seed, stop.flag(), &say)
    });
    let ended: Result<Vec<Ended>, Failure> = ended.into_iter().collect();
    let closed = database.close();
    let ended = ended?;
    closed?;
    Ok(if ended.contains(&Ended::Stopped) { Ending::Interrupted } else { Ending::Good })
}

fn run_sessions(args: &RunArgs, schemes: &[RowAccessScheme]) -> Result<Ending, Failure> {
    let sessions = sessions(args)?;
    results::check_all(args.files.named())?;
    let workers = Workers::of(&args.together, &Target::parse(&args.at.target)?)?;
    if workers.is_some() && args.metrics.is_some() {
        return Err(Failure::session(
            "target",
            "--metrics shows sessions of this process: leave it out with --workers",
        ));
    }
    let stop = Stop::catch()?;
    let metrics = metrics::serve(args.metrics.as_deref())?;
    let mut view = Live::new(head(args, &sessions), has_intervals(args));
    let showing = Showing { intervals: view.is_wanted(), lines: &AtomicBool::new(!args.quiet && !view.is_wanted()) };
    let mut watch = |interval: &Interval| {
        if !view.add(interval) {
            showing.lines.store(!args.quiet, Ordering::Relaxed);
        }
    };
    let (report, lost) = match workers {
        None => {
            let (share, metrics) = (args.together.own_share(), metrics.as_ref());
            let process = Process { share, stop: &stop, metrics, begin: &mut || {}, watch: &mut watch };
            (measured_by(args, &sessions, schemes, process, showing)?, None)
        }
        Some(workers) => together(&workers, &stop, &mut watch)?,
    };
    drop(view);
    let printed = print(&report.text());
    let written = report.write(&args.files);
    lost.iter().for_each(|failure| say(&format!("larch: {failure}")));
    printed.and(written)?;
    if lost.is_some() {
        return Ok(Ending::Failed);
    }
    Ok(match stop.is_pressed() {
        true => Ending::Interrupted,
        false if report.rows() == 0 => Ending::Bad,
        false => Ending::Good,
    })
}

/// The rate that row access is known by.
const ROWS: KnownBy = KnownBy { name: "rows a second", count: batches::rows, unit_seconds: 1.0 };

/// What is known of a run before it begins.
fn head(args: &RunArgs, sessions: &[RunParameters]) -> Head {
    let length = Length::Time(sessions[0].run_duration);
    let plan = Plan { clients: sessions.len(), length, ..Plan::default() };
    Head { known_by: Some(ROWS), ..Head::of_plan("rows".to_owned(), &args.at.target, &plan) }
}

/// Whether a run has intervals, if a terminal is there to show them. Nothing is known of a session inside the database
/// before it ends, and with `--compat` the user asks for a line for each batch.
fn has_intervals(args: &RunArgs) -> bool {
    !args.quiet && !args.plain && !args.is_compat() && !args.in_server
}

/// How the progress of a run is shown.
#[derive(Clone, Copy)]
struct Showing<'s> {
    /// Whether the process's watcher gets intervals.
    intervals: bool,
    /// Whether sessions print lines. This changes if there turns out to be no screen for a view.
    lines: &'s AtomicBool,
}

/// The parameters of all sessions.
fn sessions(args: &RunArgs) -> Result<Vec<RunParameters>, Failure> {
    let mut parameters = RunParameters::default();
    set_all(args.options(), &args.parameters, |name, text| parameters.set(name, text))?;
    let tables = numbers(parameters.tab_num, args.tables)?;
    let tables = tables.into_iter().map(|tab_num| RunParameters { tab_num, ..parameters.clone() });
    Ok(tables.flat_map(|table| std::iter::repeat_n(table, args.sessions as usize)).collect())
}

/// The merged report of all workers, and, if a worker was lost, the reason.
fn together(
    workers: &Workers,
    stop: &Stop,
    watch: &mut dyn FnMut(&Interval),
) -> Result<(Report, Option<Failure>), Failure> {
    let results = workers.results::<Report>(&crate::workers::args_of_process(), stop, watch)?;
    let settings = results.settings();
    results.warning().iter().for_each(|warning| say(&format!("larch: {warning}")));
    // After ^C in this process, workers that ended early are no failure.
    let early = results.parts.iter().find(|part| part.is_early && !stop.is_pressed());
    let early = early.map(|part| {
        let text = format!("worker {}: it was interrupted, so this is a part of the run", part.address);
        Failure::session("worker", text)
    });
    let lost = results.lost.or(early);
    let reports: Vec<(String, Report)> = results.parts.into_iter().map(|part| (part.address, part.result)).collect();
    match (Report::merged(&reports), lost) {
        (Ok(report), lost) => Ok((report.with_settings(settings), lost)),
        (Err(_), Some(failure)) => Err(failure),
        (Err(why), None) => Err(Failure::session("worker", why)),
    }
}

/// Runs the sessions of a worker.
pub fn measured(args: &RunArgs, schemes: &[RowAccessScheme], process: Process<'_>) -> Result<Report, Failure> {
    let showing = Showing { intervals: has_intervals(args), lines: &AtomicBool::new(!args.quiet) };
    measured_by(args, &sessions(args)?, schemes, process, showing)
}

fn measured_by(
    args: &RunArgs,
    sessions: &[RunParameters],
    schemes: &[RowAccessScheme],
    process: Process<'_>,
    showing: Showing<'_>,
) -> Result<Report, Failure> {
    let own = process.share.stretch(sessions.len());
    if own.is_empty() {
        let text = format!("{} sessions cannot be shared among {} processes", sessions.len(), process.share.of());
        return Err(Failure::session("target", text));
    }
    let database = open(schemes, &args.at.target, Opening::Existing)?;
    let ended = measure(&*database, &sessions[own.clone()], own.start, args, process, showing);
    let closed = database.close();
    let report = ended?;
    closed?;
    Ok(report)
}

/// Runs the sessions in parallel. Sessions are numbered across all processes, and `first` is the number of
/// `sessions[0]`.
fn measure(
    database: &dyn Database,
    sessions: &[RunParameters],
    first: usize,
    args: &RunArgs,
    process: Process<'_>,
    showing: Showing<'_>,
) -> Result<Report, Failure> {
    let Process { share, stop, metrics, begin: begin_together, watch } = process;
    let line_every = if args.is_compat() { Duration::ZERO } else { LINE_EVERY };
    let manner =
        |session| Manner { compat: args.is_compat(), in_server: args.in_server, seed: args.seed, session, line_every };
    let path = access_path(database, &sessions[0], &manner(first as u64))?;
    database.make_jobs()?;
    begin_together();
    let pages_before = database.page_reads();
    if let Some(metrics) = metrics {
        metrics.begin("rows", &args.at.target, &[]);
    }
    let meter = Meter::start(database.used());
    let begin = Barrier::new(sessions.len());
    let seconds = Seconds::begin(sessions.len());
    let run = || {
        beside(sessions, |number, parameters| {
            begin.wait();
            let say = |line: &str| {
                if showing.lines.load(Ordering::Relaxed) {
                    say(line);
                }
            };
            let manner = manner((first + number) as u64);
            if metrics.is_none() && !showing.intervals {
                return row_access::run::run(database, parameters, &manner, stop.flag(), &say);
            }
            let each = |group: &Interval| {
                if let Some(metrics) = metrics {
                    metrics.add(group);
                }
                if showing.intervals {
                    seconds.add(number, group);
                }
            };
            let batches = Batches::new(&each);
            row_access::run::run_watched(database, parameters, &manner, stop.flag(), &say, &|batch| batches.add(batch))
        })
    };
    let ended = if showing.intervals { seconds.watched(run, watch) } else { run() };
    let pages = database.page_reads().zip(pages_before).map(|(after, before)| after.saturating_sub(before));
    let ran = ended.into_iter().collect::<Result<Vec<Ran>, Failure>>()?;
    let settings = database.settings().into_iter().map(Pair::from).collect();
    let share = (!share.is_whole()).then_some(share);
    Ok(Report::new(args, share, settings, &ran, (pages, meter.cost(database.used())), path))
}

/// Describes how the database finds the rows of a range that the run reads, and of one that it updates.
fn access_path(database: &dyn Database, parameters: &RunParameters, manner: &Manner) -> Result<String, Failure> {
    let access = Access { table: parameters.table(), prepared: parameters.prepared, index_only: parameters.index_only };
    let (first, last) = Ranges::new(parameters, manner).draw();
    let mut text = String::new();
    if parameters.pct_update < 100 {
        text.push_str(&format!("read of keys {first} to {last}:\n"));
        text.push_str(&database.access_path(&access, Statement::Read, first, last)?);
    }
    if parameters.pct_update > 0 {
        text.push_str(&format!("update of keys {first} to {last}:\n"));
        text.push_str(&database.access_path(&access, Statement::Update, first, last)?);
    }
    Ok(text)
}

fn print_history(args: &ResultsArgs, schemes: &[RowAccessScheme]) -> Result<Ending, Failure> {
    let database = open(schemes, &args.at.target, Opening::ReadOnly)?;
    let jobs = database.jobs(args.limit)?;
    database.close()?;
    print(&history::table(&jobs))?;
    Ok(Ending::Good)
}

fn clean(args: &CleanArgs, schemes: &[RowAccessScheme]) -> Result<Ending, Failure> {
    let mut parameters = SetupParameters::default();
    set_all([("tab_prefix", args.at.tab_prefix.as_deref())], &[], |name, text| parameters.set(name, text))?;
    let database = open(schemes, &args.at.target, Opening::Existing)?;
    let names = database.clean(&parameters.tab_prefix, !args.keep_results)?;
    database.close()?;
    for name in names {
        print(&format!("dropped {name}\n"))?;
    }
    Ok(Ending::Good)
}
