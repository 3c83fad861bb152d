//! Checks that the results of benchmarks in `docs/benchmarks` name the commit at which they were measured. Results
//! are old once the crates that they measure have changed.
//!
//! A page has a line of this form for each commit from which it has results:
//!
//! ```text
//! Measured at commit 606d15d: engine/os engine/pages engine/sst engine/larch
//! ```

use super::Finding;
use super::tree::Tree;
use std::path::Path;
use std::process::{Command, Stdio};

const FOLDER: &str = "docs/benchmarks/";
/// Pages that have no results, and only say how to measure.
const WITHOUT_RESULTS: [&str; 3] =
    ["docs/benchmarks/targets.md", "docs/benchmarks/workers.md", "docs/benchmarks/ycsb.md"];
/// The words with which a line that names a commit begins.
const START: &str = "Measured at commit ";
/// Results count as old when more commits than this have changed the measured folders.
const FEW: u64 = 5;

/// A line that says at which commit results were measured, and which folders were measured.
struct Measured<'t> {
    page: &'t str,
    line: usize,
    commit: &'t str,
    folders: Vec<&'t str>,
}

/// Every page with results has a line that names their commit, and the folders in the line exist.
pub fn pages_name_their_commit(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (page, text) in pages(tree) {
        let is_told = text.lines().any(|line| line.starts_with(START));
        if !is_told && !WITHOUT_RESULTS.contains(&page) {
            let what = format!("results say what they are of: a line `{START}606d15d: engine/larch …`");
            findings.push(Finding::new(page, 1, what));
        }
    }
    for (page, line, read) in all(tree) {
        match read {
            None => {
                let what = format!("this line is `{START}`, seven or more digits of it, a colon, and folders");
                findings.push(Finding::new(page, line, what));
            }
            Some(measured) => {
                let gone = measured.folders.iter().filter(|folder| !tree.has_folder(folder));
                let finding = |folder| Finding::new(page, line, format!("there is no folder `{folder}`"));
                findings.extend(gone.map(finding));
            }
        }
    }
    findings
}

/// Finds the lines whose folders were changed by more than a few commits after the commit of the line. A line is
/// left out if `changes` does not know how many commits changed its folders.
pub fn old_results(tree: &Tree, changes: &dyn Fn(&str, &[&str]) -> Option<u64>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for measured in all(tree).into_iter().filter_map(|(.., measured)| measured) {
        let Some(count) = changes(measured.commit, &measured.folders).filter(|count| *count > FEW) else { continue };
        let what = format!("{count} commits have changed what was measured at {}: measure it again", measured.commit);
        findings.push(Finding::new(measured.page, measured.line, what));
    }
    findings
}

/// How many commits after `commit` have changed these folders. Returns `None` without git, or if git's history
/// does not reach back to `commit`, as in a shallow clone.
pub fn changes_since(root: &Path, commit: &str, folders: &[&str]) -> Option<u64> {
    let range = format!("{commit}..HEAD");
    let mut git = Command::new("git");
    let former = folders.iter().filter_map(|folder| former_path(folder));
    git.current_dir(root).args(["rev-list", "--count", &range, "--"]).args(folders).args(former);
    let output = git.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    if !output.status.success() {
        return None;
    }
    String::from_utf8(output.stdout).ok()?.trim().parse().ok()
}

/// Where a folder of the engine was before `crates` became `engine`, `cloud` and `query`.
fn former_path(folder: &str) -> Option<String> {
    let (layer, rest) = folder.split_once('/').unwrap_or((folder, ""));
    match layer {
        "engine" | "cloud" | "query" => Some(format!("crates/{rest}")),
        "testkit" => Some("crates/testkit".to_owned()),
        _ => None,
    }
}

fn pages(tree: &Tree) -> impl Iterator<Item = (&str, &str)> {
    tree.texts(".md").filter(|(page, _)| page.starts_with(FOLDER))
}

/// Returns all lines that name a commit, each with its page and line number. A line that cannot be read gives
/// `None`.
fn all(tree: &Tree) -> Vec<(&str, usize, Option<Measured<'_>>)> {
    let mut found = Vec::new();
    for (page, text) in pages(tree) {
        for (line, text) in (1..).zip(text.lines()) {
            if let Some(rest) = text.strip_prefix(START) {
                found.push((page, line, read(page, line, rest)));
            }
        }
    }
    found
}

fn read<'t>(page: &'t str, line: usize, rest: &'t str) -> Option<Measured<'t>> {
    let (commit, folders) = rest.split_once(": ")?;
    let folders: Vec<&str> = folders.split_whitespace().collect();
    let is_commit = commit.len() >= 7 && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
    (is_commit && !folders.is_empty()).then_some(Measured { page, line, commit, folders })
}
