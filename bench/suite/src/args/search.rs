//! The options of `larch bench search`.

use super::compare::percent;
use super::{KvArgs, YcsbArgs};
use crate::objective::Objective;
use clap::{Args, Subcommand};
use std::path::{Path, PathBuf};

/// Examples of the command.
pub const SEARCH_EXAMPLES: &str = "\
Examples:
  larch bench search --objective 'p99<5ms' ycsb --workload c -p recordcount=1000000 --target larch:db --threads 2
  larch bench search --objective 'p99.9<20ms' --page search.html ycsb --workload a --target postgres://me@localhost/bench --time 30s
  larch bench search --objective 'max<50ms' kv --target larch:db -mode read -workload uniform -partition-count 1000

Each run is an open loop: operations are due at a rate, and a time is counted from when its operation was due. A run meets the
objective if the percentile of all requests is below the bound, at least 99 in 100 of the operations were begun in time, and at
most one in a hundred failed. The first rate is the one of --rate or -max-rate; without it, that of a first run without a rate.

The table of a run of YCSB must have been loaded: larch bench ycsb load.

Exit codes: 0 a rate was found, or the client was the limit; 1 no rate met the objective; 2 wrong arguments; 3 the store failed, or
a result could not be written; 130 interrupted by ^C: what was tried until then is printed and written.";

/// Options of `larch bench search`.
#[derive(Debug, Args)]
pub struct SearchArgs {
    /// What a rate has to meet: a percentile from p50 to p99.99, or max, then `<`, then a time in us, ms or s
    #[arg(long, value_name = "p99<5ms", value_parser = Objective::parse)]
    pub objective: Objective,
    /// Width at which the interval of the rate is narrow enough, in percent of the lower bound
    #[arg(long, value_name = "PERCENT", default_value = "5%", value_parser = precision)]
    pub precision: f64,
    /// Runs at each of the two bounds; most of them decide
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=99))]
    pub repeats: u32,
    /// Writes the search as JSON
    #[arg(long, value_name = "FILE.json")]
    pub json: Option<PathBuf>,
    /// Writes a page with a chart of all runs
    #[arg(long, value_name = "FILE.html")]
    pub page: Option<PathBuf>,
    /// The workload.
    #[command(subcommand)]
    pub workload: SearchedArgs,
}

/// The workloads whose rate can be searched.
#[derive(Debug, Subcommand)]
pub enum SearchedArgs {
    /// A run of YCSB, with the options of `larch bench ycsb run`; --time is that of each run [default: 10s]
    Ycsb(Box<YcsbArgs>),
    /// Rows in partitions, with the options of `larch bench kv`; -duration is that of each run [default: 10s]
    Kv(Box<KvArgs>),
}

impl SearchArgs {
    /// The files of the search as (option, path). The files of the runs are options of the workload.
    pub fn named(&self) -> impl Iterator<Item = (&str, &Path)> {
        let files: [(&str, &Option<PathBuf>); 2] = [("--json", &self.json), ("--page", &self.page)];
        files.into_iter().filter_map(|(name, path)| Some((name, path.as_deref()?)))
    }
}

/// Parses `--precision`.
fn precision(text: &str) -> Result<f64, String> {
    let part = percent(text)?;
    (0.01..=0.5).contains(&part).then_some(part).ok_or_else(|| "a precision is 1% to 50%: 5%".to_owned())
}
