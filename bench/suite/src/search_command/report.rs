//! The result of a search as text, as JSON and as a page.

#[cfg(test)]
mod tests;

use super::Tried;
use super::steps::{Bound, Found, Verdict};
use crate::objective::Objective;
use crate::report_page::machine;
use crate::results::VERSION;
use harness::report::Environment;
use harness::report::text::{nanos_or_blank, rate};
use page::{Axis, Block, Chart, Curve, Page, Table};
use serde_json::json;
use std::path::Path;

/// A search that is over.
pub struct Search {
    /// The name of the workload.
    pub name: String,
    /// What a rate has to meet.
    pub objective: Objective,
    /// The width of the interval that was asked for.
    pub precision: f64,
    /// The runs, in their order.
    pub tried: Vec<Tried>,
    /// What they found.
    pub found: Found,
}

/// The line that is shown when a run is over.
pub fn line(objective: Objective, tried: &Tried) -> String {
    let limit = if tried.limit.is_some() { "; the client was the limit" } else { "" };
    let line = format!(
        "{:28} {:>10} op/s  {} {:>8}  {}{limit}",
        tried.run.name,
        rate(tried.run.measured.per_second()),
        objective.name(),
        nanos_or_blank(tried.nanos),
        word(tried),
    );
    line.trim_end().to_owned()
}

/// How a run went, in a word or two.
fn word(tried: &Tried) -> &'static str {
    match tried.verdict {
        _ if tried.rate.is_none() => "",
        Verdict::Met => "met",
        Verdict::Missed => "missed",
        Verdict::TooFew => "too few requests",
    }
}

const COLUMNS: [&str; 5] = ["rate asked for", "op/s done", "", "not begun", "objective"];

/// The cells of a run: the rate that was asked for, the one that was done, the percentile, operations that were due but
/// never begun, and how it went.
fn cells(tried: &Tried) -> [String; 5] {
    let measured = &tried.run.measured;
    [
        tried.rate.map_or("none".to_owned(), rate),
        rate(measured.per_second()),
        nanos_or_blank(tried.nanos),
        measured.unsent.to_string(),
        word(tried).to_owned(),
    ]
}

fn columns(search: &Search) -> [String; 5] {
    let mut columns = COLUMNS.map(str::to_owned);
    columns[2] = search.objective.name();
    columns
}

/// The result in sentences.
fn conclusion(search: &Search) -> Vec<String> {
    let objective = search.objective;
    let of_runs = |bound: Bound, count: u32, what: &str| {
        format!("{} op/s {what} {objective} in {count} of {} runs", rate(bound.rate), bound.met + bound.missed)
    };
    let mut lines = Vec::new();
    match search.found.lower {
        Some(lower) => {
            lines.push(format!(
                "The highest rate that meets {objective} is {} op/s or a little more.",
                rate(lower.rate)
            ));
            lines.push(format!("  lower bound: {}.", of_runs(lower, lower.met, "met")));
        }
        None if search.tried.iter().any(|tried| tried.rate.is_some()) => {
            lines.push(format!("No rate met {objective}."))
        }
        None => {}
    }
    match search.found.upper {
        Some(upper) => lines.push(format!("  upper bound: {}.", of_runs(upper, upper.missed, "missed"))),
        None if search.found.lower.is_some() => lines.push("  upper bound: none, since no rate missed it.".to_owned()),
        None => {}
    }
    if search.tried.last().is_some_and(|tried| tried.rate.is_some() && tried.verdict == Verdict::TooFew) {
        lines.push(format!(
            "The last run had too few requests to know its {}: let each run take longer.",
            objective.name()
        ));
    }
    if search.found.lower.is_some() && !search.found.is_confirmed {
        lines.push("The bounds are not confirmed: another search may give others.".to_owned());
    }
    lines.extend(limit_at_upper(search).map(|limit| format!("The client was the limit at the upper bound: {limit}.")));
    lines
}

/// What part of the client was the limit in most runs at the upper bound. In the last of them, if the client limited it.
fn limit_at_upper(search: &Search) -> Option<super::Limit> {
    let upper = search.found.upper?;
    let runs =
        || search.tried.iter().filter(|tried| tried.rate == Some(upper.rate) && tried.verdict == Verdict::Missed);
    let limited = runs().filter(|tried| tried.limit.is_some()).count();
    (limited * 2 > runs().count()).then(|| runs().filter_map(|tried| tried.limit).next_back()).flatten()
}

/// The whole text. `early` says why the search ended before its time.
pub fn text(search: &Search, early: Option<&str>) -> String {
    let head = format!("{}: the highest rate with {} of all requests\n\n", search.name, search.objective);
    let rows = std::iter::once(columns(search)).chain(search.tried.iter().map(cells));
    let row = |[asked, done, time, late, word]: [String; 5]| {
        format!("{:>14} {:>12} {:>10} {:>10}  {word}", asked, done, time, late).trim_end().to_owned() + "\n"
    };
    let table: String = rows.map(row).collect();
    let early = early.map(|why| format!("The search ended before its time: {why}."));
    let lines: Vec<String> = conclusion(search).into_iter().chain(early).collect();
    format!("{head}{table}\n{}\n", lines.join("\n"))
}

/// The whole search as JSON.
pub fn json(search: &Search, early: Option<&str>) -> Vec<u8> {
    let bound = |bound: Bound| json!({"operations_per_second": bound.rate, "met": bound.met, "missed": bound.missed});
    let run = |tried: &Tried| {
        json!({
            "name": tried.run.name,
            "asked_per_second": tried.rate,
            "done_per_second": tried.run.measured.per_second(),
            "nanos": tried.nanos,
            "unsent": tried.run.measured.unsent,
            "verdict": match tried.verdict {
                _ if tried.rate.is_none() => None,
                Verdict::Met => Some("met"),
                Verdict::Missed => Some("missed"),
                Verdict::TooFew => Some("too few requests"),
            },
            "client_limit": tried.limit.map(|limit| limit.to_string()),
        })
    };
    let target = search.tried.first().map(|tried| &tried.run.target);
    let whole = json!({
        "format": "larch-search-result",
        "version": 1,
        "environment": environment(),
        "workload": search.name,
        "target": target,
        "objective": {"quantile": search.objective.quantile, "bound_nanos": search.objective.bound_nanos},
        "precision": search.precision,
        "lower": search.found.lower.map(bound),
        "upper": search.found.upper.map(bound),
        "is_confirmed": search.found.is_confirmed,
        "client_limit": limit_at_upper(search).map(|limit| limit.to_string()),
        "ended_early": early,
        "runs": search.tried.iter().map(run).collect::<Vec<_>>(),
    });
    let mut text = serde_json::to_string_pretty(&whole).expect("names are texts");
    text.push('\n');
    text.into_bytes()
}

/// The program and the machine, as results have them.
fn environment() -> Environment {
    Environment::gather(VERSION, Path::new("."))
}

/// The search as a page.
pub fn page(search: &Search, early: Option<&str>) -> Page {
    let mut page = Page::new(format!("{}: the highest rate with {}", search.name, search.objective));
    let early = early.map(|why| format!("The search ended before its time: {why}."));
    conclusion(search).into_iter().chain(early).for_each(|line| page.add(Block::Text(line.trim().to_owned())));
    page.add(Block::Chart(chart(search)));
    page.add(Block::Table(Table {
        caption: "The runs, in their order".to_owned(),
        columns: std::iter::once("run".to_owned()).chain(columns(search)).collect(),
        rows: search
            .tried
            .iter()
            .map(|tried| std::iter::once(tried.run.name.clone()).chain(cells(tried)).collect())
            .collect(),
    }));
    let environment = environment();
    page.add(Block::Heading("What was run".to_owned()));
    page.add(Block::Code(environment.command.join(" ")));
    page.add(Block::Table(machine(&environment)));
    page
}

/// The percentile of each run over its rate, and the bound.
fn chart(search: &Search) -> Chart {
    let micros = |nanos: u64| (nanos as f64 / 1e3).max(1e-3);
    let curve = |name: &str, verdict: Verdict| {
        let runs = search.tried.iter().filter(|tried| tried.verdict == verdict);
        let mut points: Vec<(f64, f64)> = runs.filter_map(|tried| Some((tried.rate?, micros(tried.nanos?)))).collect();
        points.sort_by(|one, other| one.0.total_cmp(&other.0));
        Curve { name: name.to_owned(), points }
    };
    let runs = [curve("runs that met it", Verdict::Met), curve("runs that missed it", Verdict::Missed)];
    let rates = || runs.iter().flat_map(|curve| curve.points.iter().map(|(rate, _)| *rate));
    let ends = [rates().fold(f64::INFINITY, f64::min), rates().fold(0.0, f64::max)];
    let bound = micros(search.objective.bound_nanos);
    let points = ends.iter().filter(|rate| rate.is_finite() && **rate > 0.0).map(|rate| (*rate, bound)).collect();
    Chart {
        title: format!("{} of each run", search.objective.name()),
        x: Axis::logarithmic("operations/s that were asked for"),
        y: Axis::logarithmic("us"),
        lines: runs.into_iter().chain([Curve { name: "the objective".to_owned(), points }]).collect(),
        marks: Vec::new(),
    }
}
