//! `cargo x stress` and `cargo x tsan`: test the whole public API with real threads and executors. `cargo x stress`
//! runs in release mode. `cargo x tsan` runs under ThreadSanitizer, which detects data races.

use crate::nightly;
use std::path::Path;
use std::process::{Command, ExitCode};

/// The arguments of `cargo run`.
const PROGRAM: [&str; 6] = ["--quiet", "--release", "--package", "larch-testkit", "--bin", "stress"];

/// Runs the stress test with `arguments`, which the test itself interprets.
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

/// Runs the stress test under ThreadSanitizer. The standard library is also compiled with the sanitizer, which sees
/// only code that was compiled in this way.
pub fn tsan(root: &Path, arguments: &[&str]) -> ExitCode {
    let Some(target) = nightly::host() else {
        eprintln!("tsan: it needs nightly Rust: rustup toolchain install nightly --component rust-src");
        return ExitCode::FAILURE;
    };
    let words = ["run", "-Zbuild-std", "--target", &target, "--target-dir", "target/tsan"];
    let words: Vec<&str> = words.into_iter().chain(PROGRAM).chain(["--"]).chain(arguments.iter().copied()).collect();
    // ThreadSanitizer never reports accesses to atomics, such as relaxed counters. A report ends the process. The
    // sanitizer sees that memory is mapped or unmapped only if the C library does this, so rustix calls the C
    // library. Otherwise, if one thread unmaps memory and another thread maps the same memory again, this would
    // look like a race.
    let flags = "-Zsanitizer=thread --cfg rustix_use_libc";
    let variables = [("RUSTFLAGS", flags), ("TSAN_OPTIONS", "halt_on_error=1")];
    if nightly::runs_with(root, &variables, &words) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
