//! `cargo x sim`: runs the whole database on a simulated machine, with one seed after the other, in release mode.

use std::path::Path;
use std::process::{Command, ExitCode};

/// Runs the simulator with `arguments`, which the simulator itself interprets.
pub fn run(root: &Path, arguments: &[&str]) -> ExitCode {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["run", "--quiet", "--release", "--package", "larch-testkit", "--bin", "simulate", "--"])
        .args(arguments)
        .current_dir(root)
        .status();
    match status {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("sim: cannot start cargo: {error}; install Rust or put cargo in PATH");
            ExitCode::FAILURE
        }
    }
}
