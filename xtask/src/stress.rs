//! `cargo x stress` and `cargo x tsan`: the whole public API with threads and executors of the machine. They run in
//! release mode, or under ThreadSanitizer, which detects unordered use of memory by threads.

use crate::nightly;
use std::path::Path;
use std::process::{Command, ExitCode};

/// What follows `cargo run`.
const PROGRAM: [&str; 6] = ["--quiet", "--release", "--package", "larch-testkit", "--bin", "stress"];

/// Runs the stress test with `arguments`, which it knows itself.
pub fn run(root: &Path, arguments: &[&str]) -> ExitCode {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo).arg("run").args(PROGRAM).arg("--").args(arguments).current_dir(root).status();
    match status {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("stress: cannot start cargo: {error}; install Rust or put cargo in PATH");
            ExitCode::FAILURE
        }
    }
}

/// Runs it under ThreadSanitizer. The standard library is compiled again with it: the sanitizer sees only code that
/// was compiled so.
pub fn tsan(root: &Path, arguments: &[&str]) -> ExitCode {
    let Some(target) = nightly::host() else {
        eprintln!("tsan: it needs nightly Rust: rustup toolchain install nightly --component rust-src");
        return ExitCode::FAILURE;
    };
    let words = ["run", "-Zbuild-std", "--target", &target, "--target-dir", "target/tsan"];
    let words: Vec<&str> = words.into_iter().chain(PROGRAM).chain(["--"]).chain(arguments.iter().copied()).collect();
    // Atomics, such as relaxed counters, cause no report; a report ends the process. The sanitizer sees memory being
    // mapped and unmapped only if the C library does it. Otherwise memory that another thread maps again would look
    // like a race.
    let flags = "-Zsanitizer=thread --cfg rustix_use_libc";
    let variables = [("RUSTFLAGS", flags), ("TSAN_OPTIONS", "halt_on_error=1")];
    if nightly::runs_with(root, &variables, &words) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
