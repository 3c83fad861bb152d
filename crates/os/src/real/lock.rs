//! A lock file that is held. This module does not know what the lock is for.

use super::place::Place;
use crate::Lock;
use crate::failure::cannot;
use crate::process::ProcessOrigin;
use crate::sync::Arc;
use std::fs::{self, TryLockError};
use std::io;

/// How many times taking a lock is tried. The next attempt is needed only if another process has removed the file
/// during this attempt.
const LOCK_ATTEMPTS: u32 = 1000;

/// A locked file (flock). The lock belongs to the open file. A forked child process shares the open file, until
/// the child ends or runs another program. Meanwhile the file would stay locked even if the parent closed it. So
/// the process that took the lock releases it explicitly.
#[derive(Debug)]
pub(super) struct RealLock {
    file: Arc<fs::File>,
    origin: ProcessOrigin,
}

impl RealLock {
    /// Takes a lock file. The file is made if it is missing.
    pub(super) fn take(place: &Place<'_>) -> io::Result<RealLock> {
        let failed = |error| cannot("lock", place.path, error);
        for _ in 0..LOCK_ATTEMPTS {
            let file = place.open_lock().map_err(failed)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    return Err(failed(io::Error::new(io::ErrorKind::WouldBlock, "another process has it open")));
                }
                Err(TryLockError::Error(error)) => return Err(failed(error)),
            }
            let lock = RealLock { file: Arc::new(file), origin: ProcessOrigin::here() };
            // The process that held the lock before may have removed the file after this process opened it and
            // before this process locked it. Then another process may have locked a new file of this name. If this
            // has happened, the loop tries again.
            if place.is_name_of(&lock.file).map_err(failed)? {
                return Ok(lock);
            }
        }
        Err(failed(io::Error::other(
            "the file is another one each time it is locked; use a file system with stable inodes",
        )))
    }

    /// The file that is locked.
    pub(super) fn file(&self) -> &Arc<fs::File> {
        &self.file
    }
}

impl Lock for RealLock {}

impl Drop for RealLock {
    fn drop(&mut self) {
        if self.origin.is_here() {
            // If the lock cannot be released here, it is released when the last descriptor of the file is closed.
            self.file.unlock().ok();
        }
    }
}
