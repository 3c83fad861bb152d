//! The command line of `larch bench experiment`.

use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;
use suite::args::{length, price};

const EXIT_CODES: &str = "\
Exit codes: 0 all was measured, and with --check the goals were reached; 1 nothing was, rows were not what they should be,
or with --check a goal was missed; 2 wrong arguments; 3 the database failed, or the result could not be written; 130 interrupted by ^C:
what was measured until then is kept, and the same command goes on.";

const SHARING_EXAMPLES: &str = "\
Examples:
  larch bench experiment sharing
  larch bench experiment sharing --scale full --out /mnt/disk/sharing

Exit codes: 0 all was measured, and with --check the goals were reached; 1 nothing was, rows were not what they should be,
or with --check a goal was missed; 2 wrong arguments; 3 the database failed, or the result could not be written; 130 interrupted by ^C:
what was measured until then is kept, and the same command goes on.";

/// The experiments.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// 100 readers, first each with index pages of its own, then with shared ones; pages of rows are not kept
    #[command(after_help = SHARING_EXAMPLES)]
    Sharing(SharingArgs),
    /// Row access: rows a second against the size of a batch, on Larch and on PostgreSQL
    #[command(after_help = EXIT_CODES)]
    Batch(ExperimentArgs),
    /// Histograms of keys from the index alone: by the tree and by the flat list
    #[command(after_help = EXIT_CODES)]
    Stats(ExperimentArgs),
    /// B-tree beside flat lists over caches that are measured by the lists: reads, YCSB, load, memory, instructions,
    /// TPC-C
    #[command(after_help = EXIT_CODES)]
    Index(IndexArgs),
    /// Pages of 4 to 64 KiB beside the disk alone: load, updates and reads, cold and cached; nodes and files apart
    #[command(after_help = EXIT_CODES)]
    PageSize(ExperimentArgs),
    /// Reads a database, to count the instructions of it
    #[command(hide = true)]
    IndexGets(Gets),
    /// The client of TPC-C alone: memory, processor time and lateness of up to 150,000 terminals
    #[command(after_help = EXIT_CODES)]
    Client(ExperimentArgs),
    /// TPC-C on Larch, on SQLite and RocksDB where they are built in, on PostgreSQL alone and with two replicas
    #[command(after_help = EXIT_CODES)]
    Engines(ExperimentArgs),
    /// 10, 100 and 1,000 databases in one process under one cache: memory, threads, time to open, gets
    #[command(after_help = EXIT_CODES)]
    Databases(ExperimentArgs),
    /// Range reads with and without a precharge, on the local disk and on disks whose reads take longer
    #[command(after_help = EXIT_CODES)]
    Precharge(ExperimentArgs),
    /// What tables of 1 to 64 M rows cost with the same memory, beside what `larch plan` predicts
    #[command(after_help = EXIT_CODES)]
    Scale(ExperimentArgs),
}

/// Comparisons of Larch with other engines.
#[derive(Debug, Subcommand)]
pub enum PeersCommand {
    /// Compare Larch with other engines on rows that fit in memory
    Peers(PeersArgs),
    /// Compare Larch with other engines on rows that do not fit in memory
    Cold(PeersArgs),
    /// Compare Larch with RocksDB under steady overwrites: rate, longest waits, bytes written
    Writes(WritesArgs),
    /// Measure transactions: their cost beside the same calls without one, conflicts, synced commits, beside RocksDB
    Transactions(TransactionsArgs),
    /// Hold an engine for `peers`, `cold`, `writes` and `transactions`
    #[command(hide = true)]
    Peer {
        /// The store.
        target: String,
    },
}

/// Options of `larch bench peers` and `larch bench cold`.
#[derive(Debug, Args)]
pub struct PeersArgs {
    /// Fewer rows and one short repeat, for a first look: not a result to keep
    #[arg(long)]
    pub quick: bool,
    /// Rows of the table
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1000..))]
    pub records: Option<u64>,
    /// The options of every comparison
    #[command(flatten)]
    pub common: CommonArgs,
}

/// Options of `larch bench writes`.
#[derive(Debug, Args)]
pub struct WritesArgs {
    /// One table of 1 M rows and 20 s, for a first look: not a result to keep
    #[arg(long)]
    pub quick: bool,
    /// Rows of each table [default: 1, 4 and 16 million]
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = clap::value_parser!(u64).range(1000..))]
    pub records: Vec<u64>,
    /// Time of each of the two loops on each table [default: 10m]
    #[arg(long, value_name = "TIME", value_parser = length)]
    pub time: Option<Duration>,
    /// The options of every comparison
    #[command(flatten)]
    pub common: CommonArgs,
}

/// Options of `larch bench transactions`.
#[derive(Debug, Args)]
pub struct TransactionsArgs {
    /// Fewer rows and one short repeat, for a first look: not a result to keep
    #[arg(long)]
    pub quick: bool,
    /// Rows of the table that is read and written [default: 1 million]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1000..))]
    pub records: Option<u64>,
    /// Time of each measurement [default: 2s]
    #[arg(long, value_name = "TIME", value_parser = length)]
    pub time: Option<Duration>,
    /// The options of every comparison
    #[command(flatten)]
    pub common: CommonArgs,
}

/// Options of every comparison with other engines.
#[derive(Clone, Debug, Args)]
pub struct CommonArgs {
    /// Fails (exit code 1) if an engine, a row or a goal was not measured
    #[arg(long)]
    pub require_peers: bool,
    /// Directory for the result, and for databases meanwhile [default: larch-experiment-NAME]
    #[arg(long)]
    pub dir: Option<PathBuf>,
    /// Measures everything again, also what is in the directory already
    #[arg(long)]
    pub again: bool,
    /// Writes the tables as Markdown too
    #[arg(long, value_name = "FILE.md")]
    pub out: Option<PathBuf>,
}

impl CommonArgs {
    /// The options of the experiment that a comparison is. Its goals are always checked.
    pub fn options(&self, quick: bool) -> ExperimentArgs {
        let (again, markdown, whole) = (self.again, self.out.clone(), self.require_peers);
        ExperimentArgs { again, markdown, whole, ..ExperimentArgs::checked(quick, self.dir.clone()) }
    }
}

/// Options of every experiment.
#[derive(Clone, Debug, Args)]
pub struct ExperimentArgs {
    /// How large it is
    #[arg(long, value_enum, default_value_t = Scale::Small)]
    pub scale: Scale,
    /// Directory for the result, and for databases meanwhile [default: larch-experiment-NAME]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Measures everything again, also what is in the directory already
    #[arg(long)]
    pub again: bool,
    /// Fails (exit code 1) if a goal was missed
    #[arg(long)]
    pub check: bool,
    /// What an hour of a processor costs, in any currency, for the cost of a million operations
    #[arg(long, value_name = "MONEY", value_parser = price)]
    pub price: Option<f64>,
    /// Where the tables are written as Markdown too. An option of comparisons with other engines.
    #[arg(skip)]
    pub markdown: Option<PathBuf>,
    /// Whether something that was not measured is a failure. An option of comparisons with other engines.
    #[arg(skip)]
    pub whole: bool,
}

impl ExperimentArgs {
    /// The options of an experiment that has two scales, and whose goals are always checked.
    pub fn checked(quick: bool, out: Option<PathBuf>) -> Self {
        let scale = if quick { Scale::Small } else { Scale::Full };
        Self { scale, out, again: false, check: true, price: None, markdown: None, whole: false }
    }
}

/// Options of `larch bench experiment sharing`.
#[derive(Clone, Debug, Args)]
pub struct SharingArgs {
    /// The options of every experiment
    #[command(flatten)]
    pub common: ExperimentArgs,
    /// Time to measure a side once [default: 200ms, 3s, 5s or 30s, as --scale says]
    #[arg(long, value_name = "TIME", value_parser = length)]
    pub time: Option<Duration>,
}

/// Options of `larch bench experiment index`.
#[derive(Clone, Debug, Args)]
pub struct IndexArgs {
    /// The options of every experiment
    #[command(flatten)]
    pub common: ExperimentArgs,
    /// Measures one part alone
    #[arg(long, value_enum)]
    pub only: Option<IndexPart>,
}

/// A part of the experiment `index`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum IndexPart {
    /// One table of rows: reads, YCSB, load, memory, instructions
    Rows,
    /// TPC-C
    Tpcc,
}

/// How large an experiment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Scale {
    /// Seconds: a test, not a result to keep
    Tiny,
    /// Minutes
    Small,
    /// A quarter of an hour, or more
    Medium,
    /// As large as this machine allows
    Full,
}

impl Scale {
    /// Its name, as it is written.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tiny => "tiny",
            Self::Small => "small",
            Self::Medium => "medium",
            Self::Full => "full",
        }
    }
}

/// Options of the hidden command whose instructions the experiment `index` counts.
#[derive(Clone, Debug, Args)]
pub struct Gets {
    /// The database.
    #[arg(long)]
    pub place: PathBuf,
    /// By the flat lists.
    #[arg(long)]
    pub flat: bool,
    /// Bytes of the cache.
    #[arg(long)]
    pub memory: u64,
    /// Rows of the database.
    #[arg(long)]
    pub rows: u64,
    /// Groups of neighbours.
    #[arg(long)]
    pub groups: u64,
    /// Gets that bring the index into memory before.
    #[arg(long)]
    pub warming: u64,
    /// Gets that are counted.
    #[arg(long)]
    pub gets: u64,
}
