//! Decides whether there is room for a commit, when memtables are frozen and a new log begins, and what commits
//! and flushes wait for. This module does not know how a flush or a compaction is done.
//!
//! If a function takes a [`Writer`], it must be called under the lock of the writer.

use super::log_job;
use crate::base::error::{Error, Result};
use crate::base::event::StallReason;
use crate::base::ops::BatchOps;
use crate::base::table::{TableId, TableInfo};
use crate::core::background::stall::StalledCommit;
use crate::core::writer::Writer;
use crate::core::{Core, StopOnPanic};
use crate::levels::{pick, waste};
use crate::memtable::set::MemSet;
use crate::memtable::{Memtable, ROW_BYTES};
use crate::view::View;
use os::sync::Arc;

/// An estimate of the memory that a batch will take in memtables, in bytes. `ROW_BYTES` does not include the
/// further links and the padding of a row, which take 6 bytes on average. This does not matter, because an op in a
/// batch has at least 7 bytes in addition to its key and its value.
pub fn memory_bytes(ops: &BatchOps) -> u64 {
    ops.bytes().len() as u64 + u64::from(ops.count()) * ROW_BYTES
}

/// Returns an error with the cause if compactions of `table` fail. Without this error, a caller that waits for
/// such a compaction would wait forever.
fn check_compaction(core: &Core, table: TableId) -> Result<()> {
    match core.background.troubles.compaction_cause(table) {
        Some(cause) => Err(Error::Full { what: "level 0 of a table is full", cause: Box::new(cause) }),
        None => Ok(()),
    }
}

/// Returns an error if one of `tables` was dropped. Returns an error also if level 0 of one of them is full and
/// stays full because compactions fail.
///
/// # Errors
///
/// [`Error::TableDropped`]; [`Error::Full`] with the cause.
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

/// Counts a commit that has to wait for `reason`. A commit that waits several times for the same reason is counted
/// only once.
pub fn note_stall<'c>(core: &'c Core, stalled: &mut Option<StalledCommit<'c>>, reason: StallReason) {
    if stalled.as_ref().is_none_or(|stalled| stalled.reason() != reason) {
        *stalled = None;
        *stalled = Some(StalledCommit::begin(&core.env, &core.background.stalls, reason));
    }
}

/// Says when a commit will have room in the write buffer.
pub enum Room {
    /// The commit has room now, in the present memtables.
    Here,
    /// The commit will have room as soon as the present memtables are frozen and a new log has begun.
    AfterRotation,
    /// The commit has to wait until a flush has ended.
    AfterFlush,
    /// The commit has to wait until a compaction has removed files from level 0.
    AfterCompaction,
}

/// Whether level 0 of `table` has at least `stop` files.
fn is_level0_full(view: &View, table: TableId, stop: usize) -> bool {
    view.files.tables.get(&table).is_some_and(|files| files.levels[0].len() >= stop)
}

/// Whether a flush of `memory` has to wait for a compaction, because level 0 of one of its tables has at least
/// `stop` files. Tables whose compactions fail are ignored. Such a table accepts no more writes, see
/// [`check_tables`], and its rows in memory must not make writers of other tables wait.
fn must_wait(core: &Core, view: &View, memory: &MemSet, stop: usize) -> bool {
    let troubles = &core.background.troubles;
    let tables = memory.all().into_iter().filter(|(_, memtable)| !memtable.is_empty()).map(|(table, _)| table);
    let mut full = tables.filter(|&table| is_level0_full(view, table, stop));
    full.any(|table| troubles.compaction_cause(table).is_none())
}

/// Waits until level 0 has room for files with the rows that are in memory. If `also` is set, waits also until
/// level 0 of this table has room for one more file. This is for callers that add files to level 0 without a usual
/// commit. The caller must hold no lock.
///
/// # Errors
///
/// The reason why writes are refused; [`Error::Full`] with the cause, if compactions of the table `also` fail.
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

/// Says when a commit of `bytes` bytes will have room. While memtables are flushed, commits can use that part of
/// the write buffer which these memtables do not use.
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
        // A rotation is followed by a flush, which needs room for one more file in level 0.
        let stop = pick::stop_files(&core.env.options.levels);
        if must_wait(core, view, writer.memory(), stop) { Room::AfterCompaction } else { Room::AfterRotation }
    }
}

/// Called when the write buffer is full. If the disk has no room for a flush, erases may nevertheless go into
/// memory: memory may then exceed the write buffer by as many bytes as the reserve has. Returns whether the erases
/// `ops` of `bytes` bytes may do so. Otherwise a program could not erase rows to make room.
pub fn is_erase_taken_beyond(core: &Core, view: &View, writer: &Writer, ops: &BatchOps, bytes: u64) -> bool {
    let (buffer_bytes, beyond_bytes) = (core.env.options.write_buffer_bytes, core.env.options.reserve_bytes);
    ops.is_erases_only()
        && writer.memory().used_bytes() + bytes <= view.left_bytes(buffer_bytes) + beyond_bytes
        && core.background.troubles.flush_cause().is_some_and(|cause| cause.is_disk_full())
}

/// Freezes the present memtables, and begins a new log with new memtables. Later, a sync of the new log first
/// makes the old log durable. So the old log is synced here only if the new log cannot begin before that. The call
/// waits for the commits that are being applied, because frozen memtables must not change.
///
/// # Errors
///
/// An error if a sync failed or the new log cannot be made. After an error, nothing is lost, and the next commit
/// tries to rotate again. The next commit must not be appended to the old log: after a crash, there may be a new
/// log that says where the old log ended.
pub fn rotate(core: &Core, writer: &mut Writer) -> Result<()> {
    core.wait_for_commits(writer)?;
    let next = log_job::next_log(core, writer)?;
    if !writer.can_continue_in(&next) {
        core.sync(writer.unsynced()).inspect_err(|_| log_job::remove(core, next.number()))?;
    }
    let memory = Arc::new(MemSet::new(next.number(), core.env.held.rows.clone()).with_filter());
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

/// Freezes the memtables if they have many erased rows, or if they may hide many rows in files. Background work
/// can then free the space of these rows. In an idle database, nothing else causes a flush. The function does
/// nothing if the flush would have to wait, or if the disk is full: a full disk may still have room for a small
/// commit in the old log, but not for a new log.
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

/// Called after a flush has found the disk full. If the present memtables have erases, freezes them. The next
/// flush then flushes all frozen memtables together, and need not write the rows that these erases remove. If
/// another thread holds the lock of the writer, this does nothing, because that thread may be waiting for a flush.
pub fn freeze_for_room(core: &Core) {
    let Some(mut writer) = core.writes.writer.try_lock() else { return };
    let _guard = StopOnPanic::new(core);
    if let Some(writer) = writer.as_mut().filter(|writer| writer.memory().has_erases()) {
        core.writes.reserve.give_back();
        // If the disk has no room for a new log, the memtables are not frozen. Before the flush is tried again,
        // freezing is tried again.
        rotate(core, writer).ok();
    }
}

/// Waits until all frozen memtables are in files. If the last flush failed, the next try begins at once because of
/// this call.
///
/// # Errors
///
/// The reason why writes are refused, or why a flush failed. Such a flush is tried again in the background.
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

/// Waits until no row of `table` is in memory any more. The caller holds the lock of the writer, so that no commit
/// comes during this call. Flushes do not need this lock.
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
