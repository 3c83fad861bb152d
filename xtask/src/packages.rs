//! Installs programs that the checks need and that cargo does not install. This module does not know what the
//! programs are used for.

use std::env;
use std::process::Command;

/// Installs the Debian package `name` with apt-get, unless `is_here` returns true. Installing works only as root.
///
/// # Errors
///
/// If the package is missing and cannot be installed, the error says what is missing and how to get it.
pub fn bring(name: &str, program: &str, is_here: impl Fn() -> bool) -> Result<(), String> {
    if is_here() {
        return Ok(());
    }
    let hint = format!("{program} is missing; on Debian: sudo apt-get install {name}");
    if !is_root() || !is_in_path("apt-get") {
        return Err(hint);
    }
    println!("{program} is missing; apt-get installs it");
    let apt = |arguments: &[&str]| {
        let mut apt = Command::new("apt-get");
        apt.args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
        apt.status().is_ok_and(|status| status.success())
    };
    if apt(&["update", "-q"]) && apt(&["install", "-y", "-q", name]) && is_here() {
        return Ok(());
    }
    Err(format!("apt-get did not install it. {hint}"))
}

/// Whether a folder in `PATH` has the program.
pub fn is_in_path(program: &str) -> bool {
    env::split_paths(&env::var_os("PATH").unwrap_or_default()).any(|folder| folder.join(program).is_file())
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout == b"0\n")
}
