//! The options of `larch bench tpcc`.

use super::{FilesArgs, TogetherArgs, length, price, time};
use crate::targets::{self, Task};
use clap::{Args, Subcommand, ValueEnum};
use harness::{MOST_CLIENTS, MOST_THREADS};
use std::time::Duration;
use tpcc::rules::Mode;

/// Examples of the command.
pub const EXAMPLES: &str = "\
Examples:
  larch bench tpcc import --target larch:db --warehouses 10
  larch bench tpcc check --target larch:db --after-import
  larch bench tpcc run --target larch:db --mode nowait --time 60s
  larch bench tpcc run --target larch:db --warmup 3m --time 20m --out tpcc.json
  larch bench tpcc check --target larch:db
  larch bench tpcc run --target noop: --warehouses 15000 --warmup 30s --time 60s
  larch bench tpcc import --target 'postgres://localhost/tpcc' --warehouses 10
  larch bench tpcc run --target 'postgres://localhost/tpcc?isolation=read_committed' --connections 16 --mode nowait
  larch bench tpcc run --target 'postgres://localhost/tpcc' --simulate --warehouses 10 --connections 16 --mode nowait
  larch bench tpcc run --target noop: --warehouses 8 --workers localhost:7001,localhost:7002 --secret-file secret
  larch bench tpcc clean --target larch:db

Exit codes: 0 all was done; 1 nothing was measured, more than one transaction in a hundred failed for good, or a consistency condition
does not hold; 2 wrong arguments; 3 the database failed, or a result could not be written; 130 interrupted by ^C: what was measured until then is printed and written.";

/// The subcommands of `larch bench tpcc`.
#[derive(Debug, Subcommand)]
pub enum TpccCommand {
    /// Make the tables, all empty
    Init(InitArgs),
    /// Load the first rows, and make the indexes; it goes on where it was interrupted, and makes the tables if they are
    /// not there
    Import(ImportArgs),
    /// Let terminals work, and print the result
    Run(Box<TpccRunArgs>),
    /// Check the twelve consistency conditions
    Check(CheckArgs),
    /// Remove the tables
    Clean(TpccTargetArgs),
}

/// The database.
#[derive(Clone, Debug, Args)]
pub struct TpccTargetArgs {
    /// The store.
    #[arg(long, help = targets::help(Task::Tpcc))]
    pub target: String,
}

/// The options of a new database.
#[derive(Clone, Debug, Args)]
pub struct FormArgs {
    /// Warehouses, of some 75 MB each
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub warehouses: Option<u32>,
    /// Seed of all rows
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
}

/// Options of `larch bench tpcc init`.
#[derive(Clone, Debug, Args)]
pub struct InitArgs {
    /// The database.
    #[command(flatten)]
    pub at: TpccTargetArgs,
    /// The options of a new database.
    #[command(flatten)]
    pub form: FormArgs,
}

/// Options of `larch bench tpcc import`.
#[derive(Clone, Debug, Args)]
pub struct ImportArgs {
    /// The database.
    #[command(flatten)]
    pub at: TpccTargetArgs,
    /// The options of a new database.
    #[command(flatten)]
    pub form: FormArgs,
    /// Threads that make rows [default: one for each processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=MOST_THREADS as i64))]
    pub threads: Option<u32>,
    /// Prints no line while it loads
    #[arg(short, long)]
    pub quiet: bool,
}

/// `--mode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ModeArg {
    /// As the specification says
    Spec,
    /// As the specification says, but terminals wait for nothing
    Nowait,
    /// As BenchBase
    CompatBenchbase,
    /// As the driver of HammerDB
    CompatHammerdb,
    /// As YDB's own command
    CompatYdb,
}

impl From<ModeArg> for Mode {
    fn from(mode: ModeArg) -> Self {
        match mode {
            ModeArg::Spec => Self::Spec,
            ModeArg::Nowait => Self::NoWait,
            ModeArg::CompatBenchbase => Self::Benchbase,
            ModeArg::CompatHammerdb => Self::Hammerdb,
            ModeArg::CompatYdb => Self::Ydb,
        }
    }
}

/// Options of `larch bench tpcc run`.
#[derive(Clone, Debug, Args)]
pub struct TpccRunArgs {
    /// The database.
    #[command(flatten)]
    pub at: TpccTargetArgs,
    /// Warehouses that have terminals [default: all of the database]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub warehouses: Option<u32>,
    /// Makes the same round trips to the server with constant rows, without tables: it shows what the client costs by
    /// itself
    #[arg(long)]
    pub simulate: bool,
    /// How terminals work
    #[arg(long, value_enum, default_value = "spec")]
    pub mode: ModeArg,
    /// Time to run before measuring [default: 30s where terminals wait, 2s where they do not]
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub warmup: Option<Duration>,
    /// Time to measure
    #[arg(long, value_name = "TIME", value_parser = length, default_value = "10m")]
    pub time: Duration,
    /// Terminals [default: ten for each warehouse]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=MOST_CLIENTS as i64))]
    pub terminals: Option<u32>,
    /// Threads of the client that the terminals share; those of each process, as connections are
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=MOST_THREADS as i64))]
    pub threads: u32,
    /// Connections of all threads together, or transactions under way in a store without connections [default: as the
    /// database has it]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub connections: Option<u32>,
    /// Checks the twelve conditions at snapshots while terminals work, one after the other, on a thread of its own
    #[arg(long)]
    pub check: bool,
    /// Length of the intervals that the result keeps, and after each of which a line is printed
    #[arg(long, value_name = "TIME", value_parser = length, default_value = "1s")]
    pub interval: Duration,
    /// Seed of what terminals ask for [default: another one for each run]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// The files of the result.
    #[command(flatten)]
    pub files: FilesArgs,
    /// What an hour of a processor costs, in any currency, for the cost of a million transactions
    #[arg(long, value_name = "MONEY", value_parser = price)]
    pub price: Option<f64>,
    /// Shows what was measured so far to Prometheus, at http://HOST:PORT/metrics, until the end; a port alone is one of
    /// 127.0.0.1
    #[arg(long, value_name = "HOST:PORT")]
    pub metrics: Option<String>,
    /// Prints a line for each interval on a terminal, too, where a view of the run would fill the screen
    #[arg(long)]
    pub plain: bool,
    /// Prints no line while it runs
    #[arg(short, long)]
    pub quiet: bool,
    /// Options for several processes.
    #[command(flatten)]
    pub together: TogetherArgs,
}

/// Options of `larch bench tpcc check`.
#[derive(Clone, Debug, Args)]
pub struct CheckArgs {
    /// The database.
    #[command(flatten)]
    pub at: TpccTargetArgs,
    /// Nothing ran since the import: every row must be as it was loaded
    #[arg(long)]
    pub after_import: bool,
    /// Threads that read [default: one for each processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=MOST_THREADS as i64))]
    pub threads: Option<u32>,
    /// Prints no line while it reads
    #[arg(short, long)]
    pub quiet: bool,
}
