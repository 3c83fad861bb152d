//! The benchmark of the index, `cargo x bench index`: what single operations cost with the B-tree and with the flat
//! index, and whether the index reaches its goals.
//!
//! It is an experiment in the frame of all others, and a program of its own because it counts its allocations and runs
//! itself under valgrind. This file has the arguments; `experiment` has the cells. `operations` are measured on `data`;
//! `measure` takes times, and `instructions` counts instructions. `goals` has a file for each subject. Files are on the
//! real disk unless a goal says otherwise, in the directory of the result, and are removed after each cell.
//!
//! Exit status 0: all goals that can be measured are reached. 1: some goals are not reached. 2: wrong arguments. 3: an
//! error ended the benchmark. 130: interrupted by ^C; the same command goes on.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a benchmark takes real time on a real machine"
)]

mod data;
mod experiment;
mod file;
mod goals;
mod instructions;
mod measure;
mod operations;
mod peer;
mod rows;
mod statistics;

use clap::Parser;
use clap::builder::PossibleValuesParser;
use experiment::{Cell, Index};
use experiments::ExperimentArgs;
use experiments::experiment::run;
use harness::Failure;
use kit::allocations::{Counting, Thread};
use measure::Effort;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Errors are only reported, so any type will do.
type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// An error as the frame reports it.
fn failure(error: Box<dyn std::error::Error>) -> Failure {
    Failure::session("index", error.to_string())
}

#[global_allocator]
static COUNTING: Counting<Thread> = Counting::new();

/// The benchmark of the index.
#[derive(Parser)]
#[command(name = "cargo x bench index")]
struct Arguments {
    /// Takes a tenth of the rows and of the time. A quick run shows that everything works, but gives no results to
    /// keep.
    #[arg(long)]
    quick: bool,
    /// Goals only.
    #[arg(long, conflicts_with = "parts")]
    goals: bool,
    /// Times and instructions of single operations only.
    #[arg(long)]
    parts: bool,
    /// Only these goals; may be given again.
    #[arg(long, value_name = "NAME", conflicts_with = "parts")]
    #[arg(value_parser = PossibleValuesParser::new(goals::ALL.map(|(name, _)| name)))]
    only: Vec<String>,
    /// Directory for the result, and for data meanwhile [default: larch-experiment-bench-index]
    #[arg(long, value_name = "DIRECTORY")]
    directory: Option<PathBuf>,
    /// Measures everything again, also what is in the directory already.
    #[arg(long)]
    again: bool,
    /// Runs every operation on the data in this directory, for valgrind to count.
    #[arg(long, value_name = "DIRECTORY", hide = true)]
    count: Option<PathBuf>,
}

impl Arguments {
    /// The cells that are asked for, in the order of the report.
    fn cells(&self, extent: Extent) -> Vec<Cell> {
        let mut cells = Vec::new();
        if !self.goals && self.only.is_empty() {
            cells.extend(data::Shape::all(extent).into_iter().map(Cell::Operations));
            cells.push(Cell::Nodes);
        }
        if !self.parts {
            let is_asked = |name: &str| self.only.is_empty() || self.only.iter().any(|only| only == name);
            cells.extend(goals::ALL.into_iter().filter(|(name, _)| is_asked(name)).map(Cell::Goals));
        }
        cells
    }
}

/// How much to measure.
#[derive(Clone, Copy)]
struct Extent {
    quick: bool,
}

impl Extent {
    /// `full`, or a tenth of it.
    fn of(self, full: u64) -> u64 {
        if self.quick { full / 10 } else { full }
    }

    fn effort(self) -> Effort {
        match self.quick {
            false => Effort { repeats: 7, sample: Duration::from_millis(30) },
            true => Effort { repeats: 5, sample: Duration::from_millis(3) },
        }
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if let Some(directory) = &arguments.count {
        let counted = data::DataSet::at(directory).and_then(|data| operations::run_all_for_counting(&data));
        return suite::ended(counted.map(|()| true).map_err(failure));
    }
    let extent = Extent { quick: arguments.quick };
    let index = Index::of(extent, arguments.cells(extent));
    let checked = ExperimentArgs::checked(arguments.quick, arguments.directory);
    suite::ended(run(index, &ExperimentArgs { again: arguments.again, ..checked }))
}
