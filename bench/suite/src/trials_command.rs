//! `larch bench compare-trials`: measures how reliable comparisons are on this machine. It first compares pairs of
//! runs of this build and counts false differences. Then it slows runs down on purpose, and counts how often a
//! comparison finds the slow-down.

use crate::args::TrialsArgs;
use crate::compare_command::{Results, compared};
use crate::rounds::{Rounds, What, single, this_program};
use crate::stop::Stop;
use crate::{print, say};
use compare::Verdict;
use harness::Failure;
use harness::report::Report;
use kit::goals::{Bound, summary, word};
use std::path::Path;
use std::time::Duration;

/// The number of runs on each side of a trial.
const SIDE: u32 = 5;
/// The share of pairs that must show no difference, and the share of trials that must find the slow-down.
const GOALS: [f64; 2] = [0.97, 0.9];

/// Runs the trials. Returns whether both goals are reached.
pub fn run(args: &TrialsArgs) -> Result<bool, Failure> {
    let stop = Stop::catch()?;
    let rounds = Rounds::new(&args.runs, &stop)?;
    let program = this_program()?;
    rounds.load(&program, &args.workload)?;
    let mut trials = Trials { args, rounds, program: &program, seed: 0, rates: Vec::new(), operation_nanos: 0.0 };

    let options = compare::Options { despite_differences: true, ..args.how.options() };
    let mut alike = 0;
    for pair in 1..=args.pairs {
        let (base, new) = (vec![trials.one(Duration::ZERO)?], vec![trials.one(Duration::ZERO)?]);
        let found = compared(&base, &new, options)?;
        let differs = found.deciding(Verdict::Worse).chain(found.deciding(Verdict::Better)).next();
        alike += u32::from(differs.is_none());
        if let Some((_, row)) = differs {
            say(&format!(
                "pair {pair}: {} {} differs by {:+.1} %",
                row.kind,
                row.name,
                100.0 * row.difference.unwrap_or(0.0)
            ));
        }
        say(&format!("{alike} of {pair} pairs show no difference"));
    }
    let mut found = 0;
    let mut slower = Vec::new();
    for trial in 1..=args.trials {
        let longer = Duration::from_nanos((trials.operation_nanos * args.slower).round() as u64);
        let (mut base, mut new): (Results, Results) = (Vec::new(), Vec::new());
        for turn in 0..SIDE {
            // The sides alternate in going first, so that neither always follows the other.
            if turn % 2 == 0 {
                base.push(trials.one(Duration::ZERO)?);
                new.push(trials.one(longer)?);
            } else {
                new.push(trials.one(longer)?);
                base.push(trials.one(Duration::ZERO)?);
            }
        }
        let comparison = compared(&base, &new, options)?;
        let rate = comparison.runs[0].rows.iter().find(|row| row.decides && row.kind == "all");
        slower.extend(rate.and_then(|row| row.difference));
        found += u32::from(comparison.deciding(Verdict::Worse).next().is_some());
        say(&format!("{found} of {trial} trials find the slow-down of {} ns a request", longer.as_nanos()));
    }
    let is_good = trials.told(alike, found, &slower)?;
    Ok(is_good)
}

struct Trials<'a> {
    args: &'a TrialsArgs,
    rounds: Rounds<'a>,
    program: &'a Path,
    seed: u32,
    /// Operations per second of each run that was not slowed down.
    rates: Vec<f64>,
    /// Client processor time of an operation in the last run that was not slowed down. All rows are in memory, so
    /// on an idle machine an operation takes no other time. On a busy machine, the loop that slows requests down is
    /// stretched like everything else.
    operation_nanos: f64,
}

impl Trials<'_> {
    fn one(&mut self, slow_down: Duration) -> Result<(String, Report), Failure> {
        self.seed += 1;
        let what = What { workload: &self.args.workload, seed: self.seed, slow_down };
        let report = self.rounds.run(self.program, &what)?;
        if slow_down.is_zero() {
            let measured = &single(&report)?.measured;
            self.rates.push(measured.per_second());
            self.operation_nanos = measured.cost.client_nanos as f64 / measured.operations.max(1) as f64;
        }
        Ok((format!("run {}", self.seed), report))
    }

    /// Prints the result, and returns whether both goals were reached.
    fn told(&self, alike: u32, found: u32, slower: &[f64]) -> Result<bool, Failure> {
        let args = self.args;
        let mean = self.rates.iter().sum::<f64>() / self.rates.len() as f64;
        let (least, most) = kit::median::extremes(&self.rates);
        let squares: f64 = self.rates.iter().map(|rate| (rate - mean).powi(2)).sum();
        let deviation = (squares / (self.rates.len().max(2) - 1) as f64).sqrt() / mean;
        let mut text = format!(
            "workload {} on Larch, {} records, one client; runs of {:?} after {:?}, each a process of its own\n\
             {} runs of one build: {:.0} operations/s, standard deviation {:.2} %, least to greatest {:.1} %\n\
             slowed down by {:.1} %: throughput fell by {:.1} % at the median of the trials\n",
            args.workload,
            args.runs.records,
            args.runs.time,
            args.runs.warmup,
            self.rates.len(),
            mean,
            100.0 * deviation,
            100.0 * (most - least) / mean,
            100.0 * args.slower,
            -100.0 * kit::median(slower),
        );
        let lines = [
            (format!("pairs of runs without a difference, of {}", args.pairs), alike, args.pairs),
            (
                format!("comparisons of {SIDE} runs a side that find the slow-down, of {}", args.trials),
                found,
                args.trials,
            ),
        ];
        let mut short = 0;
        for ((what, count, all), goal) in lines.into_iter().zip(GOALS) {
            let bound = Bound::AtLeast(goal);
            let is_reached = bound.is_reached(f64::from(count) / f64::from(all));
            short += usize::from(!is_reached);
            text.push_str(&format!("{what}: {count}; goal: {:.0} % of them: {}\n", 100.0 * goal, word(is_reached)));
        }
        text.push_str(&summary(short));
        print(&text)?;
        Ok(short == 0)
    }
}
