//! The command `larch bench`: workloads on stores, and the tables that hold Larch beside its peers. It knows no engine;
//! the binary hands it the schemes that it was built with.

pub mod args;
pub mod targets;

pub use args::Bench;

use args::Measurement;
use harness::{Failure, Scheme};
use std::io::Write as _;
use std::process::ExitCode;

/// Does what `bench` says; `schemes` are the stores that can be opened. The exit code is 0 if all was measured, 1 if a
/// goal was missed or nothing was measured, 2 if what was asked for makes no sense, 3 if a store failed.
pub fn run(bench: &Bench, schemes: &[Scheme]) -> ExitCode {
    let done = match &bench.what {
        Measurement::Targets => print(&targets::list(schemes)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("larch: {failure}");
            ExitCode::from(if failure.kind == "target" { 2 } else { 3 })
        }
    }
}

fn print(text: &str) -> Result<(), Failure> {
    match std::io::stdout().write_all(text.as_bytes()) {
        // Its reader had enough.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        done => done.map_err(|error| Failure::session("output", format!("cannot write the output: {error}"))),
    }
}
