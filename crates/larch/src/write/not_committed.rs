//! Why a commit was not made.

use crate::base::conflict::Conflict;
use crate::base::error::Error;
use sst::Version;

/// Why a commit was not made. Nothing of it has taken effect.
#[derive(Debug)]
pub enum NotCommitted {
    /// Another commit contradicts it.
    Conflict(Conflict),
    /// It failed.
    Failed(Error),
    /// The commit has to wait, and its caller is a task.
    Later(Later),
}

/// What a commit of a task has to wait for.
#[derive(Clone, Copy, Debug)]
pub enum Later {
    /// Another thread holds the lock of the writer.
    Unlocked,
    /// Background work has to make progress beyond this number.
    Progress(u64),
}

/// The result of a commit as programs see it: the inner result is the version, or the conflict.
///
/// # Errors
///
/// Why it failed.
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
