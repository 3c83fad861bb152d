//! The table of a comparison, with a row for each measurement and a column for each engine, and the goals of its
//! rows.

#[cfg(test)]
mod tests;

use kit::goals::{Bound, word};
use kit::median;
use kit::median::extremes;
use serde::Serialize;
use std::fmt::Write as _;

/// What a goal compares with. "Our" figure is that of the first engine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Against {
    /// An engine's figure in the same row.
    Engine(&'static str),
    /// The best figure of the other engines in the same row.
    Best,
    /// Our own figure in another row.
    Own(&'static str),
    /// Nothing: our figure must itself be within the bound.
    Figure,
    /// Nothing: the figure of the named engine, another one of ours, must itself be within the bound.
    FigureOf(&'static str),
    /// An engine's figure, by difference: ours minus it must be within the bound.
    Above(&'static str),
    /// The second named engine's figure in the same row. "Our" side is the first named engine, another one of ours.
    Between(&'static str, &'static str),
}

/// A goal of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Goal {
    /// The other side.
    pub against: Against,
    /// The bound on our figure divided by the other side's, or on the figure or difference itself for goals without
    /// a ratio. A lower bound, or an upper one if less is better.
    pub ratio: f64,
}

/// A row of the table.
#[derive(Clone, Debug)]
pub struct Row {
    /// What is measured.
    pub name: &'static str,
    /// The unit of its figures: `K/s`, `M rows/s`, `reads`.
    pub unit: &'static str,
    /// Whether less is better.
    pub less_is_better: bool,
    /// The goals of the row.
    pub goals: Vec<Goal>,
    /// For each engine of the table, its figure in each repeat. Empty if it was not measured.
    pub figures: Vec<Vec<f64>>,
    /// The indexes of the engines that failed in this row.
    pub failed: Vec<usize>,
}

/// The table.
#[derive(Clone, Debug)]
pub struct Table {
    /// Names of the engines.
    pub engines: Vec<String>,
    /// Its rows.
    pub rows: Vec<Row>,
    /// The errors of engines. An engine that failed in a row has no figures there.
    pub failures: Vec<String>,
}

impl Row {
    /// A row without figures, in which more is better.
    pub fn new(name: &'static str, unit: &'static str, goals: Vec<Goal>) -> Self {
        Self { name, unit, less_is_better: false, goals, figures: Vec::new(), failed: Vec::new() }
    }

    /// Turns it into a row in which less is better.
    pub fn less_is_better(self) -> Self {
        Self { less_is_better: true, ..self }
    }

    /// The bound that `goal` sets for a figure or a ratio in this row.
    fn bound(&self, goal: &Goal) -> Bound {
        if self.less_is_better { Bound::AtMost(goal.ratio) } else { Bound::AtLeast(goal.ratio) }
    }

    /// Marks engine `at` as failed, and removes its figures from the row.
    pub fn fail(&mut self, at: usize) {
        self.figures[at].clear();
        self.failed.push(at);
    }
}

/// A goal with its result.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// The row.
    pub row: String,
    /// The other side.
    pub against: String,
    /// The goal.
    pub goal: f64,
    /// The median of the ratios of the single repeats, in each of which both sides ran close together.
    pub ratio: f64,
    /// Whether the goal was reached.
    pub reached: bool,
}

impl Table {
    /// A table without rows.
    pub fn new(engines: impl IntoIterator<Item = &'static str>) -> Self {
        let engines = engines.into_iter().map(str::to_owned).collect();
        Self { engines, rows: Vec::new(), failures: Vec::new() }
    }

    /// Adds a row.
    pub fn add(&mut self, row: Row) {
        self.rows.push(Row { figures: vec![Vec::new(); self.engines.len()], ..row });
    }

    /// The row called `name`, which must exist.
    pub fn row(&mut self, name: &str) -> &mut Row {
        let row = self.rows.iter_mut().find(|row| row.name == name);
        row.unwrap_or_else(|| panic!("the table has no row `{name}`"))
    }

    /// Whether at least one of our own engines was measured. Their names begin with `larch`.
    pub fn is_measured(&self) -> bool {
        let ours = |at: &usize| self.engines[*at].starts_with("larch");
        (0..self.engines.len()).filter(ours).any(|at| self.rows.iter().any(|row| !row.figures[at].is_empty()))
    }

    /// The results of all goals whose two sides were measured, and of those whose own engine failed.
    pub fn verdicts(&self) -> Vec<Verdict> {
        let mut verdicts = Vec::new();
        for row in &self.rows {
            for goal in &row.goals {
                let Some((against, ratio)) = self.ratio(row, goal).or_else(|| self.failed(row, goal)) else { continue };
                let reached = row.bound(goal).is_reached(ratio);
                verdicts.push(Verdict { row: row.name.to_owned(), against, goal: goal.ratio, ratio, reached });
            }
        }
        verdicts
    }

    /// The result of a goal whose own engine failed: a ratio of NaN, which misses every bound.
    fn failed(&self, row: &Row, goal: &Goal) -> Option<(String, f64)> {
        let ours = match goal.against {
            Against::FigureOf(name) | Against::Between(name, _) => {
                self.engines.iter().position(|known| known == name)?
            }
            _ => 0,
        };
        row.failed.contains(&ours).then(|| ("anything: it failed".to_owned(), f64::NAN))
    }

    /// The goals that could not be checked for want of a figure, and the rows without goals in which no engine was
    /// measured.
    pub fn unmeasured(&self) -> Vec<String> {
        let is_empty = |row: &&Row| row.failed.is_empty() && row.figures.iter().all(Vec::is_empty);
        let empty = self.rows.iter().filter(|row| row.goals.is_empty()).filter(is_empty);
        let rows: Vec<String> = empty.map(|row| format!("{} on any engine", row.name)).collect();
        let goals = self.rows.iter().flat_map(|row| row.goals.iter().map(move |goal| (row, goal)));
        goals
            .filter(|(row, goal)| self.ratio(row, goal).is_none() && self.failed(row, goal).is_none())
            .map(|(row, goal)| match goal.against {
                Against::Engine(name) | Against::Above(name) => format!("{} against {name}", row.name),
                Against::Best => format!("{} against the best", row.name),
                Against::Own(other) => format!("{} against our own {other}", row.name),
                Against::Figure => row.name.to_owned(),
                Against::FigureOf(name) => format!("{} of {name}", row.name),
                Against::Between(ours, theirs) => format!("{} of {ours} against {theirs}", row.name),
            })
            .chain(rows)
            .collect()
    }

    /// An engine's figures in a row, if it was measured.
    fn figures<'r>(&self, row: &'r Row, engine: &str) -> Option<&'r Vec<f64>> {
        let at = self.engines.iter().position(|known| known == engine)?;
        row.figures.get(at).filter(|figures| !figures.is_empty())
    }

    /// The name of the other side, and the measured ratio, difference or figure. `None` if a side is missing.
    fn ratio(&self, row: &Row, goal: &Goal) -> Option<(String, f64)> {
        let own = || row.figures.first().filter(|ours| !ours.is_empty());
        let (name, ours, theirs): (String, &Vec<f64>, &Vec<f64>) = match goal.against {
            Against::Engine(name) => (name.to_owned(), own()?, self.figures(row, name)?),
            Against::Figure => return Some(("its bound".to_owned(), median(own()?))),
            Against::FigureOf(name) => return Some((format!("the bound of {name}"), median(self.figures(row, name)?))),
            Against::Above(name) => {
                return Some((format!("{name}, above it"), median(own()?) - median(self.figures(row, name)?)));
            }
            Against::Between(first, second) => {
                (format!("{second}, of {first}"), self.figures(row, first)?, self.figures(row, second)?)
            }
            Against::Own(other) => {
                let other = self.rows.iter().find(|row| row.name == other)?;
                (format!("our {}", other.name), own()?, other.figures.first()?)
            }
            Against::Best => {
                let measured = (1..self.engines.len()).filter(|at| !row.figures[*at].is_empty());
                let by_median = |a: &usize, b: &usize| median(&row.figures[*a]).total_cmp(&median(&row.figures[*b]));
                let best = if row.less_is_better { measured.min_by(by_median) } else { measured.max_by(by_median) }?;
                (format!("the best, {}", self.engines[best]), own()?, &row.figures[best])
            }
        };
        let ratios: Vec<f64> = ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs).collect();
        (!ratios.is_empty()).then(|| (name, median(&ratios)))
    }

    /// The table as Markdown, first the medians with their spreads, then the goals.
    pub fn markdown(&self) -> String {
        let mut text = String::from("| | unit |");
        for engine in &self.engines {
            put(&mut text, format_args!(" {engine} |"));
        }
        text.push_str("\n|---|---|");
        text.push_str(&"---|".repeat(self.engines.len()));
        for row in &self.rows {
            put(&mut text, format_args!("\n| {} | {} |", row.name, row.unit));
            for (at, figures) in row.figures.iter().enumerate() {
                match figures.is_empty() {
                    true if row.failed.contains(&at) => text.push_str(" failed |"),
                    true => text.push_str(" - |"),
                    false => put(&mut text, format_args!(" {} |", cell(figures))),
                }
            }
        }
        text.push_str("\n\n| goal | at least | measured | |\n|---|---|---|---|\n");
        for verdict in self.verdicts() {
            let less = self.rows.iter().any(|row| row.name == verdict.row && row.less_is_better);
            let bound = if less { "at most " } else { "" };
            let word = word(verdict.reached);
            let Verdict { row, against, goal, ratio, .. } = &verdict;
            let ratio = match format!("{ratio:.2}") {
                _ if ratio.is_nan() => "nothing".to_owned(),
                // More digits if rounding would hide that the goal is missed.
                _ if !verdict.reached && (ratio - goal).abs() < 0.005 => format!("{ratio:.4}"),
                text => text,
            };
            put(&mut text, format_args!("| {row} against {against} | {bound}{goal} | {ratio} | {word} |\n"));
        }
        text
    }
}

/// The median and the spread: half of greatest minus least, in percent of the median.
fn cell(figures: &[f64]) -> String {
    let middle = median(figures);
    let (least, most) = extremes(figures);
    let digits = if middle >= 100.0 {
        0
    } else if middle >= 10.0 {
        1
    } else {
        2
    };
    match figures.len() {
        1 => format!("{middle:.digits$}"),
        _ => format!("{middle:.digits$} ±{:.0} %", 50.0 * (most - least) / middle.max(f64::MIN_POSITIVE)),
    }
}

fn put(text: &mut String, more: std::fmt::Arguments<'_>) {
    text.write_fmt(more).expect("a string takes all");
}
