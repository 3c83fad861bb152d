//! The command `larch bench cache-trace`: how much each policy of the page cache reads, on traces of our own workloads.
//! It measures no time.
//!
//! ```text
//!   YCSB ──> Larch on a disk in memory ──pages::Trace──> Recorded ──replay──> Policies ──> Report
//!                                                          │  ^
//!                                                          └──┘ --save, --trace
//! ```
//!
//! The database lies on a simulated machine, so nothing is left behind and the same trace is made each time. A page has
//! the identity that it has in the cache: when a compaction writes rows again, they are on new pages.

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

/// Shares of the data that are tried as cache sizes, in hundredths of a percent.
const SHARES: [u64; 4] = [50, 100, 500, 2000];

/// What ended the command early.
#[derive(Debug, PartialEq, Eq)]
pub enum Failed {
    /// What was asked for makes no sense.
    Usage(String),
    /// A trace has nothing in it.
    Empty(String),
    /// The engine failed, or a file.
    Broken(String),
}

/// Does what `options` say. The exit code is 0 when all was replayed, 1 if a trace is empty, 2 if what was asked for
/// makes no sense, 3 if something failed.
pub fn run(options: &CacheTrace) -> ExitCode {
    match report(options) {
        Ok(text) => match std::io::stdout().write_all(text.as_bytes()) {
            Ok(()) => ExitCode::SUCCESS,
            // Its reader had enough.
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

/// Prints a line to stderr. If that fails, the work goes on.
fn say(line: &str) {
    writeln!(std::io::stderr(), "{line}").unwrap_or_default();
}

#[cfg(test)]
mod tests;
