//! Requests: what one step of an operation asks of a store.

use crate::failure::Failure;
use crate::partitions::PartitionRequest;
use crate::strings::Strings;

/// The table that a workload works on. Its rows have a key and these fields, which requests number from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// Its name in the store.
    pub name: String,
    /// Names of the fields; at least one.
    pub fields: Vec<String>,
}

impl Table {
    /// A table of `fields` fields called `prefix0`, `prefix1`, …
    pub fn numbered(name: &str, prefix: &str, fields: usize) -> Self {
        Self { name: name.to_owned(), fields: (0..fields).map(|field| format!("{prefix}{field}")).collect() }
    }
}

/// Which fields a read is to give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fields {
    /// All, in order.
    All,
    /// The one of this number.
    One(u32),
}

/// One step of an operation. The bytes belong to the client and hold until the request is taken.
#[derive(Clone, Copy, Debug)]
pub enum Request<'a> {
    /// The row of `key`.
    Read {
        /// Its key.
        key: &'a [u8],
        /// What to give of it.
        fields: Fields,
    },
    /// The rows of `keys`, asked for together.
    ReadMany {
        /// Their keys, in no order.
        keys: &'a Strings,
        /// What to give of each.
        fields: Fields,
    },
    /// The first `rows` rows whose keys are not less than `start`, in the order of keys.
    Scan {
        /// The key at which to begin; if it is empty, the first row.
        start: &'a [u8],
        /// How many at most.
        rows: u64,
        /// What to give of each.
        fields: Fields,
    },
    /// A row that is not there yet. What happens if it is, is the store's: most put the new one in its place.
    Insert {
        /// Its key.
        key: &'a [u8],
        /// All its fields, in order.
        record: &'a Strings,
    },
    /// Another row in the place of the one of `key`.
    Replace {
        /// Its key.
        key: &'a [u8],
        /// All its fields, in order.
        record: &'a Strings,
    },
    /// Another value for one field of the row of `key`.
    Update {
        /// Its key.
        key: &'a [u8],
        /// Number of the field.
        field: u32,
        /// Its new value.
        value: &'a [u8],
    },
    /// No row of `key` any more.
    Delete {
        /// Its key.
        key: &'a [u8],
    },
    /// Rows in partitions. Only stores that were opened for them take it; the others answer with [`no_partitions`].
    Partition(PartitionRequest<'a>),
    /// A transaction over several tables, in bytes whose meaning the workload and the store agree on. Only stores that
    /// were opened for it take it; the others answer with [`no_transactions`].
    Transaction(&'a [u8]),
}

/// What a store answers to [`Request::Partition`] that was opened for rows without partitions.
#[cold]
pub fn no_partitions() -> Failure {
    Failure::request("no_partitions", "the store was not opened for rows in partitions")
}

/// What a store answers to [`Request::Transaction`] that was not opened for such transactions.
#[cold]
pub fn no_transactions() -> Failure {
    Failure::request("no_transactions", "the store was not opened for transactions over several tables")
}
