//! Why a commit was not made.

use crate::base::conflict::Conflict;
use crate::base::error::Error;
use sst::Version;

/// Why a commit was not made. Nothing of the commit has taken effect.
#[derive(Debug)]
pub enum NotCommitted {
    /// Another commit contradicts this commit.
    Conflict(Conflict),
    /// The commit failed.
    Failed(Error),
    /// The commit has to wait, and a task wants to make it.
    Later(Later),
}

/// What a task has to wait for before it can commit.
#[derive(Clone, Copy, Debug)]
pub enum Later {
    /// The lock of the writer has to become free.
    Unlocked,
    /// The progress of background work has to go beyond this number.
    Progress(u64),
}

/// The result of a commit as programs see it. The inner result is the version or the conflict.
///
/// # Errors
///
/// The reason why the commit failed.
pub fn outcome(committed: Result<Version, NotCommitted>) -> Result<Result<Version, Conflict>, Error> {
    match committed {
        Ok(version) => Ok(Ok(version)),
        Err(NotCommitted::Conflict(conflict)) => Ok(Err(conflict)),
        Err(NotCommitted::Failed(error)) => Err(error),
        Err(NotCommitted::Later(_)) => unreachable!("a thread waits"),
    }
}

impl From<Conflict> for NotCommitted {
    fn from(conflict: Conflict) -> Self {
        Self::Conflict(conflict)
    }
}

impl From<Error> for NotCommitted {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}
