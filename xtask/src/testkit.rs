//! Runs the programs of the package `larch-testkit`, in release mode. This module does not know what they do.

use std::path::Path;
use std::process::{Command, ExitCode};

/// Runs the program `program` with `arguments`, for the command `cargo x command`.
pub fn run(root: &Path, command: &str, program: &str, arguments: &[&str]) -> ExitCode {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["run", "--quiet", "--release", "--package", "larch-testkit", "--bin", program, "--"])
        .args(arguments)
        .current_dir(root)
        .status();
    match status {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{command}: cannot start cargo: {error}; install Rust or put cargo in PATH");
            ExitCode::FAILURE
        }
    }
}
