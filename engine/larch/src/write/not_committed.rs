//! Why a commit was not made.

use crate::base::conflict::Conflict;
use crate::base::error::Error;
use sst::Version;

/// Why a commit was not made. Nothing of the commit has taken effect.
#[derive(Debug)]
pub enum NotCommitted {
    /// The commit conflicts with another commit.
    Conflict(Conflict),
    /// The commit failed.
    Failed(Error),
    /// The commit has to wait, but a task is making it, so the thread must not block.
    Later(Later),
}

/// What a task must wait for before it tries to commit again.
#[derive(Clone, Copy, Debug)]
pub enum Later {
    /// The task must wait until the writer's lock is free.
    Unlocked,
    /// The task must wait until the progress counter of background work exceeds this number.
    Progress(u64),
}

/// The result of a commit as programs get it: the version or the conflict, or an outer error if the commit failed.
///
/// # Errors
///
/// The error with which the commit failed.
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
