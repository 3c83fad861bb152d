//! Why a transaction was not committed.

use sst::Version;
use std::fmt;

/// Another commit conflicts with a transaction, so the transaction was not committed. None of its writes has taken
/// effect. A new transaction, which sees the other commit, can do the same work again.
/// [`Database::transact`](crate::Database::transact) runs such a new transaction by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Conflict {
    /// After the transaction began, another commit has written a key on which the transaction depends.
    Changed {
        /// Name of the table.
        table: String,
        /// The written key. If the commit removed a range of keys, this is the first removed key on which the
        /// transaction depends. This key need not have had a value.
        key: Box<[u8]>,
    },
    /// After the transaction began, an index was made or dropped for a table to which the transaction writes. So
    /// the transaction may contain wrong index entries.
    Indexes {
        /// Name of a table.
        table: String,
    },
    /// The transaction began before the oldest commit that the engine remembers. Therefore it cannot be compared
    /// with all commits that were made since it began. There are three possible causes. First, the transaction
    /// took long, and others wrote much to the tables that it uses. Second, one of these tables got an import, or
    /// a batch larger than the write buffer. Third, some table was cloned, split, renamed or dropped while the
    /// transaction ran.
    TooOld {
        /// The version at which the transaction began.
        began: Version,
        /// A transaction that began at this version or later can be compared with all commits since it began.
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
