//! Merges the runs of several processes that measured together into one run. Times are added as histograms, so that
//! the quantiles are the quantiles of all requests.
//!
//! The clients' counts and the resources that they use are added up. Each process has seen all of the work of a
//! server that they share, so the greatest value that any process saw is taken for the server. Stores inside the
//! processes add up. Intervals are added up if they begin equally long after the start of the run in their own
//! process, which is the same moment if the processes were started together.

#[cfg(test)]
mod tests;

use super::{Pair, Report, Run};
use crate::cost::Cost;
use crate::measured::{Change, Interval, Measure, Measured, Noted};
use crate::plan::{Length, Pace, Plan};
use crate::share::Share;
use crate::store::{ServerUse, StoreUse};
use crate::times::Times;
use std::collections::{BTreeMap, BTreeSet};

/// The result gets a warning if two windows began further apart than this.
const APART_MILLIS: u64 = 100;

impl Report {
    /// Merges several reports into one. Messages call each report by its name in `parts`. The first runs of all
    /// reports become one run, the second runs become another, and so on. The program and the machine are taken from
    /// the first report.
    ///
    /// # Errors
    ///
    /// Returns a text that says how runs differ, if they differ in a property that must be the same in all of them.
    pub fn merged(parts: &[(String, Report)]) -> Result<Report, String> {
        let [(first_name, first), others @ ..] = parts else {
            return Err("no result is given to merge; name at least one".to_owned());
        };
        for (name, other) in others {
            if other.runs.len() != first.runs.len() {
                let (one, two) = (first.runs.len(), other.runs.len());
                return Err(format!("{first_name} has {one} runs, {name} has {two}"));
            }
        }
        let mut whole = Report::new(first.environment.clone());
        for number in 0..first.runs.len() {
            let runs: Vec<(&str, &Run)> =
                parts.iter().map(|(name, report)| (name.as_str(), &report.runs[number])).collect();
            let mut run = Run::merged(&runs)?;
            run.warnings.extend(unlike(parts));
            whole.runs.push(run);
        }
        Ok(whole)
    }
}

/// The warnings about programs or machines that differ.
fn unlike(parts: &[(String, Report)]) -> Vec<String> {
    let environments = || parts.iter().map(|(_, report)| &report.environment);
    let programs: BTreeSet<_> = environments().map(|of| (&of.version, &of.commit, of.debug_build)).collect();
    let machines: BTreeSet<_> =
        environments().map(|of| (&of.machine.processor, of.machine.processors, &of.machine.kernel)).collect();
    let mut warnings = Vec::new();
    if programs.len() > 1 {
        warnings.push(format!("the results were made by {} different builds of this program", programs.len()));
    }
    if machines.len() > 1 {
        warnings.push(format!("the results were made on machines of {} kinds; the first is described", machines.len()));
    }
    warnings
}

impl Run {
    /// Merges the runs of several processes into one. Messages call each run by its name in `parts`.
    ///
    /// # Errors
    ///
    /// Returns an error if the runs differ in what must be the same: name, kind of target, workload, or the way
    /// they were run.
    pub fn merged(parts: &[(&str, &Run)]) -> Result<Run, String> {
        let [(first_name, first), others @ ..] = parts else {
            return Err("no result is given to merge; name at least one".to_owned());
        };
        for (name, other) in others {
            if let Some(difference) = difference(first, other) {
                return Err(format!("{first_name} and {name} are not of one run: {difference}"));
            }
        }
        let runs = || parts.iter().map(|(_, run)| *run);
        let mut warnings = union(runs().flat_map(|run| run.warnings.iter().cloned()));
        let shares_of: Vec<_> = parts.iter().map(|(name, run)| (*name, run.share)).collect();
        warnings.extend(shares(&shares_of)?);
        let began = || runs().map(|run| run.measured.began_unix_millis);
        let apart = began().max().unwrap_or(0) - began().min().unwrap_or(0);
        if apart > APART_MILLIS {
            warnings.push(format!(
                "the clients began to measure up to {apart} ms apart, by the clocks of their machines: they did not all run \
                 at the same time"
            ));
        }
        let mut settings = settings(runs());
        if runs().any(|run| run.target != first.target) {
            let targets = union(runs().map(|run| run.target.clone()));
            settings.push(Pair::new("targets", targets.join("; ")));
        }
        if runs().any(|run| run.seed != first.seed) {
            let seeds = runs().map(|run| run.seed.to_string()).collect::<Vec<_>>();
            settings.push(Pair::new("seeds", seeds.join("; ")));
        }
        let errors = parts.iter().filter_map(|(name, run)| Some(format!("{name}: {}", run.error.as_ref()?)));
        let errors: Vec<String> = errors.collect();
        Ok(Run {
            name: first.name.clone(),
            target: first.target.clone(),
            settings,
            workload: first.workload.clone(),
            seed: first.seed,
            share: None,
            plan: plan(runs()),
            noop_nanos: mean(runs().map(|run| (run.noop_nanos, run.measured.operations + run.measured.failed))),
            settled_nanos: runs().filter_map(|run| run.settled_nanos).max(),
            price: first.price,
            million: first.million,
            tpcc: None,
            figures: Vec::new(),
            warnings,
            error: (!errors.is_empty()).then(|| errors.join("; ")),
            measured: Measured::merged(runs().map(|run| &run.measured)),
        })
    }
}

/// The first difference that prevents merging two runs into one.
fn difference(one: &Run, other: &Run) -> Option<String> {
    let differ =
        |what: &str, one: &str, other: &str| Some(format!("{what} is `{one}` in one and `{other}` in the other"));
    if one.name != other.name {
        return differ("the workload", &one.name, &other.name);
    }
    let kind = |run: &Run| run.target.split(':').next().unwrap_or_default().to_owned();
    if kind(one) != kind(other) {
        return differ("the kind of target", &kind(one), &kind(other));
    }
    let value = |run: &Run, name: &str| {
        let pair = run.workload.iter().find(|pair| pair.name == name);
        pair.map_or("not there".to_owned(), |pair| pair.value.clone())
    };
    for Pair { name, .. } in one.workload.iter().chain(&other.workload) {
        let (one, other) = (value(one, name), value(other, name));
        if one != other {
            return differ(name, &one, &other);
        }
    }
    let (mine, theirs) = (&one.plan, &other.plan);
    let (length, pace) = (|plan: &Plan| of_length(plan.length), |plan: &Plan| of_pace(plan.pace));
    if length(mine) != length(theirs) {
        return differ("the length", &length(mine), &length(theirs));
    }
    if pace(mine) != pace(theirs) {
        return differ("the pace", pace(mine), pace(theirs));
    }
    let alike = |plan: &Plan| Plan { clients: 0, workers: 0, pace: Pace::Closed, length: Length::All, ..plan.clone() };
    if alike(mine) != alike(theirs) {
        let (mine, theirs) = (alike(mine), alike(theirs));
        for (what, one, other) in [
            ("the warm-up", mine.warmup, theirs.warmup),
            ("the ramp", mine.ramp, theirs.ramp),
            ("the interval", mine.interval, theirs.interval),
            ("the slack", mine.slack, theirs.slack),
        ] {
            if one != other {
                return differ(what, &format!("{one:?}"), &format!("{other:?}"));
            }
        }
        return Some("one of them has another limit of time, or loads".to_owned());
    }
    let names = |run: &Run| {
        let kinds = run.measured.kinds.iter().map(|kind| kind.name.clone());
        kinds.chain(run.measured.counts.iter().map(|count| count.name.clone())).collect::<Vec<_>>().join(", ")
    };
    // A run that failed before it began has no kinds.
    let has_names = |run: &Run| !run.measured.kinds.is_empty();
    if has_names(one) && has_names(other) && names(one) != names(other) {
        return differ("what is counted", &names(one), &names(other));
    }
    None
}

/// A length in words. A number of operations is not compared, because that number counts only the clients of one
/// process.
fn of_length(length: Length) -> String {
    match length {
        Length::Time(time) => format!("{time:?}"),
        Length::Operations(_) => "a number of operations".to_owned(),
        Length::All => "all that there is".to_owned(),
    }
}

fn of_pace(pace: Pace) -> &'static str {
    match pace {
        Pace::Closed => "closed",
        Pace::Open { .. } => "open",
    }
}

/// The warnings about shares that are missing.
///
/// # Errors
///
/// Returns an error if a share occurs twice, or if the shares belong to different runs.
pub fn shares(parts: &[(&str, Option<Share>)]) -> Result<Vec<String>, String> {
    let known: Vec<(&str, Share)> = parts.iter().filter_map(|(name, share)| Some((*name, (*share)?))).collect();
    let without: Vec<&str> = parts.iter().filter(|(_, share)| share.is_none()).map(|(name, _)| *name).collect();
    let Some((first, share)) = known.first() else {
        let warning = "none of these runs says that it is a share of another: they count as clients of one run";
        return Ok(if parts.len() > 1 { vec![warning.to_owned()] } else { Vec::new() });
    };
    if let Some(name) = without.first() {
        return Err(format!("{first} is share {share} of a run, and {name} is a whole run"));
    }
    let mut seen: BTreeMap<Share, &str> = BTreeMap::new();
    for (name, other) in &known {
        if other.of() != share.of() {
            return Err(format!("{first} is share {share}, and {name} is share {other}"));
        }
        if let Some(before) = seen.insert(*other, name) {
            return Err(format!("{before} and {name} are both share {other}"));
        }
    }
    let missing = (0..share.of()).map(|number| Share::new(number, share.of()));
    let missing: Vec<String> =
        missing.filter(|share| !seen.contains_key(share)).map(|share| share.to_string()).collect();
    Ok(match missing.is_empty() {
        true => Vec::new(),
        false => vec![format!("a part of the run is missing: share {}", missing.join(", "))],
    })
}

/// Returns each text once, in the order of first occurrence.
fn union(all: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    all.into_iter().filter(|text| seen.insert(text.clone())).collect()
}

/// The settings that the stores report. If the stores have different values for a setting, the merged setting has
/// all these values.
fn settings<'r>(runs: impl Iterator<Item = &'r Run>) -> Vec<Pair> {
    let mut merged: Vec<(String, Vec<String>)> = Vec::new();
    for Pair { name, value } in runs.flat_map(|run| &run.settings) {
        match merged.iter_mut().find(|(known, _)| known == name) {
            Some((_, values)) if values.contains(value) => {}
            Some((_, values)) => values.push(value.clone()),
            None => merged.push((name.clone(), vec![value.clone()])),
        }
    }
    merged.into_iter().map(|(name, values)| Pair::new(name, values.join(" | "))).collect()
}

/// Merges plans that differ only in their clients.
fn plan<'r>(runs: impl Iterator<Item = &'r Run>) -> Plan {
    let plans = runs.map(|run| &run.plan);
    let merged = plans.cloned().reduce(|mut sum, plan| {
        sum.clients = sum.clients.saturating_add(plan.clients);
        sum.workers = sum.workers.saturating_add(plan.workers);
        sum.length = match (sum.length, plan.length) {
            (Length::Operations(one), Length::Operations(other)) => Length::Operations(one.saturating_add(other)),
            (length, _) => length,
        };
        sum.pace = match (sum.pace, plan.pace) {
            (Pace::Open { per_second: one }, Pace::Open { per_second: other }) => {
                Pace::Open { per_second: one + other }
            }
            (pace, _) => pace,
        };
        sum
    });
    merged.unwrap_or_default()
}

/// The weighted mean of values. Each value comes with its weight.
fn mean(values: impl Iterator<Item = (Option<f64>, u64)>) -> Option<f64> {
    let known = values.filter_map(|(value, weight)| Some((value?, weight.max(1) as f64)));
    let (sum, weights) =
        known.fold((0.0, 0.0), |(sum, weights), (value, weight)| (sum + value * weight, weights + weight));
    (weights > 0.0).then(|| sum / weights)
}

fn sum<'m, T: 'm>(all: &[&'m T], of: impl Fn(&T) -> u64) -> u64 {
    all.iter().fold(0, |sum, one| sum.saturating_add(of(one)))
}

impl Measured {
    /// What several processes measured together, merged into one result.
    pub fn merged<'m>(parts: impl IntoIterator<Item = &'m Self>) -> Self {
        let parts: Vec<&Self> = parts.into_iter().collect();
        let began = parts.iter().map(|part| part.began_unix_millis).filter(|millis| *millis > 0);
        let in_processes = parts.iter().all(|part| part.cost.store == Some(StoreUse::InProcess));
        let mut failures = BTreeMap::new();
        for (kind, text) in parts.iter().flat_map(|part| &part.failures) {
            failures.entry(kind.clone()).or_insert_with(|| text.clone());
        }
        Self {
            began_unix_millis: began.min().unwrap_or(0),
            nanos: parts.iter().map(|part| part.nanos).max().unwrap_or(0),
            clients: sum(&parts, |part| part.clients),
            operations: sum(&parts, |part| part.operations),
            failed: sum(&parts, |part| part.failed),
            retries: sum(&parts, |part| part.retries),
            kinds: kinds(parts.iter().map(|part| &part.kinds[..])),
            counts: counts(parts.iter().map(|part| &part.counts[..])),
            intervals: intervals(parts.iter().flat_map(|part| &part.intervals)),
            warmed: sum(&parts, |part| part.warmed),
            cut: sum(&parts, |part| part.cut),
            unsent: sum(&parts, |part| part.unsent),
            interrupted: parts.iter().any(|part| part.interrupted),
            cost: Cost::merged(&parts.iter().map(|part| &part.cost).collect::<Vec<_>>()),
            counters: counters(parts.iter().flat_map(|part| &part.counters), in_processes),
            failures,
        }
    }
}

/// The sums by kind. All parts that have kinds have the same kinds.
fn kinds<'m>(parts: impl Iterator<Item = &'m [Measure]>) -> Vec<Measure> {
    let parts: Vec<&[Measure]> = parts.filter(|kinds| !kinds.is_empty()).collect();
    let Some(first) = parts.first() else { return Vec::new() };
    let of = |number: usize| parts.iter().filter_map(|kinds| kinds.get(number)).collect::<Vec<_>>();
    (0..first.len()).map(|number| measure(&of(number))).collect()
}

/// The sum of the measures of one kind. A process whose requests never waited has recorded no response times; its
/// service times are taken for them.
fn measure(parts: &[&Measure]) -> Measure {
    if parts.iter().all(|part| part.response.is_some() == parts[0].response.is_some()) {
        return Measure::sum(parts.iter().copied());
    }
    let with_response = |part: &&Measure| match part.response {
        Some(_) => (*part).clone(),
        None => Measure {
            response: Some(part.service.clone()),
            waited: Some(Times::zeros(part.service.count())),
            ..(*part).clone()
        },
    };
    Measure::sum(&parts.iter().map(with_response).collect::<Vec<_>>())
}

fn counts<'n>(parts: impl Iterator<Item = &'n [Noted]>) -> Vec<Noted> {
    Noted::sum(parts.filter(|counts| !counts.is_empty()))
}

fn intervals<'i>(all: impl Iterator<Item = &'i Interval>) -> Vec<Interval> {
    let mut by_time: BTreeMap<(bool, u64), Vec<&Interval>> = BTreeMap::new();
    for interval in all {
        by_time.entry((!interval.warming, interval.from_nanos)).or_default().push(interval);
    }
    by_time.into_values().map(|pieces| Interval::together(&pieces)).collect()
}

impl Interval {
    /// Merges what several processes, at least one, measured in the same interval of a run.
    pub fn together(pieces: &[&Self]) -> Self {
        let first = pieces.first().expect("there is one at least");
        Self {
            warming: first.warming,
            from_nanos: first.from_nanos,
            to_nanos: pieces.iter().map(|piece| piece.to_nanos).max().unwrap_or(first.to_nanos),
            operations: sum(pieces, |piece| piece.operations),
            failed: sum(pieces, |piece| piece.failed),
            retries: sum(pieces, |piece| piece.retries),
            client_nanos: sum(pieces, |piece| piece.client_nanos),
            pausing_nanos: sum(pieces, |piece| piece.pausing_nanos),
            late: sum(pieces, |piece| piece.late),
            told_late: Vec::new(),
            kinds: kinds(pieces.iter().map(|piece| &piece.kinds[..])),
            counts: counts(pieces.iter().map(|piece| &piece.counts[..])),
            counted: pieces.iter().filter_map(|piece| piece.counted.clone()).max_by_key(|counted| counted.at_nanos),
        }
    }
}

impl Cost {
    /// Adds up what the processes used. They did not all reach their peak memory at the same moment, so that sum is
    /// an upper bound. A server is counted once.
    pub fn merged(parts: &[&Self]) -> Self {
        let all = |of: fn(&Cost) -> Option<u64>| {
            parts.iter().map(|cost| of(cost)).try_fold(0_u64, |sum, one| Some(sum.saturating_add(one?)))
        };
        let mut background = BTreeMap::new();
        for (name, nanos) in parts.iter().flat_map(|cost| &cost.background) {
            let sum: &mut u64 = background.entry(name.clone()).or_default();
            *sum = sum.saturating_add(*nanos);
        }
        Cost {
            user_nanos: sum(parts, |cost| cost.user_nanos),
            system_nanos: sum(parts, |cost| cost.system_nanos),
            client_nanos: sum(parts, |cost| cost.client_nanos),
            pausing_nanos: sum(parts, |cost| cost.pausing_nanos),
            gathering_nanos: sum(parts, |cost| cost.gathering_nanos),
            background_nanos: sum(parts, |cost| cost.background_nanos),
            background,
            client_threads: sum(parts, |cost| cost.client_threads),
            depth: parts.iter().filter_map(|cost| cost.depth).max(),
            voluntary_switches: sum(parts, |cost| cost.voluntary_switches),
            involuntary_switches: sum(parts, |cost| cost.involuntary_switches),
            resident_bytes: sum(parts, |cost| cost.resident_bytes),
            peak_bytes: sum(parts, |cost| cost.peak_bytes),
            peak_of_window: parts.iter().all(|cost| cost.peak_of_window),
            store: store(parts.iter().map(|cost| cost.store)),
            disk_read_bytes: all(|cost| cost.disk_read_bytes),
            disk_written_bytes: all(|cost| cost.disk_written_bytes),
            // Processes on one machine see the same disks, and those of several machines are not told apart.
            device_read_bytes: parts.iter().filter_map(|cost| cost.device_read_bytes).max(),
            device_written_bytes: parts.iter().filter_map(|cost| cost.device_written_bytes).max(),
        }
    }
}

/// What the store used. Each process has seen all of the shared server's work, so the greatest value is taken.
fn store(parts: impl Iterator<Item = Option<StoreUse>>) -> Option<StoreUse> {
    parts.reduce(|one, other| {
        Some(match (one?, other?) {
            (StoreUse::InProcess, StoreUse::InProcess) => StoreUse::InProcess,
            (StoreUse::Server(one), StoreUse::Server(other)) => StoreUse::Server(ServerUse {
                nanos: one.nanos.max(other.nanos),
                read_bytes: one.read_bytes.max(other.read_bytes),
                written_bytes: one.written_bytes.max(other.written_bytes),
            }),
            // A process on the server's own machine sees everything that the server uses.
            (StoreUse::Server(seen), StoreUse::Unknown) | (StoreUse::Unknown, StoreUse::Server(seen)) => {
                StoreUse::Server(seen)
            }
            _ => StoreUse::Unknown,
        })
    })?
}

/// Counters by name. The counters of stores inside the processes add up. All processes see the same counters of a
/// server, so the greatest value is taken.
fn counters<'c>(all: impl Iterator<Item = &'c Change>, in_processes: bool) -> Vec<Change> {
    let mut merged: Vec<Change> = Vec::new();
    for change in all {
        let Some(known) = merged.iter_mut().find(|known| known.name == change.name) else {
            merged.push(change.clone());
            continue;
        };
        let seen = |change: &Change| change.counted().unwrap_or(change.after);
        if in_processes {
            known.before = known.before.saturating_add(change.before);
            known.after = known.after.saturating_add(change.after);
        } else if seen(change) > seen(known) {
            known.clone_from(change);
        }
    }
    merged
}
