//! Gives times to the rows of tables whose option says so, and makes sure that the log can take rows with times, before
//! the first of them is written. This module does not know how rows are committed.
//!
//! A log whose header does not announce such rows must not have any, because a release that does not know them would
//! take the log for damaged. So the first row with a time ends the current log, and all later logs announce them.

use super::room::rotate;
use crate::base::error::{Error, Result};
use crate::base::table::TableInfo;
use crate::core::expiring::RowTimes;
use crate::core::{Core, StopOnPanic};
use sst::Until;

/// The time that `table` gives to a row that is written without one; `None` if the row does not expire.
///
/// # Errors
///
/// The errors of [`RowTimes::of_row`] and of [`allow`], in a table that gives times.
#[inline]
pub fn of_row(core: &Core, table: &TableInfo, key: &[u8], parts: &[impl AsRef<[u8]>]) -> Result<Option<Until>> {
    of_row_by(core, core.expiring.of(table.id).as_ref(), table, key, parts)
}

/// As [`of_row`], if `times` says how the table gives times to its rows.
///
/// # Errors
///
/// As [`of_row`].
#[inline]
pub fn of_row_by(
    core: &Core,
    times: Option<&RowTimes>,
    table: &TableInfo,
    key: &[u8],
    parts: &[impl AsRef<[u8]>],
) -> Result<Option<Until>> {
    match times {
        None => Ok(None),
        Some(times) => given(core, times, table, key, parts),
    }
}

#[cold]
fn given(
    core: &Core,
    times: &RowTimes,
    table: &TableInfo,
    key: &[u8],
    parts: &[impl AsRef<[u8]>],
) -> Result<Option<Until>> {
    let until = times.of_row(|| core.env.row_clock.now(), table, key, &|part| parts.get(part).map(AsRef::as_ref))?;
    until.map(|until| allow(core).map(|()| until)).transpose()
}

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
