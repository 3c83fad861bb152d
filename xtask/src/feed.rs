//! `cargo x feed`: follows very many commits on a simulated machine, in release mode.

use std::path::Path;
use std::process::{Command, ExitCode};

/// Runs the program with `arguments`, which it interprets itself.
pub fn run(root: &Path, arguments: &[&str]) -> ExitCode {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["run", "--quiet", "--release", "--package", "larch-testkit", "--bin", "feeds", "--"])
        .args(arguments)
        .current_dir(root)
        .status();
    match status {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("feed: cannot start cargo: {error}; install Rust or put cargo in PATH");
            ExitCode::FAILURE
        }
    }
}
