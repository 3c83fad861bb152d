//! `larch bench search`: finds the highest rate of a workload that meets an objective, with the bounds between which it
//! lies, and says if the client was the limit.

mod limit;
mod report;
mod steps;

use crate::args::{SearchArgs, SearchedArgs};
use crate::ending::Ending;
use crate::live::Live;
use crate::live::view::Head;
use crate::objective::Objective;
use crate::rated::Rated;
use crate::stop::Stop;
use crate::{Stores, kv_command, print, results, say, ycsb_command};
use harness::report::{Run, text};
use harness::{Failure, Interval, Measure, Measured};
use limit::Limit;
use report::Search;
use steps::{Options, Verdict};

/// A run of a search.
pub struct Tried {
    /// The rate. `None` for the first run, which finds out where to begin.
    pub rate: Option<f64>,
    /// The percentile of the objective, if enough requests were served to know it.
    pub nanos: Option<u64>,
    /// Whether the run met the objective.
    pub verdict: Verdict,
    /// What limited the run, if it was the client.
    pub limit: Option<Limit>,
    /// The run.
    pub run: Run,
}

/// Why a search ended before its time.
enum Early {
    /// By ^C.
    Interrupted,
    /// A run failed: by the store (`true`), or because its operations did.
    Run(bool, String),
    /// A run did not begin.
    Failed(Failure),
}

/// Runs the command.
pub fn run(args: &SearchArgs, stores: Stores<'_>) -> Result<Ending, Failure> {
    let files = match &args.workload {
        SearchedArgs::Ycsb(ycsb) => &ycsb.files,
        SearchedArgs::Kv(kv) => &kv.files,
    };
    results::check_all(args.named().chain(files.named()))?;
    let stop = Stop::catch()?;
    let mut rated: Box<dyn Rated + '_> = match &args.workload {
        SearchedArgs::Ycsb(ycsb) => Box::new(ycsb_command::rated::open(ycsb, stores.key_value, &stop)?),
        SearchedArgs::Kv(kv) => Box::new(kv_command::rated::open(kv, stores.partitions, &stop)?),
    };
    let (tried, options, early) = searched(args, &mut *rated);
    let runs: Vec<&Run> = tried.iter().map(|tried| &tried.run).collect();
    let written = if runs.is_empty() { Ok(()) } else { rated.write(&runs) };
    let name = rated.name();
    let closed = rated.close();
    let ended = match early {
        Some(Early::Failed(failure)) if tried.is_empty() => return Err(failure),
        ended => ended,
    };
    let runs: Vec<(f64, Verdict)> = tried.iter().filter_map(|tried| Some((tried.rate?, tried.verdict))).collect();
    let found = options.map_or_else(steps::Found::default, |options| steps::found(options, &runs));
    let search = Search { name, objective: args.objective, precision: args.precision, tried, found };
    let (is_failed, why) = match &ended {
        None => (false, None),
        Some(Early::Interrupted) => (false, Some("interrupted: this is what was tried until then".to_owned())),
        Some(Early::Run(is_lost, why)) => (*is_lost, Some(why.clone())),
        Some(Early::Failed(failure)) => (true, Some(failure.to_string())),
    };
    let printed = print(&report::text(&search, why.as_deref()));
    let json = args.json.as_deref().map_or(Ok(()), |path| results::write(path, &report::json(&search, why.as_deref())));
    let page = || report::page(&search, why.as_deref()).html();
    let page = args.page.as_deref().map_or(Ok(()), |path| results::write(path, page().as_bytes()));
    printed.and(written).and(json).and(page).and(closed)?;
    Ok(match ended {
        _ if is_failed => Ending::Failed,
        Some(Early::Interrupted) => Ending::Interrupted,
        Some(_) => Ending::Bad,
        None if search.found.lower.is_none() => Ending::Bad,
        None => Ending::Good,
    })
}

/// Makes the runs, and returns them with the options of the search and the reason why it ended before its time. The
/// options are missing if the search ended before its first rate was known.
fn searched(args: &SearchArgs, rated: &mut dyn Rated) -> (Vec<Tried>, Option<Options>, Option<Early>) {
    if !rated.is_quiet() {
        say(&format!("{}: searching the highest rate with {}", rated.name(), args.objective));
    }
    let mut searching = Searching { objective: args.objective, rated, tried: Vec::new(), live: None };
    let first = match searching.rated.first_rate() {
        Some(rate) => rate,
        None => match searching.run(None) {
            Ok(_) => searching.tried[0].run.measured.per_second(),
            Err(early) => return (searching.tried, None, Some(early)),
        },
    };
    let options = Options { first, precision: args.precision, repeats: args.repeats };
    let ended = steps::search(options, |rate| searching.run(Some(rate)));
    (searching.tried, Some(options), ended.err())
}

/// A search that goes on.
struct Searching<'s> {
    objective: Objective,
    rated: &'s mut dyn Rated,
    tried: Vec<Tried>,
    /// The view of all runs, which is there from the first one on. It keeps the lines about the runs until it ends.
    live: Option<Live>,
}

impl Searching<'_> {
    /// Makes a run, and says how it went.
    fn run(&mut self, rate: Option<f64>) -> Result<Verdict, Early> {
        let number = self.tried.len() + 1;
        self.begin_view(number, rate).map_err(Early::Failed)?;
        let live = &mut self.live;
        let mut watch = |interval: &Interval| {
            live.as_mut().map(|live| live.add(interval));
        };
        let mut ran = self.rated.run(rate, &mut watch).map_err(Early::Failed)?;
        let measured = &ran.run.measured;
        let nanos = self.objective.of(Measure::sum(&measured.kinds).times());
        let verdict = verdict(self.objective, nanos, rate, measured);
        let limit = (verdict == Verdict::Missed && rate.is_some())
            .then(|| Limit::of(&ran.run, self.objective, self.rated.is_networked()))
            .flatten();
        if measured.interrupted {
            return Err(Early::Interrupted);
        }
        let error = ran.run.error.clone();
        ran.run.name = match rate {
            Some(rate) => format!("run {number} at {} op/s", text::rate(rate)),
            None => format!("run {number} without a rate"),
        };
        let one = Tried { rate, nanos, verdict, limit, run: ran.run };
        if !self.rated.is_quiet() {
            say(&report::line(self.objective, &one));
        }
        self.tried.push(one);
        match error {
            // An overloaded store may refuse operations. This is a missed objective, and no reason to end.
            Some(why) if ran.is_lost || verdict != Verdict::Missed || rate.is_none() => {
                Err(Early::Run(ran.is_lost, why))
            }
            _ => Ok(verdict),
        }
    }

    /// Begins the view of a run.
    fn begin_view(&mut self, number: usize, rate: Option<f64>) -> Result<(), Failure> {
        let head = self.rated.head(rate)?;
        let head = Head { name: format!("{}, run {number} for {}", head.name, self.objective), ..head };
        match &mut self.live {
            Some(live) => live.begin(head),
            None => self.live = Some(Live::new(head, !self.rated.is_quiet() && !self.rated.is_plain())),
        }
        Ok(())
    }
}

/// Whether a run met the objective.
fn verdict(objective: Objective, nanos: Option<u64>, rate: Option<f64>, measured: &Measured) -> Verdict {
    let due = rate.map_or(0.0, |rate| rate * measured.nanos as f64 / 1e9);
    let is_late = measured.unsent as f64 * 100.0 > due.max(1.0) && rate.is_some();
    let all = measured.operations + measured.failed;
    let has_failed = measured.failed * 100 > all;
    match nanos {
        _ if is_late || has_failed => Verdict::Missed,
        Some(nanos) if nanos < objective.bound_nanos => Verdict::Met,
        Some(_) => Verdict::Missed,
        None => Verdict::TooFew,
    }
}
