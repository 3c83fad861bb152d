//! Why a commit was not made.

use crate::error::Error;
use crate::transaction::conflict::Conflict;

/// Why a commit was not made. Nothing of it has taken effect.
pub enum NotCommitted {
    /// Another commit contradicts it.
    Conflict(Conflict),
    /// It failed.
    Failed(Error),
}

impl From<Error> for NotCommitted {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}
