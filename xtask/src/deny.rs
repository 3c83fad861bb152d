//! `cargo x deny`: checks the licences, sources and known vulnerabilities of Larch's dependencies, by the rules in
//! `deny.toml`.
//!
//! The list of vulnerabilities is fetched from GitHub. If GitHub cannot be reached, the command says that
//! vulnerabilities were not checked, and succeeds, because a missing network is not a fault of the tree.

use crate::tools::Tool;
use std::path::Path;
use std::process::{Command, ExitCode};

const DENY: Tool = Tool { name: "cargo-deny", version: "0.20.2" };

/// Workspaces whose dependencies are checked. The workspaces of other engines are left out: a developer's machine
/// uses their dependencies only for measurements, and they are never distributed.
const MANIFESTS: [&str; 4] =
    ["Cargo.toml", "fuzz/Cargo.toml", "crates/datafusion/Cargo.toml", "crates/ballista/Cargo.toml"];

/// The longest time that fetching the list of vulnerabilities may take. The list has some megabytes.
const FETCH_SECONDS: &str = "90";

/// Runs all checks that can be made here.
pub fn run(root: &Path) -> ExitCode {
    let deny = match DENY.binary(root) {
        Ok(deny) => deny,
        Err(why) => {
            eprintln!("deny: {why}");
            return ExitCode::FAILURE;
        }
    };
    // Without a timeout, a server that does not answer would be waited for forever; `timeout` also ends the git
    // process that the tool starts.
    let fetched = Command::new("timeout")
        .arg(FETCH_SECONDS)
        .arg(&deny)
        .args(["--log-level", "off", "fetch", "db"])
        .current_dir(root)
        .output();
    let has_advisories = fetched.is_ok_and(|output| output.status.success());
    let mut checks = vec!["bans", "licenses", "sources"];
    if has_advisories {
        checks.push("advisories");
    } else {
        println!("deny: the list of known vulnerabilities cannot be fetched from GitHub, so they are not looked for");
    }
    let passes = |manifest: &&str| {
        println!("deny: {manifest}: {}", checks.join(", "));
        let status = Command::new(&deny)
            .args(["--log-level", "warn", "--all-features", "--config", "deny.toml", "--manifest-path", manifest])
            .args(["check", "--hide-inclusion-graph"])
            .args(&checks)
            .current_dir(root)
            .status();
        status.is_ok_and(|status| status.success())
    };
    match MANIFESTS.iter().find(|manifest| !passes(manifest)) {
        None => ExitCode::SUCCESS,
        Some(manifest) => {
            eprintln!("deny: {manifest} has a dependency that deny.toml does not allow");
            ExitCode::FAILURE
        }
    }
}
