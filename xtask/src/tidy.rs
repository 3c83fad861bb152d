//! `cargo x tidy`: checks facts about the tree that no compiler checks. The command does not judge style and does not
//! count lines.
//!
//! A rule is a function from the tree to findings. A rule does not read the disk, so its tests can use small trees
//! that are written as text.

mod circles;
mod decisions;
mod dependencies;
mod faults;
mod floors;
mod house;
mod imports;
mod links;
mod locks;
mod manifest;
mod measured;
mod modules;
mod source;
mod sources;
#[cfg(test)]
mod tests;
mod tree;
mod words;

use std::fmt;
use std::path::Path;
use std::process::ExitCode;
use tree::Tree;

/// A place in the tree that breaks a rule.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Finding {
    file: String,
    /// Counted from 1.
    line: usize,
    what: String,
}

/// A rule looks at the whole tree and returns what it has found.
type Rule = fn(&Tree) -> Vec<Finding>;

const RULES: [Rule; 15] = [
    modules::files_are_reachable,
    sources::files_say_what_they_are,
    dependencies::point_downward,
    locks::locks_fit_the_manifests,
    circles::no_file_imports_in_a_circle,
    floors::imports_go_down,
    sources::no_leftovers,
    sources::atomics_come_from_os,
    links::links_lead_to_files,
    links::guide_is_linked,
    links::architecture_names_what_exists,
    sources::no_paths_of_a_machine,
    decisions::names_are_numbered,
    faults::faults_have_their_tests,
    measured::pages_name_their_commit,
];

/// Applies every rule to the tree at `root` and prints the findings. The command also warns of old results of
/// benchmarks, and of words that are hard to read.
pub fn run(root: &Path) -> ExitCode {
    let tree = match Tree::read(root) {
        Ok(tree) => tree,
        Err(error) => {
            eprintln!("tidy: {error}");
            return ExitCode::FAILURE;
        }
    };
    let mut findings: Vec<Finding> = RULES.iter().flat_map(|rule| rule(&tree)).collect();
    findings.sort();
    for finding in &findings {
        println!("{finding}");
    }
    let changes = |commit: &str, folders: &[&str]| measured::changes_since(root, commit, folders);
    for warning in measured::old_results(&tree, &changes).into_iter().chain(words::hard_to_read(&tree)) {
        println!("warning: {warning}");
    }
    if findings.is_empty() {
        println!("tidy: nothing found in {} files", tree.len());
        ExitCode::SUCCESS
    } else {
        eprintln!("tidy: {} to mend", findings.len());
        ExitCode::FAILURE
    }
}

/// Prints figures about the rooms and floors of all crates. If `places` names crates, prints instead which file of
/// these crates imports what from where.
pub fn house(root: &Path, places: &[&str]) -> ExitCode {
    match Tree::read(root).map_err(|error| error.to_string()).and_then(|tree| house::shown(&tree, places)) {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("house: {why}");
            ExitCode::FAILURE
        }
    }
}

impl Finding {
    fn new(file: &str, line: usize, what: impl Into<String>) -> Self {
        Self { file: file.to_owned(), line, what: what.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}: {}", self.file, self.line, self.what)
    }
}
