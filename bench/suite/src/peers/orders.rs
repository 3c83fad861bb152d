//! The orders that the comparing process sends, and the answers to them. Each receiver is a process that holds one
//! engine. Each order and each answer is a line of JSON.

use serde::{Deserialize, Serialize};

/// What a peer is to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Order {
    /// Opens the store; `anew` means with an empty table.
    Open {
        /// Whether existing data is removed.
        anew: bool,
    },
    /// Fills the empty table, and waits until the store has no background work.
    Fill {
        /// In which order the rows are inserted.
        how: Fill,
        /// How many rows.
        records: u64,
        /// The load in random order ends after this time, even if some rows are missing.
        limit_millis: u64,
    },
    /// Waits until the store has no background work. The answer contains the size of the files.
    Settle,
    /// Carries out a measurement.
    Measure(Measure),
    /// Measures overwrites of rows that exist already.
    Overwrite(Overwrite),
    /// Measures transactions.
    Transact(Transact),
    /// Carries out a measurement, and changes the size of the store's cache in the middle of the measured time.
    Shrink {
        /// The measurement in whose middle the size of the cache changes.
        load: Measure,
        /// The new budget.
        cache_bytes: u64,
    },
    /// Closes the store.
    Close,
}

/// The order in which rows are inserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fill {
    /// The rows are inserted in key order, by the fastest way that the store has.
    Sorted,
    /// The rows are inserted in the order of the hashes of their keys, as in a load of YCSB.
    Random,
}

/// A measurement.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Measure {
    /// The task that is repeated.
    pub task: Task,
    /// The number of rows in the table.
    pub records: u64,
    /// The order in which the rows were inserted. It decides what their keys look like.
    pub filled: Fill,
    /// Clients, each with a thread.
    pub threads: usize,
    /// The time before the measured window. Operations in this time are not counted.
    pub warmup_millis: u64,
    /// The length of the window.
    pub millis: u64,
    /// The number of operations after which the run ends.
    pub operations: Option<u64>,
    /// Decides every operation.
    pub seed: u64,
    /// If the keys are drawn as `hotspot`: the share of the rows that 95 of 100 operations ask for.
    pub hot_share: Option<f64>,
    /// What another thread does during the measurement.
    pub beside: Option<Beside>,
}

/// A measurement of overwrites: one client repeatedly gives a row a new value. The rows are drawn uniformly from
/// all rows.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Overwrite {
    /// The number of rows in the table.
    pub records: u64,
    /// How the table was filled. The keys of the rows depend on this.
    pub filled: Fill,
    /// The time before the measured window. Operations in this time are not counted.
    pub warmup_millis: u64,
    /// The length of the window.
    pub millis: u64,
    /// The operations per second of an open loop, or `None` for a closed loop.
    pub per_second: Option<f64>,
    /// Decides every operation.
    pub seed: u64,
    /// Whether to measure while the store builds a secondary index over all rows, from the beginning of the build
    /// to its end. If so, the configured time is ignored. Afterwards the index is compared with the rows and
    /// dropped.
    pub builds_index: bool,
}

/// The result of overwrites. Bytes are counted in the window alone. Background work that is left when the window
/// ends is not waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Overwritten {
    /// The median time of an operation. An operation's time counts from the moment at which it should have begun.
    pub p50_nanos: u64,
    /// 99 of 100 operations took at most this time.
    pub p99_nanos: u64,
    /// 999 of 1,000 operations took at most this time.
    pub p999_nanos: u64,
    /// 9,999 of 10,000 operations took at most this time.
    pub p9999_nanos: u64,
    /// The longest time of an operation.
    pub longest_nanos: u64,
    /// The number of operations that should have begun in the measured window, but had not begun when the window
    /// ended.
    pub unsent: u64,
    /// The bytes written to the log, as the store counts them. `None` if the store does not count them.
    pub log_bytes: Option<u64>,
    /// The bytes written by flushes.
    pub flush_bytes: Option<u64>,
    /// The bytes written by compactions.
    pub compaction_bytes: Option<u64>,
    /// The size of the database's files at the end of the window.
    pub file_bytes: u64,
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
    /// The time before the measured window. Operations in this time are not counted.
    pub warmup_millis: u64,
    /// The length of the window.
    pub millis: u64,
    /// Decides every operation.
    pub seed: u64,
}

/// What a transaction does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Deed {
    /// A transaction that reads a row and gives this row another value. Rows are drawn uniformly.
    GetAndPut(Way),
    /// The transaction adds 1 to a counter, and is repeated until it commits.
    Increment {
        /// Whether some counters are drawn far more often than other counters, by YCSB's zipfian distribution.
        /// Otherwise all counters are drawn equally often.
        zipfian: bool,
    },
    /// An overwrite without a transaction: it gives a row a new value, durably. Rows are drawn uniformly.
    Put {
        /// How many commits of each thread may be not yet durable. If it is 0, each commit is durable when its call
        /// returns.
        in_flight: usize,
    },
}

/// How a get and a put are connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Way {
    /// They are not connected by a transaction.
    Apart,
    /// The get and the put are in a transaction. The commit of this transaction checks the rows that the
    /// transaction writes.
    WritesChecked,
    /// The get and the put are in a transaction. The commit of this transaction checks the rows that the
    /// transaction writes and the rows that it has read.
    AllChecked,
}

/// The result of transactions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transacted {
    /// The number of conflicts in the window. If the transaction is not repeated after a conflict, it is not
    /// counted as an operation.
    pub conflicts: u64,
    /// The median time of an increment including all its attempts, or 0 if nothing is timed.
    pub p50_nanos: u64,
    /// 99 of 100 increments took at most this time.
    pub p99_nanos: u64,
    /// 99 of 100 increments met at most this many conflicts.
    pub p99_conflicts: u64,
    /// The largest number of conflicts of one increment.
    pub most_conflicts: u64,
}

/// What another thread does during a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Beside {
    /// Scans the whole table, again and again, from before the window until after it.
    Scan,
    /// Makes the store rewrite all its data: a row is put and then the store's `settle` is called. The window
    /// begins with the rewrite. The window ends some time after the rewrite, because the end of a rewrite changes
    /// what is in memory.
    Compaction,
    /// Makes the store build a secondary index over all rows. The measured window begins when the build begins,
    /// and ends when the build ends.
    IndexBuild,
}

/// What is measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Task {
    /// A workload of YCSB.
    Workload {
        /// `a` to `f`.
        name: String,
        /// The distribution of its keys: `zipfian`, `uniform`, … If the text is empty, the workload decides.
        keys: String,
    },
    /// Reads of keys that do not exist.
    Absent,
    /// Reads of this many keys at once. The keys are drawn uniformly.
    Many(usize),
    /// A scan of the whole table in order.
    Scan,
    /// One thread or several threads insert rows, and each insert is durable when it returns.
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
    /// The reads of the disk that holds the database, as the system counts them; `None` if the system does not
    /// count them.
    pub disk_reads: Option<u64>,
    /// The bytes that these reads of the disk brought, including those before the measured window.
    pub disk_read_bytes: u64,
    /// The bytes that reads of the disk brought in the measured window alone. 0 if they are not counted
    /// separately.
    pub window_read_bytes: u64,
    /// The bytes that were written to the disk that holds the database.
    pub disk_written_bytes: u64,
    /// The bytes that this process wrote in a load or in overwrites, as the system counts them; `None` if the
    /// system does not count them.
    pub process_bytes: Option<u64>,
    /// The memory of the process at the end.
    pub resident_bytes: u64,
    /// The size of the database's files at the end.
    pub file_bytes: u64,
    /// The settings of the store.
    pub settings: Vec<(String, String)>,
    /// 99 of 100 operations took at most this time.
    pub p99_nanos: u64,
    /// How many times a read of a single key found the page of its row in the cache. The store counts this; it is
    /// 0 if the store does not.
    pub point_hits: u64,
    /// How many times a read of a single key had to read the page of its row from the disk. The store counts this;
    /// it is 0 if the store does not.
    pub point_reads: u64,
    /// How often writes were stopped during the order because level 0 was full, as the store counts it; `None` if
    /// the store does not count it.
    pub level0_stops: Option<u64>,
    /// The result of overwrites.
    pub overwritten: Overwritten,
    /// The result of transactions.
    pub transacted: Transacted,
    /// What another thread did during the measurement.
    pub beside: WorkDone,
    /// The effect of a new budget.
    pub shrunk: Shrunk,
}

/// What a thread did beside a measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkDone {
    /// The number of rows that the other thread scanned, or the number of entries in the index that it built. It
    /// is 0 for a compaction.
    pub rows: u64,
    /// How long it took.
    pub nanos: u64,
}

/// The effect of a new budget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shrunk {
    /// The bytes that the cache used before.
    pub used_before: u64,
    /// The time from the call until the cache used no more than the new budget; `None` if this did not happen.
    pub nanos: Option<u64>,
    /// Memory of the process before.
    pub resident_before: u64,
    /// The memory of the process a second after the cache was halved.
    pub resident_after: u64,
}

/// The answer to an order: what was measured, or why the order failed.
pub type Answer = Result<Sample, String>;
