//! The outcome of an experiment: tables, charts and goals, as text, JSON and an HTML page.

use crate::args::ExperimentArgs;
use crate::ground::Ground;
use harness::Failure;
use harness::report::Environment;
use kit::goals::{Bound, summary, word};
use page::{Axis, Block, Chart, Curve, Page, Table, figure};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use suite::{report_page, results};

/// What an experiment says about itself.
pub struct About {
    /// The name on the command line and in the result.
    pub name: &'static str,
    /// The title of the page.
    pub title: &'static str,
    /// Paragraphs on what the experiment repeats, and how.
    pub text: &'static [&'static str],
}

/// A goal, and its result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Goal {
    /// The figure.
    pub what: String,
    /// What it should be.
    pub wanted: String,
    /// What it is, if it was measured.
    pub measured: Option<Measured>,
    /// Whether it is as it should be.
    pub is_reached: bool,
    /// What explains the figure.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// What was measured for a goal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Measured {
    /// A figure.
    Figure(f64),
    /// Several figures, or a figure with its unit.
    Words(String),
}

impl Goal {
    /// A goal for a figure.
    pub fn new(what: impl Into<String>, bound: Bound, measured: Option<f64>) -> Self {
        let is_reached = measured.is_some_and(|measured| bound.is_reached(measured));
        let (what, wanted, measured) = (what.into(), bound.to_string(), measured.map(Measured::Figure));
        Self { what, wanted, measured, is_reached, notes: Vec::new() }
    }

    /// A goal whose measurement is a text.
    pub fn in_words(what: &str, wanted: impl Into<String>, measured: impl Into<String>, is_reached: bool) -> Self {
        let (what, wanted, measured) = (what.to_owned(), wanted.into(), Some(Measured::Words(measured.into())));
        Self { what, wanted, measured, is_reached, notes: Vec::new() }
    }

    /// Adds a sentence that explains the figure.
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    /// What was measured, as text.
    pub fn shown(&self) -> String {
        match &self.measured {
            None => "not measured".to_owned(),
            Some(Measured::Figure(number)) => figure(*number),
            Some(Measured::Words(words)) => words.clone(),
        }
    }

    /// A goal for a figure that should be `least` or more.
    pub fn at_least(least: f64, what: impl Into<String>, measured: Option<f64>) -> Self {
        Self::new(what, Bound::AtLeast(least), measured)
    }

    /// A goal for a figure that should be `most` or less.
    pub fn at_most(most: f64, what: impl Into<String>, measured: Option<f64>) -> Self {
        Self::new(what, Bound::AtMost(most), measured)
    }
}

/// A column of a table: its name, and what it shows of a row.
pub type Column<'c, R> = (&'c str, &'c dyn Fn(&R) -> String);

/// A table with a row for each of `rows`.
pub fn table<R>(caption: impl Into<String>, rows: impl IntoIterator<Item = R>, columns: &[Column<'_, R>]) -> Block {
    let cells = |row: R| columns.iter().map(|(_, shown)| shown(&row)).collect();
    grid(caption, columns.iter().map(|(name, _)| *name), rows.into_iter().map(cells).collect())
}

/// A table whose cells are texts already.
pub fn grid<N: ToString>(
    caption: impl Into<String>,
    columns: impl IntoIterator<Item = N>,
    rows: Vec<Vec<String>>,
) -> Block {
    let columns = columns.into_iter().map(|name| name.to_string()).collect();
    Block::Table(Table { caption: caption.into(), columns, rows })
}

/// A chart with a line for each of `lines`, given by their names and points.
pub fn chart<N: Into<String>>(
    title: impl Into<String>,
    (x, y): (Axis, Axis),
    lines: impl IntoIterator<Item = (N, Vec<(f64, f64)>)>,
) -> Block {
    let lines = lines.into_iter().map(|(name, points)| Curve { name: name.into(), points }).collect();
    Block::Chart(Chart { title: title.into(), x, y, lines, marks: Vec::new() })
}

/// The table of the conditions: sizes, cache, durability and whatever else affects the figures.
pub fn facts(facts: &[(&str, String)]) -> Block {
    let rows = facts.iter().map(|(name, value)| vec![(*name).to_owned(), value.clone()]).collect();
    grid("What was measured", ["", "here"], rows)
}

/// The outcome of an experiment.
pub struct Outcome {
    /// What the experiment says about itself.
    pub about: About,
    /// Tables and charts.
    pub blocks: Vec<Block>,
    /// The goals.
    pub goals: Vec<Goal>,
    /// What was not measured.
    pub gaps: Vec<String>,
}

/// The content of `result.json`.
#[derive(Serialize)]
struct ResultFile<'o> {
    format: &'static str,
    version: u32,
    experiment: &'o str,
    scale: &'static str,
    environment: &'o Environment,
    goals: &'o [Goal],
    cells: &'o BTreeMap<String, Value>,
}

impl Outcome {
    /// Prints the outcome, writes `result.json` and `index.html` to the experiment's directory, and removes its
    /// databases. Returns `false` if a cell failed, if `--check` was given and a goal was missed, or if everything is
    /// to be measured and something was not.
    ///
    /// # Errors
    ///
    /// Fails if a file cannot be written, or the databases cannot be removed.
    pub fn finish(&self, ground: &Ground, args: &ExperimentArgs) -> Result<bool, Failure> {
        let environment = Environment::gather(results::VERSION, ground.directory());
        let short = self.goals.iter().filter(|goal| !goal.is_reached).count();
        let ended = self.ended(ground, short);
        suite::print(&format!("{}{ended}", self.text(aligned)))?;
        let result = ResultFile {
            format: "larch-experiment-result",
            version: 1,
            experiment: self.about.name,
            scale: ground.scale.name(),
            environment: &environment,
            goals: &self.goals,
            cells: ground.cells(),
        };
        let json = serde_json::to_vec_pretty(&result).expect("names are texts");
        results::write(&ground.directory().join("result.json"), &json)?;
        let html = ground.directory().join("index.html");
        results::write(&html, self.page(&environment, ground, args.price).html().as_bytes())?;
        if let Some(path) = &args.markdown {
            results::write(path, format!("{}{ended}", self.text(markdown)).as_bytes())?;
        }
        suite::print(&format!("page: {}\n", html.display()))?;
        ground.remove_data()?;
        let (is_short, is_incomplete) = (short > 0 && args.check, !self.gaps.is_empty() && args.whole);
        if is_short {
            suite::say(&format!("larch: --check: {short} goals are not reached"));
        }
        if is_incomplete {
            let count = self.gaps.len();
            suite::say(&format!("larch: --require-peers: {count} rows, goals or engines were not measured"));
        }
        Ok(!is_short && !is_incomplete && ground.failures().is_empty())
    }

    /// The lines below the tables: what was not measured, what failed, and the number of goals that were missed.
    fn ended(&self, ground: &Ground, short: usize) -> String {
        let mut text = String::new();
        self.gaps.iter().for_each(|gap| text.push_str(&format!("not measured: {gap}\n")));
        ground.failures().iter().for_each(|(cell, why)| text.push_str(&format!("failed: {cell}: {why}\n")));
        if !self.goals.is_empty() {
            text.push_str(&summary(short));
        }
        text
    }

    /// The blocks and goals as text, with tables in the form of `written`.
    fn text(&self, written: fn(&Table) -> String) -> String {
        let mut text = String::new();
        for block in &self.blocks {
            match block {
                Block::Heading(heading) => text.push_str(&format!("\n{heading}\n\n")),
                Block::Table(table) => text.push_str(&written(table)),
                Block::Text(paragraph) => text.push_str(&format!("{paragraph}\n")),
                Block::Code(code) => text.push_str(&format!("{code}\n")),
                Block::Chart(_) | Block::Timeline(_) | Block::Folded(..) => {}
            }
        }
        match (self.explained(), self.goal_table()) {
            (Some(list), _) => text.push_str(&format!("\nGoals\n{list}\n")),
            (None, Some(Block::Table(goals))) => text.push_str(&format!("\n{}", written(&goals))),
            _ => {}
        }
        text
    }

    /// If goals have notes, all goals line by line with their notes: a terminal is too narrow for a table of them.
    fn explained(&self) -> Option<String> {
        let lines = |goal: &Goal| {
            let notes: String = goal.notes.iter().map(|note| format!("    {note}\n")).collect();
            format!("{} | {} | {} | {}\n{notes}", goal.what, goal.wanted, goal.shown(), word(goal.is_reached))
        };
        let has_notes = self.goals.iter().any(|goal| !goal.notes.is_empty());
        has_notes.then(|| self.goals.iter().map(lines).collect())
    }

    /// The table of the goals, if there are any.
    fn goal_table(&self) -> Option<Block> {
        let columns: [Column<'_, &Goal>; 4] = [
            ("goal", &|goal| goal.what.clone()),
            ("wanted", &|goal| goal.wanted.clone()),
            ("measured", &|goal| goal.shown()),
            ("", &|goal| word(goal.is_reached).to_owned()),
        ];
        (!self.goals.is_empty()).then(|| table("Goals", &self.goals, &columns))
    }

    fn page(&self, environment: &Environment, ground: &Ground, price: Option<f64>) -> Page {
        let mut page = Page::new(self.about.title);
        page.blocks.extend(self.about.text.iter().map(|text| Block::Text((*text).to_owned())));
        page.blocks.extend(self.blocks.iter().cloned());
        if let Some(goals) = self.goal_table() {
            page.blocks.extend([Block::Heading("Goals".to_owned()), goals]);
        }
        let notes = self.explained().map(|list| vec![Block::Code(list)]);
        page.blocks.extend(notes.map(|list| Block::Folded("What explains the figures".to_owned(), list)));
        let costs = ground.costs().into_iter().map(|(cell, million)| (cell, million.priced(price)));
        let costs: Vec<_> = costs.collect();
        if !costs.is_empty() {
            page.add(Block::Heading("What it cost".to_owned()));
            page.add(Block::Text(report_page::COST.to_owned()));
            let table = Block::Table(report_page::cost_table("cell", &costs));
            page.add(Block::Folded("A million operations of each cell".to_owned(), vec![table]));
        }
        page.add(Block::Heading("How to run it again".to_owned()));
        page.add(Block::Code(environment.command.join(" ")));
        page.add(Block::Table(report_page::machine(environment)));
        page
    }
}

/// A table as text, the first column aligned left and the others right.
fn aligned(table: &Table) -> String {
    let width = |column: usize| {
        let cells = table.rows.iter().map(|row| row[column].chars().count());
        cells.chain([table.columns[column].chars().count()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..table.columns.len()).map(width).collect();
    let line = |cells: &[String]| {
        let cells = cells.iter().zip(&widths).enumerate().map(|(at, (cell, width))| match at {
            0 => format!("{cell:<width$}"),
            _ => format!("  {cell:>width$}"),
        });
        format!("{}\n", cells.collect::<String>().trim_end())
    };
    let mut text = format!("{}\n", table.caption);
    text.push_str(&line(&table.columns));
    table.rows.iter().for_each(|row| text.push_str(&line(row)));
    text.push('\n');
    text
}

/// A table as Markdown.
fn markdown(table: &Table) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let rule = format!("|{}\n", "---|".repeat(table.columns.len()));
    let rows: String = table.rows.iter().map(|row| line(row)).collect();
    format!("{}:\n\n{}{rule}{rows}\n", table.caption, line(&table.columns))
}
