//! Writes result files.

use crate::args::{FilesArgs, YcsbArgs};
use crate::report_page;
use crate::tpcc_runs::with_figures;
use harness::report::{Environment, Report, Run, check_place, csv, hdr_log, write_whole};
use harness::{Failure, Target};
use std::path::{Path, PathBuf};

#[cfg(test)]
pub(crate) mod tests;

/// The version of this program and, if it is known, the commit from which it was built.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Checks, before anything is measured, that each output file can be written and that no two options name the same
/// file. `exported` are the paths from the workload property `exportfile`, which receive YCSB's own output.
pub fn check<'a>(args: &'a YcsbArgs, exported: impl IntoIterator<Item = &'a Path>) -> Result<(), Failure> {
    let named = args.files.named().chain(args.hdr.as_deref().map(|path| ("--hdr", path)));
    check_all(named.chain(exported.into_iter().map(|path| ("exportfile", path))))
}

/// Checks that each file of the (option, path) pairs can be written, and that no two options name the same file.
pub fn check_all<'a>(named: impl IntoIterator<Item = (&'a str, &'a Path)>) -> Result<(), Failure> {
    let mut seen: Vec<(&str, &Path)> = Vec::new();
    for (name, path) in named {
        if let Some((other, _)) = seen.iter().find(|(other, before)| *other != name && *before == path) {
            let text = format!("{other} and {name} both name {}: one would replace the other", path.display());
            return Err(Failure::session("target", text));
        }
        seen.push((name, path));
        check_one(name, path)?;
    }
    Ok(())
}

/// Fails if the file of the option `name` cannot be written.
pub fn check_one(name: &str, path: &Path) -> Result<(), Failure> {
    check_place(path).map_err(|error| {
        let text = format!("{name}: cannot write {error}; name a file in a directory that is there and yours");
        Failure::session("target", text)
    })
}

/// Writes `runs` to the files that `args` names. If one file cannot be written, the other files are still written.
pub fn write_all(args: &YcsbArgs, runs: &[&Run]) -> Result<(), Failure> {
    let files = write_files(&args.files, runs);
    let hdr = args.hdr.as_ref().map_or(Ok(()), |path| {
        let logs: Vec<String> = runs.iter().map(|run| hdr_log::hdr_log(run)).collect();
        write(path, logs.concat().as_bytes())
    });
    files.and(hdr)
}

/// Writes `runs` to `files`: as one report, and as a table. If one file cannot be written, the other one still is.
pub fn write_files(files: &FilesArgs, runs: &[&Run]) -> Result<(), Failure> {
    let report = report(runs);
    let out = files.out.as_ref().map_or(Ok(()), |path| write(path, report.json().as_bytes()));
    out.and(files.csv.as_ref().map_or(Ok(()), |path| write_csv(path, &report.runs)))
}

/// Writes `runs` as one report.
pub fn write_report(path: &Path, runs: &[&Run]) -> Result<(), Failure> {
    write(path, report(runs).json().as_bytes())
}

/// Writes `runs`, which have all their figures, as a table for spreadsheets.
pub fn write_csv(path: &Path, runs: &[Run]) -> Result<(), Failure> {
    write(path, csv::csv(runs).as_bytes())
}

/// Writes `runs` as one page.
pub fn write_page(path: &Path, runs: &[&Run]) -> Result<(), Failure> {
    let page = report_page::page(&[("this run".to_owned(), report(runs))], None);
    write(path, page.html().as_bytes())
}

fn report(runs: &[&Run]) -> Report {
    let mut report = Report::new(Environment::gather(VERSION, &place(runs)));
    report.runs = runs.iter().map(|run| with_figures(run)).collect();
    report
}

/// The directory that holds the runs' data: the first target directory that exists on this machine, or else the
/// working directory.
#[allow(clippy::disallowed_methods, reason = "a directory of the user's, never simulated")]
fn place(runs: &[&Run]) -> PathBuf {
    let of_run = |run: &&Run| {
        let target = Target::parse(&run.target).ok()?;
        let place = target.directory().ok()?.to_owned();
        place.exists().then_some(place)
    };
    runs.iter().find_map(of_run).unwrap_or_else(|| PathBuf::from("."))
}

/// Writes a file atomically.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    write_whole(path, bytes).map_err(|error| Failure::session("output", format!("cannot write the result: {error}")))
}
