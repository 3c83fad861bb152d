//! `larch bench report`: makes an HTML page from result files.

use crate::args::ReportArgs;
use crate::{print, report_page, results, rows_command};
use harness::Failure;
use harness::report::Report;
use std::path::Path;

/// Reads the results and writes the page.
pub fn run(args: &ReportArgs) -> Result<(), Failure> {
    results::check_one("--out", &args.out)?;
    let mut reports: Vec<(String, Report)> = Vec::new();
    for path in &args.results {
        let report = read(path)?;
        let stem = path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy();
        let is_taken = |name: &str| reports.iter().any(|(taken, _)| taken == name);
        let numbered = (2..).map(|number| format!("{stem} ({number})"));
        let name = std::iter::once(stem.to_string()).chain(numbered).find(|name| !is_taken(name));
        reports.push((name.expect("some number is free"), report));
    }
    if reports.iter().all(|(_, report)| report.runs.is_empty()) {
        return Err(Failure::session("target", "there is no run in these results: nothing was measured"));
    }
    let page = report_page::page(&reports, args.price);
    results::write(&args.out, page.html().as_bytes())?;
    print(&format!("{}\n", args.out.display()))
}

/// Reads the result of a run of any workload.
#[allow(clippy::disallowed_methods, reason = "a file of the user's, never simulated")]
fn read(path: &Path) -> Result<Report, Failure> {
    let rows = std::fs::read_to_string(path).ok().and_then(|text| rows_command::Report::parse(&text));
    match rows {
        Some(rows) => Ok(rows.whole()),
        None => Report::read(path).map_err(|error| Failure::session("target", error.to_string())),
    }
}
