//! `cargo x test`: installs the programs that the tests need, and runs the tests. Besides Rust, the tests need a
//! PostgreSQL server, a Redis server and Chromium. The tests of these stores start the servers in directories of their
//! own; the tests of pages open the pages in Chromium.

use crate::packages;
use std::env;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

/// The place where Debian installs its PostgreSQL server, in a folder for each version. This place is not in `PATH`.
const DEBIAN: &str = "/usr/lib/postgresql";

/// Installs what is missing, then runs all tests.
pub fn run(root: &Path) -> ExitCode {
    if let Err(why) = packages::bring("postgresql", "PostgreSQL", has_postgres) {
        eprintln!("test: {why}");
        return ExitCode::FAILURE;
    }
    for (package, program, file) in [("chromium", "Chromium", "chromium"), ("redis-server", "Redis", "redis-server")] {
        if let Err(why) = packages::bring(package, program, || packages::is_in_path(file)) {
            eprintln!("test: {why}");
            return ExitCode::FAILURE;
        }
    }
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    match Command::new(cargo).args(["test", "--features", "larch-cli/bench"]).current_dir(root).status() {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("test: cannot start cargo: {error}; install Rust or put cargo in PATH");
            ExitCode::FAILURE
        }
    }
}

fn has_postgres() -> bool {
    let versions = fs::read_dir(DEBIAN).into_iter().flatten().flatten();
    packages::is_in_path("postgres") || versions.into_iter().any(|version| version.path().join("bin/postgres").exists())
}
