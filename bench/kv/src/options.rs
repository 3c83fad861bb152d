//! The options of scylla-bench, their defaults, and the combinations that are refused.

#[cfg(test)]
mod tests;

use crate::database::Content;
use crate::value::{Filler, RowSize};
use harness::Order;
use std::time::Duration;

/// The kind of operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Writes rows.
    Write,
    /// Reads rows.
    Read,
    /// Writes and reads rows alternately.
    Mixed,
    /// Reads the whole table, part by part.
    Scan,
    /// Adds to counters.
    CounterUpdate,
    /// Reads counters.
    CounterRead,
}

impl Mode {
    /// Its name in scylla-bench.
    pub fn name(self) -> &'static str {
        match self {
            Self::Write => "write",
            Self::Read => "read",
            Self::Mixed => "mixed",
            Self::Scan => "scan",
            Self::CounterUpdate => "counter_update",
            Self::CounterRead => "counter_read",
        }
    }

    /// The columns of the rows in its table.
    pub fn content(self) -> Content {
        match self {
            Self::CounterUpdate | Self::CounterRead => Content::Counters,
            Self::Write | Self::Read | Self::Mixed | Self::Scan => Content::Values,
        }
    }

    /// Whether it writes rows.
    pub fn writes(self) -> bool {
        matches!(self, Self::Write | Self::Mixed | Self::CounterUpdate)
    }

    /// Whether it reads rows of partitions.
    pub fn reads(self) -> bool {
        matches!(self, Self::Read | Self::Mixed | Self::CounterRead)
    }
}

/// The rows that operations work on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// All rows, in order.
    Sequential,
    /// Any rows.
    Uniform,
    /// A time series: each row is newer than all rows before it.
    Timeseries,
    /// Any rows, but those of some partitions much more often than others.
    Zipfian,
    /// The whole table.
    Scan,
}

impl Workload {
    /// Its name in scylla-bench.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sequential => "sequential",
            Self::Uniform => "uniform",
            Self::Timeseries => "timeseries",
            Self::Zipfian => "zipfian",
            Self::Scan => "scan",
        }
    }
}

/// The distribution with which readers of a time series draw rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// All rows are equally likely.
    Uniform,
    /// Newer rows are likelier.
    HalfNormal,
}

/// The rows of a partition that a read asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restriction {
    /// Reads the given number of rows, from a given row on.
    LowerBound,
    /// Reads the given number of rows, from the first row on.
    NoLowerBound,
    /// Reads the rows from a given row on whose keys exceed its key by less than the given number.
    UpperBound,
    /// Reads the given number of single rows.
    In,
}

/// How failed requests are repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retries {
    /// The most retries of a request.
    pub number: u32,
    /// The first wait is about half of this. Each later wait is about twice as long as the one before.
    pub min: Duration,
    /// The longest wait.
    pub max: Duration,
}

impl Retries {
    /// Parses the least and the longest wait, as in `80ms,1s`. A single time is used for both.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is neither one time nor two times.
    pub fn parse_interval(text: &str) -> Result<(Duration, Duration), String> {
        let (min, max) = text.split_once(',').unwrap_or((text, text));
        let (min, max) = (duration(min.trim())?, duration(max.trim())?);
        match min <= max {
            true => Ok((min, max)),
            false => Err(format!("`{text}`: the first time is the shorter one, as in 80ms,1s")),
        }
    }
}

/// Parses a time in Go's format: `1m30s`, `500ms`. A number without a unit is seconds.
///
/// # Errors
///
/// Returns an error if the text is no time.
pub fn duration(text: &str) -> Result<Duration, String> {
    let bad = || format!("`{text}` is no time: write 500ms, 10s or 1m30s");
    let mut rest = text;
    let mut seconds = 0.0;
    if rest.is_empty() {
        return Err(bad());
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let number: f64 = rest[..digits].parse().map_err(|_| bad())?;
        rest = &rest[digits..];
        let unit = rest.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(rest.len());
        seconds += number
            * match &rest[..unit] {
                "h" => 3600.0,
                "m" => 60.0,
                "s" => 1.0,
                "" if digits == text.len() => 1.0,
                "ms" => 1e-3,
                "us" | "µs" => 1e-6,
                "ns" => 1e-9,
                _ => return Err(bad()),
            };
        rest = &rest[unit..];
    }
    if seconds > 1e9 {
        return Err(format!("`{text}` is longer than any run"));
    }
    Ok(Duration::from_secs_f64(seconds))
}

/// A time in the format in which Go prints it: `0s`, `80ms`, `1m30s`.
pub fn go_time(time: Duration) -> String {
    let seconds = time.as_secs();
    let fraction = |value: f64, unit: &str| {
        let text = format!("{value:.9}");
        format!("{}{unit}", text.trim_end_matches('0').trim_end_matches('.'))
    };
    match seconds {
        _ if time.is_zero() => "0s".to_owned(),
        0 if time < Duration::from_micros(1) => format!("{}ns", time.as_nanos()),
        0 if time < Duration::from_millis(1) => fraction(time.as_nanos() as f64 / 1e3, "µs"),
        0 => fraction(time.as_nanos() as f64 / 1e6, "ms"),
        _ => {
            let rest = fraction((seconds % 60) as f64 + f64::from(time.subsec_nanos()) / 1e9, "s");
            match (seconds / 3600, seconds / 60 % 60) {
                (0, 0) => rest,
                (0, minutes) => format!("{minutes}m{rest}"),
                (hours, minutes) => format!("{hours}h{minutes}m{rest}"),
            }
        }
    }
}

/// Everything that decides what a run does.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// The kind of operations.
    pub mode: Mode,
    /// The rows that they work on.
    pub workload: Workload,
    /// The number of partitions.
    pub partition_count: i64,
    /// The key of the first partition.
    pub partition_offset: i64,
    /// The number of rows in a partition.
    pub clustering_row_count: i64,
    /// The number of bytes in a row's value.
    pub clustering_row_size: RowSize,
    /// What values are made of. With [`Filler::Checked`], values are checked when they are read.
    pub filler: Filler,
    /// The number of rows in a request.
    pub rows_per_request: u64,
    /// The rows that a read asks for.
    pub restriction: Restriction,
    /// The orders in which reads ask for rows; successive reads take them in turn.
    pub select_order_by: Vec<Option<Order>>,
    /// The number of parts of a scan.
    pub range_count: u32,
    /// How often a sequential workload goes through all rows; 0 means without end.
    pub iterations: u32,
    /// The number of clients.
    pub concurrency: usize,
    /// Operations per second of all clients together; `None`: as many as possible.
    pub max_rate: Option<f64>,
    /// How failed requests are repeated.
    pub retries: Retries,
    /// The run ends after this number of failed operations of one client in a row. 0 means no limit.
    pub error_at_row_limit: u64,
    /// The run ends after this number of failed operations in all. 0 means no limit.
    pub error_limit: u64,
    /// Rows per second that each partition of a time series gets. Readers need it.
    pub write_rate: Option<f64>,
    /// When a time series began, in nanoseconds since 1970.
    pub start_timestamp: i64,
    /// The distribution with which readers of a time series draw rows.
    pub distribution: Distribution,
    /// The seed of everything that is drawn.
    pub seed: u64,
}

impl Options {
    /// The defaults of scylla-bench.
    pub fn new(mode: Mode, workload: Workload) -> Self {
        Self {
            mode,
            workload,
            partition_count: 10_000,
            partition_offset: 0,
            clustering_row_count: 100,
            clustering_row_size: RowSize::Fixed(4),
            filler: Filler::Random,
            rows_per_request: 1,
            restriction: Restriction::LowerBound,
            select_order_by: vec![None],
            range_count: 1,
            iterations: 1,
            concurrency: 16,
            max_rate: None,
            retries: Retries { number: 10, min: Duration::from_millis(80), max: Duration::from_secs(1) },
            error_at_row_limit: 0,
            error_limit: 0,
            write_rate: None,
            start_timestamp: 0,
            distribution: Distribution::Uniform,
            seed: 1,
        }
    }

    /// Refuses options that cannot be combined.
    ///
    /// # Errors
    ///
    /// Returns a text that says which options cannot be combined, and what to do.
    pub fn check(&self) -> Result<(), String> {
        let bad = |text: &str| Err(text.to_owned());
        let is_series = self.workload == Workload::Timeseries;
        if (self.mode == Mode::Scan) != (self.workload == Workload::Scan) {
            return bad("a scan reads the whole table: leave -workload out with -mode scan");
        }
        if self.partition_count < 1
            || self.clustering_row_count < 1
            || self.rows_per_request < 1
            || self.range_count < 1
        {
            return bad("-partition-count, -clustering-row-count, -rows-per-request and -range-count are 1 at least");
        }
        if self.partition_count.checked_mul(self.clustering_row_count).is_none() {
            return bad("-partition-count times -clustering-row-count is more than 2^63 rows");
        }
        let Some(last) = self.partition_offset.checked_add(self.partition_count) else {
            return bad("-partition-offset and -partition-count lead beyond the greatest partition key");
        };
        if self.restriction != Restriction::LowerBound && !matches!(self.mode, Mode::Read | Mode::CounterRead) {
            return bad(
                "-in-restriction, -no-lower-bound and -provide-upper-bound go with -mode read and counter_read",
            );
        }
        if !is_series {
            return Ok(());
        }
        if self.partition_offset < 0 || last > i64::from(u32::MAX >> 1) {
            return bad(
                "the partitions of a time series have keys from 0 to 2^31: -partition-offset, -partition-count",
            );
        }
        match self.mode {
            Mode::Read if self.write_rate.is_none() || self.start_timestamp == 0 => {
                bad("readers of a time series need -write-rate and -start-timestamp, which its writer prints")
            }
            Mode::Write | Mode::Mixed if self.max_rate.is_none() => {
                bad("writers of a time series need -max-rate: it says how far apart rows are")
            }
            Mode::Write | Mode::Mixed if self.concurrency as i64 > self.partition_count => {
                bad("a time series is written by at most as many clients as it has partitions: lower -concurrency")
            }
            Mode::Read | Mode::Write | Mode::Mixed => Ok(()),
            Mode::Scan | Mode::CounterUpdate | Mode::CounterRead => {
                bad("-workload timeseries goes with -mode write, read and mixed")
            }
        }
    }

    /// Rows per second that each partition of a time series gets.
    pub fn rows_a_second_and_partition(&self) -> f64 {
        let written = self.max_rate.map(|rate| rate / self.partition_count as f64);
        match self.mode {
            Mode::Write => written,
            // Every second operation writes.
            Mode::Mixed => written.map(|rate| rate / 2.0),
            _ => self.write_rate,
        }
        .unwrap_or(1.0)
    }
}
