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

use policies::Kind;
use recorded::Recorded;
use report::{Column, Report};
use std::io::Write as _;
use std::process::ExitCode;

/// The default cache sizes, in hundredths of a percent of the data.
const SHARES: [u64; 4] = [50, 100, 500, 2000];

/// Why the command ended early.
#[derive(Debug, PartialEq, Eq)]
pub enum Failed {
    /// The options make no sense, or the file to replay cannot be read.
    Usage(String),
    /// A trace is empty.
    Empty(String),
    /// The engine failed, or a file could not be written.
    Broken(String),
}

/// Runs the command. The exit code is 0 if all traces were replayed, 1 if a trace is empty, 2 if the options make
/// no sense, and 3 if something failed.
pub fn run(options: &CacheTrace) -> ExitCode {
    match report(options) {
        Ok(text) => match std::io::stdout().write_all(text.as_bytes()) {
            Ok(()) => ExitCode::SUCCESS,
            // The reader of the output has closed it.
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
            Err(error) => {
                say(&format!("larch: cannot write the output: {error}"));
                ExitCode::from(3)
            }
        },
        Err(failed) => {
            let (code, why) = match failed {
                Failed::Empty(why) => (1, why),
                Failed::Usage(why) => (2, why),
                Failed::Broken(why) => (3, why),
            };
            say(&format!("larch: {why}"));
            ExitCode::from(code)
        }
    }
}

fn report(options: &CacheTrace) -> Result<String, Failed> {
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

/// Prints a line to stderr and ignores errors.
fn say(line: &str) {
    writeln!(std::io::stderr(), "{line}").unwrap_or_default();
}

#[cfg(test)]
mod tests;
