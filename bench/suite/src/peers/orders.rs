//! The orders that the comparing process sends to the processes that hold an engine each, and their answers. Each
//! order and each answer is a line of JSON.

use serde::{Deserialize, Serialize};

/// What a peer is to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Order {
    /// Opens the store; `anew`: with an empty table.
    Open {
        /// Whether existing data is removed.
        anew: bool,
    },
    /// Fills the empty table and waits until nothing goes on behind it.
    Fill {
        /// In what way.
        how: Fill,
        /// How many rows.
        records: u64,
        /// A random load ends after so long, with what it has.
        limit_millis: u64,
    },
    /// Waits until the store does no background work, and answers with the bytes of the files.
    Settle,
    /// Measures.
    Measure(Measure),
    /// Measures writes of rows that are there already.
    Overwrite(Overwrite),
    /// Measures transactions.
    Transact(Transact),
    /// Measures, and gives the store another budget for pages in the middle of the window.
    Shrink {
        /// What goes on meanwhile.
        load: Measure,
        /// The new budget.
        cache_bytes: u64,
    },
    /// Closes the store.
    Close,
}

/// How rows come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fill {
    /// In the order of keys, by the fastest way the store has.
    Sorted,
    /// In the order of their hashes, as a load of YCSB.
    Random,
}

/// A measurement.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Measure {
    /// What is done again and again.
    pub task: Task,
    /// Rows of the table.
    pub records: u64,
    /// How they came in, which decides what their keys are.
    pub filled: Fill,
    /// Clients, each with a thread.
    pub threads: usize,
    /// Left out before.
    pub warmup_millis: u64,
    /// Measured.
    pub millis: u64,
    /// The run ends as soon as this many operations were done.
    pub operations: Option<u64>,
    /// Decides every operation.
    pub seed: u64,
    /// With the keys `hotspot`: the share of the rows that get 95 of 100 operations.
    pub hot_share: Option<f64>,
    /// What another thread does meanwhile.
    pub beside: Option<Beside>,
}

/// A measurement of overwrites: one client gives a row another value, again and again. The rows are drawn uniformly
/// from all rows.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Overwrite {
    /// Rows of the table.
    pub records: u64,
    /// How the table was filled, which decides its keys.
    pub filled: Fill,
    /// Left out before.
    pub warmup_millis: u64,
    /// Measured.
    pub millis: u64,
    /// Operations a second of an open loop; `None`: a closed loop.
    pub per_second: Option<f64>,
    /// Decides every operation.
    pub seed: u64,
    /// Whether the window is the time in which the store builds a secondary index over all rows. If so, the
    /// configured time is ignored. The index is compared with the rows and removed afterwards.
    pub builds_index: bool,
}

/// The result of overwrites. Bytes are those of the window alone; remaining work gets no time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Overwritten {
    /// The median time of an operation, counted from the moment at which the operation should have begun.
    pub p50_nanos: u64,
    /// The time within which 99 in 100 were done.
    pub p99_nanos: u64,
    /// The time within which 999 in 1,000 were done.
    pub p999_nanos: u64,
    /// The time within which 9,999 in 10,000 were done.
    pub p9999_nanos: u64,
    /// The longest time.
    pub longest_nanos: u64,
    /// Operations that should have begun in the window, but had not begun when it ended.
    pub unsent: u64,
    /// Bytes of the log, as the store counts them; `None` where it does not.
    pub log_bytes: Option<u64>,
    /// Bytes of flushes.
    pub flush_bytes: Option<u64>,
    /// Bytes of compactions.
    pub compaction_bytes: Option<u64>,
    /// Bytes of the database's files at the end of the window.
    pub file_bytes: u64,
}

/// A measurement of transactions.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Transact {
    /// What each does.
    pub what: Deed,
    /// Rows of the table, or counters.
    pub records: u64,
    /// Clients, each with a thread.
    pub threads: usize,
    /// Left out before.
    pub warmup_millis: u64,
    /// Measured.
    pub millis: u64,
    /// Decides every operation.
    pub seed: u64,
}

/// What a transaction does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Deed {
    /// It reads a row and gives it another value. Rows are drawn uniformly.
    GetAndPut(Way),
    /// It adds 1 to a counter, and is repeated until it commits.
    Increment {
        /// Whether some counters are drawn far more often than others, by YCSB's zipfian distribution. Otherwise all
        /// counters are drawn equally often.
        zipfian: bool,
    },
    /// No transaction: it gives a row another value, durably. Rows are drawn uniformly.
    Put {
        /// The number of commits of each thread that may not yet be durable. 0: each commit is durable when its call
        /// returns.
        in_flight: usize,
    },
}

/// How a get and a put belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Way {
    /// They do not: no transaction holds them together.
    Apart,
    /// In a transaction whose commit checks what it writes.
    WritesChecked,
    /// In a transaction whose commit checks what it writes and what it has read.
    AllChecked,
}

/// The result of transactions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transacted {
    /// Conflicts that were met in the window. A transaction that is not begun again after one is no operation.
    pub conflicts: u64,
    /// The median time of an increment, including all attempts; 0 if nothing is timed.
    pub p50_nanos: u64,
    /// The time within which 99 in 100 were done.
    pub p99_nanos: u64,
    /// Conflicts that 99 of 100 increments have met at most.
    pub p99_conflicts: u64,
    /// The most conflicts that an increment has met.
    pub most_conflicts: u64,
}

/// What goes on beside what is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Beside {
    /// Scans of the whole table, one after the other, from before the window until after it.
    Scan,
    /// The store rewrites everything that it has, like its `settle` after a row was put. The window begins with the
    /// rewrite and ends some time after it, since the end of a rewrite changes what is in memory.
    Compaction,
    /// The store builds a secondary index over all rows. The window begins and ends with that.
    IndexBuild,
}

/// What is measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Task {
    /// A workload of YCSB.
    Workload {
        /// `a` to `f`.
        name: String,
        /// Its keys: `zipfian`, `uniform`, … Empty: as the workload says.
        keys: String,
    },
    /// Reads of keys that are not there.
    Absent,
    /// Reads of this many keys at once, uniformly drawn.
    Many(usize),
    /// The whole table, in order.
    Scan,
    /// Inserts that are durable when they return.
    Puts,
}

/// The result of an order.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Sample {
    /// Operations that were done.
    pub operations: u64,
    /// Rows that they read or wrote.
    pub rows: u64,
    /// Wall time.
    pub nanos: u64,
    /// Processor time of the whole process.
    pub cpu_nanos: u64,
    /// Reads of the disk that holds the database, as the system counts them; `None` where it does not.
    pub disk_reads: Option<u64>,
    /// Bytes they brought, with those before the window.
    pub disk_read_bytes: u64,
    /// Bytes they brought in the window alone; 0 where the system does not report it.
    pub window_read_bytes: u64,
    /// Bytes written to that disk.
    pub disk_written_bytes: u64,
    /// Bytes that this process wrote in a load or in overwrites, as the system counts them; `None` where it does not.
    pub process_bytes: Option<u64>,
    /// Memory of the process at the end.
    pub resident_bytes: u64,
    /// Bytes of the database's files at the end.
    pub file_bytes: u64,
    /// How the store is set.
    pub settings: Vec<(String, String)>,
    /// The time that 99 of 100 operations took at most.
    pub p99_nanos: u64,
    /// How many row pages reads of single keys found in the cache, and how many they had to read, as the store counts
    /// them; both are 0 if it does not.
    pub point_hits: u64,
    /// See `point_hits`.
    pub point_reads: u64,
    /// How often writes were stopped in that time because level 0 was full, as the store counts it; `None` if it does
    /// not.
    pub level0_stops: Option<u64>,
    /// The result of overwrites.
    pub overwritten: Overwritten,
    /// The result of transactions.
    pub transacted: Transacted,
    /// What went on beside it.
    pub beside: WorkDone,
    /// The result of a new budget.
    pub shrunk: Shrunk,
}

/// What a thread did beside a measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkDone {
    /// Rows it read, or entries of the index that was built; 0 for a compaction.
    pub rows: u64,
    /// How long it took.
    pub nanos: u64,
}

/// The result of a new budget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shrunk {
    /// What the cache used before.
    pub used_before: u64,
    /// The time from the call until the cache used no more than the new budget; `None` if that was not reached.
    pub nanos: Option<u64>,
    /// Memory of the process before.
    pub resident_before: u64,
    /// Memory of the process a second after the call.
    pub resident_after: u64,
}

/// An answer: what was measured, or why not.
pub type Answer = Result<Sample, String>;
