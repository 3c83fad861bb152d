//! Runs cargo of the nightly toolchain, for the tools that need it. This module does not know what the tools are used
//! for.

use std::path::Path;
use std::process::{Command, Stdio};

/// Checks that cargo's subcommand `tool` is installed. If the tool is not installed, the error says how to install
/// it. `install` is the command that installs the tool itself.
pub fn check(tool: &str, install: &str) -> Result<(), String> {
    if !is_silent_success(&["rustc", "--version"]) {
        return Err("it needs nightly Rust: rustup toolchain install nightly".to_owned());
    }
    if !is_silent_success(&["cargo", tool, "--version"]) {
        return Err(format!("it needs cargo {tool}: {install}"));
    }
    Ok(())
}

/// The target for which the nightly compiler builds programs by default, or `None` if no nightly compiler is
/// installed.
pub fn host() -> Option<String> {
    let output = nightly(&["rustc", "-vV"]).output().ok().filter(|output| output.status.success())?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.lines().find_map(|line| line.strip_prefix("host: ")).map(str::to_owned)
}

/// Runs `cargo` with `arguments` in `root`. Returns whether it succeeded.
pub fn runs(root: &Path, arguments: &[&str]) -> bool {
    runs_with(root, &[], arguments)
}

/// Like [`runs`], with environment variables.
pub fn runs_with(root: &Path, variables: &[(&str, &str)], arguments: &[&str]) -> bool {
    let mut command = nightly(&["cargo"]);
    match command.args(arguments).envs(variables.iter().copied()).current_dir(root).status() {
        Ok(status) => status.success(),
        Err(error) => {
            eprintln!("cannot start rustup: {error}");
            false
        }
    }
}

fn is_silent_success(words: &[&str]) -> bool {
    nightly(words).stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// `cargo +nightly` cannot be used: cargo puts another cargo first in the `PATH` of its children, and that cargo does
/// not know `+`.
fn nightly(words: &[&str]) -> Command {
    let mut command = Command::new("rustup");
    command.args(["run", "nightly"]).args(words);
    command
}
