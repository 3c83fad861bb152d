//! `cargo x instructions`: the instructions of hot paths beside those that are expected. The program that counts them
//! is `bench/instructions`; here it is known what it needs.

use crate::packages;
use std::env;
use std::path::Path;
use std::process::{Command, ExitCode};

/// Brings valgrind where it is missing, then counts and compares; or writes what is expected from now on.
pub fn run(root: &Path, arguments: &[&str]) -> ExitCode {
    if let Err(why) = packages::bring("valgrind", "valgrind", || packages::is_in_path("valgrind")) {
        eprintln!("instructions: {why}");
        return ExitCode::FAILURE;
    }
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let run = ["run", "--quiet", "--release", "--package", "larch-bench-instructions", "--"];
    match Command::new(cargo).args(run).args(arguments).current_dir(root).status() {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("instructions: cannot start cargo: {error}; install Rust or put cargo in PATH");
            ExitCode::FAILURE
        }
    }
}
