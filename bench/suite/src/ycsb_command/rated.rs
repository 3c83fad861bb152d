//! A run of YCSB whose rate a search varies: the store is opened once, and every run on it has a rate of its own.

use super::phase::{self, Phase};
use super::{Measuring, check_options, phases, usage};
use crate::args::{Action, YcsbArgs};
use crate::ending::Ran;
use crate::live::view::Head;
use crate::rated::{Rated, WINDOW};
use crate::stop::Stop;
use crate::workers::Process;
use crate::{metrics, results, say, targets};
use harness::{Failure, Interval, Opening, Pace, Prometheus, Scheme, Share, Target};

/// The run, and the store that it is made on.
pub struct RatedYcsb<'a> {
    args: YcsbArgs,
    phase: Phase,
    first_rate: Option<f64>,
    scheme: &'a Scheme,
    target: Target,
    stop: &'a Stop,
    metrics: Option<Prometheus>,
    store: Box<dyn harness::Store>,
}

/// Opens the store of a run of YCSB.
///
/// # Errors
///
/// Fails if the options do not fit a search, or if the store cannot be opened.
pub fn open<'a>(args: &YcsbArgs, schemes: &'a [Scheme], stop: &'a Stop) -> Result<RatedYcsb<'a>, Failure> {
    if args.action.is_some_and(|action| action != Action::Run) {
        return Err(usage("a search makes runs: write `ycsb` or `ycsb run`, and load the table before"));
    }
    if args.together.share.is_some() || !args.processes().workers.is_empty() {
        return Err(usage("a search is made by one process: leave --workers and --share out"));
    }
    let mut args = YcsbArgs { action: Some(Action::Run), ..args.clone() };
    if args.time.is_none() && args.operations.is_none() {
        args.time = Some(WINDOW);
    }
    let text = args.target.as_deref();
    let text = text.ok_or_else(|| usage("name the store: --target larch:DIR, or see `larch bench targets`"))?;
    let target = Target::parse(text)?;
    let scheme = targets::find_key_value(schemes, &target)?;
    check_options(Action::Run, &args)?;
    let phase = phases(Action::Run, &args)?.remove(0);
    phase::check(&phase, &args)?;
    if phase.settings.output.measure.is_raw() {
        return Err(usage("a search keeps no single times: leave measurementtype=raw out"));
    }
    results::check(&args, [])?;
    phase.settings.warnings.iter().for_each(|warning| say(&format!("larch: {warning}")));
    let first_rate = match phase::plan(&phase, &args)?.pace {
        Pace::Open { per_second } => Some(per_second),
        Pace::Closed => None,
    };
    let metrics = metrics::serve(args.metrics.as_deref())?;
    let store = {
        let target = target.clone();
        let mut opened = Measuring { args: &args, scheme, target, stop, metrics: None, store: None, done: Vec::new() };
        opened.open(&phase, Opening::Existing)?;
        opened.store.take().expect("it was opened")
    };
    Ok(RatedYcsb { args, phase, first_rate, scheme, target, stop, metrics, store })
}

impl RatedYcsb<'_> {
    /// The options of a run at `rate`.
    fn at(&self, rate: Option<f64>) -> YcsbArgs {
        YcsbArgs { rate, ..self.args.clone() }
    }
}

impl Rated for RatedYcsb<'_> {
    fn name(&self) -> String {
        phase::title(&self.phase)
    }

    fn first_rate(&self) -> Option<f64> {
        self.first_rate
    }

    fn is_networked(&self) -> bool {
        self.scheme.networked
    }

    fn is_quiet(&self) -> bool {
        self.args.quiet
    }

    fn is_plain(&self) -> bool {
        self.args.plain
    }

    fn head(&self, rate: Option<f64>) -> Result<Head, Failure> {
        let plan = phase::plan(&self.phase, &self.at(rate))?;
        Ok(Head::of_plan(self.name(), &self.target.text, &plan))
    }

    fn run(&mut self, rate: Option<f64>, watch: &mut dyn FnMut(&Interval)) -> Result<Ran, Failure> {
        let args = self.at(rate);
        let setup = phase::Setup { target: &self.target, scheme: self.scheme, args: &args };
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
        let done = phase::run(&self.phase, &*self.store, setup, process)?;
        // Another seed, or the next run would find the rows of this one in memory.
        self.phase.seed = self.phase.seed.wrapping_add(1);
        Ok(Ran { run: done.run, is_lost: done.is_store_lost })
    }

    fn write(&self, runs: &[&harness::report::Run]) -> Result<(), Failure> {
        results::write_all(&self.args, runs)
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        self.store.close()
    }
}
