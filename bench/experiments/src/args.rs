//! The command line of `larch bench experiment`.

use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;
use suite::args::length;

const SHARING_EXAMPLES: &str = "\
Examples:
  larch bench experiment sharing
  larch bench experiment sharing --scale full --dir /mnt/disk --out sharing.json

Exit codes: 0 all was measured, and with --check the goals were reached; 1 nothing was, rows were not what they should be,
or with --check a goal was missed; 2 wrong arguments; 3 the database failed, or the result could not be written; 130 interrupted by ^C.";

/// What can be tried.
#[derive(Debug, Subcommand)]
pub enum Experiment {
    /// 100 readers, first each with index pages of its own, then with shared ones; pages of rows are not kept
    #[command(after_help = SHARING_EXAMPLES)]
    Sharing(SharingArgs),
}

/// Options of `larch bench experiment sharing`.
#[derive(Clone, Debug, Args)]
pub struct SharingArgs {
    /// Number of keys beside the 10 partitions, and time to measure each side
    #[arg(long, value_enum, default_value_t = Scale::Small)]
    pub scale: Scale,
    /// Time to measure each side [default: 3s, 10s or 30s, as --scale says]
    #[arg(long, value_name = "TIME", value_parser = length)]
    pub time: Option<Duration>,
    /// Fails (exit code 1) if a goal was missed
    #[arg(long)]
    pub check: bool,
    /// Directory for the rows of the run [default: the system's directory for temporary files]
    #[arg(long)]
    pub dir: Option<PathBuf>,
    /// Writes the whole result as JSON
    #[arg(long, value_name = "FILE.json")]
    pub out: Option<PathBuf>,
}

/// How large an experiment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Scale {
    /// 100 K keys, 3 s
    Small,
    /// 1 M keys, 10 s
    Medium,
    /// 10 M keys, 30 s
    Full,
}
