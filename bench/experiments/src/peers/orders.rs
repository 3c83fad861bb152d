//! The orders that the parent of a comparison sends to the child processes with the engines, and their answers.
//! Each is a line of JSON.

use crate::figures::shown;
use serde::{Deserialize, Serialize};

/// An order to a peer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Order {
    /// Opens the store.
    Open {
        /// Whether to start with an empty table.
        anew: bool,
    },
    /// Fills the empty table, and waits for background work to end.
    Fill {
        /// The order of the rows.
        how: Fill,
        /// The number of rows.
        records: u64,
        /// The time limit of a random load, which then ends with the rows that it has.
        limit_millis: u64,
    },
    /// Waits for background work to end. The answer has the size of the files.
    Settle,
    /// Carries out a measurement.
    Measure(Operate),
    /// Measures overwrites of existing rows.
    Overwrite(Overwrite),
    /// Measures transactions.
    Transact(Transact),
    /// Carries out a measurement, and changes the size of the store's cache within the window.
    Shrink {
        /// The measurement.
        load: Operate,
        /// The new size of the cache.
        cache_bytes: u64,
    },
    /// Closes the store.
    Close,
}

/// The order in which rows are inserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fill {
    /// Key order, by the store's fastest way to load.
    Sorted,
    /// Random order: keys are hashes of consecutive numbers, as in a YCSB load.
    Random,
}

/// A measurement.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Operate {
    /// The task.
    pub task: Task,
    /// The number of rows in the table.
    pub records: u64,
    /// How the table was filled, which determines its keys.
    pub filled: Fill,
    /// Clients, each with a thread.
    pub threads: usize,
    /// Warm-up before the measured window.
    pub warmup_millis: u64,
    /// The length of the window.
    pub millis: u64,
    /// If set, the run ends after this many operations, or after `millis`.
    pub operations: Option<u64>,
    /// The seed of all operations.
    pub seed: u64,
    /// For `hotspot` keys: the share of the rows that get 95 % of the operations.
    pub hot_share: Option<f64>,
    /// What another thread does meanwhile.
    pub beside: Option<Beside>,
}

/// A measurement of overwrites: one client gives new values to rows drawn uniformly.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Overwrite {
    /// The number of rows in the table.
    pub records: u64,
    /// How the table was filled, which determines its keys.
    pub filled: Fill,
    /// Warm-up before the measured window.
    pub warmup_millis: u64,
    /// The length of the window.
    pub millis: u64,
    /// The rate of an open loop, or `None` for a closed one.
    pub per_second: Option<f64>,
    /// The seed of all operations.
    pub seed: u64,
    /// Measure for as long as the store takes to build a secondary index over all rows, and ignore `millis`. The
    /// index is then checked against the rows and dropped.
    pub builds_index: bool,
}

/// The result of overwrites. Bytes are those of the window; background work left at its end is not waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Overwritten {
    /// The median time of an operation, counted from when it should have begun. `None` here and below if there were
    /// too few operations for the percentile.
    pub p50_nanos: Option<u64>,
    /// The 99th percentile.
    pub p99_nanos: Option<u64>,
    /// The 99.9th percentile.
    pub p999_nanos: Option<u64>,
    /// The 99.99th percentile.
    pub p9999_nanos: Option<u64>,
    /// The longest time of an operation.
    pub longest_nanos: u64,
    /// Operations due in the window that had not begun when it ended.
    pub unsent: u64,
    /// The bytes written to the log, as the store counts them. `None` if the store does not count them.
    pub log_bytes: Option<u64>,
    /// The bytes written by flushes.
    pub flush_bytes: Option<u64>,
    /// The bytes written by compactions.
    pub compaction_bytes: Option<u64>,
    /// The size of the database's files at the end of the window.
    pub file_bytes: u64,
    /// The number of rows in the table.
    pub records: u64,
}

/// A measurement of transactions.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Transact {
    /// What each transaction does.
    pub what: Deed,
    /// Rows of the table, or counters.
    pub records: u64,
    /// Clients, each with a thread.
    pub threads: usize,
    /// Warm-up before the measured window.
    pub warmup_millis: u64,
    /// The length of the window.
    pub millis: u64,
    /// The seed of all operations.
    pub seed: u64,
}

/// What a transaction does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Deed {
    /// Reads a row and gives it a new value. Rows are drawn uniformly.
    GetAndPut(Way),
    /// Adds 1 to a counter, retrying until it commits.
    Increment {
        /// Draw counters by YCSB's zipfian distribution, not uniformly.
        zipfian: bool,
    },
    /// A durable overwrite without a transaction. Rows are drawn uniformly.
    Put {
        /// How many commits of a thread may be not durable yet. 0: each commit is durable when its call returns.
        in_flight: usize,
    },
}

/// How a get and a put belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Way {
    /// Without a transaction.
    Apart,
    /// In a transaction whose commit checks the rows that it writes.
    WritesChecked,
    /// In a transaction whose commit checks the rows that it writes and those that it read.
    AllChecked,
}

/// The result of transactions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transacted {
    /// Conflicts in the window. A transaction that is not retried after a conflict does not count as an operation.
    pub conflicts: u64,
    /// The median time of an increment with all its attempts. `None` here and below if too few increments were made
    /// for the percentile.
    pub p50_nanos: Option<u64>,
    /// The 99th percentile of that time.
    pub p99_nanos: Option<u64>,
    /// The 99th percentile of the conflicts of an increment.
    pub p99_conflicts: Option<u64>,
    /// The most conflicts of one increment.
    pub most_conflicts: u64,
}

/// What another thread does during a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Beside {
    /// Scans the whole table in a loop, from before the window until after it.
    Scan,
    /// Makes the store rewrite all its data, by a put and the store's `settle`. The window begins with the rewrite
    /// and ends some time after it, because the end of the rewrite replaces the cached pages.
    Compaction,
    /// Makes the store build a secondary index over all rows. The window is the time of the build.
    IndexBuild,
}

/// What is measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Task {
    /// A workload of YCSB.
    Workload {
        /// `a` to `f`.
        name: String,
        /// The distribution of its keys: `zipfian`, `uniform`, … Empty: the workload's own.
        keys: String,
    },
    /// Reads of keys that do not exist.
    Absent,
    /// Reads of this many uniformly drawn keys at once.
    Many(usize),
    /// A scan of the whole table in order.
    Scan,
    /// Inserts after the loaded rows, which are durable if the store is opened so.
    Puts,
}

/// The result of an order.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Sample {
    /// The number of operations.
    pub operations: u64,
    /// The number of rows that the operations read or wrote.
    pub rows: u64,
    /// The wall time in nanoseconds.
    pub nanos: u64,
    /// The processor time of the whole process.
    pub cpu_nanos: u64,
    /// Reads of the database's disk, as the system counts them; `None` if it does not.
    pub disk_reads: Option<u64>,
    /// Bytes of these reads, including those before the window.
    pub disk_read_bytes: u64,
    /// Bytes read in the window alone, or 0 if they are not counted separately.
    pub window_read_bytes: u64,
    /// Bytes written to the database's disk.
    pub disk_written_bytes: u64,
    /// Bytes that this process wrote in a load or in overwrites, as the system counts them; `None` if it does not.
    pub process_bytes: Option<u64>,
    /// The memory of the process at the end.
    pub resident_bytes: u64,
    /// The part of it that is not the store's cache; `None` if the memory is not known.
    pub outside_bytes: Option<u64>,
    /// The size of the database's files at the end.
    pub file_bytes: u64,
    /// The settings of the store.
    pub settings: Vec<(String, String)>,
    /// The 99th percentile; `None` if there were too few operations for it.
    pub p99_nanos: Option<u64>,
    /// Reads of single keys that found the page of the row in the cache, or 0 if the store does not count them.
    pub point_hits: u64,
    /// Reads of single keys that read the page of the row from disk, or 0 if the store does not count them.
    pub point_reads: u64,
    /// How often the store stopped writes during the order because level 0 was full; `None` if it does not count
    /// this.
    pub level0_stops: Option<u64>,
    /// The result of overwrites.
    pub overwritten: Overwritten,
    /// The result of transactions.
    pub transacted: Transacted,
    /// What another thread did during the measurement.
    pub beside: WorkDone,
    /// The effect of a smaller cache.
    pub shrunk: Shrunk,
}

impl Sample {
    /// `count` per row.
    pub fn a_row(&self, count: u64) -> f64 {
        count as f64 / self.rows.max(1) as f64
    }

    /// `count` per operation.
    pub fn each(&self, count: u64) -> f64 {
        count as f64 / self.operations.max(1) as f64
    }

    /// Its main figures, for the line of progress.
    pub fn line(&self) -> String {
        let mut line = format!("{:12.2} K/s", super::thousands(self));
        let Overwritten { p999_nanos, longest_nanos, .. } = self.overwritten;
        if longest_nanos > 0 {
            let (p999, longest) = (micros(p999_nanos), longest_nanos as f64 / 1e6);
            line.push_str(&format!(", 99.9 % within {} us, longest {longest:.1} ms", shown(p999)));
        }
        line
    }
}

/// Nanoseconds in microseconds, for the rows of tables.
pub fn micros(nanos: Option<u64>) -> Option<f64> {
    nanos.map(|nanos| nanos as f64 / 1e3)
}

/// What a thread did beside a measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkDone {
    /// Rows scanned, or entries of the index built. 0 for a compaction.
    pub rows: u64,
    /// How long it took.
    pub nanos: u64,
}

/// The effect of a smaller cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shrunk {
    /// Bytes in use by the cache before.
    pub used_before: u64,
    /// Time until the cache used no more than its new size; `None` if it did not within a second.
    pub nanos: Option<u64>,
    /// Memory of the process before.
    pub resident_before: u64,
    /// Memory of the process a second later.
    pub resident_after: u64,
    /// The new size of the cache.
    pub cache_bytes: u64,
}

/// The answer to an order: what was measured, or why it failed.
pub type Answer = Result<Sample, String>;
