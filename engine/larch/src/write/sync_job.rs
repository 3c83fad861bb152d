//! The job that syncs the log for waiting tasks and callbacks, which cannot sync themselves, and then wakes or
//! calls them. This module does not know who waits.
//!
//! The job runs even when the database no longer accepts writes, so that every waiter learns whether its commit is
//! durable. It has its own priority, so that no flush or compaction delays it.

use crate::core::{Core, StopOnPanic};
use os::sync::Weak;
use os::{Job, Polled};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The job that runs syncs for tasks.
#[derive(Debug)]
pub struct SyncJob(pub Weak<Core>);

impl Job for SyncJob {
    fn poll(&self) -> Polled {
        let Some(core) = self.0.upgrade() else { return Polled::Idle };
        let serve = || {
            let _guard = StopOnPanic::new(&core);
            core.writes.sync.serve()
        };
        // If the disk panics, the waiting tasks must still be woken.
        match catch_unwind(AssertUnwindSafe(serve)) {
            Ok(Ok(polled)) => polled,
            Ok(Err(error)) => {
                core.sync_failed(error);
                Polled::Worked
            }
            Err(_) => Polled::Worked,
        }
    }
}
