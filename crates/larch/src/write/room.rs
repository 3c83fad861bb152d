//! Room for commits: when memtables are frozen and a new log is begun, and what commits and flushes wait for.

use super::batch::BatchOps;
use super::stall::StalledCommit;
use super::writer::{Writer, log_path};
use crate::compact::pick;
use crate::core::Core;
use crate::error::{Error, Result};
use crate::event::StallReason;
use crate::manifest::{TableId, TableInfo};
use crate::memtable::set::MemSet;
use crate::read::View;
use os::sync::Arc;

/// About the memory that a batch will take in memtables: a row has an allocation and a node besides its bytes.
pub fn memory_bytes(ops: &BatchOps) -> u64 {
    const ROW_BYTES: u64 = 112;
    ops.bytes().len() as u64 + u64::from(ops.count()) * ROW_BYTES
}

/// An error if compactions of `table` fail, for who would wait for one.
fn check_compaction(core: &Core, table: TableId) -> Result<()> {
    match core.background.troubles.compaction_cause(table) {
        Some(cause) => Err(Error::Full { what: "level 0 of a table is full", cause: Box::new(cause) }),
        None => Ok(()),
    }
}

/// Refuses tables that were dropped, and tables whose level 0 is full and stays so because compactions fail.
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

/// Counts a commit that is about to wait, if it does not wait for this reason already.
pub fn wait_for<'c>(core: &'c Core, waiting: &mut Option<StalledCommit<'c>>, reason: StallReason) {
    if waiting.as_ref().is_none_or(|waiting| waiting.reason() != reason) {
        *waiting = None;
        *waiting = Some(StalledCommit::begin(&core.env, &core.background.stalls, reason));
    }
}

/// When a commit has room in the write buffer.
pub enum Room {
    /// Now.
    Here,
    /// With new memtables and a new log.
    AfterRotation,
    /// Once a flush has ended.
    AfterFlush,
    /// Once a compaction has taken files from level 0.
    AfterCompaction,
}

/// Whether level 0 of `table` has `stop` files or more.
fn is_level0_full(view: &View, table: TableId, stop: usize) -> bool {
    view.files.tables.get(&table).is_some_and(|files| files.levels[0].len() >= stop)
}

/// Whether a flush of `memory` has to wait for a compaction: level 0 of one of its tables has `stop` files or more. A table
/// whose compactions fail takes no writes then, see [`check_tables`], and what is in memory of it keeps nobody waiting.
fn must_wait(core: &Core, view: &View, memory: &MemSet, stop: usize) -> bool {
    let troubles = &core.background.troubles;
    let tables = memory.all().into_iter().filter(|(_, memtable)| !memtable.is_empty()).map(|(table, _)| table);
    let mut full = tables.filter(|&table| is_level0_full(view, table, stop));
    full.any(|table| troubles.compaction_cause(table).is_none())
}

/// Waits until what is in memory may become files of level 0, for who asks for that without being a writer, and holds no
/// lock. `also` is a table that gets a file besides.
pub fn wait_for_level0(core: &Core, also: Option<TableId>) -> Result<()> {
    let stop = pick::asked_stop_files(&core.env.options.levels);
    let mut waiting = None;
    loop {
        let seen = core.background.progress_seen();
        core.check_writable()?;
        let view = core.views.newest();
        if let Some(table) = also.filter(|&table| is_level0_full(&view, table, stop)) {
            check_compaction(core, table)?;
        } else if !view.memory.iter().any(|memory| must_wait(core, &view, memory, stop)) {
            return Ok(());
        }
        wait_for(core, &mut waiting, StallReason::Level0);
        core.background.wake_compact_first();
        core.wait_progress(seen);
    }
}

/// Half of the write buffer fills while the other half is flushed.
pub fn room(core: &Core, view: &View, writer: &Writer, bytes: u64) -> Room {
    let half = core.env.options.write_buffer_bytes / 2;
    let active = writer.memory().bytes();
    if !writer.is_ended() && (active + bytes <= half || active == 0) {
        Room::Here
    } else if view.memory.len() > 1 {
        Room::AfterFlush
    } else {
        // Each place in level 0 lets writers fill one half more.
        let stop = pick::stop_files(&core.env.options.levels);
        if must_wait(core, view, writer.memory(), stop) { Room::AfterCompaction } else { Room::AfterRotation }
    }
}

/// Freezes the memtables that take writes and begins a new log with new ones. The old log is synced first: what comes
/// after it can then be acknowledged without looking back.
///
/// After an error nothing is lost, and the next commit tries again. It does not go to the old log: a crash may leave a new
/// one that says where the old one ended.
pub fn rotate(core: &Core, writer: &mut Writer) -> Result<()> {
    core.sync(writer.unsynced())?;
    let (env, memory) = (&core.env, Arc::new(MemSet::new(core.writes.new_number())));
    let previous = writer.end();
    let next = Writer::create(&env.log_machine, &env.directory, memory.clone(), Some(previous), writer.next_version());
    *writer = next.inspect_err(|_| env.opener.leftovers.remove(&log_path(&env.directory, memory.log)))?;
    core.views.change(|view| view.memory.insert(0, memory));
    core.background.wake_flush();
    Ok(())
}

/// Freezes the memtables if they hold many erased rows, so that background work removes these: in an idle database no other
/// flush would. It does nothing if the flush would have to wait, or if the disk is full, because a full disk may still take a
/// small commit in the old log when it has no room for a new one.
pub fn freeze_erased(core: &Core, writer: &mut Writer) -> Result<()> {
    let view = core.views.newest();
    let has_many = writer.memory().all().iter().any(|(_, memtable)| memtable.erases() >= pick::MIN_ERASED);
    let is_free = view.memory.len() == 1
        && !must_wait(core, &view, writer.memory(), pick::stop_files(&core.env.options.levels))
        && core.background.troubles.flush_cause().is_none();
    if has_many && is_free && core.writes.reserve.fill().is_ok() { rotate(core, writer) } else { Ok(()) }
}

/// Waits until everything frozen is in files. A flush that failed is tried at once.
///
/// # Errors
///
/// Why a flush failed meanwhile; it is tried again in the background.
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

/// Waits until no row of `table` is in memory, for who holds the writer: no commit comes meanwhile, and flushes do not need it.
pub fn table_to_files(core: &Core, writer: &mut Writer, table: TableId) -> Result<()> {
    let has_rows = |memory: &Arc<MemSet>| memory.table(table).is_some_and(|memtable| !memtable.is_empty());
    if core.views.newest().memory.iter().any(has_rows) {
        if !writer.memory().is_empty() {
            rotate(core, writer)?;
        }
        wait_for_flushes(core)?;
    }
    Ok(())
}
