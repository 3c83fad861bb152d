//! The job of an idle database. Closes the log and the manifest, frees buffers, and removes files that no follower
//! reads any more. Also freezes memtables that have many erased rows or may hide many rows in files, so that a flush
//! and a compaction can free their space. This module does not know how these things are done, and never waits for a
//! lock.

use crate::base::error::Error;
use crate::core::{Core, StopOnPanic};
use crate::write::room::freeze_idle;
use crate::write::{keep, subscribe};
use os::sync::Weak;
use os::sync::atomic::{AtomicU64, Ordering};
use os::{Job, Polled};
use std::time::Duration;

/// A database is idle after this time without a write. Reopening its log and its manifest for later writes takes
/// about 10 us.
pub const IDLE_TIME: Duration = Duration::from_secs(1);

/// The job of an idle database.
#[derive(Debug)]
pub struct IdleJob {
    core: Weak<Core>,
    /// How often the log and the manifest had been used at the last poll.
    seen: AtomicU64,
    /// If freezing memtables failed, the version that the next commit was to get at that time: freezing is retried
    /// only after a new commit.
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
            // Removing files does not count as a use of the database: it affects no read and no write.
            if leftovers.held() > 0 {
                core.background.wake_idle_after(IDLE_TIME);
            }
        }
        if core.check_writable().is_err() {
            return Polled::Idle;
        }
        // While there are commits, this job runs once a second.
        keep::note_time(&core);
        subscribe::note_old(&core);
        let uses = core.env.log_disk.uses();
        if self.seen.swap(uses, Ordering::Relaxed) != uses || !self.tidy_up(&core) {
            core.background.wake_idle_after(IDLE_TIME);
            return Polled::Idle;
        }
        if let Err(error) = core.env.log_disk.rest() {
            // A sync has failed, so writes before it may be lost, and the database accepts no more writes.
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
        // If this job panics, a guard refuses writes. It is dropped before the lock is released, so that a thread that
        // waits for the lock then sees this.
        let guard = StopOnPanic::new(core);
        if let Some(writer) = writer.as_mut() {
            let next = writer.next_version().0;
            // A failure loses nothing: the next commit makes the log and the memtables that it needs.
            if self.failed_at.load(Ordering::Relaxed) != next && freeze_idle(core, writer).is_err() {
                self.failed_at.store(next, Ordering::Relaxed);
            }
            // The job that synced the beginning of the log also tries to append this record, but may not have got
            // the lock. Without the record, no commit is lost.
            writer.prove_begin().ok();
            writer.give_back();
            core.env.held.log.store(0, Ordering::Relaxed);
            core.env.held.rows.give_back();
        }
        drop(guard);
        // No commit waits for a sync of the manifest.
        drop(writer);
        let Some(mut manifest) = core.writes.manifest.try_lock() else { return false };
        let _guard = StopOnPanic::new(core);
        // After a failure, the next flush does it, or this job after the next commit.
        let times = [keep::move_on(core, &mut manifest), subscribe::move_on(core, &mut manifest)];
        let has_failed = times[1].is_err();
        if let Some(time) = times.into_iter().filter_map(|time| time.ok().flatten()).min() {
            core.background.wake_idle_after(time);
        }
        // This comes last: the time above may have replaced that of an acknowledgement which came meanwhile.
        if subscribe::has_more(core) {
            core.background.wake_idle_after(if has_failed { subscribe::NOTE_TIME } else { IDLE_TIME });
        }
        if let Some(manifest) = manifest.as_mut() {
            manifest.give_back();
            core.env.held.manifest.store(0, Ordering::Relaxed);
        }
        true
    }
}
