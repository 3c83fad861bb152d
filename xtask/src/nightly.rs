//! Cargo of the nightly toolchain, for the tools that need it. It does not know what they are run for.

use std::path::Path;
use std::process::{Command, Stdio};

/// Whether cargo's subcommand `tool` is installed; if not, the error says how to get it. `install` is the command
/// that installs the tool itself.
pub fn check(tool: &str, install: &str) -> Result<(), String> {
    if !is_silent_success(&["rustc", "--version"]) {
        return Err("it needs nightly Rust: rustup toolchain install nightly".to_owned());
    }
    if !is_silent_success(&["cargo", tool, "--version"]) {
        return Err(format!("it needs cargo {tool}: {install}"));
    }
    Ok(())
}

/// The target that the nightly compiler makes programs for; `None` without one.
pub fn host() -> Option<String> {
    let output = nightly(&["rustc", "-vV"]).output().ok().filter(|output| output.status.success())?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.lines().find_map(|line| line.strip_prefix("host: ")).map(str::to_owned)
}

/// Runs `cargo` with `arguments` in `root`; says whether that succeeded.
pub fn runs(root: &Path, arguments: &[&str]) -> bool {
    runs_with(root, &[], arguments)
}

/// As [`runs`], with variables of the environment.
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

/// `cargo +nightly` is not used: cargo puts another cargo first in the path of its children, and that cargo does not
/// know `+`.
fn nightly(words: &[&str]) -> Command {
    let mut command = Command::new("rustup");
    command.args(["run", "nightly"]).args(words);
    command
}
