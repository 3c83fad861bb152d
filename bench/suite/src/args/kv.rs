//! The options of `larch bench kv`: those of scylla-bench, with its names and defaults, and a few of our own. An
//! option may be written with one minus sign or two.

use super::{FilesArgs, TogetherArgs, length, price};
use crate::targets::{self, Task};
use clap::{ArgAction, Args, ValueEnum};
use harness::{MOST_CLIENTS, MOST_THREADS, Order};
use kv::{Distribution, Filler, Mode, Options, Restriction, Retries, RowSize, Workload};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Examples of the command.
pub const EXAMPLES: &str = "\
Examples:
  larch bench kv --target larch:db -mode write -workload sequential -partition-count 1000
  larch bench kv --target larch:db -mode read -workload uniform -partition-count 1000 -concurrency 100 -duration 10s
  larch bench kv --target larch:db -mode write -workload sequential -validate-data -clustering-row-size 100
  larch bench kv --target larch:db -mode write -workload timeseries -max-rate 5000 -duration 1m
  larch bench kv --target postgres://me@localhost/bench -mode mixed -workload uniform -duration 10s --out mixed.json
  larch bench kv --target larch:db -mode scan -range-count 8
  larch bench kv --target postgres://me@localhost/bench -mode read -workload uniform -duration 10s -workers localhost:7001,localhost:7002

Options of scylla-bench may be written with one minus sign, as there.

Exit codes: 0 all was measured; 1 nothing was, more than one operation in a hundred failed, rows were not as they were written, or
a limit of errors was reached; 2 wrong arguments; 3 the database failed, or a result could not be written; 130 interrupted by ^C:
what was measured until then is printed and written.";

/// Rewrites the arguments of `larch bench kv` and `larch bench search … kv` for clap: `-mode` → `--mode`. One-letter
/// options and negative numbers stay.
pub fn two_minus_signs(args: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut args: Vec<OsString> = args.into_iter().collect();
    let bench = args.windows(2).position(|words| words[0] == "bench" && (words[1] == "kv" || words[1] == "search"));
    let Some(kv) = bench.and_then(|at| Some(at + args[at..].iter().position(|word| word == "kv")?)) else {
        return args;
    };
    for arg in &mut args[kv + 1..] {
        let Some(name) = arg.to_str().and_then(|text| text.strip_prefix('-')) else { continue };
        if name.len() > 1 && name.starts_with(|first: char| first.is_ascii_alphabetic()) {
            *arg = format!("--{name}").into();
        }
    }
    args
}

/// `-mode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum ModeArg {
    /// Write rows
    Write,
    /// Read rows
    Read,
    /// Write and read rows, in turn
    Mixed,
    /// Read the whole table
    Scan,
    /// Add to counters
    CounterUpdate,
    /// Read counters
    CounterRead,
}

/// `-workload`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum WorkloadArg {
    /// All rows, in order
    Sequential,
    /// Any rows
    Uniform,
    /// Newer and newer rows, at a fixed rate
    Timeseries,
    /// Rows of some partitions much more often than of others
    Zipfian,
}

/// `-latency-type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LatencyType {
    /// From when a request was sent
    Raw,
    /// From when it should have been sent
    FixedCoordinatedOmission,
}

/// `-distribution`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DistributionArg {
    /// Any row
    Uniform,
    /// Newer rows more often
    Hnormal,
}

/// `-retry-handler`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RetryHandler {
    /// The client retries the request
    Sb,
    /// The same: no driver between client and database could do it
    Gocql,
}

/// `-hdr-latency-units`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum HdrUnits {
    /// Nanoseconds
    Ns,
    /// Microseconds
    Us,
    /// Milliseconds
    Ms,
}

/// Options of `larch bench kv`.
#[derive(Clone, Debug, Args)]
pub struct KvArgs {
    /// The store.
    #[arg(long, help = targets::help(Task::Kv), required_unless_present = "nodes")]
    pub target: Option<String>,
    /// Servers of Cassandra, with commas: the target is cassandra://NODES
    #[arg(long, value_name = "HOST,…", conflicts_with = "target")]
    pub nodes: Option<String>,
    /// What to do
    #[arg(long)]
    pub mode: ModeArg,
    /// Which rows to use; required by all modes but scan
    #[arg(long)]
    pub workload: Option<WorkloadArg>,
    /// Number of partitions
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub partition_count: i64,
    /// Key of the first partition
    #[arg(long, value_name = "N", default_value_t = 0, allow_hyphen_values = true)]
    pub partition_offset: i64,
    /// Rows of a partition
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub clustering_row_count: i64,
    /// Bytes of the value of a row: 4, fixed:4 or uniform:1..100
    #[arg(long, value_name = "SIZE", default_value = "4", value_parser = RowSize::parse)]
    pub clustering_row_size: RowSize,
    /// Rows of a request; those that are written go together to one partition
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub rows_per_request: u64,
    /// Reads have an upper bound
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false", action = ArgAction::Set)]
    pub provide_upper_bound: bool,
    /// Reads ask for single rows
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false", action = ArgAction::Set)]
    pub in_restriction: bool,
    /// Reads have no lower bound
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false", action = ArgAction::Set)]
    pub no_lower_bound: bool,
    /// Order of the rows of a read: none, asc or desc, or several with commas, one after the other
    #[arg(long, value_name = "ORDER", default_value = "none", value_delimiter = ',', value_parser = order)]
    pub select_order_by: Vec<OrderArg>,
    /// Parts of a scan
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub range_count: u32,
    /// How often a sequential workload goes through all rows; 0: without end
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub iterations: u32,
    /// The run ends after this time; 0: when the rows end, or at ^C
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = kv::options::duration)]
    pub duration: Duration,
    /// Clients, each with one request at a time
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=MOST_CLIENTS as i64))]
    pub concurrency: u32,
    /// Connections to a server
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub connection_count: u32,
    /// Operations a second of all clients together, exactly; 0: as many as there can be
    #[arg(long, value_name = "OPS", default_value_t = 0.0, allow_negative_numbers = true)]
    pub max_rate: f64,
    /// Rows that a scan fetches at a time
    #[arg(long, value_name = "ROWS", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    pub page_size: u32,
    /// Time after which a request counts as failed
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = kv::options::duration)]
    pub timeout: Duration,
    /// Retries of a request after a failure that may pass
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub retry_number: u32,
    /// The least and the longest wait before a retry
    #[arg(long, value_name = "MIN,MAX", default_value = "80ms,1s", value_parser = Retries::parse_interval)]
    pub retry_interval: (Duration, Duration),
    /// Who retries requests
    #[arg(long, default_value = "sb")]
    pub retry_handler: RetryHandler,
    /// Consecutive failed operations of a client that end the run; 0: no limit
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub error_at_row_limit: u64,
    /// Failed operations that end the run; 0: no limit
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub error_limit: u64,
    /// Writes values that reads check; give it to the writer and to the reader
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false", action = ArgAction::Set)]
    pub validate_data: bool,
    /// Values are zeros
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false", action = ArgAction::Set)]
    pub no_random_data: bool,
    /// Empties the table first, in the modes that write
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false", action = ArgAction::Set)]
    pub truncate_table: bool,
    /// Rows a second of each partition of a time series, for its readers; its writer prints it
    #[arg(long, value_name = "ROWS", default_value_t = 0.0, allow_negative_numbers = true)]
    pub write_rate: f64,
    /// When a time series began, in nanoseconds since 1970 [default: now, for writers]; its writer prints it
    #[arg(long, value_name = "NANOS", default_value_t = 0, allow_negative_numbers = true)]
    pub start_timestamp: i64,
    /// How readers of a time series draw
    #[arg(long, default_value = "uniform")]
    pub distribution: DistributionArg,
    /// Shows times
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "true", action = ArgAction::Set)]
    pub measure_latency: bool,
    /// Which times the lines of the run show
    #[arg(long, default_value = "raw")]
    pub latency_type: LatencyType,
    /// Writes the histograms of each second as a log of HdrHistogram, under the tags raw and co-fixed
    #[arg(long, value_name = "FILE")]
    pub hdr_latency_file: Option<PathBuf>,
    /// Units of the times in that file
    #[arg(long, default_value = "ns")]
    pub hdr_latency_units: HdrUnits,
    /// Digits of the times in that file; they have three
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=5))]
    pub hdr_latency_sig: u8,
    /// The keyspace, or schema, of the table [default: scylla_bench]
    #[arg(long, value_name = "NAME")]
    pub keyspace: Option<String>,
    /// The table; its counters are in a table of this name with _counters
    #[arg(long, value_name = "NAME", default_value = "test")]
    pub table: String,
    /// How many copies have to answer, if a store keeps several [default: quorum]
    #[arg(long, value_name = "LEVEL")]
    pub consistency_level: Option<String>,
    /// Copies of a new keyspace [default: 1]
    #[arg(long, value_name = "N")]
    pub replication_factor: Option<u32>,
    /// Messages are compressed, where that can be [default: true]
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", action = ArgAction::Set)]
    pub client_compression: Option<bool>,
    /// How a server is chosen: round-robin, host-pool, token-aware [default: token-aware]
    #[arg(long, value_name = "POLICY")]
    pub host_selection_policy: Option<String>,
    /// Reads leave the rows in the cache alone
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", action = ArgAction::Set)]
    pub bypass_cache: Option<bool>,
    /// Threads that the clients share
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=MOST_THREADS as i64))]
    pub threads: u32,
    /// The run ends after this many operations
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub operations: Option<u64>,
    /// Time to run before measuring, with -duration
    #[arg(long, value_name = "TIME", value_parser = length)]
    pub warmup: Option<Duration>,
    /// Seed of everything that is drawn
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// The files of the result.
    #[command(flatten)]
    pub files: FilesArgs,
    /// What an hour of a processor costs, in any currency, for the cost of a million operations
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

/// One order of `-select-order-by`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderArg(pub Option<Order>);

fn order(text: &str) -> Result<OrderArg, String> {
    match text.trim() {
        "none" => Ok(OrderArg(None)),
        "asc" => Ok(OrderArg(Some(Order::Ascending))),
        "desc" => Ok(OrderArg(Some(Order::Descending))),
        _ => Err("an order is none, asc or desc".to_owned()),
    }
}

impl KvArgs {
    /// Turns the arguments into options. `now` is the time in nanoseconds since 1970.
    ///
    /// # Errors
    ///
    /// Fails if some arguments cannot be used together.
    pub fn options(&self, now: i64) -> Result<Options, String> {
        let mode = match self.mode {
            ModeArg::Write => Mode::Write,
            ModeArg::Read => Mode::Read,
            ModeArg::Mixed => Mode::Mixed,
            ModeArg::Scan => Mode::Scan,
            ModeArg::CounterUpdate => Mode::CounterUpdate,
            ModeArg::CounterRead => Mode::CounterRead,
        };
        let workload = match self.workload {
            Some(WorkloadArg::Sequential) => Workload::Sequential,
            Some(WorkloadArg::Uniform) => Workload::Uniform,
            Some(WorkloadArg::Timeseries) => Workload::Timeseries,
            Some(WorkloadArg::Zipfian) => Workload::Zipfian,
            None if mode == Mode::Scan => Workload::Scan,
            None => return Err("-workload is missing: sequential, uniform, timeseries or zipfian".to_owned()),
        };
        let restrictions = [
            (self.in_restriction, Restriction::In),
            (self.provide_upper_bound, Restriction::UpperBound),
            (self.no_lower_bound, Restriction::NoLowerBound),
        ];
        let mut restrictions = restrictions.into_iter().filter(|(is_given, _)| *is_given).map(|(_, what)| what);
        let restriction = restrictions.next().unwrap_or(Restriction::LowerBound);
        if restrictions.next().is_some() {
            return Err("-in-restriction, -no-lower-bound and -provide-upper-bound exclude each other".to_owned());
        }
        let rate = |name: &str, rate: f64| match rate {
            0.0 => Ok(None),
            rate if (1e-6..=1e9).contains(&rate) => Ok(Some(rate)),
            _ => Err(format!("{name} is a number a second, above 0, or 0: {rate}")),
        };
        let filler = match (self.validate_data, self.no_random_data) {
            (true, true) => return Err("-validate-data writes no zeros: leave -no-random-data out".to_owned()),
            (true, false) => Filler::Checked,
            (false, true) => Filler::Zeros,
            (false, false) => Filler::Random,
        };
        if self.truncate_table && !mode.writes() {
            return Err(format!("-truncate-table goes with the modes that write, and -mode {} reads", mode.name()));
        }
        if self.warmup.is_some() && self.duration.is_zero() {
            return Err("--warmup goes with -duration: rows that are gone through once have no time before".to_owned());
        }
        let writes_series = workload == Workload::Timeseries && mode.writes();
        let start_timestamp = if writes_series && self.start_timestamp == 0 { now } else { self.start_timestamp };
        if workload == Workload::Timeseries && !(0..=now).contains(&start_timestamp) {
            return Err(format!("-start-timestamp {start_timestamp} is not a time that has been"));
        }
        let concurrency = self.concurrency as usize;
        let options = Options {
            partition_count: self.partition_count,
            partition_offset: self.partition_offset,
            clustering_row_count: self.clustering_row_count,
            clustering_row_size: self.clustering_row_size,
            filler,
            rows_per_request: self.rows_per_request,
            restriction,
            select_order_by: self.select_order_by.iter().map(|order| order.0).collect(),
            range_count: self.range_count,
            iterations: self.iterations,
            concurrency: if mode == Mode::Scan { concurrency.min(self.range_count as usize) } else { concurrency },
            max_rate: rate("-max-rate", self.max_rate)?,
            retries: Retries { number: self.retry_number, min: self.retry_interval.0, max: self.retry_interval.1 },
            error_at_row_limit: self.error_at_row_limit,
            error_limit: self.error_limit,
            write_rate: rate("-write-rate", self.write_rate)?,
            start_timestamp,
            distribution: match self.distribution {
                DistributionArg::Uniform => Distribution::Uniform,
                DistributionArg::Hnormal => Distribution::HalfNormal,
            },
            seed: self.seed,
            ..Options::new(mode, workload)
        };
        options.check()?;
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::two_minus_signs;

    #[test]
    fn options_of_this_command_may_have_one_minus_sign() {
        let given = "larch bench kv -mode read -h -q -partition-offset -5 --target larch:db -validate-data=true";
        let expected = "larch bench kv --mode read -h -q --partition-offset -5 --target larch:db --validate-data=true";
        let words = |text: &str| text.split(' ').map(Into::into).collect::<Vec<_>>();
        assert_eq!(two_minus_signs(words(given)), words(expected));
        let given = "larch bench search --objective p99<5ms kv -mode read";
        assert_eq!(two_minus_signs(words(given)), words("larch bench search --objective p99<5ms kv --mode read"));
        let other = "larch bench ycsb run -Pa -px=1";
        assert_eq!(two_minus_signs(words(other)), words(other));
    }
}
