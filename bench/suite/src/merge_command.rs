//! `larch bench merge`: merges the results of several processes that did a run together.

use crate::args::MergeArgs;
use crate::{print, results, rows_command, tpcc_runs};
use harness::Failure;
use harness::report::{Report, Run, text};
use std::path::PathBuf;

/// Reads the results, merges them, and prints and writes the merged result.
pub fn run(args: &MergeArgs) -> Result<(), Failure> {
    let usage = |text: String| Failure::session("target", text);
    results::check_all(args.files.named())?;
    if let Some(rows) = rows_reports(&args.results) {
        let merged = rows_command::Report::merged(&rows).map_err(usage)?;
        let printed = print(&merged.text());
        return printed.and(merged.write(&args.files));
    }
    let read = |path: &PathBuf| -> Result<(String, Report), Failure> {
        let report = Report::read(path).map_err(|error| usage(error.to_string()))?;
        Ok((path.display().to_string(), report))
    };
    let parts = args.results.iter().map(read).collect::<Result<Vec<_>, Failure>>()?;
    let mut merged = Report::merged(&parts).map_err(usage)?;
    if merged.runs.is_empty() {
        return Err(usage("there is no run in these results: nothing was measured".to_owned()));
    }
    merged.runs.iter_mut().for_each(|run| *run = tpcc_runs::with_figures(run));
    let printed = print(&merged.runs.iter().map(shown).collect::<Vec<_>>().join("\n"));
    let out = args.files.out.as_deref().map_or(Ok(()), |out| results::write(out, merged.json().as_bytes()));
    let table = args.files.csv.as_deref().map_or(Ok(()), |path| results::write_csv(path, &merged.runs));
    printed.and(out).and(table)
}

/// Reads row-access results, which have a format of their own. `None` if a file has another format.
#[allow(clippy::disallowed_methods, reason = "files of the user's, never simulated")]
fn rows_reports(paths: &[PathBuf]) -> Option<Vec<(String, rows_command::Report)>> {
    let read = |path: &PathBuf| {
        let text = std::fs::read_to_string(path).ok()?;
        Some((path.display().to_string(), rows_command::Report::parse(&text)?))
    };
    paths.iter().map(read).collect()
}

/// The text that the run's own command would print.
fn shown(run: &Run) -> String {
    match tpcc_runs::summary(run) {
        Some(summary) => format!("{summary}\n{}", text::text(run)),
        None => text::text(run),
    }
}
