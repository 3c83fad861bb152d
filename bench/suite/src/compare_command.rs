//! `larch bench compare`: reads results, and prints and writes their differences.

use crate::args::CompareArgs;
use crate::ending::Ending;
use crate::{print, results, say};
use compare::{Comparison, Outcome};
use harness::Failure;
use harness::report::Report;
use serde_json::json;
use std::path::{Path, PathBuf};

/// Results as (file name, report).
pub type Results = Vec<(String, Report)>;

/// Runs the command.
pub fn run(args: &CompareArgs) -> Result<Ending, Failure> {
    check_places(args.out.as_deref(), args.json.as_deref())?;
    let (base, new) = (read(&args.base)?, read(&args.new)?);
    if let Some(file) = args.base.iter().find(|file| args.new.contains(file)) {
        say(&format!("larch: {} is on both sides", file.display()));
    }
    let options = compare::Options { despite_differences: args.despite_differences, ..args.how.options() };
    let comparison = compared(&base, &new, options)?;
    show(&comparison, &base, &new, args.out.as_deref())?;
    if let Some(path) = &args.json {
        results::write(path, (json(&comparison) + "\n").as_bytes())?;
    }
    Ok(ending(&comparison))
}

/// Checks up front that the output files can be written.
pub fn check_places(out: Option<&Path>, json: Option<&Path>) -> Result<(), Failure> {
    if out.is_some() && out == json {
        return Err(Failure::session("target", "--out and --json name one file: one would replace the other"));
    }
    out.map_or(Ok(()), |path| results::check_one("--out", path))?;
    json.map_or(Ok(()), |path| results::check_one("--json", path))
}

/// Reads the result files.
pub fn read(paths: &[PathBuf]) -> Result<Results, Failure> {
    let one = |path: &PathBuf| {
        let report = Report::read(path).map_err(|error| Failure::session("target", error.to_string()))?;
        Ok((path.display().to_string(), report))
    };
    paths.iter().map(one).collect()
}

/// Compares the results.
pub fn compared(base: &Results, new: &Results, options: compare::Options) -> Result<Comparison, Failure> {
    compare::compare(base, new, options).map_err(|why| Failure::session("target", why))
}

/// Prints a comparison, and writes its page to `out`.
pub fn show(comparison: &Comparison, base: &Results, new: &Results, out: Option<&Path>) -> Result<(), Failure> {
    let printed = print(&compare::text(comparison));
    let page = || compare::page(comparison, base, new).html();
    let written = out.map_or(Ok(()), |path| results::write(path, page().as_bytes()));
    printed.and(written)
}

/// The ending of a command that compared results.
pub fn ending(comparison: &Comparison) -> Ending {
    match comparison.outcome() {
        Outcome::Worse => Ending::Bad,
        Outcome::CannotTell => Ending::CannotTell,
        Outcome::NotWorse => Ending::Good,
    }
}

fn json(comparison: &Comparison) -> String {
    let whole = json!({
        "format": "larch-compare-result",
        "version": 1,
        "is_worse": comparison.outcome() == Outcome::Worse,
        "cannot_tell": comparison.outcome() == Outcome::CannotTell,
        "comparison": comparison,
    });
    serde_json::to_string_pretty(&whole).expect("names are texts")
}
