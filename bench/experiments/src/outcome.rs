//! The outcome of an experiment: tables, charts and goals, as text, JSON and an HTML page.

use crate::args::ExperimentArgs;
use crate::ground::Ground;
use harness::report::Environment;
use harness::{Failure, Million};
use kit::goals::{Bound, summary, word};
use page::{Block, Page, Table, figure};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use suite::{report_page, results};

/// How an experiment ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Everything was measured.
    Good,
    /// Everything was measured, but with `--check` a goal was missed.
    Short,
    /// Stopped by ^C.
    Interrupted,
}

/// A goal for a figure, and its result.
#[derive(Clone, Debug, PartialEq)]
pub struct Goal {
    /// The figure.
    pub what: String,
    /// What it should be.
    pub bound: Bound,
    /// What it is, if it was measured.
    pub measured: Option<f64>,
}

impl Goal {
    fn is_reached(&self) -> bool {
        self.measured.is_some_and(|measured| self.bound.is_reached(measured))
    }
}

/// The outcome of an experiment.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Its title.
    pub title: String,
    /// Paragraphs on what the experiment repeats, and how.
    pub about: Vec<String>,
    /// Tables and charts.
    pub blocks: Vec<Block>,
    /// The goals.
    pub goals: Vec<Goal>,
}

/// The content of `result.json`.
#[derive(Serialize)]
struct ResultFile<'o> {
    format: &'static str,
    version: u32,
    experiment: &'o str,
    scale: &'static str,
    environment: Environment,
    goals: Vec<GoalResult<'o>>,
    cells: &'o BTreeMap<String, Value>,
}

#[derive(Serialize)]
struct GoalResult<'o> {
    what: &'o str,
    wanted: String,
    measured: Option<f64>,
    is_reached: bool,
}

impl Outcome {
    /// Prints the outcome, writes `result.json` and `index.html` to the experiment's directory, and removes its
    /// databases.
    ///
    /// # Errors
    ///
    /// Fails if a file cannot be written, or the databases cannot be removed.
    pub fn finish(&self, name: &str, ground: &Ground, args: &ExperimentArgs) -> Result<Ending, Failure> {
        let environment = Environment::gather(results::VERSION, ground.directory());
        let short = self.goals.iter().filter(|goal| !goal.is_reached()).count();
        suite::print(&self.text(short))?;
        let goals = self.goals.iter().map(|goal| GoalResult {
            what: &goal.what,
            wanted: goal.bound.to_string(),
            measured: goal.measured,
            is_reached: goal.is_reached(),
        });
        let result = ResultFile {
            format: "larch-experiment-result",
            version: 1,
            experiment: name,
            scale: ground.scale.name(),
            environment: environment.clone(),
            goals: goals.collect(),
            cells: ground.cells(),
        };
        let json = serde_json::to_vec_pretty(&result).expect("names are texts");
        results::write(&ground.directory().join("result.json"), &json)?;
        let html = ground.directory().join("index.html");
        let costs = ground.costs().into_iter().map(|(cell, million)| (cell, million.priced(args.price)));
        results::write(&html, self.page(&environment, &costs.collect::<Vec<_>>()).html().as_bytes())?;
        suite::print(&format!("page: {}\n", html.display()))?;
        ground.remove_data()?;
        if short > 0 && args.check {
            suite::say(&format!("larch: --check: {short} goals are not reached"));
            return Ok(Ending::Short);
        }
        Ok(Ending::Good)
    }

    fn goal_rows(&self) -> Vec<Vec<String>> {
        let row = |goal: &Goal| {
            let measured = goal.measured.map_or("not measured".to_owned(), figure);
            vec![goal.what.clone(), goal.bound.to_string(), measured, word(goal.is_reached()).to_owned()]
        };
        self.goals.iter().map(row).collect()
    }

    fn text(&self, short: usize) -> String {
        let mut text = String::new();
        for block in &self.blocks {
            match block {
                Block::Heading(heading) => text.push_str(&format!("\n{heading}\n\n")),
                Block::Table(table) => text.push_str(&aligned(table)),
                Block::Text(paragraph) => text.push_str(&format!("{paragraph}\n")),
                Block::Code(code) => text.push_str(&format!("{code}\n")),
                Block::Chart(_) | Block::Timeline(_) | Block::Folded(..) => {}
            }
        }
        if !self.goals.is_empty() {
            text.push('\n');
            text.push_str(&aligned(&self.goal_table()));
            text.push_str(&summary(short));
        }
        text
    }

    fn goal_table(&self) -> Table {
        let columns = ["goal", "wanted", "measured", ""].map(str::to_owned).to_vec();
        Table { caption: "Goals".to_owned(), columns, rows: self.goal_rows() }
    }

    fn page(&self, environment: &Environment, costs: &[(String, Million)]) -> Page {
        let mut page = Page::new(self.title.clone());
        page.blocks.extend(self.about.iter().cloned().map(Block::Text));
        page.blocks.extend(self.blocks.iter().cloned());
        if !self.goals.is_empty() {
            page.add(Block::Heading("Goals".to_owned()));
            page.add(Block::Table(self.goal_table()));
        }
        if !costs.is_empty() {
            page.add(Block::Heading("What it cost".to_owned()));
            page.add(Block::Text(report_page::COST.to_owned()));
            let table = Block::Table(report_page::cost_table("cell", costs));
            page.add(Block::Folded("A million operations of each cell".to_owned(), vec![table]));
        }
        page.add(Block::Heading("How to run it again".to_owned()));
        page.add(Block::Code(environment.command.join(" ")));
        page.add(Block::Table(report_page::machine(environment)));
        page
    }
}

/// The table of the conditions: sizes, cache, durability and whatever else affects the figures.
pub fn facts(facts: &[(&str, String)]) -> Block {
    let rows = facts.iter().map(|(name, value)| vec![(*name).to_owned(), value.clone()]).collect();
    let columns = ["", "here"].map(str::to_owned).to_vec();
    Block::Table(Table { caption: "What was measured".to_owned(), columns, rows })
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
