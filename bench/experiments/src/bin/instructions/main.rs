//! `cargo x instructions`: compares the instruction counts of the hot paths, and the pages and bytes that the same
//! operations read and write, with the expected ones. A change that makes a path longer, or has it read or write more,
//! fails this check, even on a busy machine.
//!
//! The database is on the simulated machine, where one thread does all the work in a fixed order.
//!
//! It is no `Experiment`, because it keeps nothing but compares with files of the repository, and because CI builds it
//! without what the frame of experiments needs, in a quarter of the time.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "it measures the machine and is never simulated"
)]

mod disk;
mod expected;
mod paths;

use clap::Parser;
use kit::{Scratch, callgrind};
use std::process::ExitCode;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Counts pages and bytes, and the instructions of the hot paths with valgrind, and compares them with those that are
/// expected.
#[derive(Parser)]
struct Arguments {
    /// Writes the counts as the expected counts from now on.
    #[arg(long)]
    write: bool,
    /// Counts pages and bytes alone, which takes seconds and needs no valgrind.
    #[arg(long)]
    disk: bool,
    /// Runs every path, for valgrind to count.
    #[arg(long, hide = true)]
    count: bool,
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
    if arguments.count {
        paths::run_all()?;
        return Ok(ExitCode::SUCCESS);
    }
    let told = |list, counted: &[(&str, u64)]| match arguments.write {
        true => expected::write(list, counted).map(|()| ExitCode::SUCCESS),
        false => expected::compare(list, counted),
    };
    let moved = told(&expected::DISK, &disk::count()?)?;
    if arguments.disk || moved != ExitCode::SUCCESS {
        return Ok(moved);
    }
    let scratch = Scratch::new("instructions");
    let counts = callgrind::count(&["--count".as_ref()], &scratch)?;
    if counts.len() != paths::ALL.len() {
        return Err(format!("{} paths were counted, not {}", counts.len(), paths::ALL.len()).into());
    }
    let counted: Vec<(&str, u64)> =
        paths::ALL.iter().zip(counts).map(|(path, count)| (path.name, count / path.operations)).collect();
    told(&expected::INSTRUCTIONS, &counted)
}
