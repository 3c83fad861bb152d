//! The command line of `larch bench cache-trace`.

use crate::args::ExperimentArgs;
use crate::cache::unfit;
use clap::Args;
use harness::Failure;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  larch bench cache-trace
  larch bench cache-trace --records 200000 --cache-sizes 1MiB,16MiB
  larch bench cache-trace --save ycsb.trace && larch bench cache-trace --trace ycsb.trace

After the traces, gets are replayed as pages and as rows, and made in Larch's cache itself. A file of traces does not
have them, because they need the database.

The counts are in result.json in the directory of the result, beside index.html, a page with charts.

Exit codes: 0 all was replayed; 1 a trace is empty; 2 wrong arguments; 3 something failed; 130 interrupted by ^C: what was
replayed until then is kept, and the same command goes on.";

/// Options of `larch bench cache-trace`.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct CacheTrace {
    /// Records of the table, 123 bytes each; a fifth as many operations are recorded for each workload. Gets are of
    /// tables with two fifths and twice as many rows [default: 500000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1000..=20_000_000))]
    pub records: Option<u64>,
    /// Sizes of the cache to try [default: 0.5 %, 1 %, 5 % and 20 % of the pages of each trace; 5 %, 20 % and 50 %
    /// for gets]
    #[arg(long, value_name = "SIZE,…", value_delimiter = ',', value_parser = kit::size::parse)]
    pub cache_sizes: Option<Vec<u64>>,
    /// Replays the traces of this file instead of recording some, without gets
    #[arg(long, value_name = "FILE", conflicts_with_all = ["records", "save"])]
    pub trace: Option<PathBuf>,
    /// Writes the traces that were recorded
    #[arg(long, value_name = "FILE")]
    pub save: Option<PathBuf>,
    /// Directory for the result [default: larch-experiment-cache-trace]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Replays everything again, also what the directory has already
    #[arg(long)]
    pub again: bool,
}

impl CacheTrace {
    /// The number of records in the table.
    pub fn records(&self) -> u64 {
        self.records.unwrap_or(500_000)
    }

    /// The options of the experiment.
    pub fn experiment(&self) -> ExperimentArgs {
        ExperimentArgs { again: self.again, ..ExperimentArgs::checked(false, self.out.clone()) }
    }

    /// Refuses options that the parser accepts but that make no sense.
    pub fn check(&self) -> Result<(), Failure> {
        let sizes = self.cache_sizes.as_deref().unwrap_or_default();
        if let Some(size) = sizes.iter().find(|size| **size < 64 << 10) {
            return Err(unfit(format!("a cache of {size} bytes holds almost no pages: give at least 64KiB")));
        }
        Ok(())
    }
}
