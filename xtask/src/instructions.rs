//! `cargo x instructions`: compares the instructions of hot paths with the expected counts. The program
//! `bench/experiments/src/bin/instructions` counts them; this file knows what that program needs.

use crate::packages;
use std::env;
use std::path::Path;
use std::process::{Command, ExitCode};

/// Installs valgrind if it is missing. After that, the program counts and compares, or writes the new expected
/// counts.
pub fn run(root: &Path, arguments: &[&str]) -> ExitCode {
    if let Err(why) = packages::bring("valgrind", "valgrind", || packages::is_in_path("valgrind")) {
        eprintln!("instructions: {why}");
        return ExitCode::FAILURE;
    }
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let run = ["run", "--quiet", "--profile", "dist", "--package", "larch-bench-experiments"];
    let program = ["--no-default-features", "--bin", "larch-bench-instructions", "--"];
    match Command::new(cargo).args(run).args(program).args(arguments).current_dir(root).status() {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("instructions: cannot start cargo: {error}; install Rust or put cargo in PATH");
            ExitCode::FAILURE
        }
    }
}
