//! The job that makes commits durable for tasks and callbacks, which cannot run a sync themselves, and wakes them. It
//! does not know who they are.
//!
//! It goes on even after writes were refused, so that every waiter learns what became of its commit. It has a
//! priority of its own, so that no flush and no compaction delays it.

use crate::core::{Core, StopOnPanic};
use os::sync::Weak;
use os::{Job, Polled};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The job that syncs for tasks.
#[derive(Debug)]
pub struct SyncJob(pub Weak<Core>);

impl Job for SyncJob {
    fn poll(&self) -> Polled {
        let Some(core) = self.0.upgrade() else { return Polled::Idle };
        let serve = || {
            let _guard = StopOnPanic::new(&core);
            core.writes.sync.serve()
        };
        // After a panic of the disk the tasks still have to be woken.
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
