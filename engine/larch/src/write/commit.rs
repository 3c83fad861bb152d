//! Commits the ops of a batch, or a single op: gives them a version, appends them to the log, and applies them to the
//! memtables. If the caller asks for it, the commit also waits until it is durable. This module does not know how
//! rows get into files.
//!
//! The writer's lock decides the order of commits. A commit gets its version and is appended to the log under
//! this lock, which is held only briefly, so the log is in version order. It is applied to the memtables after the lock
//! is released, in parallel with other commits, and becomes visible when all older commits are visible
//! (decision 48). Waiting commits share syncs (decision 65), see [`SyncPoint`](crate::log::SyncPoint). Reads may
//! see a commit before it is durable. But a thread that has read such a commit, and then waits for a later commit
//! of its own, knows that both are durable: a sync covers the whole log, and the previous log before it.
//!
//! Any thread may call the functions of this file.

use super::indexed::Indexed;
use super::not_committed::{Later, NotCommitted};
use super::room::{Room, check_tables, memory_bytes, note_stall, rotate, wait_for_flushes};
use super::validation::Validation;
use super::{large, log_job, room};
use crate::base::error::{Error, Result};
use crate::base::event::StallReason;
use crate::base::ops::{BatchOps, CommitOps};
use crate::base::options::Durability;
use crate::base::table::TableInfo;
use crate::conflicts::signature::Signature;
use crate::core::background::stall::StalledCommit;
use crate::core::visible::Applying;
use crate::core::writer::apply;
use crate::core::{Core, StopOnPanic, pace, waiting};
use crate::memtable::set::MemSet;
use os::sync::Arc;
use os::sync::atomic::Ordering;
use sst::Version;
use std::time::Duration;

/// Waits until reads see the newest commit and, with [`Durability::Synced`], until it is durable. Returns its
/// version.
///
/// # Errors
///
/// The errors of [`Core::check_writable`]; [`Error::ReadOnly`] if there is no writer; [`Error::OutcomeUnknown`] if
/// the sync failed.
pub fn sync(core: &Core, durability: Durability) -> Result<Version> {
    core.check_writable()?;
    let newest = newest(core)?;
    if durability == Durability::Synced {
        core.make_durable(newest)?;
    }
    Ok(newest)
}

/// Waits until reads see the newest commit, and returns its version.
fn newest(core: &Core) -> Result<Version> {
    let newest = core.writes.writer.lock().as_ref().ok_or(Error::ReadOnly)?.last_version();
    core.views.visible_versions().wait(newest).map_err(|broken| core.commit_broke(broken))?;
    Ok(newest)
}

/// Commits `ops`, which must be resolved, to `tables` and returns their version. With [`Durability::Synced`], returns
/// only when the ops are durable. Without ops, this is [`sync`]. If one of the tables has an index, the commit fails
/// with a conflict, because only transactions may write to such a table.
///
/// # Errors
///
/// [`Conflict::Indexes`](crate::base::conflict::Conflict::Indexes) if a table has an index; [`Error::Full`] with
/// the cause, if there is no room because background work fails; an error if a table was dropped; the errors of
/// [`sync`].
pub fn commit(
    core: &Arc<Core>,
    ops: CommitOps<'_>,
    tables: &[Arc<TableInfo>],
    durability: Durability,
) -> Result<Version, NotCommitted> {
    let version = apply_ops(core, ops, tables)?;
    if durability == Durability::Synced {
        core.make_durable(version)?;
    }
    work_if_simulated(core);
    Ok(version)
}

/// Like [`commit`], but without a sync: when the call returns, reads see the returned version, but it may not be
/// durable yet. Without ops, returns the newest version.
///
/// # Errors
///
/// The errors of [`commit`], except the errors of a sync.
pub fn submit(core: &Arc<Core>, ops: &mut BatchOps, tables: &[Arc<TableInfo>]) -> Result<Version, NotCommitted> {
    let version = apply_ops(core, ops.resolve(), tables)?;
    work_if_simulated(core);
    Ok(version)
}

/// On a machine without real threads, runs the background work that a commit has caused.
pub fn work_if_simulated(core: &Core) {
    if !core.env.machine.threads.are_real() {
        core.background.drive();
    }
}

/// The async form of [`submit`], for `ops` that are not [large](is_large). While the commit is slowed down or has
/// no room, other tasks run. The caller must already have waited for keys that other transactions have reserved. If
/// the future is dropped before it is ready, nothing is committed.
///
/// # Errors
///
/// The errors of [`submit`].
pub async fn submit_async(
    core: &Arc<Core>,
    ops: &mut BatchOps,
    tables: &[Arc<TableInfo>],
) -> Result<Version, NotCommitted> {
    if ops.is_empty() {
        core.check_writable()?;
        return Ok(newest_async(core).await?);
    }
    apply_async(core, ops.resolve(), (tables, Indexed::Not), None).await
}

/// The async form of [`newest`]: while another thread holds the writer's lock, other tasks run.
async fn newest_async(core: &Core) -> Result<Version> {
    loop {
        let newest = core.writes.writer.try_lock().map(|writer| writer.as_ref().map(|writer| writer.last_version()));
        if let Some(newest) = newest {
            let newest = newest.ok_or(Error::ReadOnly)?;
            core.views.visible_versions().wait(newest).map_err(|broken| core.commit_broke(broken))?;
            return Ok(newest);
        }
        waiting::pause(core, LOCKED_PAUSE).await;
    }
}

/// Like [`submit`], but returns `None` and does nothing if the commit would have to wait. `ops` must be neither
/// empty nor [large](is_large).
///
/// # Errors
///
/// The errors of [`submit`].
pub fn try_submit(
    core: &Arc<Core>,
    ops: &mut BatchOps,
    tables: &[Arc<TableInfo>],
) -> Result<Option<Version>, NotCommitted> {
    let ops = ops.resolve();
    begin_valid(core, ops, None)?;
    let mut reserved = None;
    if let Some(time) = slowed_time(core, memory_bytes(ops)) {
        let now = core.env.machine.clock.now();
        if !core.writes.pace.is_free(now) {
            return Ok(None);
        }
        core.writes.pace.reserve(now, time);
        reserved = Some(SlowedTime { core, time });
    }
    let committed = match append(core, ops, (tables, Indexed::Not), None, &mut None, Patience::OfTask) {
        Err(NotCommitted::Later(_)) => return Ok(None),
        committed => committed?,
    };
    std::mem::forget(reserved);
    work_if_simulated(core);
    Ok(Some(committed))
}

fn apply_ops(core: &Arc<Core>, ops: CommitOps<'_>, tables: &[Arc<TableInfo>]) -> Result<Version, NotCommitted> {
    if ops.count() == 0 {
        return Ok(sync(core, Durability::Buffered)?);
    }
    let reserved = &core.writes.reserved;
    if reserved.count() > 0 {
        // A forked child must not wait: the thread that would end the wait exists only in the parent.
        core.check_writable()?;
        reserved.wait_for(ops, None, core.patient_clock());
    }
    apply_valid(core, ops, (tables, Indexed::Not), None)
}

/// Like [`submit`], but for a transaction: commits only if `validation` finds no conflict with another commit.
/// `ops` must not be empty.
///
/// # Errors
///
/// [`NotCommitted::Conflict`] if there is a conflict with another commit; the errors of [`submit`].
pub fn submit_valid(
    core: &Arc<Core>,
    ops: &mut BatchOps,
    tables: (&[Arc<TableInfo>], Indexed),
    validation: Validation<'_>,
) -> Result<Version, NotCommitted> {
    let applied = apply_valid(core, ops.resolve(), tables, Some(validation))?;
    work_if_simulated(core);
    Ok(applied)
}

/// Whether `ops` would take more than half of the write buffer. Their commit then writes files, which occupies a
/// thread for long.
pub fn is_large(core: &Core, ops: CommitOps<'_>) -> bool {
    memory_bytes(ops) > core.env.options.write_buffer_bytes / 2
}

/// The async form of [`submit_valid`], for `ops` that are not [large](is_large). While the commit is slowed down or
/// has no room, other tasks run.
///
/// # Errors
///
/// The errors of [`submit_valid`].
pub async fn submit_valid_async(
    core: &Arc<Core>,
    ops: &mut BatchOps,
    tables: (&[Arc<TableInfo>], Indexed),
    validation: Validation<'_>,
) -> Result<Version, NotCommitted> {
    apply_async(core, ops.resolve(), tables, Some(validation)).await
}

/// The time that a slowed commit has reserved. Dropping this value gives the time back, for a commit that was not
/// made.
struct SlowedTime<'c> {
    core: &'c Core,
    time: Duration,
}

impl Drop for SlowedTime<'_> {
    fn drop(&mut self) {
        self.core.writes.pace.give_back(self.time);
    }
}

async fn apply_async(
    core: &Arc<Core>,
    ops: CommitOps<'_>,
    tables: (&[Arc<TableInfo>], Indexed),
    mut validation: Option<Validation<'_>>,
) -> Result<Version, NotCommitted> {
    begin_valid(core, ops, validation.as_mut())?;
    if let Some((wait, time)) = slowed(core, memory_bytes(ops)) {
        let reserved = SlowedTime { core, time };
        waiting::pause(core, wait).await;
        std::mem::forget(reserved);
    }
    let mut stalled = None;
    let committed = loop {
        match append(core, ops, tables, validation.as_mut(), &mut stalled, Patience::OfTask) {
            Err(NotCommitted::Later(Later::Progress(seen))) => waiting::progress(core, seen).await,
            Err(NotCommitted::Later(Later::Unlocked)) => waiting::pause(core, LOCKED_PAUSE).await,
            committed => break committed?,
        }
    };
    work_if_simulated(core);
    Ok(committed)
}

/// A task that finds the writer's lock taken tries again after this time. Most commits hold the lock for a few
/// microseconds. But an import or a large batch holds it until its tables have been flushed.
const LOCKED_PAUSE: Duration = Duration::from_micros(50);

/// Who waits if a commit has to wait.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Patience {
    /// The thread of the commit waits.
    OfThread,
    /// The call returns [`NotCommitted::Later`], and the commit's task calls again later.
    OfTask,
}

fn apply_valid(
    core: &Arc<Core>,
    ops: CommitOps<'_>,
    tables: (&[Arc<TableInfo>], Indexed),
    mut validation: Option<Validation<'_>>,
) -> Result<Version, NotCommitted> {
    begin_valid(core, ops, validation.as_mut())?;
    if is_large(core, ops) {
        return large::commit(core, ops, tables, validation.as_mut());
    }
    if let Some((wait, _)) = slowed(core, memory_bytes(ops)) {
        core.env.machine.clock.pause(wait);
    }
    append(core, ops, tables, validation.as_mut(), &mut None, Patience::OfThread)
}

/// Checks that writes are allowed, and compares the transaction of `ops`, if they have one, with the commits that are
/// visible now.
#[inline]
fn begin_valid(core: &Core, ops: CommitOps<'_>, validation: Option<&mut Validation<'_>>) -> Result<(), NotCommitted> {
    core.check_writable()?;
    if core.env.options.read_only {
        return Err(Error::ReadOnly.into());
    }
    validation.map_or(Ok(()), |validation| compare(core, validation, ops))
}

/// Compares a transaction with all commits that are visible now.
///
/// # Errors
///
/// [`NotCommitted::Conflict`] if one of them has changed what the transaction depends on, or if the keys of some of
/// them are no longer known.
pub fn compare(core: &Core, validation: &mut Validation<'_>, ops: CommitOps<'_>) -> Result<(), NotCommitted> {
    // The version is read before the view, so the view has every commit up to this version, in memory or in files.
    let visible = core.views.visible();
    let view = core.views.newest();
    Ok(validation.compare(&view, &core.writes.recent, ops, visible)?)
}

/// How much time background work will need for a commit of `bytes` bytes; `None` if background work is not behind.
fn slowed_time(core: &Core, bytes: u64) -> Option<Duration> {
    let options = &core.env.options;
    pace::slowed(&core.views.newest(), &options.levels, options.write_buffer_bytes, bytes)
}

/// How long a commit of `bytes` bytes has to wait because background work is behind, and how much time it has
/// reserved; `None` if it need not wait.
fn slowed(core: &Core, bytes: u64) -> Option<(Duration, Duration)> {
    let time = slowed_time(core, bytes)?;
    let wait = core.writes.pace.reserve(core.env.machine.clock.now(), time);
    if wait.is_zero() {
        return None;
    }
    core.env.written.slowed_nanos.fetch_add(wait.as_nanos() as u64, Ordering::Relaxed);
    Some((wait, time))
}

/// Puts a commit into the log and the memtables. On a full disk, a commit that only erases may use the reserve.
fn append<'c>(
    core: &'c Core,
    ops: CommitOps<'_>,
    tables: (&[Arc<TableInfo>], Indexed),
    mut validation: Option<&mut Validation<'_>>,
    stalled: &mut Option<StalledCommit<'c>>,
    patience: Patience,
) -> Result<Version, NotCommitted> {
    loop {
        match append_once(core, ops, tables, validation.as_deref_mut(), (&mut *stalled, patience)) {
            Err(NotCommitted::Failed(error))
                if error.is_disk_full() && ops.is_erases_only() && core.writes.reserve.give_back() =>
            {
                if matches!(error, Error::Full { .. }) {
                    // The flush that failed can now succeed, in the space of the reserve.
                    wait_for_flushes(core)?;
                }
            }
            outcome => return outcome,
        }
    }
}

/// A commit that is in the log.
struct Logged<'c> {
    applying: Applying<'c>,
    version: Version,
    memory: Arc<MemSet>,
}

fn append_once<'c>(
    core: &'c Core,
    ops: CommitOps<'_>,
    tables: (&[Arc<TableInfo>], Indexed),
    validation: Option<&mut Validation<'_>>,
    waits: (&mut Option<StalledCommit<'c>>, Patience),
) -> Result<Version, NotCommitted> {
    let bytes = memory_bytes(ops);
    // After a panic, nobody knows which parts of the commit are in the log and the memtables, so this guard then
    // makes the database refuse writes.
    let _guard = StopOnPanic::new(core);
    let Logged { applying, version, memory } = log(core, ops, bytes, tables, validation, waits)?;
    if ops.has_merges() {
        // A merge is joined with the rows before it, so they must be there.
        core.views.visible_versions().wait(Version(version.0 - 1)).map_err(|broken| core.commit_broke(broken))?;
    }
    apply(&memory, version, ops, bytes);
    applying.finish().map_err(|broken| core.commit_broke(broken))?;
    Ok(version)
}

/// Waits until a commit has room, and appends it to the log if `validation` finds no conflict.
fn log<'c>(
    core: &'c Core,
    ops: CommitOps<'_>,
    bytes: u64,
    (tables, indexed): (&[Arc<TableInfo>], Indexed),
    mut validation: Option<&mut Validation<'_>>,
    (stalled, patience): (&mut Option<StalledCommit<'c>>, Patience),
) -> Result<Logged<'c>, NotCommitted> {
    // With a commit's signature, running transactions see quickly that it wrote other keys. A transaction that
    // begins after this line does not need the signature: it either sees this commit, or treats its keys as
    // unknown.
    let is_asked_for = core.writes.recent.running() > 0;
    let written = if is_asked_for { Signature::of_ops(ops) } else { Signature::ANY };
    let depends_on = validation.as_ref().map_or(Signature::NONE, |validation| validation.keys(ops));
    loop {
        let seen = core.background.progress_seen();
        // The view is taken before the lock, to hold the lock for less time. It is usually still the newest view
        // when the lock is taken.
        let mut view = core.views.newest();
        let mut guard = match patience {
            Patience::OfThread => core.writes.writer.lock(),
            Patience::OfTask => core.writes.writer.try_lock().ok_or(NotCommitted::Later(Later::Unlocked))?,
        };
        // After a panic, this guard makes the database refuse writes. It drops before the lock is released, so the
        // next thread to get the lock sees that writes are refused.
        let _guard = StopOnPanic::new(core);
        let writer = guard.as_mut().ok_or(Error::ReadOnly)?;
        core.check_writable()?;
        if view.generation != core.views.generation() {
            view = core.views.newest();
        }
        indexed.check(&core.indexes, tables)?;
        check_tables(core, &view, tables)?;
        if !core.writes.reserve.is_full() && !ops.is_erases_only() {
            // Erases may have used the reserve. Refill it before a put, or puts would use up the space that erases
            // have freed.
            core.writes.reserve.fill()?;
        }
        match room::room(core, &view, writer, bytes) {
            Room::Here => {}
            Room::AfterRotation => {
                rotate(core, writer)?;
                // The frozen memtables still take memory, so there may be no room for this commit yet.
                continue;
            }
            Room::AfterFlush if room::is_erase_taken_beyond(core, &view, writer, ops, bytes) => {
                if writer.is_ended() {
                    rotate(core, writer)?;
                    continue;
                }
            }
            Room::AfterFlush => {
                drop(guard);
                if let Some(cause) = core.background.troubles.flush_cause() {
                    let what = "the write buffer is full";
                    return Err(Error::Full { what, cause: Box::new(cause) }.into());
                }
                note_stall(core, stalled, StallReason::WriteBuffer);
                core.background.wake_flush();
                if patience == Patience::OfTask {
                    return Err(NotCommitted::Later(Later::Progress(seen)));
                }
                core.wait_progress(seen);
                continue;
            }
            Room::AfterCompaction => {
                drop(guard);
                note_stall(core, stalled, StallReason::Level0);
                core.background.wake_compact_first();
                if patience == Patience::OfTask {
                    return Err(NotCommitted::Later(Later::Progress(seen)));
                }
                core.wait_progress(seen);
                continue;
            }
        }
        if let Some(validation) = &mut validation
            && validation.is_behind(writer.last_version())
            && validation.may_be_changed(writer.latest_keys(), depends_on, writer.last_version())
        {
            // Logged commits are applied soon, and no more can follow while this thread holds the lock.
            core.wait_for_commits(writer)?;
            validation.compare(&view, &core.writes.recent, ops, writer.last_version())?;
        }
        let visible = core.views.visible_versions();
        visible.wait_for_slot(writer.next_version()).map_err(|broken| core.commit_broke(broken))?;
        let begin = writer.log_end();
        let version = writer.append(ops, bytes, written).map_err(|error| core.not_appended(error))?;
        core.env.written.log.fetch_add(writer.log_end() - begin, Ordering::Relaxed);
        core.env.held.log.store(writer.buffer_bytes(), Ordering::Relaxed);
        log_job::appended(core, writer);
        return Ok(Logged { applying: visible.begin(version), version, memory: writer.memory().clone() });
    }
}

#[cfg(test)]
mod tests;
