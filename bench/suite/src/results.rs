//! Results in files.

use crate::args::YcsbArgs;
use harness::Failure;
use harness::report::{Environment, Report, Run, csv, hdr_log, write_whole};
use std::path::Path;

/// Version of this program, with the commit it was built of where that is known.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Writes `runs` to the files that `args` name.
pub fn write_all(args: &YcsbArgs, runs: &[&Run]) -> Result<(), Failure> {
    if let Some(path) = &args.out {
        write_report(path, runs)?;
    }
    if let Some(path) = &args.csv {
        write(path, csv::csv(runs.iter().copied()).as_bytes())?;
    }
    if let Some(path) = &args.hdr {
        let logs: Vec<String> = runs.iter().map(|run| hdr_log::hdr_log(run)).collect();
        write(path, logs.concat().as_bytes())?;
    }
    Ok(())
}

/// Writes `runs` as one report.
pub fn write_report(path: &Path, runs: &[&Run]) -> Result<(), Failure> {
    let mut report = Report::new(Environment::gather(VERSION, Path::new(".")));
    report.runs = runs.iter().map(|run| (*run).clone()).collect();
    write(path, report.json().as_bytes())
}

/// Writes a file whole or not at all.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    write_whole(path, bytes).map_err(|error| Failure::session("output", format!("cannot write the result: {error}")))
}
