//! Decides whether a commit has room, when memtables are frozen and a new log begins, and what commits and flushes
//! wait for. This module does not know how a flush or a compaction is done.
//!
//! Functions that take a [`Writer`] must be called under the writer's lock.

use super::log_job;
use crate::base::error::{Error, Result};
use crate::base::event::StallReason;
use crate::base::ops::CommitOps;
use crate::base::table::{TableId, TableInfo};
use crate::core::background::stall::StalledCommit;
use crate::core::writer::Writer;
use crate::core::{Core, StopOnPanic};
use crate::levels::{pick, waste};
use crate::memtable::set::MemSet;
use crate::memtable::{Memtable, ROW_BYTES};
use crate::view::View;
use os::sync::Arc;

/// Estimates the memory that the ops of a commit will take in memtables, in bytes. `ROW_BYTES` leaves out a row's
/// further skiplist links and padding, 6 bytes on average. The 7 or more bytes that an op has besides its key and value
/// make up for them.
pub fn memory_bytes(ops: CommitOps<'_>) -> u64 {
    ops.encoded_bytes() as u64 + u64::from(ops.count()) * ROW_BYTES
}

/// Returns an error with the cause if compactions of `table` fail, because a caller would otherwise wait for one
/// forever.
fn check_compaction(core: &Core, table: TableId) -> Result<()> {
    match core.background.troubles.compaction_cause(table) {
        Some(cause) => Err(Error::Full { what: "level 0 of a table is full", cause: Box::new(cause) }),
        None => Ok(()),
    }
}

/// Returns an error if one of `tables` was dropped, or if its level 0 is full and stays full because compactions
/// fail.
///
/// # Errors
///
/// [`Error::TableDropped`] if a table was dropped; [`Error::Full`], with the cause, if its compactions fail.
pub fn check_tables(core: &Core, view: &View, tables: &[Arc<TableInfo>]) -> Result<()> {
    let stop = pick::stop_files(&core.env.options.levels);
    for table in tables {
        view.files_of(table)?;
        if is_level0_full(view, table.id, stop) {
            check_compaction(core, table.id)?;
        }
    }
    Ok(())
}

/// Counts a commit that stalls for `reason`. A commit that stalls again for the same reason is not counted again.
pub fn note_stall<'c>(core: &'c Core, stalled: &mut Option<StalledCommit<'c>>, reason: StallReason) {
    if stalled.as_ref().is_none_or(|stalled| stalled.reason() != reason) {
        *stalled = None;
        *stalled = Some(StalledCommit::begin(&core.env, &core.background.stalls, reason));
    }
}

/// When a commit will have room in the write buffer.
pub enum Room {
    /// The commit has room now, in the current memtables.
    Here,
    /// The commit has room once the current memtables are frozen and a new log has begun.
    AfterRotation,
    /// The commit has to wait for a flush to end.
    AfterFlush,
    /// The commit has to wait until a compaction has removed files from level 0.
    AfterCompaction,
}

/// Whether level 0 of `table` has at least `stop` files.
fn is_level0_full(view: &View, table: TableId, stop: usize) -> bool {
    view.files.tables.get(&table).is_some_and(|files| files.levels[0].len() >= stop)
}

/// Whether a flush of `memory` has to wait for a compaction, because level 0 of one of its tables has at least
/// `stop` files. Tables whose compactions fail do not count: they accept no more writes, see [`check_tables`], and
/// their rows in memory must not stall writers of other tables.
fn must_wait(core: &Core, view: &View, memory: &MemSet, stop: usize) -> bool {
    let troubles = &core.background.troubles;
    let tables = memory.all().into_iter().filter(|(_, memtable)| !memtable.is_empty()).map(|(table, _)| table);
    let mut full = tables.filter(|&table| is_level0_full(view, table, stop));
    full.any(|table| troubles.compaction_cause(table).is_none())
}

/// Waits until level 0 has room to flush all memtables, and for one more file in the table `also`. This is for
/// callers that add files to level 0 themselves or ask for a flush. The caller must hold no lock.
///
/// # Errors
///
/// The errors of [`Core::check_writable`]; [`Error::Full`] with the cause, if compactions of the table `also` fail.
pub fn wait_for_level0(core: &Core, also: Option<TableId>) -> Result<()> {
    let stop = pick::asked_stop_files(&core.env.options.levels);
    let mut stalled = None;
    loop {
        let seen = core.background.progress_seen();
        core.check_writable()?;
        let view = core.views.newest();
        if let Some(table) = also.filter(|&table| is_level0_full(&view, table, stop)) {
            check_compaction(core, table)?;
        } else if !view.memory.iter().any(|memory| must_wait(core, &view, memory, stop)) {
            return Ok(());
        }
        note_stall(core, &mut stalled, StallReason::Level0);
        core.take_back_without_threads();
        core.background.wake_compact_first();
        core.wait_progress(seen);
    }
}

/// Says when a commit of `bytes` bytes will have room. While frozen memtables are being flushed, commits can use
/// the rest of the write buffer.
pub fn room(core: &Core, view: &View, writer: &Writer, bytes: u64) -> Room {
    let buffer_bytes = core.env.options.write_buffer_bytes;
    let is_flushing = view.memory.len() > 1;
    let mut limit = core.writes.fill.limit(buffer_bytes);
    if is_flushing {
        limit = limit.min(view.left_bytes(buffer_bytes));
    }
    if !writer.is_ended() && writer.memory().used_bytes() + bytes <= limit {
        Room::Here
    } else if is_flushing {
        Room::AfterFlush
    } else {
        // A rotation leads to a flush, which needs room for one more file in level 0.
        let stop = pick::stop_files(&core.env.options.levels);
        if must_wait(core, view, writer.memory(), stop) { Room::AfterCompaction } else { Room::AfterRotation }
    }
}

/// Whether `ops`, of `bytes` bytes, may exceed the write buffer, which is full. They may if they only erase and a
/// flush has found the disk full, because a program must be able to erase rows to make room. Memory may exceed the
/// write buffer by as many bytes as the reserve has.
pub fn is_erase_taken_beyond(core: &Core, view: &View, writer: &Writer, ops: CommitOps<'_>, bytes: u64) -> bool {
    let (buffer_bytes, beyond_bytes) = (core.env.options.write_buffer_bytes, core.env.options.reserve_bytes);
    ops.is_erases_only()
        && writer.memory().used_bytes() + bytes <= view.left_bytes(buffer_bytes) + beyond_bytes
        && core.background.troubles.flush_cause().is_some_and(|cause| cause.is_disk_full())
}

/// Freezes the current memtables, and begins a new log with new memtables. Syncs the old log only if the new log
/// cannot begin before that; otherwise the first sync of the new log makes the old one durable. Waits for commits
/// that are being applied, because frozen memtables must not change.
///
/// # Errors
///
/// An error if a sync failed or the new log cannot be made. Nothing is lost, and the next commit tries to rotate
/// again. It must not be appended to the old log, because a crash may leave a new log that names the old log's end.
pub fn rotate(core: &Core, writer: &mut Writer) -> Result<()> {
    core.wait_for_commits(writer)?;
    let next = log_job::next_log(core, writer)?;
    if !writer.can_continue_in(&next) {
        core.sync(writer.unsynced()).inspect_err(|_| log_job::remove(core, next.number()))?;
    }
    let functions = &core.env.options.merge_functions;
    let memory = MemSet::new(next.number(), core.env.held.rows.clone()).with_filter().with_functions(functions);
    let memory = Arc::new(memory);
    *writer = writer.continue_in(next, memory.clone()).map_err(|error| {
        log_job::remove(core, memory.log);
        core.not_appended(error)
    })?;
    core.env.leases.tell_newest_log(writer.memory().log);
    log_job::begun(core, writer);
    core.views.change(|view| view.memory.insert(0, memory));
    core.background.wake_flush();
    Ok(())
}

/// Freezes the memtables of an idle database if they have many erased rows or may hide many rows in files, so that
/// background work can free the space of these rows. Nothing else would cause a flush. Does nothing if the flush
/// would have to wait, or if the disk is full, because a full disk may still have room for a small commit in the
/// old log, but not for a new log.
///
/// # Errors
///
/// The errors of [`rotate`].
pub fn freeze_idle(core: &Core, writer: &mut Writer) -> Result<()> {
    let view = core.views.newest();
    let is_worth_it = |(table, memtable): &(TableId, Arc<Memtable>)| {
        let hides_much = || view.files.tables.get(table).is_some_and(|table| waste::is_flush_due(table, memtable));
        memtable.erases() >= pick::MIN_ERASED || hides_much()
    };
    let is_free = view.memory.len() == 1
        && !must_wait(core, &view, writer.memory(), pick::stop_files(&core.env.options.levels))
        && core.background.troubles.flush_cause().is_none();
    let is_due = is_free && writer.memory().all().iter().any(is_worth_it);
    if is_due && core.writes.reserve.fill().is_ok() { rotate(core, writer) } else { Ok(()) }
}

/// Called after a flush has found the disk full. Freezes the current memtables if they have erases, so that the
/// next flush, which takes all frozen memtables together, need not write the rows that they erase. Does nothing if
/// another thread holds the writer's lock, because that thread may be waiting for a flush.
pub fn freeze_for_room(core: &Core) {
    let Some(mut writer) = core.writes.writer.try_lock() else { return };
    let _guard = StopOnPanic::new(core);
    if let Some(writer) = writer.as_mut().filter(|writer| writer.memory().has_erases()) {
        core.writes.reserve.give_back();
        // Without room for a new log, nothing is frozen. The next attempt to flush tries again.
        rotate(core, writer).ok();
    }
}

/// Waits until all frozen memtables are flushed. A flush that has failed is retried at once.
///
/// # Errors
///
/// The errors of [`Core::check_writable`]; the error of a flush that failed, which the background job goes on
/// retrying.
pub fn wait_for_flushes(core: &Core) -> Result<()> {
    let troubles = &core.background.troubles;
    let failed_before = troubles.failed_flushes();
    troubles.retry_flush_now();
    loop {
        let seen = core.background.progress_seen();
        core.check_writable()?;
        if core.views.newest().memory.len() < 2 {
            return Ok(());
        }
        if troubles.failed_flushes() > failed_before
            && let Some(cause) = troubles.flush_cause()
        {
            return Err(cause);
        }
        core.background.wake_flush();
        core.wait_progress(seen);
    }
}

/// Waits until no rows of `table` are in memory. The caller holds the writer's lock, so no commit adds rows
/// meanwhile. Flushes do not need this lock.
///
/// # Errors
///
/// The errors of [`rotate`] and [`wait_for_flushes`].
pub fn table_to_files(core: &Core, writer: &mut Writer, table: TableId) -> Result<()> {
    let has_rows = |memory: &Arc<MemSet>| memory.table(table).is_some_and(|memtable| !memtable.is_empty());
    core.wait_for_commits(writer)?;
    if core.views.newest().memory.iter().any(has_rows) {
        if !writer.memory().is_empty() {
            rotate(core, writer)?;
        }
        wait_for_flushes(core)?;
    }
    Ok(())
}
