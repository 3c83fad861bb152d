//! Releases and their trees. `CHANGELOG.md` names the commit of each release, and git has the trees. This module does
//! not know what callers do in these trees.

use std::fs;
use std::path::Path;
use std::process::Command;

#[cfg(test)]
mod tests;

/// The text of `CHANGELOG.md`.
///
/// # Errors
///
/// Fails if the file cannot be read.
pub fn changes(root: &Path) -> Result<String, String> {
    fs::read_to_string(root.join("CHANGELOG.md")).map_err(|error| format!("cannot read CHANGELOG.md: {error}"))
}

/// The commit that `changes` names for `release`.
///
/// # Errors
///
/// Fails if the changelog does not have this release, or if its section names no commit.
pub fn commit_of(changes: &str, release: &str) -> Result<String, String> {
    let heading = format!("## {release}");
    let is_heading = |line: &&str| {
        line.strip_prefix(&heading).is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '.'))
    };
    let mut lines = changes.lines().skip_while(|line| !is_heading(line));
    lines.next().ok_or_else(|| format!("CHANGELOG.md has no release {release}"))?;
    let named = lines.take_while(|line| !line.starts_with("## ")).find_map(|line| line.strip_prefix("Commit: "));
    let commit = named.unwrap_or_default().trim_end_matches('.').trim_matches('`');
    if commit.len() >= 7 && commit.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Ok(commit.to_owned());
    }
    Err(format!("CHANGELOG.md names no commit for release {release} yet; say one with --commit"))
}

/// The newest release for which `changes` names a commit, and this commit. The newest release stands first in the
/// changelog.
pub fn newest_release(changes: &str) -> Option<(&str, String)> {
    let headings = changes.lines().filter_map(|line| line.strip_prefix("## "));
    let releases = headings.map(|heading| heading.split(|c: char| c != '.' && !c.is_alphanumeric()).next());
    releases.flatten().find_map(|release| Some((release, commit_of(changes, release).ok()?)))
}

/// Whether the git repository has `commit`. A shallow clone or an unpacked archive has no older commits.
pub fn has_commit(root: &Path, commit: &str) -> bool {
    let name = format!("{commit}^{{commit}}");
    output(Command::new("git").current_dir(root).args(["cat-file", "-e", &name])).is_ok()
}

/// Checks out `commit` in the new folder `tree`, does `work` there, and then removes the folder.
///
/// # Errors
///
/// Fails if git or `work` fails.
pub fn in_tree_of<T>(
    root: &Path,
    tree: &Path,
    commit: &str,
    work: impl FnOnce() -> Result<T, String>,
) -> Result<T, String> {
    let git = |arguments: &[&str]| output(Command::new("git").current_dir(root).args(arguments).arg(tree));
    if tree.exists() {
        // The folder exists if an earlier run was stopped before it removed the folder.
        git(&["worktree", "remove", "--force"])?;
    }
    if let Some(folder) = tree.parent() {
        fs::create_dir_all(folder).map_err(|error| format!("cannot create {}: {error}", folder.display()))?;
    }
    output(
        Command::new("git").current_dir(root).args(["worktree", "add", "--detach", "--quiet"]).arg(tree).arg(commit),
    )?;
    let done = work();
    git(&["worktree", "remove", "--force"])?;
    done
}

/// Runs a command and returns what it prints.
///
/// # Errors
///
/// Fails if the command cannot be started, or if it ends with an error. The error then contains what the command
/// wrote to standard error.
pub fn output(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| format!("cannot start {command:?}: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let words = String::from_utf8_lossy(&output.stderr);
    Err(format!("{command:?} failed with {}: {}", output.status, words.trim_end()))
}
