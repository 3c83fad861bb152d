//! The command line of `larch bench`.

mod compare;
pub mod kv;
mod rows;
mod search;
mod together;
pub mod tpcc;

pub use compare::{CompareArgs, RegressArgs, RoundArgs, TrialsArgs};
pub use kv::KvArgs;
pub use rows::{CleanArgs, ResultsArgs, RowsCommand, RunArgs, SetupArgs, YBIO};
pub use search::{SearchArgs, SearchedArgs};
pub use together::{TogetherArgs, WorkerArgs};

use crate::targets::{self, Task};
use clap::{Args, Subcommand, ValueEnum};
use harness::{Failure, MOST_CLIENTS, MOST_THREADS};
use std::path::{Path, PathBuf};
use std::time::Duration;

const YCSB_EXAMPLES: &str = "\
Examples:
  larch bench ycsb
  larch bench ycsb load --workload a -p recordcount=1000000 --target larch:db --recreate
  larch bench ycsb run --workload a -p recordcount=1000000 --target larch:db --threads 2 --time 30s
  larch bench ycsb run --workload c -p recordcount=1000000 --target larch:db --rate 20000 --time 30s --out c.json
  larch bench ycsb all -p recordcount=100000 --target 'postgres://me@localhost/bench?connections=16' --threads 16 --time 10s
  larch bench ycsb run --workload a --target noop: --operations 10000000
  larch bench ycsb run --workload a --target noop: --threads 8 --time 10s --workers localhost:7001,localhost:7002

Exit codes: 0 all was measured; 1 nothing was, more than one operation in a hundred failed, or rows were not what they should be;
2 wrong arguments; 3 the store failed, or a result could not be written; 130 interrupted by ^C: what was measured until then is printed and written.";

const REPLAY_EXAMPLES: &str = "\
Examples:
  larch bench replay a.json
  larch bench replay a.json --speed 100
  larch bench replay a.json --plain

On a terminal, the runs of the result are shown one after the other, each as it was shown while it went on, and the last picture
of each stays. Where the output is no terminal, each interval is a line. ^C ends it.

Exit codes: 0 shown; 2 wrong arguments, or a file that is no result of a run; 130 ended by ^C.";

const MERGE_EXAMPLES: &str = "\
Examples:
  larch bench tpcc run --target noop: --warehouses 8 --share 1/2 --out a.json   (on one machine, or in one shell)
  larch bench tpcc run --target noop: --warehouses 8 --share 2/2 --out b.json   (at the same time on another)
  larch bench merge a.json b.json --out both.json

Histograms are added, so that quantiles are those of all requests. Results of other workloads, targets, lengths or modes are
refused. `larch bench worker` with `--workers` does the same for processes that begin together.

Exit codes: 0 merged; 2 wrong arguments, or results that differ; 3 the result could not be written.";

/// What can be measured.
#[derive(Debug, Subcommand)]
pub enum Measurement {
    /// List the stores that can be measured, and what the others take
    Targets,
    /// YCSB: load a store, run one workload on it, or run all six; without arguments, run all six on Larch in a
    /// temporary directory
    #[command(after_help = YCSB_EXAMPLES)]
    Ycsb(Box<YcsbArgs>),
    /// Row access by the SLOB method: rows a second by random ranges of an indexed number
    #[command(subcommand)]
    Rows(RowsCommand),
    /// Rows in partitions under the workloads of scylla-bench, with its options and its table
    #[command(after_help = kv::EXAMPLES)]
    Kv(Box<KvArgs>),
    /// TPC-C: orders of a company with warehouses, in serializable transactions
    #[command(subcommand, after_help = tpcc::EXAMPLES)]
    Tpcc(tpcc::TpccCommand),
    /// Make a page of results: charts, costs, settings, several results side by side
    Report(ReportArgs),
    /// Show a result again as the run was shown on a terminal
    #[command(after_help = REPLAY_EXAMPLES)]
    Replay(ReplayArgs),
    /// Compare results: what differs in how they were made, then in what they measured, with intervals and an exit code
    #[command(after_help = compare::EXAMPLES)]
    Compare(CompareArgs),
    /// Find the highest rate of a workload at which a percentile of its times stays below a bound
    #[command(after_help = search::SEARCH_EXAMPLES)]
    Search(SearchArgs),
    /// Run YCSB A, C, E and TPC-C and compare them with a stored baseline of this kind of machine
    #[command(after_help = compare::REGRESS_EXAMPLES)]
    Regress(RegressArgs),
    /// Show how often a comparison sees a difference between equal results, and how often a slow-down that was added
    CompareTrials(TrialsArgs),
    /// Merge results of processes that made a run together: their times, counts and costs as one result
    #[command(after_help = MERGE_EXAMPLES)]
    Merge(MergeArgs),
    /// Wait for a coordinator, `--workers` of another process, and do shares of its runs
    #[command(after_help = together::WORKER_EXAMPLES)]
    Worker(WorkerArgs),
    /// Make pictures of a chart of a page, for documents
    Picture(PictureArgs),
    /// Measure the client alone: operations of YCSB in a second of processor time, without a store
    Generator(QuickArgs),
    /// Compare the client with pgbench: point reads of PostgreSQL in a second of processor time
    Pgbench(QuickArgs),
    /// Compare the key-value driver with cassandra-stress: processor time of an operation on Cassandra
    KvClientCost(QuickArgs),
}

/// What YCSB does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Action {
    /// Insert the records of a workload
    Load,
    /// Run a workload on what was loaded
    Run,
    /// Load, run A, B, C, F and D, load again, run E
    All,
}

/// The formats in which the results of YCSB are printed on standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Exporter {
    /// A table
    Table,
    /// Lines as YCSB prints them
    Text,
    /// JSON objects as YCSB prints them, one after the other
    Json,
    /// All results in one array of JSON
    JsonArray,
}

/// Options of `larch bench ycsb`.
#[derive(Clone, Debug, Args)]
pub struct YcsbArgs {
    /// What to do
    pub action: Option<Action>,
    /// Workload: a to f, or a file of properties; properties of a later one replace those of an earlier one
    #[arg(short = 'P', long, value_name = "a..f|FILE")]
    pub workload: Vec<String>,
    /// A property of the workload; it replaces the one of the file
    #[arg(short, long = "property", value_name = "NAME=VALUE")]
    pub property: Vec<String>,
    /// The store.
    #[arg(long, help = targets::help(Task::Ycsb))]
    pub target: Option<String>,
    /// Clients [default: threadcount of the workload, or 1]; if calls of the store wait, each client is a thread, at
    /// most 1024
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=MOST_CLIENTS as i64))]
    pub threads: Option<u32>,
    /// Threads that the clients share, for stores that can have many requests under way on one thread [default: 1];
    /// `--workers N` says the same
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=MOST_THREADS as i64))]
    pub client_threads: Option<u32>,
    /// Operations a second of all clients together, each with its time on a schedule, so that a stall is counted
    #[arg(long, value_name = "OPS", value_parser = rate)]
    pub rate: Option<f64>,
    /// Clients begin one after the other in this time
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "0s")]
    pub ramp: Duration,
    /// Time to run before measuring
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "0s")]
    pub warmup: Duration,
    /// Time to measure [default: operationcount of the workload]; with --operations, the first limit reached ends the
    /// run
    #[arg(long, value_name = "TIME", value_parser = length)]
    pub time: Option<Duration>,
    /// Number of operations to measure
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub operations: Option<u64>,
    /// Seed of every operation of every client; the later workloads of `all` have the next numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Empties the table before a load
    #[arg(long)]
    pub recreate: bool,
    /// The files of the result.
    #[command(flatten)]
    pub files: FilesArgs,
    /// Writes the histograms of intervals as a log of HdrHistogram
    #[arg(long, value_name = "FILE.hlog")]
    pub hdr: Option<PathBuf>,
    /// What an hour of a processor costs, in any currency, for the cost of a million operations
    #[arg(long, value_name = "MONEY", value_parser = price)]
    pub price: Option<f64>,
    /// Shows what was measured so far to Prometheus, at http://HOST:PORT/metrics, until the end; a port alone is one of
    /// 127.0.0.1
    #[arg(long, value_name = "HOST:PORT")]
    pub metrics: Option<String>,
    /// How results are printed [default: table, or the value of the property exporter]
    #[arg(long, value_enum)]
    pub format: Option<Exporter>,
    /// Prints the status line of YCSB every status.interval (10 s); without it a line of another form every second
    #[arg(short, long)]
    pub status: bool,
    /// Makes each request take so much longer by a loop of the client, to see what a comparison finds: 200ns
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub slow_down: Option<Duration>,
    /// Prints a line for each interval on a terminal, too, where a view of the run would fill the screen
    #[arg(long)]
    pub plain: bool,
    /// Prints no line while it runs
    #[arg(short, long, conflicts_with = "status")]
    pub quiet: bool,
    /// Options for several processes.
    #[command(flatten)]
    pub together: TogetherArgs,
}

impl YcsbArgs {
    /// The number of threads that the clients share: `--client-threads`, or `--workers` if its value is a plain
    /// number, which is what that option meant in older versions.
    ///
    /// # Errors
    ///
    /// Fails if the number is out of range, or if both options give one.
    pub fn threads_of_clients(&self) -> Result<usize, Failure> {
        let usage = |text: String| Failure::session("target", text);
        match (self.together.number(), self.client_threads) {
            (None, threads) => Ok(threads.unwrap_or(1) as usize),
            (Some(number), None) => match number.parse() {
                Ok(threads) if (1..=MOST_THREADS).contains(&threads) => Ok(threads),
                _ => Err(usage(format!("--workers {number}: these are 1 to {MOST_THREADS} threads"))),
            },
            (Some(_), Some(_)) => Err(usage("--workers N and --client-threads say the same: leave one out".to_owned())),
        }
    }

    /// The options for several processes, without `--workers` if that is a plain number and so means threads.
    pub fn processes(&self) -> TogetherArgs {
        let is_number = self.together.number().is_some();
        let workers = if is_number { Vec::new() } else { self.together.workers.clone() };
        TogetherArgs { workers, ..self.together.clone() }
    }
}

/// Options of `larch bench report`.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// Results that `--out` of a benchmark has written
    #[arg(required = true, value_name = "FILE.json")]
    pub results: Vec<PathBuf>,
    /// The page
    #[arg(long, value_name = "FILE.html", default_value = "larch-report.html")]
    pub out: PathBuf,
    /// What an hour of a processor costs, in any currency [default: the price that a result was measured with, if it
    /// has one]
    #[arg(long, value_name = "MONEY", value_parser = price)]
    pub price: Option<f64>,
}

/// Options of `larch bench replay`.
#[derive(Debug, Args)]
pub struct ReplayArgs {
    /// A result that `--out` of a benchmark has written
    #[arg(value_name = "FILE.json")]
    pub result: PathBuf,
    /// How much faster than the run: 10 shows ten seconds of it in one
    #[arg(long, value_name = "N", default_value_t = 10.0, value_parser = speed)]
    pub speed: f64,
    /// Prints a line for each interval on a terminal, too, where a view of the run would fill the screen
    #[arg(long)]
    pub plain: bool,
}

/// Options of `larch bench merge`.
#[derive(Debug, Args)]
pub struct MergeArgs {
    /// Results that `--out` of a benchmark has written, one of each process
    #[arg(required = true, value_name = "FILE.json")]
    pub results: Vec<PathBuf>,
    /// The files of the whole result.
    #[command(flatten)]
    pub files: FilesArgs,
}

/// The files to which a result is written.
#[derive(Clone, Debug, Default, Args)]
pub struct FilesArgs {
    /// Writes the whole result as JSON, which `larch bench report` and `compare` read
    #[arg(long, value_name = "FILE.json")]
    pub out: Option<PathBuf>,
    /// Writes a line for each interval and kind of operation, and then a line for each figure of the result
    #[arg(long, value_name = "FILE.csv")]
    pub csv: Option<PathBuf>,
}

impl FilesArgs {
    /// The files as (option, path).
    pub fn named(&self) -> impl Iterator<Item = (&str, &Path)> {
        let files: [(&str, &Option<PathBuf>); 2] = [("--out", &self.out), ("--csv", &self.csv)];
        files.into_iter().filter_map(|(name, path)| Some((name, path.as_deref()?)))
    }
}

/// Options of `larch bench picture`.
#[derive(Debug, Args)]
pub struct PictureArgs {
    /// A page that `larch bench report` or an experiment has written
    #[arg(value_name = "FILE.html")]
    pub page: PathBuf,
    /// The title of the chart [default: the first one]
    #[arg(long, value_name = "TITLE")]
    pub chart: Option<String>,
    /// Prefix of the names of the two pictures, NAME-light.svg and NAME-dark.svg
    #[arg(long, value_name = "NAME")]
    pub out: PathBuf,
}

/// Options of `larch bench generator`, `larch bench pgbench` and `larch bench kv-client-cost`.
#[derive(Debug, Args)]
pub struct QuickArgs {
    /// One short run, for a first look: not a result to keep
    #[arg(long)]
    pub quick: bool,
}

/// Parses `200ns`, `500ms`, `60s` or `5m`. A number without a unit is in seconds.
pub(crate) fn time(text: &str) -> Result<Duration, String> {
    let time = kit::time::parse_length(text)?;
    if time > Duration::from_secs(1_000_000) { Err("a time is at least 0 and not years".to_owned()) } else { Ok(time) }
}

/// Parses the duration of a measurement from the command line. The duration must be more than zero.
pub fn length(text: &str) -> Result<Duration, String> {
    match time(text)? {
        Duration::ZERO => Err("a time to measure is longer than 0: 500ms, 60s, 5m".to_owned()),
        length => Ok(length),
    }
}

/// Parses the price of a processor hour.
pub fn price(text: &str) -> Result<f64, String> {
    let price = text.parse().ok().filter(|price: &f64| price.is_finite() && *price >= 0.0);
    price.ok_or_else(|| "a price is what an hour of a processor costs, a number of at least 0: 0.04".to_owned())
}

/// Parses how much faster than a run it is shown again.
fn speed(text: &str) -> Result<f64, String> {
    let speed = text.parse().ok().filter(|speed| (0.01..=1e6).contains(speed));
    speed.ok_or_else(|| "a speed is a number from 0.01 to 1000000: 10".to_owned())
}

/// Parses a rate in operations per second. Rates above 10^9 are refused: the clock counts whole nanoseconds.
fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse().ok().filter(|rate| (1e-6..=1e9).contains(rate));
    rate.ok_or_else(|| "a rate is a number of operations a second, above 0: 20000".to_owned())
}

#[cfg(test)]
mod tests {
    use super::time;
    use std::time::Duration;

    #[test]
    fn times_have_units() {
        assert_eq!(time("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(time("1.5"), Ok(Duration::from_millis(1500)));
        assert_eq!(time("2m"), Ok(Duration::from_secs(120)));
        assert_eq!(time("1500000000ns"), time("1500000us"));
        assert_eq!(time("200ns"), Ok(Duration::from_nanos(200)));
        assert!(time("2000000s").is_err() && time("nan").is_err());
        assert!(time("-1s").is_err() && time("5 s").is_err() && time("5w").is_err() && time("s").is_err());
    }
}
