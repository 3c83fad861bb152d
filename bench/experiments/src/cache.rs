//! `larch bench cache-trace`: replays traces of YCSB workloads with several eviction policies, and counts how many
//! pages each one reads. It measures no time.
//!
//! ```text
//!   YCSB ──> Larch on a disk in memory ──pages::Trace──> Recorded ──replay──> Policies ──> Report
//!                                                          │  ^
//!                                                          └──┘ --save, --trace
//! ```
//!
//! The database is on a simulated machine, so the command leaves no files behind and records the same trace each
//! time. Pages are identified as in the cache: when a compaction rewrites rows, they are on new pages.

pub mod options;
pub mod policies;
pub mod policy;
pub mod record;
pub mod recorded;
pub mod replay;
pub mod report;
pub mod trace_file;

pub use options::CacheTrace;

use crate::ended;
use harness::Failure;
use policies::Kind;
use recorded::Recorded;
use report::{Column, Report};
use std::process::ExitCode;
use suite::{print, say};

/// The default cache sizes, in hundredths of a percent of the data.
const SHARES: [u64; 4] = [50, 100, 500, 2000];

/// Runs the command. The exit code is 0 if all traces were replayed, 1 if a trace is empty, 2 if the options make
/// no sense, and 3 if something failed.
pub fn run(options: &CacheTrace) -> ExitCode {
    ended(report(options).and_then(|text| print(&text)).map(|()| true))
}

/// The options make no sense, or the file to replay cannot be read.
fn unfit(why: impl Into<String>) -> Failure {
    Failure::session("target", why)
}

/// A trace is empty.
fn empty(why: impl Into<String>) -> Failure {
    Failure::session(crate::NOTHING, why)
}

fn report(options: &CacheTrace) -> Result<String, Failure> {
    options.check()?;
    let traces = match &options.trace {
        Some(path) => trace_file::load(path)?,
        None => record::all(options, &mut say)?,
    };
    if let Some(path) = &options.save {
        trace_file::save(path, &traces)?;
    }
    let mut report = Report::default();
    for trace in &traces {
        say(&format!("{}: {} accesses", trace.name, trace.accesses.len()));
        let recorded = Recorded::new(trace)?;
        let columns = columns(options, &recorded);
        report.add(&recorded, &columns);
    }
    Ok(if options.json { report.json() } else { report.table() })
}

fn columns(options: &CacheTrace, recorded: &Recorded) -> Vec<Column> {
    let shares = || SHARES.map(|share| recorded.data_bytes() * share / 10_000).to_vec();
    let sizes = options.cache_sizes.clone().unwrap_or_else(shares);
    let tallies = |budget| Kind::ALL.iter().map(|kind| (*kind, replay::replay(recorded, *kind, budget))).collect();
    sizes.into_iter().map(|budget| Column { budget, tallies: tallies(budget) }).collect()
}

#[cfg(test)]
mod tests;
