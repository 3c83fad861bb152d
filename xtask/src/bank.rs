//! `cargo x bank`: threads and tasks transfer money, while the process is killed, the disk fills up and syncs fail.

use std::path::Path;
use std::process::{Command, ExitCode};

/// Runs the bank test with `arguments`, which the test itself interprets.
pub fn run(root: &Path, arguments: &[&str]) -> ExitCode {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["run", "--quiet", "--release", "--package", "larch-testkit", "--bin", "bank", "--"])
        .args(arguments)
        .current_dir(root)
        .status();
    match status {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("bank: cannot start cargo: {error}; install Rust or put cargo in PATH");
            ExitCode::FAILURE
        }
    }
}
