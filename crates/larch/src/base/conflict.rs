//! Why a transaction was not committed.

use sst::Version;
use std::fmt;

/// Another commit conflicts with a transaction, so the transaction was not committed. None of its writes has taken
/// effect. A new transaction, which sees the other commit, can do the same work again.
/// [`Database::transact`](crate::Database::transact) runs such a new transaction by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Conflict {
    /// Another commit has written a key on which the transaction depends, after the transaction began.
    Changed {
        /// Name of the table.
        table: String,
        /// The written key. If the commit removed a range, this is the first key in the range that matters to the
        /// transaction; the key need not have had a value.
        key: Box<[u8]>,
    },
    /// After the transaction began, an index was made or dropped for a table to which the transaction writes. So the
    /// index entries among its writes may be wrong.
    Indexes {
        /// Name of a table.
        table: String,
    },
    /// The transaction cannot be compared with all commits since it began, because it began before the oldest commit
    /// that the engine remembers. This has one of three causes. The transaction took long while others wrote much to
    /// the tables that it uses. Such a table got an import, or a batch larger than the write buffer. Some table was
    /// cloned, split, renamed or dropped meanwhile.
    TooOld {
        /// The version at which the transaction began.
        began: Version,
        /// Transactions that began at this version, or later, can be compared.
        oldest: Version,
    },
}

/// How many bytes of a key a message shows.
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
