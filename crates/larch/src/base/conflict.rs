//! Why a transaction was not committed.

use sst::Version;
use std::fmt;

/// Another commit contradicts a transaction, so the transaction was not committed. None of its writes has taken
/// effect. The same work can be done again in a new transaction, which sees the other commit.
/// [`Database::transact`](crate::Database::transact) does so.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Conflict {
    /// A later commit has written a key on which the transaction depends.
    Changed {
        /// Name of the table.
        table: String,
        /// The key. For a removed range it is the first key that matters, which need not have had a value.
        key: Box<[u8]>,
    },
    /// A table to which the transaction writes got or lost an index after the transaction began. So the entries
    /// among its writes may not be right.
    Indexes {
        /// Name of a table.
        table: String,
    },
    /// The transaction began before the oldest commit with which it can be compared. This has three causes. The
    /// transaction took too long while there were many writes to tables that it uses. Or such a table got an import,
    /// or a batch that is larger than the write buffer. Or any table was cloned, split, renamed or dropped
    /// meanwhile.
    TooOld {
        /// The version at which it began.
        began: Version,
        /// Transactions that began at this version, or later, can be compared.
        oldest: Version,
    },
}

/// The bytes of a key that a message shows.
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
