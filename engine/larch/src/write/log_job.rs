//! The job that takes the slow work out of rotations. Commits wait during a rotation, the change from one log to
//! the next. So while a log grows, this job syncs it piece by piece, creates the file of the next log, and
//! allocates disk space for it. Without allocated space, the file system would look for free space during a sync,
//! read its maps from a busy disk for this, and make appends wait. When the next log has begun, the job syncs the
//! rest of the previous one. It does not decide when a log ends.
//!
//! So a rotation usually waits for no sync. It waits for one in three cases: it has to create the next log's file
//! itself; nothing of the current log is durable yet; or an older release must be able to read the logs.

use crate::base::error::Result;
use crate::base::record::{BEGIN_RECORD, LogError, LogKind};
use crate::core::writer::{NextLog, Writer, log_path};
use crate::core::{Core, StopOnPanic};
use os::sync::Weak;
use os::{Job, Polled};

/// The job allocates at most this much disk space for the next log, in bytes.
const MOST_AHEAD_BYTES: u64 = 64 << 20;

/// Wakes the job because the log of `writer` has begun. The caller must hold the writer's lock.
pub fn begun(core: &Core, writer: &Writer) {
    core.writes.ahead.begin_log(writer);
    core.background.wake_log();
}

/// Wakes the job if the log has grown enough. Called under the writer's lock, after a commit was appended.
pub fn appended(core: &Core, writer: &Writer) {
    let limit_bytes = core.writes.fill.limit(core.env.options.write_buffer_bytes);
    if core.writes.ahead.appended(writer, limit_bytes) {
        core.background.wake_log();
    }
}

/// The file for the log after that of `writer`: the one that the job has created, or else a new one. The caller
/// must hold the writer's lock.
///
/// # Errors
///
/// An error if the file cannot be created.
pub fn next_log(core: &Core, writer: &Writer) -> Result<NextLog> {
    match core.writes.ahead.take_next() {
        // The job was too late: a rotation has meanwhile begun a log with a greater number.
        Some(old) if old.number() <= writer.memory().log => remove(core, old.number()),
        // Since the job has created it, a row with a time was written for the first time.
        Some(old) if old.features() != core.env.log_features() => remove(core, old.number()),
        Some(next) => return Ok(next),
        None => {}
    }
    if writer.is_named_by_header() { new_file(core, Ok) } else { create(core, 0) }
}

/// Creates the file of a log with the next free number, and allocates `ahead_bytes` bytes of disk space for it.
/// After an error, no file is left.
pub(super) fn create(core: &Core, ahead_bytes: u64) -> Result<NextLog> {
    let is_prepared = LogKind::WriteAhead.features_for(core.env.options.compat) & BEGIN_RECORD != 0;
    new_file(core, |mut next| {
        if ahead_bytes > 0 {
            next.allocate_ahead(ahead_bytes);
        }
        if is_prepared { next.prepare() } else { Ok(next) }
    })
}

/// Creates the file of a log with the next free number, and prepares it. After an error, no file is left.
fn new_file(core: &Core, prepare: impl FnOnce(NextLog) -> Result<NextLog, LogError>) -> Result<NextLog> {
    let number = core.writes.new_number();
    let next =
        NextLog::create(&core.env.log_machine, &core.env.directory, number, core.env.log_features()).and_then(prepare);
    Ok(next.inspect_err(|_| remove(core, number))?)
}

/// Removes the file of a log that has not begun.
pub fn remove(core: &Core, number: u64) {
    core.env.opener.leftovers.remove(&log_path(&core.env.directory, number));
}

/// The job that syncs a growing log and creates the file of the next log.
#[derive(Debug)]
pub struct LogJob(pub Weak<Core>);

impl Job for LogJob {
    fn poll(&self) -> Polled {
        let Some(core) = self.0.upgrade() else { return Polled::Idle };
        let _guard = StopOnPanic::new(&core);
        let ahead = &core.writes.ahead;
        let Some(unsynced) = ahead.take_unsynced() else { return Polled::Idle };
        // If the sync fails, the database accepts no more writes, as after every failed sync of a log.
        if core.check_writable().is_err() || core.sync(unsynced).is_err() {
            return Polled::Idle;
        }
        // Append a note that proves which bytes are durable. Do not wait for the lock, because its holder may be
        // waiting for background work. If that is a commit, its own record is such a proof; otherwise, the idle job
        // tries again later. No commit is lost if the note cannot be written.
        if let Some(writer) = core.writes.writer.try_lock().as_deref_mut().and_then(Option::as_mut) {
            writer.prove_begin().ok();
        }
        if !ahead.needs_next() {
            return Polled::Idle;
        }
        // Ignore an error here: the rotation will try again to create the file, and report the error.
        let ahead_bytes = core.writes.fill.limit(core.env.options.write_buffer_bytes).min(MOST_AHEAD_BYTES);
        if let Ok(next) = create(&core, ahead_bytes) {
            ahead.put_next(next);
        }
        Polled::Idle
    }
}

#[cfg(test)]
mod tests;
