//! Compares two sets of results: for each run name and kind of request, the figures of both sides, how far they
//! differ, and whether the difference is significant.
//!
//! **What decides.** If every figure seems to differ by chance in 1 % of the comparisons, then at least one of many
//! figures does so in far more than 1 %. So only some figures decide: the throughput of each run, and the p99 of
//! each kind of request with enough requests. Holm's correction is applied to all of them together. The other
//! figures are shown with their intervals but decide nothing.

use crate::batch_means::{mean, variance};
use crate::configuration::{self, Difference};
use crate::holm;
use crate::metric::{LEAST_REQUESTS, Metric, OF_KIND, OF_RUN};
use crate::welch::{self, Estimate};
use harness::report::{Environment, Report, Run};
use serde::Serialize;

#[cfg(test)]
pub mod tests;

/// How to compare.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Options {
    /// The significance level: the share of comparisons of equal runs that may still find a difference.
    pub level: f64,
    /// The least difference, as a fraction of the figure, that counts as a worsening or an improvement. A smaller
    /// one is neither, however certain it is.
    pub at_least: f64,
    /// The standard deviation between runs, as a fraction of the figure, that is assumed if each side has one run.
    pub spread: f64,
    /// The same as `spread`, for percentiles above the median.
    pub tail_spread: f64,
    /// The greatest worsening that "no difference" may hide. If the variation between runs could hide more, the
    /// verdict is [`Verdict::CannotTell`]. A worsening is the fraction by which a time is longer or, for a rate, by
    /// which the same work takes longer.
    pub tell: f64,
    /// Whether results are compared although the machine, the workload or the plan differs.
    pub despite_differences: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { level: 0.01, at_least: 0.01, spread: 0.02, tail_spread: 0.1, tell: 1.0, despite_differences: false }
    }
}

/// The result of a row for the new side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The new side is worse.
    Worse,
    /// The new side is better.
    Better,
    /// The difference is too small to matter.
    Small,
    /// No difference is shown.
    None,
    /// No difference is shown, but the runs vary so much that they could hide a worsening of more than
    /// [`Options::tell`].
    CannotTell,
    /// The runs do not show how certain a difference is.
    Unknown,
}

/// One figure of both sides.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The kind of request, or `all` for the whole run.
    pub kind: String,
    /// The name of the figure.
    pub name: String,
    /// Its unit.
    pub unit: &'static str,
    /// The mean of the base.
    pub base: f64,
    /// The mean of the new runs.
    pub new: f64,
    /// The standard deviation between the runs of the base, as a fraction of the mean; `None` for a single run.
    pub base_spread: Option<f64>,
    /// The same for the new runs.
    pub new_spread: Option<f64>,
    /// The new figure divided by the base, minus 1, if both are above 0.
    pub difference: Option<f64>,
    /// The confidence interval of the difference at 1 - level, for this row alone.
    pub interval: Option<(f64, f64)>,
    /// The worse end of the interval, as the fraction by which times are longer.
    pub may_be_worse_by: Option<f64>,
    /// The p-value of this row alone: the probability of at least this difference if the sides do not differ.
    pub p: Option<f64>,
    /// `p` after Holm's correction, for a row that decides.
    pub adjusted_p: Option<f64>,
    /// Whether the row decides.
    pub decides: bool,
    /// The result of the row.
    pub verdict: Verdict,
}

/// Runs of one name.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunRows {
    /// Their name.
    pub name: String,
    /// The number of runs in the base.
    pub base_runs: usize,
    /// The number of new runs.
    pub new_runs: usize,
    /// The length of the shortest window, in seconds.
    pub seconds: f64,
    /// The figures.
    pub rows: Vec<Row>,
}

/// A comparison.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The options with which it was made.
    pub options: Options,
    /// What differs besides the figures.
    pub differences: Vec<Difference>,
    /// Warnings that a reader must know before believing the figures.
    pub notes: Vec<String>,
    /// Why nothing can be told from these results, if that is so. Then no row decides.
    pub why_not: Option<String>,
    /// Runs, by name.
    pub runs: Vec<RunRows>,
}

/// The outcome of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// No figure that decides is worse.
    NotWorse,
    /// A figure that decides is worse.
    Worse,
    /// No figure is shown to be worse, but one may be: the sides are not the same work on the same machine, nothing
    /// says how certain a difference is, or the runs differ too much.
    CannotTell,
}

impl Comparison {
    /// The outcome.
    pub fn outcome(&self) -> Outcome {
        let has = |verdict| self.deciding(verdict).next().is_some();
        match (has(Verdict::Worse), self.why_not.is_some() || has(Verdict::CannotTell)) {
            (true, _) => Outcome::Worse,
            (false, true) => Outcome::CannotTell,
            (false, false) => Outcome::NotWorse,
        }
    }

    /// The rows that decide and have this `verdict`, each with the name of its run.
    pub fn deciding(&self, verdict: Verdict) -> impl Iterator<Item = (&str, &Row)> {
        let rows = self.runs.iter().flat_map(|run| run.rows.iter().map(|row| (run.name.as_str(), row)));
        rows.filter(move |(_, row)| row.decides && row.verdict == verdict)
    }

    /// Differences that forbid the comparison.
    pub fn forbidden(&self) -> impl Iterator<Item = &Difference> {
        self.differences.iter().filter(|difference| difference.forbids.is_some())
    }
}

type Side<'r> = Vec<(&'r Environment, &'r Run)>;

/// Compares the results `base` with the results `new`. Results come with the names of their files.
///
/// # Errors
///
/// Fails if a run failed, was interrupted or measured nothing, or if the sides have no run in common. The error is a
/// sentence.
pub fn compare(base: &[(String, Report)], new: &[(String, Report)], options: Options) -> Result<Comparison, String> {
    for (file, run) in base.iter().chain(new).flat_map(|(file, report)| report.runs.iter().map(move |run| (file, run)))
    {
        check(file, run)?;
    }
    let (of_base, of_new) = (names(base), names(new));
    let shared: Vec<&str> = of_base.iter().copied().filter(|name| of_new.contains(name)).collect();
    if shared.is_empty() {
        return Err(format!(
            "no run of the base has the name of a new one: the base has {}; the new results have {}",
            listed(&of_base),
            listed(&of_new)
        ));
    }
    let mut notes = Vec::new();
    for (side, names, others) in [("base", &of_base, &of_new), ("new results", &of_new, &of_base)] {
        for name in names.iter().filter(|name| !others.contains(name)) {
            notes.push(format!("{name} is in the {side} alone and is not compared"));
        }
    }
    let mut runs = Vec::new();
    let mut differences = Vec::new();
    for name in shared {
        let (base, new) = (side(base, name), side(new, name));
        differences.push(configuration::differences(name, &base, &new));
        notes.extend(notes_of(name, &base, &new, options));
        runs.push(rows(name, &base, &new, options));
    }
    let differences = configuration::merged(differences);
    let is_forbidden = differences.iter().any(|difference| difference.forbids.is_some());
    let mut comparison = Comparison { options, differences, notes, why_not: None, runs };
    decide(&mut comparison.runs, options);
    if is_forbidden && !options.despite_differences {
        comparison.why_not = Some(
            "the results are not those of the same work on the same machine, as the differences above that are marked show. Measure \
             them alike; --despite-differences compares them as they are"
                .to_owned(),
        );
        comparison.runs.clear();
    } else if comparison.runs.iter().flat_map(|run| &run.rows).all(|row| !row.decides) {
        comparison.why_not = Some(
            "one run a side, each in a single interval, does not say how sure anything is. Measure for some seconds, or repeat the runs"
                .to_owned(),
        );
    }
    Ok(comparison)
}

/// Fails if a run failed, was interrupted or measured nothing.
fn check(file: &str, run: &Run) -> Result<(), String> {
    let why = match &run.error {
        Some(error) => format!("failed: {error}"),
        None if run.measured.interrupted => "was interrupted".to_owned(),
        None if run.measured.operations == 0 => "measured nothing".to_owned(),
        None => return Ok(()),
    };
    Err(format!("{file}: {} {why}; measure it again", run.name))
}

fn names(results: &[(String, Report)]) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for run in results.iter().flat_map(|(_, report)| &report.runs) {
        if !names.contains(&run.name.as_str()) {
            names.push(&run.name);
        }
    }
    names
}

fn listed(names: &[&str]) -> String {
    if names.is_empty() { "no run".to_owned() } else { names.join(", ") }
}

fn side<'r>(results: &'r [(String, Report)], name: &str) -> Side<'r> {
    let runs = results.iter().flat_map(|(_, report)| report.runs.iter().map(|run| (&report.environment, run)));
    runs.filter(|(_, run)| run.name == name).collect()
}

fn notes_of(name: &str, base: &Side<'_>, new: &Side<'_>, options: Options) -> Vec<String> {
    let mut notes = Vec::new();
    if base.len() == 1 && new.len() == 1 {
        notes.push(format!(
            "{name}: one run a side does not show how runs of one build differ; a standard deviation of {} between them is \
             assumed, and of {} for percentiles above the median. Repeat the runs, five a side",
            percent(options.spread),
            percent(options.tail_spread)
        ));
    } else if base.len().min(new.len()) == 1 {
        notes.push(format!("{name}: the side with one run is taken to vary as the runs of the other do"));
    }
    let begins = |side: &Side<'_>| side.iter().map(|(_, run)| run.measured.began_unix_millis).collect::<Vec<_>>();
    let (of_base, of_new) = (begins(base), begins(new));
    let all_before = |first: &[u64], then: &[u64]| first.iter().max() < then.iter().min();
    let apart = all_before(&of_base, &of_new) || all_before(&of_new, &of_base);
    if base.len() > 1 && new.len() > 1 && apart {
        notes.push(format!(
            "{name}: the runs of the two sides were not made in turns, so whatever changed on the machine in between looks \
             like a difference of the sides"
        ));
    }
    for (side, runs) in [("base", base), ("new", new)] {
        let failed: u64 = runs.iter().map(|(_, run)| run.measured.failed).sum();
        if failed > 0 {
            notes.push(format!("{name}, {side}: {failed} operations failed, and are in no time"));
        }
        if let Some(short) = runs.iter().find_map(|(_, run)| run.short_window()) {
            notes.push(format!("{name}, {side}: {short}"));
        }
        if runs.iter().any(|(place, _)| place.debug_build) {
            notes.push(format!("{name}, {side}: built without optimisation: the times mean nothing"));
        }
        let busy = runs.iter().filter(|(place, _)| place.machine.load > place.machine.processors as f64 / 2.0).count();
        if busy > 0 {
            notes.push(format!("{name}, {side}: before {busy} of {} runs others used the machine", runs.len()));
        }
        let warnings = runs.iter().flat_map(|(_, run)| &run.warnings);
        let mut seen: Vec<&String> = Vec::new();
        for warning in warnings {
            if !seen.contains(&warning) {
                seen.push(warning);
                notes.push(format!("{name}, {side}: {warning}"));
            }
        }
    }
    notes
}

/// A fraction as a percentage: 0.015 → `1.5 %`.
pub fn percent(part: f64) -> String {
    let text = format!("{:.2}", part * 100.0);
    let text = text.trim_end_matches('0').trim_end_matches('.');
    format!("{} %", if text == "-0" { "0" } else { text })
}

fn rows(name: &str, base: &Side<'_>, new: &Side<'_>, options: Options) -> RunRows {
    let mut rows: Vec<Row> = OF_RUN.iter().filter_map(|metric| row(*metric, None, base, new, options)).collect();
    let mut kinds: Vec<&str> = Vec::new();
    for kind in base.iter().chain(new).flat_map(|(_, run)| &run.measured.kinds) {
        if kind.done() > 0 && !kinds.contains(&kind.name.as_str()) {
            kinds.push(&kind.name);
        }
    }
    for kind in kinds {
        rows.extend(OF_KIND.iter().filter_map(|metric| row(*metric, Some(kind), base, new, options)));
    }
    let seconds = base.iter().chain(new).map(|(_, run)| run.measured.nanos as f64 / 1e9).fold(f64::INFINITY, f64::min);
    RunRows { name: name.to_owned(), base_runs: base.len(), new_runs: new.len(), seconds, rows }
}

/// The row of a metric; `None` if some run lacks the figure.
fn row(metric: Metric, kind: Option<&str>, base: &Side<'_>, new: &Side<'_>, options: Options) -> Option<Row> {
    let figures = |side: &Side<'_>| side.iter().map(|(_, run)| metric.of(run, kind)).collect::<Option<Vec<Estimate>>>();
    let (of_base, of_new) = (figures(base)?, figures(new)?);
    let all_above_0 = of_base.iter().chain(&of_new).all(|figure| figure.value > 0.0);
    let spread = if metric.is_tail() { options.tail_spread } else { options.spread };
    let found = all_above_0.then(|| welch::difference(&of_base, &of_new, options.level, spread));
    let many = |kind: &str| {
        let counts =
            base.iter().chain(new).filter_map(|(_, run)| run.measured.kind(kind)).map(|kind| kind.times().count());
        counts.min().is_some_and(|least| least >= LEAST_REQUESTS)
    };
    let decides = found.is_some_and(|found| found.p.is_some())
        && match (metric, kind) {
            (Metric::Throughput, None) => true,
            (Metric::Quantile(990), Some(kind)) => many(kind),
            _ => false,
        };
    Some(Row {
        kind: kind.unwrap_or("all").to_owned(),
        name: metric.name(),
        unit: metric.unit(),
        base: middle(&of_base),
        new: middle(&of_new),
        base_spread: spread_of(&of_base),
        new_spread: spread_of(&of_new),
        difference: found.map(|found| found.ratio),
        interval: found.and_then(|found| found.interval),
        may_be_worse_by: found.and_then(|found| found.interval).map(|(from, to)| match metric.rises() {
            true => (1.0 / (1.0 + from) - 1.0).max(0.0),
            false => to.max(0.0),
        }),
        p: found.and_then(|found| found.p),
        adjusted_p: None,
        decides,
        verdict: found.map_or(Verdict::Unknown, |found| verdict(metric.rises(), found.ratio, found.p, options)),
    })
}

/// The geometric mean of the figures if all are above 0, else the arithmetic mean.
fn middle(figures: &[Estimate]) -> f64 {
    let values: Vec<f64> = figures.iter().map(|figure| figure.value).collect();
    match values.iter().all(|value| *value > 0.0) {
        true => mean(&values.iter().map(|value| value.ln()).collect::<Vec<_>>()).exp(),
        false => mean(&values),
    }
}

fn spread_of(figures: &[Estimate]) -> Option<f64> {
    let values: Vec<f64> = figures.iter().map(|figure| figure.value).collect();
    let mean = mean(&values);
    (values.len() > 1 && mean > 0.0).then(|| variance(&values).sqrt() / mean)
}

fn verdict(rises: bool, ratio: f64, p: Option<f64>, options: Options) -> Verdict {
    match p {
        None => Verdict::Unknown,
        Some(p) if p >= options.level => Verdict::None,
        Some(_) if ratio.abs() < options.at_least => Verdict::Small,
        Some(_) if (ratio > 0.0) == rises => Verdict::Better,
        Some(_) => Verdict::Worse,
    }
}

/// Applies Holm's correction to the deciding rows, and settles their verdicts.
fn decide(runs: &mut [RunRows], options: Options) {
    let mut deciding: Vec<&mut Row> = runs.iter_mut().flat_map(|run| &mut run.rows).filter(|row| row.decides).collect();
    let p: Vec<f64> = deciding.iter().filter_map(|row| row.p).collect();
    for (row, adjusted) in deciding.iter_mut().zip(holm::adjusted(&p)) {
        row.adjusted_p = Some(adjusted);
        if adjusted >= options.level {
            let hides = row.may_be_worse_by.is_some_and(|part| part > options.tell);
            row.verdict = if hides { Verdict::CannotTell } else { Verdict::None };
        }
    }
}
