//! `larch bench rows`: row access on a target, its history and its result.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "sessions are threads of a real machine, never simulated"
)]

use crate::args::{CleanArgs, ResultsArgs, RowsCommand, RunArgs, SetupArgs};
use crate::metrics::{self, Batches};
use crate::stop::Stop;
use crate::targets::canonical;
use crate::{print, results, say};
use harness::cost::{Meter, Million};
use harness::report::{Environment, Pair, without_password};
use harness::{Failure, Prometheus, Target};
use row_access::run::{Manner, Ran, Ranges};
use row_access::setup::Ended;
use row_access::{
    Access, Database, Job, Opening, RunParameters, Scheme, SetupParameters, Statement, history, parameters,
};
use serde::Serialize;
use std::path::Path;
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It was done.
    Good,
    /// No row was accessed.
    Bad,
    /// ^C.
    Interrupted,
}

/// Lines of a session are printed at most so often, unless ybio's are asked for.
const LINE_EVERY: Duration = Duration::from_millis(500);

/// Does what `command` says.
pub fn run(command: &RowsCommand, schemes: &[Scheme]) -> Result<Ending, Failure> {
    match command {
        RowsCommand::Setup(args) => setup(args, schemes),
        RowsCommand::Run(args) => run_sessions(args, schemes),
        RowsCommand::Results(args) => print_history(args, schemes),
        RowsCommand::Clean(args) => clean(args, schemes),
    }
}

fn open(schemes: &[Scheme], text: &str, opening: Opening) -> Result<Box<dyn Database>, Failure> {
    let target = Target::parse(text)?;
    let name = canonical(&target.scheme);
    let known = || schemes.iter().map(|scheme| scheme.name).collect::<Vec<_>>().join(", ");
    let scheme = schemes.iter().find(|scheme| scheme.name == name).ok_or_else(|| {
        let text =
            format!("target `{}`: this binary has no row access for `{name}`, but for {}", target.shown(), known());
        Failure::session("target", text)
    })?;
    (scheme.open)(&target, opening)
}

/// Sets options first, and then what is given in ybio's spelling.
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

/// The numbers of `count` tables from `first` on.
fn numbers(first: u32, count: u32) -> Result<Vec<u32>, Failure> {
    let last = first + count - 1;
    if last > 9999 {
        return Err(Failure::session("target", format!("tab_num {last} has more than four digits: make fewer tables")));
    }
    Ok((first..=last).collect())
}

/// Runs `each` on a thread for each item. The results come in the order of the items.
fn beside<I: Sync, T: Send>(items: &[I], each: impl Fn(usize, &I) -> T + Sync) -> Vec<T> {
    thread::scope(|scope| {
        let each = &each;
        let threads: Vec<_> =
            items.iter().enumerate().map(|(number, item)| scope.spawn(move || each(number, item))).collect();
        let joined = threads.into_iter().map(|thread| thread.join());
        joined.map(|joined| joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    })
}

fn setup(args: &SetupArgs, schemes: &[Scheme]) -> Result<Ending, Failure> {
    let mut parameters = SetupParameters::default();
    set_all(args.options(), &args.parameters, |name, text| parameters.set(name, text))?;
    let tables: Vec<SetupParameters> = numbers(parameters.tab_num, args.tables)?
        .into_iter()
        .map(|tab_num| SetupParameters { tab_num, ..parameters.clone() })
        .collect();
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

fn run_sessions(args: &RunArgs, schemes: &[Scheme]) -> Result<Ending, Failure> {
    let mut parameters = RunParameters::default();
    set_all(args.options(), &args.parameters, |name, text| parameters.set(name, text))?;
    if let Some(out) = &args.out {
        results::check_one("--out", out)?;
    }
    let sessions: Vec<RunParameters> = numbers(parameters.tab_num, args.tables)?
        .into_iter()
        .map(|tab_num| RunParameters { tab_num, ..parameters.clone() })
        .flat_map(|table| std::iter::repeat_n(table, args.sessions as usize))
        .collect();
    let stop = Stop::catch()?;
    let metrics = metrics::serve(args.metrics.as_deref())?;
    let database = open(schemes, &args.at.target, Opening::Existing)?;
    let ended = measure(&*database, &sessions, args, &stop, metrics.as_ref());
    let closed = database.close();
    let (ending, text) = ended?;
    closed?;
    print(&text)?;
    Ok(if stop.is_pressed() { Ending::Interrupted } else { ending })
}

/// Runs all sessions side by side. Returns what is printed of it.
fn measure(
    database: &dyn Database,
    sessions: &[RunParameters],
    args: &RunArgs,
    stop: &Stop,
    metrics: Option<&Prometheus>,
) -> Result<(Ending, String), Failure> {
    let line_every = if args.is_compat() { Duration::ZERO } else { LINE_EVERY };
    let manner =
        |session| Manner { compat: args.is_compat(), in_server: args.in_server, seed: args.seed, session, line_every };
    let path = access_path(database, &sessions[0], &manner(0))?;
    let pages_before = database.page_reads();
    if let Some(metrics) = metrics {
        metrics.begin("rows", &args.at.target, &[]);
    }
    let meter = Meter::start(database.used());
    let begin = Barrier::new(sessions.len());
    let ended = beside(sessions, |number, parameters| {
        begin.wait();
        let quiet = |_: &str| {};
        let say: &dyn Fn(&str) = if args.quiet { &quiet } else { &say };
        let manner = manner(number as u64);
        match metrics {
            None => row_access::run::run(database, parameters, &manner, stop.flag(), say),
            Some(metrics) => {
                let shown = Batches::new(metrics);
                row_access::run::run_watched(database, parameters, &manner, stop.flag(), say, &|batch| shown.add(batch))
            }
        }
    });
    let pages = database.page_reads().zip(pages_before).map(|(after, before)| after.saturating_sub(before));
    let ran = ended.into_iter().collect::<Result<Vec<Ran>, Failure>>()?;
    let mut report = Report::new(database, sessions, args, &ran, pages, path);
    report.million = meter.million(report.rows, database.used(), args.price);
    if let Some(out) = &args.out {
        let json = serde_json::to_vec_pretty(&report).expect("names are texts");
        results::write(out, &json)?;
    }
    let ending = if report.rows == 0 { Ending::Bad } else { Ending::Good };
    Ok((ending, report.text(&ran)))
}

/// How the database finds the rows of a range, and of one that is updated if the run updates rows.
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

/// The result of a run, as a file has it.
#[derive(Debug, Serialize)]
struct Report {
    format: &'static str,
    version: u32,
    environment: Environment,
    target: String,
    settings: Vec<Pair>,
    /// ybio's keys and ranges.
    compat: bool,
    in_server: bool,
    seed: u64,
    sessions: Vec<SessionReport>,
    /// Rows of all sessions.
    rows: u64,
    /// From the first begin to the last end.
    seconds: f64,
    rows_per_second: f64,
    page_reads: Option<u64>,
    page_reads_per_second: Option<f64>,
    /// What an hour of a processor costs.
    price: Option<f64>,
    /// What a million rows cost.
    million: Million,
    access_path: String,
}

#[derive(Debug, Serialize)]
struct SessionReport {
    job: Job,
    rows_per_second: Option<i64>,
    updated: u64,
    repeated_batches: u64,
    missing_rows: u64,
    batch_micros: BatchTimes,
}

#[derive(Debug, Serialize)]
struct BatchTimes {
    mean: f64,
    p50: f64,
    p99: f64,
    max: f64,
}

impl Report {
    fn new(
        database: &dyn Database,
        sessions: &[RunParameters],
        args: &RunArgs,
        ran: &[Ran],
        page_reads: Option<u64>,
        access_path: String,
    ) -> Self {
        assert_eq!(sessions.len(), ran.len());
        let rows = ran.iter().map(|ran| ran.job.num_rows.unwrap_or(0).unsigned_abs()).sum();
        let begin = ran.iter().map(|ran| ran.job.start_time).min();
        let end = ran.iter().filter_map(|ran| ran.job.end_time).max();
        let seconds = begin.zip(end).map_or(0.0, |(begin, end)| end.since(begin).as_secs_f64()).max(1e-6);
        let micros = |nanos: u64| nanos as f64 / 1e3;
        let session = |ran: &Ran| SessionReport {
            job: ran.job.clone(),
            rows_per_second: ran.job.riops(),
            updated: ran.updated,
            repeated_batches: ran.repeated,
            missing_rows: ran.missing,
            batch_micros: BatchTimes {
                mean: ran.times.mean() / 1e3,
                p50: micros(ran.times.quantile(0.5)),
                p99: micros(ran.times.quantile(0.99)),
                max: micros(ran.times.max()),
            },
        };
        Self {
            format: "larch-rows-result",
            version: 1,
            environment: Environment::gather(results::VERSION, Path::new(".")),
            target: without_password(&args.at.target),
            settings: database.settings().into_iter().map(Pair::from).collect(),
            compat: args.is_compat(),
            in_server: args.in_server,
            seed: args.seed,
            sessions: ran.iter().map(session).collect(),
            rows,
            seconds,
            rows_per_second: rows as f64 / seconds,
            page_reads,
            page_reads_per_second: page_reads.map(|pages| pages as f64 / seconds),
            price: args.price,
            million: Million::default(),
            access_path,
        }
    }

    fn text(&self, ran: &[Ran]) -> String {
        let mut text = format!("{}\n", self.access_path);
        let mut jobs: Vec<Job> = ran.iter().map(|ran| ran.job.clone()).collect();
        jobs.sort_by_key(|job| std::cmp::Reverse(job.job_id));
        text.push_str(&history::table(&jobs));
        let sessions = ran.len();
        text.push_str(&format!(
            "\nrows a second: {:.0} in {sessions} session{}\n",
            self.rows_per_second,
            if sessions == 1 { "" } else { "s" }
        ));
        text.push_str(&match self.page_reads_per_second {
            Some(pages) => format!("page reads a second: {pages:.0}\n"),
            None => "page reads a second: this database does not count them\n".to_owned(),
        });
        if let Some(million) = self.million.text() {
            text.push_str(&format!("a million rows: {million}\n"));
        }
        for session in self.sessions.iter().filter(|session| session.batch_micros.max > 0.0) {
            let BatchTimes { mean, p50, p99, max } = session.batch_micros;
            text.push_str(&format!(
                "job {}, a batch: mean {mean:.0} us, 50 % within {p50:.0} us, 99 % within {p99:.0} us, longest {max:.0} us\n",
                session.job.job_id
            ));
        }
        let missing: u64 = self.sessions.iter().map(|session| session.missing_rows).sum();
        if missing > 0 {
            let why = match self.compat {
                true => "keys of ybio begin behind the number of batches",
                false => "the table has fewer than tab_rows, or it was set up with --compat",
            };
            text.push_str(&format!("{missing} rows of the ranges were not there: {why}\n"));
        }
        let repeated: u64 = self.sessions.iter().map(|session| session.repeated_batches).sum();
        if repeated > 0 {
            text.push_str(&format!("{repeated} batches were begun again, because another session was in their way\n"));
        }
        if self.compat {
            text.push_str("--compat: the ranges of ybio, which leave out the last rows of the table\n");
        }
        if self.rows == 0 {
            text.push_str("no row was accessed: set the table up first, with as many rows as tab_rows\n");
        }
        text
    }
}

fn print_history(args: &ResultsArgs, schemes: &[Scheme]) -> Result<Ending, Failure> {
    let database = open(schemes, &args.at.target, Opening::ReadOnly)?;
    let jobs = database.jobs(args.limit)?;
    database.close()?;
    print(&history::table(&jobs))?;
    Ok(Ending::Good)
}

fn clean(args: &CleanArgs, schemes: &[Scheme]) -> Result<Ending, Failure> {
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
