//! The conditions of a batch: what it expects keys to have when it commits.

use crate::base::conflict::SHOWN_KEY_BYTES;
use crate::view::value::Key;
use sst::Version;
use std::fmt;

/// A condition of a [`Batch`](crate::Batch) on a key, see [`Batch::expect`](crate::Batch::expect).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expected {
    /// The key has no value.
    Absent,
    /// The key has this value.
    Value(Vec<u8>),
    /// The key has a value that the commit with this version wrote, see
    /// [`Table::version_of`](crate::Table::version_of).
    Version(Version),
}

/// A condition of a batch that was not met. None of the writes of the batch has taken effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmet {
    /// The name of the table.
    pub table: String,
    /// The key.
    pub key: Key,
    /// What the batch expected.
    pub expected: Expected,
}

impl fmt::Display for Unmet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { table, key, expected } = self;
        let key = key[..key.len().min(SHOWN_KEY_BYTES)].escape_ascii();
        match expected {
            Expected::Absent => write!(f, "key {key} of table {table} has a value, and none is expected"),
            Expected::Value(_) => write!(f, "key {key} of table {table} has another value than expected"),
            Expected::Version(version) => {
                write!(f, "key {key} of table {table} was not written by version {}", version.0)
            }
        }
    }
}

impl std::error::Error for Unmet {}
