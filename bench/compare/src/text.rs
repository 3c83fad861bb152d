//! A comparison as text: how the runs differ, then the figures, then the conclusion.

use crate::comparison::{Comparison, Row, RunRows, Verdict, percent};
use page::figure;
use std::fmt::Write as _;

const WROTE: &str = "a String takes every line";

/// The whole text.
pub fn text(comparison: &Comparison) -> String {
    let mut out = String::new();
    if comparison.differences.is_empty() {
        writeln!(out, "Both sides were made alike: program, machine, settings, workload and plan.").expect(WROTE);
    } else {
        writeln!(out, "How the runs differ besides what they measured:").expect(WROTE);
    }
    for line in differences(comparison) {
        writeln!(out, "  {line}").expect(WROTE);
    }
    for note in &comparison.notes {
        writeln!(out, "NOTE: {note}").expect(WROTE);
    }
    for run in &comparison.runs {
        writeln!(out, "\n{}", title(run)).expect(WROTE);
        table(run, comparison.options.level, &mut out);
    }
    if !comparison.runs.is_empty() {
        writeln!(out, "\n{}", method(comparison)).expect(WROTE);
    }
    writeln!(out, "{}", conclusion(comparison)).expect(WROTE);
    out
}

/// A line for each difference.
pub fn differences(comparison: &Comparison) -> Vec<String> {
    let line = |one: &crate::configuration::Difference| {
        let run = if one.run.is_empty() { String::new() } else { format!("{}: ", one.run) };
        let why = one.forbids.map_or(String::new(), |why| format!("  (NOT COMPARABLE: {why})"));
        let (place, what) = (one.place.name(), &one.what);
        format!("{place}: {run}{what}: {} -> {}{why}", one.base.join(" and "), one.new.join(" and "))
    };
    comparison.differences.iter().map(line).collect()
}

/// The title of the runs of one name.
pub fn title(run: &RunRows) -> String {
    let runs = |count: usize| if count == 1 { "1 run".to_owned() } else { format!("{count} runs") };
    format!(
        "{}: {} against {} new, at least {} s each",
        run.name,
        runs(run.base_runs),
        run.new_runs,
        figure(run.seconds)
    )
}

/// The sentence on how figures are compared.
pub fn method(comparison: &Comparison) -> String {
    let deciding = comparison.runs.iter().flat_map(|run| &run.rows).filter(|row| row.decides).count();
    format!(
        "Rows with * decide, {deciding} in all: the throughput of a run, and the p99 of a kind with 1,000 requests in every run. \
         Their p is Holm's, so that at most {} of comparisons without any difference show one in them. Intervals are those of one \
         row alone, by Welch's test between runs; differences below {} do not count.",
        percent(comparison.options.level),
        percent(comparison.options.at_least)
    )
}

/// The conclusion.
pub fn conclusion(comparison: &Comparison) -> String {
    let named = |verdict| {
        let rows: Vec<String> = comparison
            .deciding(verdict)
            .map(|(run, row)| format!("{run} {} {} {}", row.kind, row.name, signed(row.difference)))
            .collect();
        rows.join("; ")
    };
    if let Some(why_not) = &comparison.why_not {
        return format!("CANNOT TELL: {why_not}.");
    }
    let (worse, better) = (named(Verdict::Worse), named(Verdict::Better));
    let level = percent(comparison.options.level);
    let hidden: Vec<String> = comparison
        .deciding(Verdict::CannotTell)
        .map(|(run, row)| format!("{run} {} {} by up to {}", row.kind, row.name, signed(row.may_be_worse_by)))
        .collect();
    if worse.is_empty() && !hidden.is_empty() {
        return format!(
            "CANNOT TELL at {level}: the runs of a side differ so much that these may be worse unseen: {}. Measure longer, with more runs a \
             side, or while the machine does nothing else.",
            hidden.join("; ")
        );
    }
    match (worse.is_empty(), better.is_empty()) {
        (true, true) => format!("No significant difference at {level}."),
        (true, false) => format!("No significant worsening at {level}. Better: {better}."),
        (false, true) => format!("WORSE at {level}: {worse}."),
        (false, false) => format!("WORSE at {level}: {worse}. Better: {better}."),
    }
}

/// The column heads.
pub fn columns(level: f64) -> [String; 8] {
    let interval = format!("{} interval", percent(1.0 - level));
    ["", "base", "new", "difference", &interval, "p", "runs differ by", ""].map(str::to_owned)
}

/// The cells of a row, in the order of [`columns`].
pub fn cells(row: &Row) -> [String; 8] {
    let unit = match (row.kind.as_str(), row.unit) {
        ("all", "us") => "us/op",
        ("all", "bytes") => "bytes/op",
        (_, unit) => unit,
    };
    let mark = if row.decides { " *" } else { "" };
    let spread = |spread: Option<f64>| spread.map_or("-".to_owned(), |spread| format!("{:.1} %", spread * 100.0));
    let p = row.adjusted_p.or(row.p);
    [
        format!("{} {}, {unit}{mark}", row.kind, row.name),
        figure(row.base),
        figure(row.new),
        signed(row.difference),
        row.interval.map_or("-".to_owned(), |(from, to)| format!("{} to {}", signed(Some(from)), signed(Some(to)))),
        p.map_or("-".to_owned(), |p| if p < 0.0001 { "< 0.0001".to_owned() } else { format!("{p:.4}") }),
        format!("{}, {}", spread(row.base_spread), spread(row.new_spread)),
        match row.verdict {
            Verdict::Worse => "worse".to_owned(),
            Verdict::Better => "better".to_owned(),
            Verdict::Small => "small".to_owned(),
            Verdict::CannotTell => "cannot tell".to_owned(),
            Verdict::None | Verdict::Unknown => String::new(),
        },
    ]
}

fn signed(part: Option<f64>) -> String {
    part.map_or("-".to_owned(), |part| format!("{:+.1} %", part * 100.0))
}

fn table(run: &RunRows, level: f64, out: &mut String) {
    let lines: Vec<[String; 8]> = std::iter::once(columns(level)).chain(run.rows.iter().map(cells)).collect();
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; 8] = std::array::from_fn(width);
    for line in &lines {
        let mut text = format!("  {:<width$}", line[0], width = widths[0]);
        for column in 1..line.len() - 1 {
            write!(text, "  {:>width$}", line[column], width = widths[column]).expect(WROTE);
        }
        write!(text, "  {}", line[7]).expect(WROTE);
        writeln!(out, "{}", text.trim_end()).expect(WROTE);
    }
}
