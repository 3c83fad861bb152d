//! A lock file that is held. This module does not know what the lock is for.

use super::place::Place;
use crate::Lock;
use crate::failure::cannot;
use crate::process::ProcessOrigin;
use crate::sync::Arc;
use std::fs::{self, TryLockError};
use std::io;

/// How often taking a lock is tried. A further attempt is needed only if another process removes the file meanwhile.
const LOCK_ATTEMPTS: u32 = 1000;

/// A locked file (flock). The lock belongs to the open file description, which a forked child shares until it exits
/// or runs another program. Until then, the file would stay locked even if the parent closed it. So the process that
/// took the lock releases it explicitly.
#[derive(Debug)]
pub(super) struct RealLock {
    file: Arc<fs::File>,
    origin: ProcessOrigin,
}

impl RealLock {
    /// Locks a file, and creates it if it is missing.
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
            // The former holder may have removed the file after it was opened here and before it was locked here.
            // Another process may then have locked a new file of this name. In that case the loop tries again.
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
            // If this fails, the lock is released when the last descriptor of the file is closed.
            self.file.unlock().ok();
        }
    }
}
