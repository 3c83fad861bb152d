//! A run of the key-value driver whose rate a search varies: the database is opened once, and every run on it has a
//! rate of its own.

use super::{Asked, measure, plan, setup, usage};
use crate::args::kv::KvArgs;
use crate::ending::Ran;
use crate::live::view::Head;
use crate::rated::{Rated, WINDOW};
use crate::stop::Stop;
use crate::workers::Process;
use crate::{metrics, results, say};
use harness::{Failure, Interval, Length, Prometheus, Share};
use kv::{Database, KvScheme};

/// The run, and the database that it is made on.
pub struct RatedKv<'a> {
    args: KvArgs,
    asked: Asked<'a>,
    first_rate: Option<f64>,
    stop: &'a Stop,
    metrics: Option<Prometheus>,
    database: Box<dyn Database>,
}

/// Opens the database of a run.
///
/// # Errors
///
/// Fails if the options do not fit a search, or if the database cannot be opened.
pub fn open<'a>(args: &KvArgs, schemes: &'a [KvScheme], stop: &'a Stop) -> Result<RatedKv<'a>, Failure> {
    if args.together.share.is_some() || !args.together.workers.is_empty() {
        return Err(usage("a search is made by one process: leave --workers and --share out"));
    }
    if args.hdr_latency_file.is_some() {
        return Err(usage("a search makes many runs, and -hdr-latency-file is of one: leave it out"));
    }
    let mut args = args.clone();
    if args.duration.is_zero() && args.operations.is_none() {
        args.duration = WINDOW;
    }
    let asked = Asked::new(&args, schemes)?;
    let setup = setup(&args, &asked.options, Share::WHOLE);
    if plan(&args, &asked.options, &setup).length == Length::All {
        let workload = asked.options.workload.name();
        return Err(usage(format!(
            "-workload {workload} ends with its rows, so its runs have no length: search the rate of another workload, or give --operations"
        )));
    }
    results::check_all(args.files.named())?;
    asked.notes.iter().for_each(|note| say(&format!("larch: {note}")));
    let metrics = metrics::serve(args.metrics.as_deref())?;
    let database = (asked.scheme.open)(&asked.target, &setup)?;
    Ok(RatedKv { args, first_rate: asked.options.max_rate, asked, stop, metrics, database })
}

impl Rated for RatedKv<'_> {
    fn name(&self) -> String {
        self.asked.name()
    }

    fn first_rate(&self) -> Option<f64> {
        self.first_rate
    }

    fn is_networked(&self) -> bool {
        self.asked.scheme.networked
    }

    fn is_quiet(&self) -> bool {
        self.args.quiet
    }

    fn is_plain(&self) -> bool {
        self.args.plain
    }

    fn head(&self, rate: Option<f64>) -> Result<Head, Failure> {
        let options = kv::Options { max_rate: rate, ..self.asked.options.clone() };
        let whole = plan(&self.args, &options, &setup(&self.args, &options, Share::WHOLE));
        Ok(Head::of_plan(self.name(), &self.asked.target.text, &whole))
    }

    fn run(&mut self, rate: Option<f64>, watch: &mut dyn FnMut(&Interval)) -> Result<Ran, Failure> {
        self.asked.options.max_rate = rate;
        let process = Process {
            share: Share::WHOLE,
            stop: self.stop,
            metrics: self.metrics.as_ref(),
            begin: &mut || {},
            watch: &mut |interval| {
                if let Some(metrics) = &self.metrics {
                    metrics.add(interval);
                }
                watch(interval);
            },
        };
        let ran = measure(&*self.database, &self.args, &self.asked, process)?;
        // Another seed, or the next run would find the rows of this one in memory. Only the first run empties the table.
        self.asked.options.seed = self.asked.options.seed.wrapping_add(1);
        self.args.truncate_table = false;
        Ok(ran)
    }

    fn write(&self, runs: &[&harness::report::Run]) -> Result<(), Failure> {
        results::write_files(&self.args.files, runs)
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        self.database.close()
    }
}
