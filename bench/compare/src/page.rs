//! A comparison as a page: what the text says, and the runs of both sides over time.

use crate::comparison::{Comparison, Verdict};
use crate::text::{cells, columns, conclusion, differences, method, title};
use ::page::{Axis, Block, Chart, Line, Page, Table};
use harness::report::{Report, Run};
use harness::{Interval, Measure, Times};

/// The page of `comparison`, which is one of these results.
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
    page.add(Block::Text(method(comparison)));
    for run in &comparison.runs {
        page.add(Block::Table(Table {
            caption: title(run),
            columns: columns(comparison.options.level).to_vec(),
            rows: run.rows.iter().map(|row| cells(row).to_vec()).collect(),
        }));
    }
    page.add(Block::Chart(intervals(comparison)));
    page.add(Block::Heading("Over time".to_owned()));
    for run in &comparison.runs {
        let lines = |of: &dyn Fn(&Interval) -> Option<f64>| {
            let sides = [("base", base), ("new", new)];
            sides.iter().flat_map(|(side, results)| lines(side, results, &run.name, of)).collect::<Vec<_>>()
        };
        let p99 = |interval: &Interval| {
            let times = Times::sum(interval.kinds.iter().map(Measure::times));
            (!times.is_empty()).then(|| times.quantile(0.99) as f64 / 1e3)
        };
        page.add(chart(
            format!("{}: operations a second", run.name),
            "operations/s",
            lines(&|it| Some(it.per_second())),
        ));
        page.add(chart(format!("{}: 99 % of the requests within", run.name), "us", lines(&p99)));
    }
    page.add(Block::Heading("What was run".to_owned()));
    for (side, results) in [("base", base), ("new", new)] {
        for (file, report) in results {
            page.add(Block::Text(format!("{side}: {file}")));
            page.add(Block::Code(report.environment.command.join(" ")));
        }
    }
    page
}

/// The differences that decide, each at its number, with the ends of its interval.
fn intervals(comparison: &Comparison) -> Chart {
    let all = [Verdict::Worse, Verdict::Better, Verdict::Small, Verdict::None];
    let rows: Vec<_> = comparison
        .runs
        .iter()
        .flat_map(|run| run.rows.iter().map(|row| (run.name.as_str(), row)))
        .filter(|(_, row)| row.decides && all.contains(&row.verdict))
        .collect();
    let line = |name: &str, of: &dyn Fn(&crate::Row) -> Option<f64>| Line {
        name: name.to_owned(),
        points: (1..).zip(&rows).filter_map(|(at, (_, row))| Some((f64::from(at), of(row)? * 100.0))).collect(),
    };
    Chart {
        title: "Differences that decide, in percent of the base, with their intervals".to_owned(),
        x: Axis::linear("number of the figure"),
        y: Axis::linear("%"),
        lines: vec![
            line("least", &|row| row.interval.map(|(from, _)| from)),
            line("difference", &|row| row.difference),
            line("greatest", &|row| row.interval.map(|(_, to)| to)),
        ],
        marks: (1..)
            .zip(&rows)
            .map(|(at, (run, row))| (f64::from(at), format!("{run}, {} {}", row.kind, row.name)))
            .collect(),
    }
}

fn chart(title: String, unit: &str, lines: Vec<Line>) -> Block {
    let x = Axis::linear("seconds of the window");
    Block::Chart(Chart { title, x, y: Axis::linear(unit), lines, marks: Vec::new() })
}

/// A line for each run called `name`.
fn lines(side: &str, results: &[(String, Report)], name: &str, of: &dyn Fn(&Interval) -> Option<f64>) -> Vec<Line> {
    let runs: Vec<&Run> = results.iter().flat_map(|(_, report)| &report.runs).filter(|run| run.name == name).collect();
    let line = |(number, run): (usize, &&Run)| Line {
        name: format!("{side} {}", number + 1),
        points: run.measured.window().filter_map(|it| Some((it.to_nanos as f64 / 1e9, of(it)?))).collect(),
    };
    runs.iter().enumerate().map(line).collect()
}
