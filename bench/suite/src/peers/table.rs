//! A table with a row for each measurement and a column for each engine. It shows goals beside what was measured.

#[cfg(test)]
mod tests;

use kit::goals::{Bound, word};
use kit::median;
use kit::median::extremes;
use serde::Serialize;
use std::fmt::Write as _;

/// What a goal compares our figure in a row with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Against {
    /// An engine's figure in the same row.
    Engine(&'static str),
    /// Our figure is compared with the best figure of the other engines in the same row.
    Best,
    /// Our own figure in another row.
    Own(&'static str),
    /// Our figure is compared with no other figure: it must itself be within a bound.
    Figure,
    /// The figure of the named engine must itself be within a bound. This engine is another one of ours.
    FigureOf(&'static str),
    /// An engine's figure. The difference between our figure and this engine's figure must be within a bound.
    Above(&'static str),
    /// The figure of the second named engine. It is compared with the figure of the first named engine, and not
    /// with the figure of our first engine. The first named engine is also one of ours.
    Between(&'static str, &'static str),
}

/// A goal of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Goal {
    /// What our figure is compared with.
    pub against: Against,
    /// The bound for our figure divided by the figure that it is compared with. In goals that divide nothing, it
    /// is the bound for the figure or for the difference. It is a lower bound, or an upper bound if less is
    /// better.
    pub ratio: f64,
}

/// A row of the table: the name of what is measured, its unit, and the goals.
#[derive(Clone, Debug)]
pub struct Row {
    /// Its name.
    pub name: &'static str,
    /// The unit of its figures: `K/s`, `M rows/s`, `reads`.
    pub unit: &'static str,
    /// Whether less is better.
    pub less_is_better: bool,
    /// The goals of the row.
    pub goals: Vec<Goal>,
    /// The figures of the engines. There is a list for each engine of the table, and the list has a figure for
    /// each repeat. If an engine has no figures, it was not measured.
    pub figures: Vec<Vec<f64>>,
    /// The numbers of the engines that failed in the row.
    pub failed: Vec<usize>,
}

/// A table with a row for each measurement and a column for each engine. Goals are goals of the first engine.
#[derive(Clone, Debug)]
pub struct Table {
    /// Names of the engines.
    pub engines: Vec<String>,
    /// Its rows.
    pub rows: Vec<Row>,
    /// The failures of engines. An engine that failed in a row has no figure there: its cell is empty, and the row
    /// is not measured for this engine.
    pub failures: Vec<String>,
}

impl Row {
    /// A row without figures. In this row, more is better.
    pub fn new(name: &'static str, unit: &'static str, goals: Vec<Goal>) -> Self {
        Self { name, unit, less_is_better: false, goals, figures: Vec::new(), failed: Vec::new() }
    }

    /// Makes the row one in which smaller figures are better.
    pub fn less_is_better(self) -> Self {
        Self { less_is_better: true, ..self }
    }

    /// The bound that `goal` sets for a figure or a ratio in this row.
    fn bound(&self, goal: &Goal) -> Bound {
        if self.less_is_better { Bound::AtMost(goal.ratio) } else { Bound::AtLeast(goal.ratio) }
    }

    /// Notes that engine `at` failed. The figures that the engine already had in this row are removed, because an
    /// engine that failed has no result.
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
    /// The measured ratio: the median of the ratios that were computed for each repeat. In each repeat, the two
    /// engines that a goal compares ran one after the other.
    pub ratio: f64,
    /// Whether the goal was reached.
    pub reached: bool,
}

impl Table {
    /// A table of these engines, without rows.
    pub fn new(engines: impl IntoIterator<Item = &'static str>) -> Self {
        let engines = engines.into_iter().map(str::to_owned).collect();
        Self { engines, rows: Vec::new(), failures: Vec::new() }
    }

    /// Adds a row, with no figures yet.
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

    /// The results of all goals for which everything was measured, and of goals whose own engine failed.
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

    /// The result of a goal if the engine that should reach it has failed. The goal is then missed, and the ratio
    /// is not a number.
    fn failed(&self, row: &Row, goal: &Goal) -> Option<(String, f64)> {
        let ours = match goal.against {
            Against::FigureOf(name) | Against::Between(name, _) => {
                self.engines.iter().position(|known| known == name)?
            }
            _ => 0,
        };
        row.failed.contains(&ours).then(|| ("anything: it failed".to_owned(), f64::NAN))
    }

    /// The goals that could not be checked because a figure is missing, and the rows in which no engine was
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

    /// The figures of an engine in a row, if the engine was measured.
    fn figures<'r>(&self, row: &'r Row, engine: &str) -> Option<&'r Vec<f64>> {
        let at = self.engines.iter().position(|known| known == engine)?;
        row.figures.get(at).filter(|figures| !figures.is_empty())
    }

    /// The name of what the goal compares with, and the measured ratio, difference or figure. `None` if a side is
    /// missing.
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
                // If a goal is missed by so little that the rounded figure would hide it, the figure gets more
                // digits.
                _ if !verdict.reached && (ratio - goal).abs() < 0.005 => format!("{ratio:.4}"),
                text => text,
            };
            put(&mut text, format_args!("| {row} against {against} | {bound}{goal} | {ratio} | {word} |\n"));
        }
        text
    }
}

/// The median and the spread. The spread is half the difference between the greatest and the least figure, in per
/// cent of the median.
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
