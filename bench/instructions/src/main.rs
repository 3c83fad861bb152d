//! `cargo x instructions`: compares the instruction counts of the hot paths with the expected ones. A change that
//! makes a path longer fails this check, even on a busy machine.
//!
//! The database is on the simulated machine, where one thread does all the work in a fixed order.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "it measures the machine and is never simulated"
)]

mod expected;
mod paths;

use clap::Parser;
use kit::{Scratch, callgrind};
use std::process::ExitCode;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Counts the instructions of the hot paths with valgrind and compares the counts with the expected counts.
#[derive(Parser)]
struct Arguments {
    /// Writes the counts as the expected counts from now on.
    #[arg(long)]
    write: bool,
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
    let scratch = Scratch::new("instructions");
    let counts = callgrind::count(&["--count".as_ref()], &scratch)?;
    if counts.len() != paths::ALL.len() {
        return Err(format!("{} paths were counted, not {}", counts.len(), paths::ALL.len()).into());
    }
    let counted: Vec<(&str, u64)> =
        paths::ALL.iter().zip(counts).map(|(path, count)| (path.name, count / path.operations)).collect();
    if arguments.write {
        return expected::write(&counted).map(|()| ExitCode::SUCCESS);
    }
    expected::compare(&counted)
}
