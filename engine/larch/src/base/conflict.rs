//! Why a transaction was not committed.

use sst::Version;
use std::fmt;

/// A transaction was not committed because another commit conflicts with it. None of its writes took effect. A new
/// transaction, which sees the other commit, can do the same work again;
/// [`Database::transact`](crate::Database::transact) does this by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Conflict {
    /// Since the transaction began, another commit has written a key that the transaction depends on.
    Changed {
        /// Name of the table.
        table: String,
        /// The written key. If the commit erased a range of keys, the first key of it that the transaction depends
        /// on, which need not have had a value.
        key: Box<[u8]>,
    },
    /// Since the transaction began, an index was created or dropped for a table that it writes to, so its index
    /// entries may be wrong.
    Indexes {
        /// Name of a table.
        table: String,
    },
    /// The transaction began before the oldest commit that the engine remembers, so it cannot be compared with all
    /// commits since then. Either it took long while others wrote much to its tables; or one of these tables got an
    /// import, or a batch larger than the write buffer; or some table was cloned, split, renamed or dropped
    /// meanwhile.
    TooOld {
        /// The version at which the transaction began.
        began: Version,
        /// Transactions that began at this version or later can be compared with all commits since.
        oldest: Version,
    },
}

/// Bytes of a key that a message shows.
pub const SHOWN_KEY_BYTES: usize = 64;

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Changed { table, key } => {
                let shown = key[..key.len().min(SHOWN_KEY_BYTES)].escape_ascii();
                write!(f, "another commit has changed key {shown} of table {table}; do the transaction again")
            }
            Self::Indexes { table } => {
                write!(
                    f,
                    "an index was created or dropped since the transaction began to write to table {table}; do it again"
                )
            }
            Self::TooOld { began, oldest } => write!(
                f,
                "the transaction began at version {}, and only commits after version {} are still known; do it again, in less time",
                began.0, oldest.0
            ),
        }
    }
}

impl std::error::Error for Conflict {}
