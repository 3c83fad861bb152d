//! The benchmark of the index, `cargo x bench index`: what single operations cost with the B-tree and with the flat
//! index, and whether the index reaches its goals.
//!
//! This file has the arguments and the order of the measurements. `operations` are measured on `data`; `measure`
//! takes times, and `instructions` counts instructions. `goals` has a file for each subject. Files are on the real
//! disk unless a goal says otherwise, in a directory that is removed at the end, even after an error or ^C.
//!
//! Exit status 0: all goals that can be measured are reached. 1: some goals are not reached. 2: an error ended the
//! benchmark.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a benchmark takes real time on a real machine"
)]

mod data;
mod digits;
mod file;
mod goals;
mod instructions;
mod measure;
mod operations;
mod peer;
mod report;
mod rows;
mod statistics;

use clap::Parser;
use kit::Scratch;
use kit::allocations::{Counting, Thread};
use measure::Effort;
use report::Report;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Errors are only reported, so any type will do.
type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

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
    /// Only these goals; may be given again. If a name is not the name of a goal, all names are listed.
    #[arg(long, value_name = "NAME", conflicts_with = "parts")]
    only: Vec<String>,
    /// Writes the results as JSON, too.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Where the temporary directory is made. By default, the directory is made beside the programs that cargo
    /// built.
    #[arg(long, value_name = "DIRECTORY")]
    directory: Option<PathBuf>,
    /// Runs every operation on the data in this directory, for valgrind to count.
    #[arg(long, value_name = "DIRECTORY", hide = true)]
    count: Option<PathBuf>,
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
    match run(&arguments) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(arguments: &Arguments) -> Result<ExitCode> {
    if let Some(directory) = &arguments.count {
        operations::run_all_for_counting(&data::DataSet::at(directory)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let goals = goals::named(&arguments.only)?;
    let started = Instant::now();
    let extent = Extent { quick: arguments.quick };
    let scratch = Scratch::for_benchmark(arguments.directory.as_deref(), "bench-index", || ())?;
    let mut report = Report::new(arguments.quick);
    report.print_machine();
    if !arguments.goals && arguments.only.is_empty() {
        let counter = instructions::Counter::find();
        report.print_counter(&counter);
        for shape in data::Shape::all(extent) {
            let data = data::DataSet::build(&scratch, shape)?;
            let parts = operations::measure(&data, &counter, &scratch, extent)?;
            report.print_parts(&data, parts)?;
            scratch.clear()?;
        }
        report.print_nodes(operations::measure_nodes(&counter, extent)?);
    }
    if !arguments.parts {
        report.print_goals_head();
        for (name, goal) in goals {
            eprintln!("measuring {name}");
            let lines = goal(&scratch, extent)?;
            report.print_goals(lines);
            scratch.clear()?;
        }
    }
    scratch.remove()?;
    println!("\ntook {:.0} s", started.elapsed().as_secs_f64());
    if let Some(path) = &arguments.json {
        report.write_json(path)?;
    }
    let short = report.falls_short();
    print!("{}", kit::goals::summary(short));
    Ok(if short == 0 { ExitCode::SUCCESS } else { ExitCode::from(1) })
}
