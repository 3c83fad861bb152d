//! Everything that can go wrong in a database, with words that say what to do.

use crate::record::LogError;
use std::path::{Path, PathBuf};

/// Result of the database.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Something broke or was asked for in vain. A key that is not there is not among these.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The system refused, or an SST's bytes are not what was written.
    #[error(transparent)]
    Page(#[from] pages::Error),
    /// The write-ahead log or the manifest could not be used.
    #[error(transparent)]
    Log(#[from] LogError),
    /// There is no database where one should be opened.
    #[error("{} has no database; create one by opening it for writing, or correct the path", .0.display())]
    NotADatabase(PathBuf),
    /// Somebody else writes to the database.
    #[error("the database {} is open for writing in another process; close it there, or open it read-only here", .0.display())]
    Locked(PathBuf),
    /// A write or sync failed earlier; what is in memory may be ahead of what is durable.
    #[error("writes are refused since one failed ({0}); mend the cause, then close the database and open it again")]
    WritesStopped(String),
    /// A write to a database opened read-only.
    #[error("the database was opened read-only; open it for writing")]
    ReadOnly,
    /// A key beyond the limit.
    #[error("a key of {bytes} bytes is longer than {max}; use a shorter key")]
    KeyTooLong {
        /// Length of the key.
        bytes: usize,
        /// Longest key allowed.
        max: usize,
    },
    /// A value beyond what the write buffer can hold.
    #[error(
        "a value of {bytes} bytes is longer than {max}, a quarter of the write buffer; store it in parts or enlarge the write buffer"
    )]
    ValueTooLong {
        /// Length of the value.
        bytes: usize,
        /// Longest value allowed.
        max: u64,
    },
    /// A batch beyond what the write buffer can hold.
    #[error(
        "a batch that takes {bytes} bytes of memory is larger than {max}, half of the write buffer; commit it in parts or enlarge the write buffer"
    )]
    BatchTooLarge {
        /// Memory that its rows would take.
        bytes: u64,
        /// Largest batch allowed.
        max: u64,
    },
    /// A table name that cannot be used.
    #[error("a table cannot be named {0:?}; a name has 1 to 255 bytes")]
    BadTableName(String),
    /// A table that is not there.
    #[error("there is no table {0:?}; create it by opening the database for writing")]
    NoSuchTable(String),
    /// Options of a database or a table that make no sense.
    #[error("the options cannot be used: {0}")]
    BadOptions(String),
    /// A batch or read names a table of another database.
    #[error("the table {0:?} belongs to another database; use a handle from this one")]
    ForeignTable(String),
}

impl Error {
    pub(crate) fn io(action: &'static str, file: &Path, source: std::io::Error) -> Self {
        Self::Page(pages::Error::io(action, file, source))
    }

    /// Whether bytes on disk are not what was written.
    pub fn is_corruption(&self) -> bool {
        matches!(self, Self::Page(pages::Error::Corrupt { .. }) | Self::Log(LogError::Corrupt { .. }))
    }
}
