//! Requests: what one step of an operation asks a store to do.

use crate::failure::Failure;
use crate::partitions::PartitionRequest;
use crate::strings::Strings;

/// The table that a workload works on. Its rows have a key and these fields. Requests number the fields from 0.
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

/// The fields that a read returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fields {
    /// All fields, in order.
    All,
    /// The field with this number.
    One(u32),
}

/// One step of an operation. The client owns the bytes of the request, and they stay valid until the request is
/// taken.
#[derive(Clone, Copy, Debug)]
pub enum Request<'a> {
    /// Reads the row of `key`.
    Read {
        /// Its key.
        key: &'a [u8],
        /// The fields to return.
        fields: Fields,
    },
    /// Reads the rows of `keys`, all in one request.
    ReadMany {
        /// Their keys, in any order.
        keys: &'a Strings,
        /// The fields to return of each row.
        fields: Fields,
    },
    /// Reads the first `rows` rows whose keys are not less than `start`, in key order.
    Scan {
        /// The key at which the scan begins; if it is empty, the scan begins at the first row.
        start: &'a [u8],
        /// The greatest number of rows.
        rows: u64,
        /// The fields to return of each row.
        fields: Fields,
    },
    /// Inserts a row that does not exist yet. If the row exists, the store decides what happens: most stores
    /// replace the old row.
    Insert {
        /// Its key.
        key: &'a [u8],
        /// All its fields, in order.
        record: &'a Strings,
    },
    /// Replaces the row of `key` by another row.
    Replace {
        /// Its key.
        key: &'a [u8],
        /// All its fields, in order.
        record: &'a Strings,
    },
    /// Replaces one field of the row of `key`.
    Update {
        /// Its key.
        key: &'a [u8],
        /// Number of the field.
        field: u32,
        /// Its new value.
        value: &'a [u8],
    },
    /// Removes the row of `key`.
    Delete {
        /// Its key.
        key: &'a [u8],
    },
    /// A request for rows in partitions. Only stores that were opened for partitions take this request. Other
    /// stores answer with [`no_partitions`].
    Partition(PartitionRequest<'a>),
    /// A transaction over several tables, encoded in a way on which the workload and the store agree. Only stores
    /// that were opened for such transactions take this request. Other stores answer with [`no_transactions`].
    Transaction(&'a [u8]),
}

/// The failure with which a store that was opened for rows without partitions answers [`Request::Partition`].
#[cold]
pub fn no_partitions() -> Failure {
    Failure::request("no_partitions", "the store was not opened for rows in partitions")
}

/// The failure with which a store that was not opened for such transactions answers [`Request::Transaction`].
#[cold]
pub fn no_transactions() -> Failure {
    Failure::request("no_transactions", "the store was not opened for transactions over several tables")
}
