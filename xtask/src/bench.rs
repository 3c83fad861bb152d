//! `cargo x bench`: the benchmarks, in release mode. They measure by themselves and say whether goals are reached.

use std::path::Path;
use std::process::{Command, ExitCode};

/// What can be measured, and the package that does it.
const BENCHMARKS: [(&str, &str); 1] = [("index", "larch-bench-index")];

/// Runs the benchmark that `arguments` begin with, on the rest of them, and ends as it ends.
pub fn run(root: &Path, arguments: &[&str]) -> ExitCode {
    let names = || BENCHMARKS.map(|(name, _)| name).join(", ");
    let Some((name, arguments)) = arguments.split_first() else {
        eprintln!("bench: say what to measure: {}", names());
        return ExitCode::from(2);
    };
    let Some((_, package)) = BENCHMARKS.iter().find(|(known, _)| known == name) else {
        eprintln!("bench: there is no benchmark `{name}`: {}", names());
        return ExitCode::from(2);
    };
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["run", "--quiet", "--release", "--package", package, "--"])
        .args(arguments)
        .current_dir(root)
        .status();
    match status {
        Ok(status) => status.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from),
        Err(error) => {
            eprintln!("bench: cannot start cargo: {error}; install Rust or put cargo in PATH");
            ExitCode::FAILURE
        }
    }
}
