//! Does the slow parts of a rotation before the rotation comes, because commits wait for it: while a log grows, a job makes what
//! was appended durable piece by piece, creates the file of the next log, and asks for room for it: otherwise the file system looks
//! for room while the log is synced, reads its maps from a busy disk for that, and an append waits. It does not decide when a log
//! ends.
//!
//! A rotation syncs what is left of the old log, and writes the header of the new one. If the file of the next log is not
//! there, the rotation creates it.

use super::writer::{NextLog, Writer, log_path};
use crate::core::{Core, StopOnPanic};
use crate::error::Result;
use os::sync::Weak;
use os::{Job, Polled};

/// The most room, in bytes, that the job asks for when it has created the file of the next log.
const MOST_AHEAD_BYTES: u64 = 64 << 20;

/// Wakes the job if the log has grown enough. It is called under the writer's lock after a commit was appended.
pub fn appended(core: &Core, writer: &Writer) {
    let limit_bytes = core.writes.fill.limit(core.env.options.write_buffer_bytes);
    if core.writes.ahead.appended(writer, limit_bytes) {
        core.background.wake_log();
    }
}

/// The file of the log that continues that of `writer`, which is created if it is not there. It is called under the writer's
/// lock.
///
/// # Errors
///
/// The file could not be created.
pub fn next_log(core: &Core, writer: &Writer) -> Result<NextLog> {
    core.writes.ahead.begin_log();
    match core.writes.ahead.take_next() {
        // A rotation that came while the job created this file has taken a greater number.
        Some(old) if old.number() <= writer.memory().log => remove(core, old.number()),
        Some(next) => return Ok(next),
        None => {}
    }
    create(core)
}

/// Creates the file of a log with the next free number. After an error no file is left.
fn create(core: &Core) -> Result<NextLog> {
    let number = core.writes.new_number();
    let next = NextLog::create(&core.env.log_machine, &core.env.directory, number);
    Ok(next.inspect_err(|_| remove(core, number))?)
}

fn remove(core: &Core, number: u64) {
    core.env.opener.leftovers.remove(&log_path(&core.env.directory, number));
}

/// The job that syncs a growing log and creates the file of the next one.
#[derive(Debug)]
pub struct LogJob(pub Weak<Core>);

impl Job for LogJob {
    fn poll(&self) -> Polled {
        let Some(core) = self.0.upgrade() else { return Polled::Idle };
        let _guard = StopOnPanic(&core);
        let ahead = &core.writes.ahead;
        let Some(unsynced) = ahead.take_unsynced() else { return Polled::Idle };
        // If the sync fails, no more writes are taken, as after every failed sync of a log.
        if core.check_writable().is_err() || core.sync(unsynced).is_err() || ahead.has_next() {
            return Polled::Idle;
        }
        // If it cannot be created, the rotation tries again and reports why.
        if let Ok(mut next) = create(&core) {
            next.allocate_ahead(core.writes.fill.limit(core.env.options.write_buffer_bytes).min(MOST_AHEAD_BYTES));
            ahead.put_next(next);
        }
        Polled::Idle
    }
}

#[cfg(test)]
mod tests;
