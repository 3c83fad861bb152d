//! Checks that no two decision notes have the same number, because notes are cited by number.

use super::Finding;
use super::tree::Tree;
use std::collections::BTreeMap;

const FOLDER: &str = "docs/decisions/";

/// Every note is named `NNNN-title.md` and no two have the same number. The folder's README is not a note.
pub fn names_are_numbered(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut owners: BTreeMap<&str, &str> = BTreeMap::new();
    for (path, _) in tree.texts(".md") {
        let Some(name) = path.strip_prefix(FOLDER).filter(|name| *name != "README.md") else { continue };
        match number(name) {
            None => findings.push(Finding::new(path, 1, "a decision note is named NNNN-title.md, in lower case")),
            Some(number) => {
                if let Some(owner) = owners.insert(number, path) {
                    findings.push(Finding::new(path, 1, format!("number {number} is taken by {owner}")));
                }
            }
        }
    }
    findings
}

fn number(name: &str) -> Option<&str> {
    let (number, title) = name.strip_suffix(".md")?.split_once('-')?;
    let title_fits = title.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    (number.len() == 4 && number.bytes().all(|c| c.is_ascii_digit()) && title_fits && !title.is_empty())
        .then_some(number)
}
