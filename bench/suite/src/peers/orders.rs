//! What the process that compares tells the processes that hold an engine each, and what they answer: a line of JSON
//! each way.

use serde::{Deserialize, Serialize};

/// What a peer is to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Order {
    /// Opens the store; `anew`: with an empty table.
    Open {
        /// Whether what is there goes.
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
    /// Waits until nothing goes on behind it.
    Settle,
    /// Measures.
    Measure(Measure),
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
    /// Clients, each with a thread.
    pub threads: usize,
    /// Left out before.
    pub warmup_millis: u64,
    /// Measured.
    pub millis: u64,
    /// Ends as soon as so many operations were done.
    pub operations: Option<u64>,
    /// Decides every operation.
    pub seed: u64,
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
    /// Reads of so many keys at once, uniformly drawn.
    Many(usize),
    /// The whole table, in order.
    Scan,
    /// Inserts that are durable when they return.
    Puts,
}

/// What came of an order.
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
    /// Bytes they brought.
    pub disk_read_bytes: u64,
    /// Bytes written to that disk.
    pub disk_written_bytes: u64,
    /// Memory of the process at the end.
    pub resident_bytes: u64,
    /// Bytes of the database's files at the end.
    pub file_bytes: u64,
    /// How the store is set.
    pub settings: Vec<(String, String)>,
}

/// An answer: what was measured, or why not.
pub type Answer = Result<Sample, String>;
