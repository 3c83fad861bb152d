//! The options of `larch bench rows`. ybio's parameters can be given as options, or in ybio's notation
//! (`name=>value`).

use super::{FilesArgs, TogetherArgs};
use crate::targets::{self, Task};
use clap::{Args, Subcommand};

const EXAMPLES: &str = "\
Examples:
  larch bench rows setup --target larch:db --tab-rows 1e6 --batch-size 10000
  larch bench rows run --target larch:db --tab-rows 1e6 --batch-size 100 --run-duration 10s --pct-update 10
  larch bench rows setup --target postgres://me@localhost/bench \"tab_num=>1,tab_rows=>1e6::int,batch_size=>10000\"
  larch bench rows run --target larch:db \"run_duration=>interval '10 seconds'\" --tables 4 --sessions 2
  larch bench rows results --target larch:db

Exit codes: 0 done; 1 no row was accessed; 2 wrong arguments; 3 the database failed, or the result could not be written;
130 interrupted by ^C: what was done until then is printed and kept.";

/// The value of `--compat` in `larch bench rows`. The binary's global option of the same name takes a release of
/// Larch.
pub const YBIO: &str = "ybio";

/// The subcommands of `larch bench rows`.
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub enum RowsCommand {
    /// Make tables and insert their rows
    Setup(Box<SetupArgs>),
    /// Read and update rows by random ranges for a time
    Run(Box<RunArgs>),
    /// Print the history of runs
    Results(ResultsArgs),
    /// Drop the tables and the history
    Clean(CleanArgs),
}

/// Options of every subcommand.
#[derive(Clone, Debug, Args)]
pub struct Where {
    /// The store.
    #[arg(long, help = targets::help(Task::Rows))]
    pub target: String,
    /// Prefix of the names of tables [default: bench]
    #[arg(long, alias = "tab_prefix", value_name = "NAME")]
    pub tab_prefix: Option<String>,
}

/// Options of `larch bench rows setup`.
#[derive(Clone, Debug, Args)]
pub struct SetupArgs {
    #[command(flatten)]
    pub(crate) at: Where,
    /// Parameters in the spelling of ybio, also a whole call; they replace options
    #[arg(value_name = "NAME=>VALUE")]
    pub parameters: Vec<String>,
    /// The number in the name of the table [default: 1]
    #[arg(long, alias = "tab_num", value_name = "N")]
    pub tab_num: Option<String>,
    /// Rows of a table [default: 1e6]
    #[arg(long, alias = "tab_rows", value_name = "N")]
    pub tab_rows: Option<String>,
    /// Rows of a transaction [default: 1000]
    #[arg(long, alias = "batch_size", value_name = "N")]
    pub batch_size: Option<String>,
    /// Tablets of the table, where a database has tablets [default: 0, as the database has it]
    #[arg(long, alias = "tab_tablets", value_name = "N")]
    pub tab_tablets: Option<String>,
    /// Tablets of the index [default: 0, as the database has it]
    #[arg(long, alias = "ind_tablets", value_name = "N")]
    pub ind_tablets: Option<String>,
    /// Whether mykey is the primary key, without another index [default: false]
    #[arg(long, alias = "index_as_pk", value_name = "BOOL")]
    pub index_as_pk: Option<String>,
    /// Bytes of a column that makes rows larger [default: 1]
    #[arg(long, value_name = "BYTES")]
    pub filler: Option<String>,
    /// Whether an existing table is dropped [default: true]
    #[arg(long, value_name = "BOOL")]
    pub recreate: Option<String>,
    /// The order of the rows of a batch: scratch, mykey, null, or an expression of SQL [default: scratch]
    #[arg(long, value_name = "ORDER")]
    pub orderby: Option<String>,
    /// Tables to make, side by side, with the numbers from tab_num on
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub tables: u32,
    /// Seed of the random numbers in the rows, where this program makes them
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Keys as ybio has them: they begin behind the number of batches
    #[arg(long, num_args = 0, default_missing_value = YBIO)]
    compat: Option<String>,
}

/// Options of `larch bench rows run`.
#[derive(Clone, Debug, Args)]
pub struct RunArgs {
    #[command(flatten)]
    pub(crate) at: Where,
    /// Parameters in the spelling of ybio, also a whole call; they replace options
    #[arg(value_name = "NAME=>VALUE")]
    pub parameters: Vec<String>,
    /// The number in the name of the table [default: 1]
    #[arg(long, alias = "tab_num", value_name = "N")]
    pub tab_num: Option<String>,
    /// Ranges are drawn among this many rows [default: 1e6]
    #[arg(long, alias = "tab_rows", value_name = "N")]
    pub tab_rows: Option<String>,
    /// Rows that are accessed together [default: 1e4]
    #[arg(long, alias = "batch_size", value_name = "N")]
    pub batch_size: Option<String>,
    /// Time after which no batch begins [default: 1 minute]
    #[arg(long, alias = "run_duration", value_name = "TIME")]
    pub run_duration: Option<String>,
    /// This many rows in a hundred are updated, the others are read [default: 0]
    #[arg(long, alias = "pct_update", value_name = "PERCENT")]
    pub pct_update: Option<String>,
    /// Whether statements are prepared, if the store has statements [default: true]
    #[arg(long, value_name = "BOOL")]
    pub prepared: Option<String>,
    /// Whether the index is read and not the rows [default: false]
    #[arg(long, alias = "index_only", value_name = "BOOL")]
    pub index_only: Option<String>,
    /// Whether the rows of the table are counted first [default: false]
    #[arg(long, alias = "initial_count", value_name = "BOOL")]
    pub initial_count: Option<String>,
    /// What an hour of a processor costs, in any currency, for the cost of a million rows
    #[arg(long, value_name = "MONEY", value_parser = super::price)]
    pub price: Option<f64>,
    /// Shows what was done so far to Prometheus, at http://HOST:PORT/metrics, until the end; a port alone is one of
    /// 127.0.0.1
    #[arg(long, value_name = "HOST:PORT")]
    pub metrics: Option<String>,
    /// A note for the history
    #[arg(long, value_name = "TEXT")]
    pub comments: Option<String>,
    /// Tables to access, with the numbers from tab_num on
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub tables: u32,
    /// Sessions on each table, each with a thread and a row of the history
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub sessions: u32,
    /// Seed of the ranges
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Ranges as ybio draws them, and a line for each batch
    #[arg(long, num_args = 0, default_missing_value = YBIO)]
    compat: Option<String>,
    /// Run sessions in the database, by a procedure of it, as ybio does; PostgreSQL has it
    #[arg(long)]
    pub in_server: bool,
    /// Print lines on a terminal, too, where a view of the run would fill the screen
    #[arg(long)]
    pub plain: bool,
    /// Print no line while it runs
    #[arg(short, long)]
    pub quiet: bool,
    /// The files of the result.
    #[command(flatten)]
    pub files: FilesArgs,
    /// Options for several processes.
    #[command(flatten)]
    pub together: TogetherArgs,
}

/// Options of `larch bench rows results`.
#[derive(Clone, Debug, Args)]
pub struct ResultsArgs {
    #[command(flatten)]
    pub(crate) at: Where,
    /// Runs to print, the newest first
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub limit: u64,
}

/// Options of `larch bench rows clean`.
#[derive(Clone, Debug, Args)]
pub struct CleanArgs {
    #[command(flatten)]
    pub(crate) at: Where,
    /// Leave the history of runs
    #[arg(long)]
    pub keep_results: bool,
}

impl SetupArgs {
    /// Whether to make keys as ybio does.
    pub fn is_compat(&self) -> bool {
        self.compat.is_some()
    }

    /// The parameters that were given as options.
    pub fn options(&self) -> [(&'static str, Option<&str>); 10] {
        [
            ("tab_prefix", self.at.tab_prefix.as_deref()),
            ("tab_num", self.tab_num.as_deref()),
            ("tab_rows", self.tab_rows.as_deref()),
            ("batch_size", self.batch_size.as_deref()),
            ("tab_tablets", self.tab_tablets.as_deref()),
            ("ind_tablets", self.ind_tablets.as_deref()),
            ("index_as_pk", self.index_as_pk.as_deref()),
            ("filler", self.filler.as_deref()),
            ("recreate", self.recreate.as_deref()),
            ("orderby", self.orderby.as_deref()),
        ]
    }
}

impl RunArgs {
    /// Whether to draw ranges and print batches as ybio does.
    pub fn is_compat(&self) -> bool {
        self.compat.is_some()
    }

    /// The parameters that were given as options.
    pub fn options(&self) -> [(&'static str, Option<&str>); 10] {
        [
            ("tab_prefix", self.at.tab_prefix.as_deref()),
            ("tab_num", self.tab_num.as_deref()),
            ("tab_rows", self.tab_rows.as_deref()),
            ("batch_size", self.batch_size.as_deref()),
            ("run_duration", self.run_duration.as_deref()),
            ("pct_update", self.pct_update.as_deref()),
            ("prepared", self.prepared.as_deref()),
            ("index_only", self.index_only.as_deref()),
            ("initial_count", self.initial_count.as_deref()),
            ("comments", self.comments.as_deref()),
        ]
    }
}
