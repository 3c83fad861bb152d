//! Committing: a version, a record in the log, rows in the memtables, and, if asked, a sync.
//!
//! One short lock orders commits: under it a batch gets its version, is appended to the log, applied and published, so
//! that version order, log order and memory order are the same. The sync happens outside it and is shared by all who
//! wait. Reads may see a commit before it is durable; but whoever read it and commits something durable waits for a sync
//! of everything before, since a log is synced as a whole and a log is complete before the next one is begun.

use crate::compact::pick;
use crate::core::{Core, StopOnPanic};
use crate::error::{Error, Result};
use crate::event::StallReason;
use crate::log::record::{LogError, Previous};
use crate::log::wal::{LogWriter, SyncPoint};
use crate::manifest::{TableId, TableInfo};
use crate::memtable::Memtable;
use crate::options::Durability;
use crate::read::{MemSet, View};
use crate::write::batch::{BatchOps, Op};
use crate::write::flush;
use crate::write::stall::Waiting;
use os::sync::Arc;
use os::sync::atomic::{AtomicU64, Ordering};
use sst::{MAX_KEY_BYTES, RowKind, Version};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Whoever holds it commits.
#[derive(Debug)]
pub struct Writer {
    log: LogWriter,
    sync: Arc<SyncPoint>,
    memory: Arc<MemSet>,
    next_version: Version,
    /// Whether another log may say where this one ends, because a rotation failed. Commits go to the log after it only.
    is_ended: bool,
}

/// Name of a log.
pub fn log_name(number: u64) -> String {
    format!("{number:08}.log")
}

/// Path of a log.
pub fn log_path(directory: &Path, number: u64) -> PathBuf {
    directory.join(log_name(number))
}

impl Writer {
    /// A writer that begins log `memory.log`; `next_version` is the first it gives.
    pub fn create(
        machine: &os::Machine,
        directory: &Path,
        memory: Arc<MemSet>,
        previous: Option<Previous>,
        next_version: Version,
    ) -> Result<Self> {
        let path = log_path(directory, memory.log);
        let log = LogWriter::create(&*machine.disk, &path, machine.random.next_u64() | 1, memory.log, previous)?;
        let sync = Arc::new(SyncPoint::new(log.file().clone()));
        Ok(Self { log, sync, memory, next_version, is_ended: false })
    }

    /// The version of the next commit.
    pub fn next_version(&self) -> Version {
        self.next_version
    }

    /// Takes the next version for a commit that does not go through the log, once it is installed.
    pub fn take_version(&mut self) {
        self.next_version = Version(self.next_version.0 + 1);
    }

    /// Makes every commit so far durable. An error is final for all writes.
    pub fn sync(&self, core: &Core) -> Result<()> {
        self.sync_later()(core)
    }

    /// What makes every commit so far durable, to be done without the writer.
    pub fn sync_later(&self) -> impl FnOnce(&Core) -> Result<()> + use<> {
        let (sync, end) = (self.sync.clone(), self.log.end());
        move |core| sync.durable(end).map_err(|error| unknown(core, error))
    }

    /// Leaves word in the log how much of it is durable, at the end of all writing.
    pub fn append_proof(&mut self) -> Result<()> {
        if !self.is_ended {
            self.log.append_proof()?;
        }
        Ok(())
    }

    /// Releases buffers that only writes need.
    pub fn give_back(&mut self) {
        self.log.give_back();
    }

    /// The memtables that take writes.
    pub fn memory(&self) -> &Arc<MemSet> {
        &self.memory
    }
}

/// Refuses writes after a sync of the log has failed, and says what that means for the commits that waited for it.
fn unknown(core: &Core, cause: LogError) -> Error {
    core.stop_writes(Error::OutcomeUnknown { what: "the latest commits are durable", cause })
}

/// The longest value a write buffer of this size takes.
pub fn max_value_bytes(write_buffer_bytes: u64) -> u64 {
    write_buffer_bytes / 4
}

/// Refuses keys and values beyond the limits. Of a value in parts the sum of their lengths counts.
pub fn check_row(core: &Core, key: &[u8], value_bytes: usize) -> Result<()> {
    if key.len() > MAX_KEY_BYTES {
        return Err(Error::KeyTooLong { bytes: key.len(), max: MAX_KEY_BYTES });
    }
    let max = max_value_bytes(core.options.write_buffer_bytes);
    if value_bytes as u64 > max {
        return Err(Error::ValueTooLong { bytes: value_bytes, max });
    }
    Ok(())
}

/// Makes every commit so far durable, if asked, and returns the version of the newest.
pub fn sync(core: &Core, durability: Durability) -> Result<Version> {
    core.check_writable()?;
    let (sync, newest) = {
        let guard = core.write.lock();
        let writer = guard.as_ref().ok_or(Error::ReadOnly)?;
        (writer.sync_later(), core.visible())
    };
    if durability == Durability::Synced {
        sync(core)?;
    }
    Ok(newest)
}

/// Commits `ops`, which are of `tables`, and returns their version. No ops are a sync of what was committed before.
pub fn commit(core: &Core, ops: &mut BatchOps, tables: &[Arc<TableInfo>], durability: Durability) -> Result<Version> {
    if ops.is_empty() {
        return sync(core, durability);
    }
    let (bytes, max) = (memory_bytes(ops), core.options.write_buffer_bytes / 2);
    if bytes > max {
        return Err(Error::BatchTooLarge { bytes, max });
    }
    core.check_writable()?;
    ops.resolve();
    slow_down(core, bytes);
    let (sync, end, version) = append(core, ops, tables)?;
    if durability == Durability::Synced {
        sync.durable(end).map_err(|error| unknown(core, error))?;
    }
    if !core.machine.threads.are_real() {
        core.background.drive();
    }
    Ok(version)
}

/// About the memory that a batch will take in memtables: a row has an allocation and a node besides its bytes.
fn memory_bytes(ops: &BatchOps) -> u64 {
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
fn check_tables(core: &Core, view: &View, tables: &[Arc<TableInfo>]) -> Result<()> {
    let stop = pick::stop_files(&core.options.levels);
    for table in tables {
        view.files_of(table)?;
        if is_level0_full(view, table.id, stop) {
            check_compaction(core, table.id)?;
        }
    }
    Ok(())
}

/// Puts a commit into log and memtables. One of erases alone that finds the disk full takes from the reserve.
fn append(core: &Core, ops: &BatchOps, tables: &[Arc<TableInfo>]) -> Result<(Arc<SyncPoint>, u64, Version)> {
    loop {
        match append_once(core, ops, tables) {
            Err(error) if error.is_disk_full() && ops.is_erases_only() && core.reserve.give_back() => {
                if matches!(error, Error::Full { .. }) {
                    // The room lets the flush that failed succeed.
                    flush::wait_for_flushes(core)?;
                }
            }
            outcome => return outcome,
        }
    }
}

fn append_once(core: &Core, ops: &BatchOps, tables: &[Arc<TableInfo>]) -> Result<(Arc<SyncPoint>, u64, Version)> {
    let bytes = memory_bytes(ops);
    // A panic on the way leaves open what log and memtables hold of the commit.
    let _guard = StopOnPanic(core);
    let mut waiting: Option<Waiting<'_>> = None;
    loop {
        let seen = core.background.progress_seen();
        let mut guard = core.write.lock();
        let writer = guard.as_mut().ok_or(Error::ReadOnly)?;
        core.check_writable()?;
        let view = core.view();
        check_tables(core, &view, tables)?;
        if !core.reserve.is_full() && !ops.is_erases_only() {
            // Else puts would take what erases gave back.
            core.reserve.fill()?;
        }
        match room(core, &view, writer, bytes) {
            Room::Here => {}
            Room::AfterRotation => rotate(core, writer)?,
            Room::AfterFlush => {
                drop(guard);
                if let Some(cause) = core.background.troubles.flush_cause() {
                    return Err(Error::Full { what: "the write buffer is full", cause: Box::new(cause) });
                }
                wait_for(core, &mut waiting, StallReason::WriteBuffer);
                core.background.wake_flush();
                core.wait_progress(seen);
                continue;
            }
            Room::AfterCompaction => {
                drop(guard);
                wait_for(core, &mut waiting, StallReason::Level0);
                core.background.wake_compact_first();
                core.wait_progress(seen);
                continue;
            }
        }
        let version = writer.next_version;
        let end = writer.log.append_commit(version, ops).map_err(|error| match writer.log.file().check() {
            Ok(()) => error.into(),
            Err(failed_sync) => unknown(core, failed_sync),
        })?;
        core.written.log.fetch_add(ops.bytes().len() as u64, Ordering::Relaxed);
        core.held.log.store(writer.log.memory_bytes(), Ordering::Relaxed);
        apply(&writer.memory, version, ops);
        writer.next_version = Version(version.0 + 1);
        core.publish(version);
        return Ok((writer.sync.clone(), end, version));
    }
}

/// Puts a commit into memtables.
pub fn apply(memory: &MemSet, version: Version, ops: &BatchOps) {
    memory.note_version(version);
    let mut last: Option<(TableId, Arc<Memtable>)> = None;
    for (table, op) in ops.iter() {
        let table = TableId(table);
        let memtable = match &last {
            Some((id, memtable)) if *id == table => memtable,
            _ => &last.insert((table, memory.table_or_new(table))).1,
        };
        let before = memtable.bytes();
        match op {
            Op::Put { key, value } => memtable.apply(key, version, RowKind::Put, value),
            Op::Erase { key } => memtable.apply(key, version, RowKind::Erase, &[]),
            Op::RangeErase { start, end } => memtable.remove_range(start, end, version),
        }
        memory.note_bytes(before, memtable.bytes());
    }
}

/// Counts a commit that is about to wait, if it does not wait for this reason already.
fn wait_for<'c>(core: &'c Core, waiting: &mut Option<Waiting<'c>>, reason: StallReason) {
    if waiting.as_ref().is_none_or(|waiting| waiting.reason() != reason) {
        *waiting = None;
        *waiting = Some(Waiting::begin(core, reason));
    }
}

enum Room {
    Here,
    AfterRotation,
    AfterFlush,
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
    let stop = pick::asked_stop_files(&core.options.levels);
    let mut waiting = None;
    loop {
        let seen = core.background.progress_seen();
        core.check_writable()?;
        let view = core.view();
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
fn room(core: &Core, view: &View, writer: &Writer, bytes: u64) -> Room {
    let half = core.options.write_buffer_bytes / 2;
    let active = writer.memory.bytes();
    if !writer.is_ended && (active + bytes <= half || active == 0) {
        Room::Here
    } else if view.memory.len() > 1 {
        Room::AfterFlush
    } else {
        // Each place in level 0 lets writers fill one half more.
        let stop = pick::stop_files(&core.options.levels);
        if must_wait(core, view, &writer.memory, stop) { Room::AfterCompaction } else { Room::AfterRotation }
    }
}

/// Freezes the memtables that take writes and begins a new log with new ones. The old log is synced first: what comes
/// after it can then be acknowledged without looking back.
///
/// After an error nothing is lost, and the next commit tries again. It does not go to the old log: a crash may leave a new
/// one that says where the old one ended.
pub fn rotate(core: &Core, writer: &mut Writer) -> Result<()> {
    writer.sync(core)?;
    let previous = Previous { number: writer.memory.log, end: writer.log.end() };
    let memory = Arc::new(MemSet::new(core.new_number()));
    writer.is_ended = true;
    let next = Writer::create(&core.log_machine, &core.directory, memory.clone(), Some(previous), writer.next_version);
    *writer = next.inspect_err(|_| core.opener.leftovers.remove(&log_path(&core.directory, memory.log)))?;
    core.change_view(|view| view.memory.insert(0, memory));
    core.background.wake_flush();
    Ok(())
}

/// Freezes the memtables if they hold many erased rows, so that background work removes these: in an idle database no other
/// flush would. It does nothing if the flush would have to wait, or if the disk is full, because a full disk may still take a
/// small commit in the old log when it has no room for a new one.
pub fn freeze_erased(core: &Core, writer: &mut Writer) -> Result<()> {
    let view = core.view();
    let has_many = writer.memory.all().iter().any(|(_, memtable)| memtable.erases() >= pick::MIN_ERASED);
    let is_free = view.memory.len() == 1
        && !must_wait(core, &view, &writer.memory, pick::stop_files(&core.options.levels))
        && core.background.troubles.flush_cause().is_none();
    if has_many && is_free && core.reserve.fill().is_ok() { rotate(core, writer) } else { Ok(()) }
}

/// Fastest rate at which slowed writes go on, and slowest, in bytes a second.
const FAST: u64 = 64 << 20;
const SLOW: u64 = 1 << 20;

/// Makes a writer wait in proportion to its bytes once background work has fallen behind: the rate falls from [`FAST`]
/// to [`SLOW`] as level 0 grows from its limit to three times that, or as the second half of the write buffer fills
/// while the first is being flushed.
fn slow_down(core: &Core, bytes: u64) {
    let view = core.view();
    let limit = core.options.levels.slow_files as u64;
    let level0 = view.files.tables.most_level0_files() as u64;
    let files = share(level0, limit, 3 * limit);
    let memory = match view.memory.as_slice() {
        [active, _, ..] => {
            let half = core.options.write_buffer_bytes / 2;
            share(active.bytes(), half / 2, half)
        }
        _ => 0,
    };
    let behind = files.max(memory);
    if behind == 0 {
        return;
    }
    let rate = FAST - (FAST - SLOW) / 1000 * behind;
    let wait = core.pace.reserve(core.machine.clock.now(), Duration::from_micros(bytes * 1_000_000 / rate));
    core.written.slowed_micros.fetch_add(wait.as_micros() as u64, Ordering::Relaxed);
    core.machine.clock.sleep(wait);
}

/// Longest wait of one commit: what a large batch does not wait for itself, those after it do.
const LONGEST_WAIT: Duration = Duration::from_millis(100);

/// The moment from which the next slowed commit may go on; one for all writers, however many there are.
#[derive(Debug, Default)]
pub struct Pace {
    next_micros: AtomicU64,
}

impl Pace {
    /// Takes the next `time` of the pace and says how long to wait for its end.
    fn reserve(&self, now: Duration, time: Duration) -> Duration {
        let now = now.as_micros() as u64;
        // A pace that is far ahead is forgotten: writers were held up for other reasons, or gave up.
        let farthest = now + 10 * LONGEST_WAIT.as_micros() as u64;
        let step = time.as_micros() as u64;
        let update = |next: u64| Some((next.max(now) + step).min(farthest));
        let before = self.next_micros.fetch_update(Ordering::Relaxed, Ordering::Relaxed, update).unwrap_or(now);
        Duration::from_micros((before.max(now) + step).min(farthest) - now).min(LONGEST_WAIT)
    }
}

/// How far `value` is from `low` to `high`, in thousandths.
fn share(value: u64, low: u64, high: u64) -> u64 {
    value.saturating_sub(low).saturating_mul(1000).checked_div(high - low).unwrap_or(0).min(1000)
}

#[cfg(test)]
mod tests;
