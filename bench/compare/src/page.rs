//! A comparison as an HTML page: what the text shows, and the runs of both sides over time.

use crate::batch_means::mean;
use crate::comparison::{Comparison, Row};
use crate::text::{cells, columns, conclusion, differences, method, title};
use ::page::{Axis, Block, Chart, Curve, Page, Table};
use harness::report::{Report, Run};
use harness::{Interval, Measure, Times};

/// Makes the page of `comparison`, which compares the results `base` with the results `new`.
pub fn page(comparison: &Comparison, base: &[(String, Report)], new: &[(String, Report)]) -> Page {
    let mut page = Page::new("Comparison of benchmark results");
    page.add(Block::Text(conclusion(comparison)));
    page.add(Block::Heading("How the runs differ besides what they measured".to_owned()));
    let listed = differences(comparison);
    if listed.is_empty() {
        page.add(Block::Text("Both sides were made alike.".to_owned()));
    }
    listed.into_iter().chain(comparison.notes.clone()).for_each(|line| page.add(Block::Text(line)));
    page.add(Block::Heading("Figures".to_owned()));
    if !comparison.runs.is_empty() {
        page.add(Block::Text(method(comparison)));
    }
    for run in &comparison.runs {
        page.add(Block::Table(Table {
            caption: title(run),
            columns: columns(comparison.options.level).to_vec(),
            rows: run.rows.iter().map(|row| cells(row).to_vec()).collect(),
        }));
    }
    let deciding = intervals(comparison);
    if !deciding.lines.is_empty() {
        page.add(Block::Chart(deciding));
    }
    page.add(Block::Heading("Over time".to_owned()));
    for run in &comparison.runs {
        let sides = [("base", runs(base, &run.name)), ("new", runs(new, &run.name))];
        let rate = |interval: &Interval| Some(interval.per_second());
        let p99 = |interval: &Interval| {
            let times = Times::sum(interval.kinds.iter().map(Measure::times));
            times.known_quantile(0.99).map(|nanos| nanos as f64 / 1e3)
        };
        let several = sides.iter().any(|(_, runs)| runs.len() > 1);
        for (what, unit, of) in
            [("operations a second", "operations/s", &rate as Figure<'_>), ("99 % of the requests within", "us", &p99)]
        {
            let means = sides.iter().map(|(side, runs)| mean_line(side, runs, of)).collect();
            let means_of = if several { ", means of the runs" } else { "" };
            page.add(chart(format!("{}: {what}{means_of}", run.name), unit, means));
            if several {
                let all = sides.iter().flat_map(|(side, runs)| lines(side, runs, of)).collect();
                page.add(chart(format!("{}: {what}, each run", run.name), unit, all));
            }
        }
    }
    let mut commands = Vec::new();
    for (side, results) in [("base", base), ("new", new)] {
        for (file, report) in results {
            commands.push(Block::Text(format!("{side}: {file}")));
            commands.push(Block::Code(report.environment.command.join(" ")));
        }
    }
    page.add(Block::Folded("What was run".to_owned(), commands));
    page
}

/// A figure of an interval, if the interval has it.
type Figure<'f> = &'f dyn Fn(&Interval) -> Option<f64>;

/// A chart of the deciding rows, each a line from one end of its interval to the other with the difference marked.
fn intervals(comparison: &Comparison) -> Chart {
    let rows = comparison.runs.iter().flat_map(|run| run.rows.iter().map(|row| (run.name.as_str(), row)));
    let rows = rows.filter(|(_, row)| row.decides);
    let line = |(at, (run, row)): (i32, (&str, &Row))| {
        let (from, to) = row.interval?;
        let points = [from, row.difference?, to].map(|part| (part * 100.0, f64::from(at)));
        Some(Curve { name: format!("{at}: {run}, {} {}", row.kind, row.name), points: points.to_vec() })
    };
    Chart {
        title: "Differences that decide, in percent of the base, each with its interval".to_owned(),
        x: Axis::linear("%"),
        y: Axis::linear("number of the figure"),
        lines: (1..).zip(rows).filter_map(line).collect(),
        marks: vec![(0.0, "no difference".to_owned())],
    }
}

fn chart(title: String, unit: &str, lines: Vec<Curve>) -> Block {
    let x = Axis::linear("seconds of the window");
    Block::Chart(Chart { title, x, y: Axis::linear(unit), lines, marks: Vec::new() })
}

/// The runs called `name`.
fn runs<'r>(results: &'r [(String, Report)], name: &str) -> Vec<&'r Run> {
    results.iter().flat_map(|(_, report)| &report.runs).filter(|run| run.name == name).collect()
}

/// A line for each run.
fn lines(side: &str, runs: &[&Run], of: Figure<'_>) -> Vec<Curve> {
    let line = |(number, run): (usize, &&Run)| Curve {
        name: format!("{side} {}", number + 1),
        points: run.measured.window().filter_map(|it| Some((it.to_nanos as f64 / 1e9, of(it)?))).collect(),
    };
    runs.iter().enumerate().map(line).collect()
}

/// The mean of the runs' figures in each interval that all runs have.
fn mean_line(side: &str, runs: &[&Run], of: Figure<'_>) -> Curve {
    let windows: Vec<Vec<&Interval>> = runs.iter().map(|run| run.measured.window().collect()).collect();
    let shortest = windows.iter().map(Vec::len).min().unwrap_or(0);
    let point = |at: usize| {
        let values: Option<Vec<f64>> = windows.iter().map(|window| of(window[at])).collect();
        Some((windows[0][at].to_nanos as f64 / 1e9, mean(&values?)))
    };
    Curve { name: side.to_owned(), points: (0..shortest).filter_map(point).collect() }
}
