//! The job of a database that is idle. The job closes the log and the manifest, and frees buffers. If memtables
//! have many erased rows, or may hide many rows in files, it freezes these memtables. A flush and a compaction can
//! then free the space of the erased and hidden rows. The job also removes files that no follower reads any more.
//! This module does not know how these things are done, and never waits for a lock.

use crate::base::error::Error;
use crate::core::{Core, StopOnPanic};
use crate::write::room::freeze_idle;
use os::sync::Weak;
use os::sync::atomic::{AtomicU64, Ordering};
use os::{Job, Polled};
use std::time::Duration;

/// A database is idle after this time without a write. To open its log and its manifest again for later writes takes
/// about 10 us.
pub const IDLE_TIME: Duration = Duration::from_secs(1);

/// The job of a database that is idle.
#[derive(Debug)]
pub struct IdleJob {
    core: Weak<Core>,
    /// The number of uses of the log and the manifest, as it was at the last poll.
    seen: AtomicU64,
    /// If freezing memtables failed, this is the version that the next commit was to get at that time. Freezing is
    /// tried again only after a new commit.
    failed_at: AtomicU64,
}

impl IdleJob {
    /// The idle job of the database `core`.
    pub fn new(core: Weak<Core>) -> Self {
        Self { core, seen: AtomicU64::new(u64::MAX), failed_at: AtomicU64::new(u64::MAX) }
    }
}

impl Job for IdleJob {
    fn poll(&self) -> Polled {
        let Some(core) = self.core.upgrade() else { return Polled::Idle };
        let leftovers = &core.env.opener.leftovers;
        if leftovers.held() > 0 {
            leftovers.retry();
            // Removing files does not count as a use of the database, because it affects no read and no write.
            if leftovers.held() > 0 {
                core.background.wake_idle_after(IDLE_TIME);
            }
        }
        if core.check_writable().is_err() {
            return Polled::Idle;
        }
        let uses = core.env.log_disk.uses();
        if self.seen.swap(uses, Ordering::Relaxed) != uses || !self.tidy_up(&core) {
            core.background.wake_idle_after(IDLE_TIME);
            return Polled::Idle;
        }
        if let Err(error) = core.env.log_disk.rest() {
            // A sync has failed, so the writes before it may be lost. Therefore the database accepts no more
            // writes.
            core.stop_writes(Error::io("sync the log or manifest of", &core.env.directory, error));
        }
        Polled::Idle
    }
}

impl IdleJob {
    /// Freezes memtables if this can free space, and frees buffers that only writes need. Returns false if another
    /// thread holds the lock of the writer or of the manifest. That thread may be waiting for background work, so
    /// this job must not wait for it.
    fn tidy_up(&self, core: &Core) -> bool {
        let Some(mut writer) = core.writes.writer.try_lock() else { return false };
        // After a panic, this guard makes the database refuse writes. It is dropped before the locks are released,
        // so a thread that waits for a lock then sees that writes are refused.
        let _guard = StopOnPanic::new(core);
        if let Some(writer) = writer.as_mut() {
            let next = writer.next_version().0;
            // If freezing fails, nothing is lost: the next commit makes the log and the memtables that it needs.
            if self.failed_at.load(Ordering::Relaxed) != next && freeze_idle(core, writer).is_err() {
                self.failed_at.store(next, Ordering::Relaxed);
            }
            // The job that synced the beginning of the log also tries to append this note, but it may not have got
            // the lock. If the note cannot be appended, no commit is lost.
            writer.prove_begin().ok();
            writer.give_back();
            core.env.held.log.store(0, Ordering::Relaxed);
            core.env.held.rows.give_back();
        }
        let Some(mut manifest) = core.writes.manifest.try_lock() else { return false };
        if let Some(manifest) = manifest.as_mut() {
            manifest.give_back();
            core.env.held.manifest.store(0, Ordering::Relaxed);
        }
        true
    }
}
