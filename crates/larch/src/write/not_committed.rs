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
    /// The commit has to wait. A task is making it, so the thread must not wait.
    Later(Later),
}

/// What a task must wait for before it tries to commit again.
#[derive(Clone, Copy, Debug)]
pub enum Later {
    /// The task must wait until the lock of the writer is free.
    Unlocked,
    /// The task must wait until the counter for the progress of background work is greater than this number.
    Progress(u64),
}

/// The result of a commit in the form that programs get. The outer error is the reason why the commit failed. The
/// inner result is the version or the conflict.
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
