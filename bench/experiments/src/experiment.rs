//! The one frame of all experiments. An experiment says which cells it has, how a cell is measured, and what its tables
//! and goals say. The frame does what all of them share: it goes through the cells, keeps each measurement on disk at
//! once, goes on where an interrupted run stopped, and writes the result as text, JSON and a page.
//!
//! A *cell* is one measurement, of one side at one size in one repeat. Cells that are compared with each other follow
//! one another, so that other load on the machine affects all of them.

use crate::args::ExperimentArgs;
use crate::ground::Ground;
use crate::outcome::Outcome;
pub use crate::outcome::{About, Goal};
use harness::Failure;
use page::Block;
use serde::Serialize;
use serde_json::Value;
use std::fmt::Display;
use suite::stop::Stop;

/// An experiment at one scale.
pub trait Experiment {
    /// What it says about itself.
    const ABOUT: About;

    /// A measurement. Its text is the name under which it is kept.
    type Cell: Display;

    /// The most disk space that its databases take at a time.
    fn most_bytes(&self) -> u64;

    /// All cells, in the order in which they are measured.
    fn cells(&self) -> Vec<Self::Cell>;

    /// Makes a database that `cell` shares with others. Called for all cells that are missing, before the first of
    /// them is measured. Databases for which the disk has no room at a time are made by [`Experiment::measure`].
    ///
    /// # Errors
    ///
    /// Fails if the database cannot be made, or ^C was pressed.
    fn prepare(&mut self, _cell: &Self::Cell, _ground: &mut Ground) -> Result<(), Failure> {
        Ok(())
    }

    /// Measures one cell. If ^C is pressed meanwhile, the result is dropped.
    ///
    /// # Errors
    ///
    /// Fails if an engine failed or its answers are wrong, which ends the experiment.
    fn measure(&mut self, cell: &Self::Cell, ground: &mut Ground) -> Result<Kept, Failure>;

    /// Closes what the cells shared.
    ///
    /// # Errors
    ///
    /// Fails if a database cannot be closed.
    fn end(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    /// Tables and charts of what was measured. May also write files of its own beside the result.
    ///
    /// # Errors
    ///
    /// Fails if such a file cannot be written.
    fn tables(&self, ground: &Ground) -> Result<Vec<Block>, Failure>;

    /// The goals, with what was measured, if there are any.
    fn goals(&self, _ground: &Ground) -> Vec<Goal> {
        Vec::new()
    }

    /// What was not measured although it could have been elsewhere: engines that this binary lacks, and goals that
    /// compare with them.
    fn gaps(&self, _ground: &Ground) -> Vec<String> {
        Vec::new()
    }
}

/// A measurement as it is kept, or why it failed. A failure is not kept: another run of the experiment tries again.
pub struct Kept {
    value: Result<Value, String>,
    /// Its main figures, for the line of progress.
    line: String,
}

impl Kept {
    /// Keeps `measured`. `line` has the main figures, for the line of progress.
    pub fn new(measured: &impl Serialize, line: impl Into<String>) -> Self {
        Self { value: Ok(serde_json::to_value(measured).expect("names are texts")), line: line.into() }
    }

    /// A failure of this cell that does not end the experiment.
    pub fn failed(why: String) -> Self {
        Self { line: format!("failed: {why}"), value: Err(why) }
    }
}

/// Runs an experiment, prints its result and writes it. Returns whether all is well: with `--check`, a goal that was
/// missed is not.
///
/// # Errors
///
/// Returns the errors of the experiment, and fails if a result cannot be written. After ^C, the failure is
/// [`suite::stop::INTERRUPTED`].
pub fn run<E: Experiment>(experiment: E, args: &ExperimentArgs) -> Result<bool, Failure> {
    run_until(experiment, args, Stop::catch()?)
}

/// [`run`] in a process that catches ^C itself.
///
/// # Errors
///
/// As [`run`].
pub fn run_until<E: Experiment>(mut experiment: E, args: &ExperimentArgs, stop: Stop) -> Result<bool, Failure> {
    let mut ground = Ground::open(E::ABOUT.name, args, experiment.most_bytes(), stop)?;
    measure_all(&mut experiment, &mut ground)?;
    outcome_of(&experiment, &ground)?.finish(&ground, args)
}

/// What the cells in `ground` say.
fn outcome_of<E: Experiment>(experiment: &E, ground: &Ground) -> Result<Outcome, Failure> {
    let (blocks, goals, gaps) = (experiment.tables(ground)?, experiment.goals(ground), experiment.gaps(ground));
    Ok(Outcome { about: E::ABOUT, blocks, goals, gaps })
}

/// Measures the cells that are missing.
fn measure_all<E: Experiment>(experiment: &mut E, ground: &mut Ground) -> Result<(), Failure> {
    let cells = experiment.cells();
    let names: Vec<String> = cells.iter().map(ToString::to_string).collect();
    let missing: Vec<_> = (1..).zip(cells.iter().zip(&names)).filter(|(_, (_, name))| !ground.has(name)).collect();
    for (_, (cell, _)) in &missing {
        experiment.prepare(cell, ground)?;
    }
    for (number, (cell, name)) in missing {
        ground.check_stop()?;
        let kept = experiment.measure(cell, ground);
        // A measurement that ^C cut short is dropped. Its error, if it has one, comes from ^C, too.
        ground.check_stop()?;
        let Kept { value, line } = kept?;
        suite::say(&format!("{number:>4} of {}  {name:60}  {line}", cells.len()));
        match value {
            Ok(value) => ground.keep(name, value)?,
            Err(why) => ground.fail(name, why),
        }
    }
    experiment.end()
}

#[cfg(test)]
pub mod tests {
    //! What a test of every experiment checks: a tiny one measures all of its cells, and a second run of it none.

    #![allow(clippy::disallowed_methods, reason = "results of real files, never simulated")]

    use super::*;
    use crate::args::Scale;
    use kit::Scratch;

    /// The options of an experiment whose directory is in `scratch`.
    pub fn options(scratch: &Scratch, scale: Scale) -> ExperimentArgs {
        let out = Some(scratch.join("out"));
        ExperimentArgs { scale, out, again: false, check: true, price: None, markdown: None, whole: false }
    }

    /// A directory without cells.
    pub fn ground(scratch: &Scratch) -> Ground {
        Ground::open("test", &options(scratch, Scale::Tiny), 1 << 20, Stop::never()).expect("there is room")
    }

    /// Runs `experiment`. Checks that every cell and goal is measured, that each row of a table has its columns, and that
    /// `again`, the same experiment, finds all cells and leaves the same result without a database.
    pub fn tiny<E: Experiment>(mut experiment: E, mut again: E) -> (Scratch, Ground, Outcome) {
        let scratch = Scratch::new(E::ABOUT.name);
        let args = options(&scratch, Scale::Tiny);
        let open = || Ground::open(E::ABOUT.name, &args, 1 << 20, Stop::never()).expect("there is room");
        let mut ground = open();
        measure_all(&mut experiment, &mut ground).expect("the disk works");
        let names: Vec<String> = experiment.cells().iter().map(ToString::to_string).collect();
        assert!(names.iter().all(|name| ground.has(name)), "{:?} of {names:?}", ground.cells());
        let distinct: std::collections::BTreeSet<&String> = names.iter().collect();
        assert_eq!(distinct.len(), names.len(), "two cells have the same name");
        let outcome = outcome_of(&experiment, &ground).expect("there is room");
        for block in &outcome.blocks {
            if let Block::Table(table) = block {
                assert!(table.rows.iter().all(|row| row.len() == table.columns.len()), "{}", table.caption);
            }
        }
        assert!(outcome.goals.iter().all(|goal| goal.measured.is_some()), "{:?}", outcome.goals);

        ground.remove_data().expect("it is ours");
        let mut second = open();
        measure_all(&mut again, &mut second).expect("nothing is left to measure");
        assert_eq!(second.cells(), ground.cells());
        let args = ExperimentArgs { check: false, ..args.clone() };
        assert!(outcome_of(&again, &second).and_then(|outcome| outcome.finish(&second, &args)).expect("there is room"));
        let out = scratch.join("out");
        assert!(out.join("result.json").exists() && !out.join("data").exists(), "nothing was built again");
        (scratch, ground, outcome)
    }
}
