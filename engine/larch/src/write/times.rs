//! Makes sure that the log can take rows with times, before the first of them is written. This module does not know
//! which rows have times.
//!
//! A log whose header does not announce such rows must not have any, because a release that does not know them would
//! take the log for damaged. So the first row with a time ends the current log, and all later logs announce them.

use super::room::rotate;
use crate::base::error::{Error, Result};
use crate::core::{Core, StopOnPanic};

/// Lets the log take rows with times from now on.
///
/// # Errors
///
/// [`Error::BadOptions`] if `compat` names a release that does not know such rows; [`Error::ReadOnly`] in a read-only
/// database; the errors of [`Core::check_writable`] and of [`rotate`].
#[inline]
pub fn allow(core: &Core) -> Result<()> {
    if core.env.row_clock.log_takes_times() { Ok(()) } else { begin(core) }
}

#[cold]
fn begin(core: &Core) -> Result<()> {
    core.env.check_origin()?;
    if core.env.options.read_only {
        return Err(Error::ReadOnly);
    }
    core.check_writable()?;
    let (release, clock) = (core.env.options.compat, &core.env.row_clock);
    if !release.reads_times() {
        return Err(Error::BadOptions(format!(
            "compat {release}: Larch {release} does not know rows that expire; open the database without compat to \
             write one"
        )));
    }
    let mut guard = core.writes.writer.lock();
    if clock.log_takes_times() {
        return Ok(());
    }
    let writer = guard.as_mut().ok_or(Error::ReadOnly)?;
    let _stop = StopOnPanic::new(core);
    // From now on, new logs announce rows with times.
    clock.note_times();
    rotate(core, writer)?;
    clock.note_log_takes_times();
    Ok(())
}
