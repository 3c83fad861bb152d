//! `cargo x semver`: finds changes that break programs written for the newest release, and checks whether the
//! version of this tree allows such changes. The interfaces of the release and of this tree are compared in the
//! output of rustdoc. So it does not matter whether the package had another name in the release.
//!
//! Only items that `engine/larch` itself defines are compared. If `engine/larch` re-exports a type of a lower crate,
//! this type is not examined.

use crate::history;
use crate::tools::Tool;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

const CHECKS: Tool = Tool { name: "cargo-semver-checks", version: "0.51.0" };
/// The exit status of the tool if it has found a change that breaks programs.
const FOUND: i32 = 100;

/// Checks that this tree keeps what the newest release in `CHANGELOG.md` promises.
pub fn check(root: &Path) -> ExitCode {
    end(compare(root, Breaks::Refused))
}

/// Lists all changes in which this tree breaks the newest release, even if the version allows them.
pub fn list(root: &Path) -> ExitCode {
    end(compare(root, Breaks::Listed))
}

/// The kinds of breaking changes that are looked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Breaks {
    /// Changes that the version forbids. If the version forbids no changes, the interfaces are not built, because
    /// the tool takes minutes.
    Refused,
    /// All changes that break programs.
    Listed,
}

fn end(outcome: Result<String, String>) -> ExitCode {
    match outcome {
        Ok(outcome) => {
            println!("semver: {outcome}");
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("semver: {why}");
            ExitCode::FAILURE
        }
    }
}

fn compare(root: &Path, breaks: Breaks) -> Result<String, String> {
    let changes = history::changes(root)?;
    let (release, commit) = history::newest_release(&changes).ok_or("CHANGELOG.md names no release")?;
    let manifest =
        fs::read_to_string(root.join("Cargo.toml")).map_err(|error| format!("cannot read Cargo.toml: {error}"))?;
    let version = version(&manifest).ok_or("Cargo.toml names no version")?;
    if breaks == Breaks::Refused && may_break(release, version) {
        return Ok(format!("{version} may break programs for {release}; `cargo x semver --list` says what it breaks"));
    }
    if !history::has_commit(root, &commit) {
        return Ok(format!("not compared with {release}: the history here does not go back to {commit}"));
    }
    let tool = CHECKS.binary(root)?;
    let work = root.join("target/semver");
    let before = interface_of(root, &work, &commit)?;
    let now = interface(root, &work, root, "tree")?;
    let status = Command::new(tool)
        .args(["semver-checks", "--release-type", "minor", "--baseline-rustdoc"])
        .arg(before)
        .arg("--current-rustdoc")
        .arg(now)
        .current_dir(root)
        .status()
        .map_err(|error| format!("cannot start {}: {error}", CHECKS.name))?;
    match status.code() {
        Some(0) => Ok(format!("{version} breaks no program that was written for {release}")),
        Some(FOUND) if may_break(release, version) => {
            Ok(format!("programs for {release} need the changes above; {version} may ask for them"))
        }
        Some(FOUND) => Err(format!(
            "{version} may not break programs that were written for {release}: keep what they use, or take a version that may"
        )),
        _ => Err(format!("{} failed with {status}", CHECKS.name)),
    }
}

/// The file with the interface of a release. The file is kept for later runs, because it changes only when the
/// compiler changes.
fn interface_of(root: &Path, work: &Path, commit: &str) -> Result<PathBuf, String> {
    let compiler = history::output(Command::new("rustc").arg("--version").current_dir(root))?;
    let compiler = compiler.split(' ').nth(1).unwrap_or("unknown");
    let name = format!("{commit}-{compiler}");
    let kept = work.join(format!("{name}.json"));
    if kept.exists() {
        return Ok(kept);
    }
    let tree = work.join("tree");
    history::in_tree_of(root, &tree, commit, || interface(root, work, &tree, &name))
}

/// Lets rustdoc write the interface of the library in `tree` to `work/name.json`.
fn interface(root: &Path, work: &Path, tree: &Path, name: &str) -> Result<PathBuf, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let build = work.join("build");
    let mut rustdoc = Command::new(cargo);
    rustdoc.args(["rustdoc", "--quiet", "--lib", "-Zunstable-options", "--output-format", "json", "--manifest-path"]);
    // Until version 0.2, the library was in another folder.
    let library = ["engine/larch", "crates/larch"].map(|folder| tree.join(folder).join("Cargo.toml"));
    let manifest = library.iter().find(|manifest| manifest.exists()).unwrap_or(&library[0]);
    rustdoc.arg(manifest).arg("--target-dir").arg(&build);
    rustdoc.args(["--", "--document-hidden-items", "--document-private-items", "--cap-lints", "allow"]);
    // This form of output is not stable yet. But the fixed version of the tool can read what the fixed version of
    // the compiler writes.
    rustdoc.env("RUSTC_BOOTSTRAP", "1").current_dir(root);
    history::output(&mut rustdoc)?;
    let written = build.join("doc/larch.json");
    let kept = work.join(format!("{name}.json"));
    fs::rename(&written, &kept).map_err(|error| format!("cannot move {}: {error}", written.display()))?;
    Ok(kept)
}

/// The version that all packages of the workspace have.
pub fn version(manifest: &str) -> Option<&str> {
    let (_, package) = manifest.split_once("[workspace.package]")?;
    let line = package.lines().find_map(|line| line.strip_prefix("version = "))?;
    Some(line.trim_matches('"'))
}

/// Whether `version` may break a program that was written for `release`. The version may do so if the first numbers
/// differ or, before 1.0, if the second numbers differ.
fn may_break(release: &str, version: &str) -> bool {
    let kept = |version: &str| {
        let mut numbers = version.split('.').map(str::to_owned);
        let first = numbers.next();
        (first.clone(), numbers.next().filter(|_| first.as_deref() == Some("0")))
    };
    kept(release) != kept(version)
}

#[cfg(test)]
mod tests {
    use super::{may_break, version};

    #[test]
    fn a_version_may_break_when_its_leading_number_differs() {
        assert!(may_break("0.1", "0.2.0") && may_break("0.9", "1.0.0") && may_break("1.4", "2.0.0"));
        assert!(!may_break("0.2", "0.2.1") && !may_break("1.4", "1.5.0") && !may_break("1.0", "1.0.3"));
    }

    #[test]
    fn the_version_is_that_of_the_workspace() {
        assert_eq!(
            version("[workspace]\nversion = \"3\"\n\n[workspace.package]\nversion = \"0.2.0\"\n"),
            Some("0.2.0")
        );
        assert_eq!(version("[package]\nversion = \"1.0.0\"\n"), None);
    }
}
