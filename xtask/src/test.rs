//! `cargo x test`: brings what the tests need of the machine, and runs them. Besides Rust that is a PostgreSQL server, which
//! the tests of its store start in a directory of their own.

use std::env;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

/// Where Debian puts its server, in a folder for each version. It is not in `PATH`.
const DEBIAN: &str = "/usr/lib/postgresql";

/// Sets up what is missing, then runs all tests.
pub fn run(root: &Path) -> ExitCode {
    if let Err(why) = bring_postgres() {
        eprintln!("test: {why}");
        return ExitCode::FAILURE;
    }
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    match Command::new(cargo).args(["test", "--workspace"]).current_dir(root).status() {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("test: cannot start cargo: {error}; install Rust or put cargo in PATH");
            ExitCode::FAILURE
        }
    }
}

/// Installs PostgreSQL where there is none and that is allowed.
fn bring_postgres() -> Result<(), String> {
    if has_postgres() {
        return Ok(());
    }
    let hint = "PostgreSQL is missing; on Debian: sudo apt-get install postgresql";
    if !is_root() || !is_in_path("apt-get") {
        return Err(hint.to_owned());
    }
    println!("test: PostgreSQL is missing; apt-get installs it");
    let apt = |arguments: &[&str]| {
        let mut apt = Command::new("apt-get");
        apt.args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
        apt.status().is_ok_and(|status| status.success())
    };
    if apt(&["update", "-q"]) && apt(&["install", "-y", "-q", "postgresql"]) && has_postgres() {
        return Ok(());
    }
    Err(format!("apt-get did not install it. {hint}"))
}

fn has_postgres() -> bool {
    let versions = fs::read_dir(DEBIAN).into_iter().flatten().flatten();
    is_in_path("postgres") || versions.into_iter().any(|version| version.path().join("bin/postgres").exists())
}

fn is_in_path(program: &str) -> bool {
    env::split_paths(&env::var_os("PATH").unwrap_or_default()).any(|folder| folder.join(program).is_file())
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout == b"0\n")
}
