//! `cargo x deny`: checks the licences, sources and known vulnerabilities of Larch's dependencies, by the rules in
//! `deny.toml`.
//!
//! The list of vulnerabilities is fetched from GitHub. If GitHub cannot be reached, the command says that
//! vulnerabilities were not checked, and succeeds, because a missing network is not a fault of the tree.

use crate::tools::Tool;
use std::path::Path;
use std::process::{Command, ExitCode};

const DENY: Tool = Tool { name: "cargo-deny", version: "0.20.2" };

/// The crates of other engines. A developer's machine builds them only to measure them; they are never distributed.
const ENGINES: [&str; 8] = ["scylla", "fjall", "heed", "redb", "rocksdb", "rusqlite", "surrealkv", "bf-tree"];

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
    println!("deny: {}", checks.join(", "));
    let status = Command::new(&deny)
        .args(["--log-level", "warn", "--all-features", "--config", "deny.toml"])
        .args(ENGINES.map(|engine| format!("--exclude={engine}")))
        .args(["check", "--hide-inclusion-graph"])
        .args(&checks)
        .current_dir(root)
        .status();
    if status.is_ok_and(|status| status.success()) {
        return ExitCode::SUCCESS;
    }
    eprintln!("deny: there is a dependency that deny.toml does not allow");
    ExitCode::FAILURE
}
