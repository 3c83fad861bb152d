//! For each fault, the list of faults names the test that would find it again. This rule checks that each of these
//! tests exists.

use super::Finding;
use super::tree::Tree;

const PAGE: &str = "docs/faults.md";

/// In the list of faults, every `path/to/file.rs::name` names a function `name` of that file. Every row of the list
/// names a test in this way.
pub fn faults_have_their_tests(tree: &Tree) -> Vec<Finding> {
    let Some(page) = tree.text(PAGE) else { return Vec::new() };
    let mut findings = Vec::new();
    for (line, text) in page.lines().enumerate() {
        let tests: Vec<(&str, &str)> =
            text.split('`').skip(1).step_by(2).filter_map(|quoted| quoted.split_once(".rs::")).collect();
        // The first row of a table names no fault, and neither does the line below this row.
        let is_row = text.starts_with("| ") && !text.starts_with("| fault ");
        if is_row && tests.is_empty() {
            findings.push(Finding::new(PAGE, line + 1, "a fault without the test that finds it now"));
        }
        for (file, name) in tests {
            let file = format!("{file}.rs");
            match tree.text(&file) {
                None => findings.push(Finding::new(PAGE, line + 1, format!("there is no file {file}"))),
                Some(text) if !text.contains(&format!("fn {name}(")) => {
                    findings.push(Finding::new(PAGE, line + 1, format!("{file} has no function {name}")));
                }
                Some(_) => {}
            }
        }
    }
    findings
}
