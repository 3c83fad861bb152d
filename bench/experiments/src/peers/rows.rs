//! The table of a part of a comparison, with a row for each figure and a column for each engine, and the goals of its
//! rows. Figures are computed from the samples of cells, so a table can be made again from what was kept.

#[cfg(test)]
pub mod tests;

use super::Cell;
use super::orders::Sample;
use crate::ground::Ground;
use crate::outcome::{self, grid};
use kit::goals::Bound;
use kit::median;
use kit::median::extremes;
use page::Block;

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

/// A row of the table.
#[derive(Clone)]
pub struct Row {
    /// What it shows.
    pub name: &'static str,
    /// The unit of its figures: `K/s`, `M rows/s`, `reads`.
    pub unit: &'static str,
    /// The cells whose samples it shows, by their task.
    pub task: &'static str,
    /// The figure of a sample; `None` if the engine does not count it, or if there were too few operations for it.
    pub figure: fn(&Sample) -> Option<f64>,
    /// Whether less is better.
    pub less_is_better: bool,
    /// The goals: the other side, and the bound on our figure divided by the other side's, or on the figure or
    /// difference itself for goals without a ratio. A lower bound, or an upper one if less is better.
    pub goals: Vec<(Against, f64)>,
}

impl Row {
    /// A row in which more is better.
    pub fn more(
        name: &'static str,
        unit: &'static str,
        task: &'static str,
        figure: fn(&Sample) -> Option<f64>,
        goals: &[(Against, f64)],
    ) -> Self {
        Self { name, unit, task, figure, less_is_better: false, goals: goals.to_vec() }
    }

    /// A row in which less is better.
    pub fn less(
        name: &'static str,
        unit: &'static str,
        task: &'static str,
        figure: fn(&Sample) -> Option<f64>,
        goals: &[(Against, f64)],
    ) -> Self {
        Self { less_is_better: true, ..Self::more(name, unit, task, figure, goals) }
    }

    /// A row with the rate of `task`, in thousands of operations a second.
    pub fn rate(task: &'static str, goals: &[(Against, f64)]) -> Self {
        Self::more(task, "K/s", task, |sample| Some(super::thousands(sample)), goals)
    }

    fn bound(&self, number: f64) -> Bound {
        if self.less_is_better { Bound::AtMost(number) } else { Bound::AtLeast(number) }
    }
}

/// A row whose task is this shows the sum over all samples of an engine.
pub const ALL_TASKS: &str = "";

/// A part of a comparison.
#[derive(Clone)]
pub struct Part {
    /// Its title.
    pub title: String,
    /// The engines, ours first.
    pub engines: Vec<&'static str>,
    /// How often each task is repeated.
    pub repeats: u64,
    /// The rows.
    pub rows: Vec<Row>,
}

/// The figures of an engine in a row.
enum Figures {
    /// Its figure in each repeat; none if it was not measured, or if a repeat has no such figure.
    Measured(Vec<f64>),
    Failed,
}

impl Part {
    /// The tasks of the rows, each once.
    pub fn tasks(&self) -> Vec<&'static str> {
        let mut tasks = Vec::new();
        for task in self.rows.iter().map(|row| row.task).filter(|task| *task != ALL_TASKS) {
            if !tasks.contains(&task) {
                tasks.push(task);
            }
        }
        tasks
    }

    /// A cell of this part.
    pub fn cell(&self, task: &'static str, engine: &'static str, repeat: u64) -> Cell {
        Cell { part: self.title.clone(), task, engine, repeat }
    }

    /// All repeats of a task on all engines, one engine after the other within a repeat.
    pub fn repeated(&self, task: &'static str) -> impl Iterator<Item = Cell> {
        (0..self.repeats).flat_map(move |repeat| self.engines.iter().map(move |engine| self.cell(task, engine, repeat)))
    }

    fn figures(&self, ground: &Ground, row: &Row, engine: &'static str) -> Figures {
        let samples = |task| ground.all::<Sample, _>(self.repeats, |repeat| self.cell(task, engine, repeat));
        if row.task == ALL_TASKS {
            let all: Vec<f64> =
                self.tasks().into_iter().flat_map(samples).filter_map(|sample| (row.figure)(&sample)).collect();
            return Figures::Measured(all.iter().copied().reduce(|sum, more| sum + more).into_iter().collect());
        }
        let has_failed = |repeat| ground.failures().contains_key(&self.cell(row.task, engine, repeat).to_string());
        if (0..self.repeats).any(has_failed) {
            return Figures::Failed;
        }
        // Without a repeat's figure, the repeats of two engines would no longer be pairs.
        let all: Option<Vec<f64>> = samples(row.task).iter().map(row.figure).collect();
        Figures::Measured(all.unwrap_or_default())
    }

    /// The figures of an engine that was measured and did not fail.
    fn measured(&self, ground: &Ground, row: &Row, engine: &str) -> Option<Vec<f64>> {
        let engine = self.engines.iter().find(|known| **known == engine)?;
        match self.figures(ground, row, engine) {
            Figures::Measured(figures) if !figures.is_empty() => Some(figures),
            _ => None,
        }
    }

    /// The medians with their spreads.
    pub fn table(&self, ground: &Ground) -> Block {
        let row = |row: &Row| {
            let cells = self.engines.iter().map(|engine| match self.figures(ground, row, engine) {
                Figures::Failed => "failed".to_owned(),
                Figures::Measured(figures) if figures.is_empty() => "-".to_owned(),
                Figures::Measured(figures) => shown(&figures),
            });
            [row.name, row.unit].map(str::to_owned).into_iter().chain(cells).collect()
        };
        let columns = ["", "unit"].into_iter().chain(self.engines.iter().copied());
        grid(self.title.clone(), columns, self.rows.iter().map(row).collect())
    }

    /// The results of all goals whose two sides were measured, and of those whose own engine failed.
    pub fn goals(&self, ground: &Ground) -> Vec<outcome::Goal> {
        let mut goals = Vec::new();
        for (row, against, number) in self.wanted() {
            let found = self.ratio(ground, row, against).map(|(other, ratio)| (other, Some(ratio)));
            let failed = || self.failed(ground, row, against).then(|| ("anything: it failed".to_owned(), None));
            if let Some((other, ratio)) = found.or_else(failed) {
                goals.push(outcome::Goal::new(
                    format!("{} against {other}", row.name.trim_start()),
                    row.bound(number),
                    ratio,
                ));
            }
        }
        goals
    }

    /// The goals that could not be checked for want of a figure, and the rows without goals in which no engine was
    /// measured.
    pub fn gaps(&self, ground: &Ground) -> Vec<String> {
        let mut gaps = Vec::new();
        for (row, against, _) in self.wanted() {
            if self.ratio(ground, row, against).is_none() && !self.failed(ground, row, against) {
                gaps.push(match against {
                    Against::Engine(name) | Against::Above(name) => format!("{} against {name}", row.name),
                    Against::Best => format!("{} against the best", row.name),
                    Against::Own(other) => format!("{} against our own {other}", row.name),
                    Against::Figure => row.name.to_owned(),
                    Against::FigureOf(name) => format!("{} of {name}", row.name),
                    Against::Between(ours, theirs) => format!("{} of {ours} against {theirs}", row.name),
                });
            }
        }
        let is_empty = |engine: &&'static str, row| matches!(self.figures(ground, row, engine), Figures::Measured(figures) if figures.is_empty());
        let without = self.rows.iter().filter(|row| row.goals.is_empty());
        let empty = without.filter(|row| self.engines.iter().all(|engine| is_empty(engine, row)));
        gaps.extend(empty.map(|row| format!("{} on any engine", row.name)));
        gaps
    }

    /// Each goal with its row.
    fn wanted(&self) -> impl Iterator<Item = (&Row, Against, f64)> {
        self.rows.iter().flat_map(|row| row.goals.iter().map(move |(against, number)| (row, *against, *number)))
    }

    /// Whether the engine whose goal it is failed.
    fn failed(&self, ground: &Ground, row: &Row, against: Against) -> bool {
        let ours = match against {
            Against::FigureOf(name) | Against::Between(name, _) => name,
            _ => self.engines[0],
        };
        let ours = self.engines.iter().find(|known| **known == ours);
        ours.is_some_and(|engine| matches!(self.figures(ground, row, engine), Figures::Failed))
    }

    /// The name of the other side, and the measured ratio, difference or figure: the median of the ratios of the
    /// single repeats, in each of which both sides ran close together. `None` if a side is missing.
    fn ratio(&self, ground: &Ground, row: &Row, against: Against) -> Option<(String, f64)> {
        let of = |engine: &str| self.measured(ground, row, engine);
        let own = || of(self.engines[0]);
        let (name, ours, theirs): (String, Vec<f64>, Vec<f64>) = match against {
            Against::Engine(name) => (name.to_owned(), own()?, of(name)?),
            Against::Figure => return Some(("its bound".to_owned(), median(&own()?))),
            Against::FigureOf(name) => return Some((format!("the bound of {name}"), median(&of(name)?))),
            Against::Above(name) => return Some((format!("{name}, above it"), median(&own()?) - median(&of(name)?))),
            Against::Between(first, second) => (format!("{second}, of {first}"), of(first)?, of(second)?),
            Against::Own(other) => {
                let other = self.rows.iter().find(|row| row.name == other)?;
                (format!("our {}", other.name), own()?, self.measured(ground, other, self.engines[0])?)
            }
            Against::Best => {
                let others = self.engines[1..].iter().filter_map(|engine| Some((*engine, of(engine)?)));
                let by_median = |a: &(&str, Vec<f64>), b: &(&str, Vec<f64>)| median(&a.1).total_cmp(&median(&b.1));
                let best = if row.less_is_better { others.min_by(by_median) } else { others.max_by(by_median) };
                let (engine, theirs) = best?;
                (format!("the best, {engine}"), own()?, theirs)
            }
        };
        let ratios: Vec<f64> = ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs).collect();
        (!ratios.is_empty()).then(|| (name, median(&ratios)))
    }
}

/// The median and the spread: half of greatest minus least, in percent of the median.
fn shown(figures: &[f64]) -> String {
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
