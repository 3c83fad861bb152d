//! Flushes: writes memtables to files of level 0 and removes their log. It knows no deeper levels.
//!
//! The job flushes one set of memtables at a time, the oldest one. Other threads only wait for it.

use super::room::{rotate, wait_for_flushes, wait_for_level0};
use super::writer::log_path;
use crate::compact::erases::CoverStream;
use crate::compact::keep::{self, KeyFilter};
use crate::compact::pick;
use crate::core::{Core, StopOnPanic};
use crate::error::{Error, Result};
use crate::event::Event;
use crate::files::output::{NewFiles, Outputs, Place};
use crate::manifest::{Edit, FileSet, TableId, TableInfo};
use crate::memtable::Memtable;
use crate::memtable::set::MemSet;
use crate::read::View;
use crate::warm;
use os::sync::atomic::Ordering;
use os::sync::{Arc, Weak};
use os::{Job, Polled};
use sst::{RangeErase, Version};

/// The job that flushes the oldest frozen memtables.
#[derive(Debug)]
pub struct FlushJob(pub Weak<Core>);

impl Job for FlushJob {
    fn poll(&self) -> Polled {
        let Some(core) = self.0.upgrade() else { return Polled::Idle };
        let Some(oldest) = oldest_frozen(&core).filter(|_| core.check_writable().is_ok()) else { return Polled::Idle };
        let troubles = &core.background.troubles;
        if let Some(time) = troubles.flush_waits(core.env.machine.clock.now()) {
            core.background.wake_flush_after(time);
            return Polled::Idle;
        }
        let _guard = StopOnPanic::new(&core);
        let flushed = flush(&core, &oldest);
        // Commits that wait for this memory are woken below, so it is given back before.
        drop(oldest);
        match flushed {
            Ok(()) => {
                troubles.flush_succeeded();
                let level0 = core.views.newest().files.tables.most_level0_files();
                match pick::is_urgent(level0, &core.env.options.levels) {
                    true => core.background.wake_compact_first(),
                    false => core.background.wake_compact(),
                }
                core.background.tell_progress();
                Polled::Worked
            }
            // A table was dropped meanwhile: the next poll writes the files without it.
            Err(Error::NoSuchTable(_)) => Polled::Worked,
            Err(error) => {
                let trouble = troubles.flush_failed(&error, core.env.machine.clock.now());
                core.background.wake_flush_after(trouble.retry_in.unwrap_or_default());
                core.env.report(|| trouble.event());
                core.background.tell_progress();
                Polled::Idle
            }
        }
    }
}

/// The oldest memtables, if they are frozen.
fn oldest_frozen(core: &Core) -> Option<Arc<MemSet>> {
    let view = core.views.newest();
    (view.memory.len() > 1).then(|| view.memory.last().cloned()).flatten()
}

/// Writes `memory`, the oldest memtables, to level 0, and removes their log.
///
/// # Errors
///
/// A file could not be written; as [`Core::install`].
pub fn flush(core: &Arc<Core>, memory: &Arc<MemSet>) -> Result<()> {
    let begin = core.env.machine.clock.now();
    core.env.report(|| Event::FlushStarted { bytes: memory.bytes() });
    let new = write_files(core, memory, &core.views.boundaries())?;
    let (files, bytes) = (new.files.len() as u64, new.bytes());
    let view = core.views.newest();
    core.writes.fill.note_flush(memory.used_bytes(), view.memory[0].used_bytes());
    let next_log = view.memory.iter().rev().nth(1).expect("frozen memtables have successors").log;
    drop(view);
    let flushed = flushed_with(core, memory);
    core.writes.recent.note_flush(memory, core.views.snapshots.oldest().unwrap_or(Version::MAX));
    let state = [Edit::OldestLog(next_log), Edit::LastVersion(flushed), Edit::FlushedVersion(flushed)];
    let edits = |added: Vec<Edit>| added.into_iter().chain(state).collect();
    let change = |view: &mut View| view.memory.retain(|other| other.log != memory.log);
    warm::install::install(core, new, Vec::new(), edits, change)?;
    core.writes.sync.note_durable(flushed);
    core.env.written.flushes.fetch_add(1, Ordering::Relaxed);
    core.env.report(|| Event::FlushFinished { files, bytes, time: core.env.machine.clock.now() - begin });
    core.env.opener.leftovers.remove(&log_path(&core.env.directory, memory.log));
    Ok(())
}

/// The newest version such that every commit up to it is in files or in `memory`.
fn flushed_with(core: &Core, memory: &MemSet) -> Version {
    // It reads the version before the view, so that the view has every commit up to this version.
    let visible = core.views.visible();
    let view = core.views.newest();
    let others = view.memory.iter().filter(|other| other.log != memory.log);
    others.map(|other| Version(other.oldest().0 - 1)).fold(visible, Version::min)
}

/// Writes a file for level 0 for every table that has rows in `memory`, with what readers see at the `boundaries`.
///
/// # Errors
///
/// A file could not be written.
pub fn write_files(core: &Arc<Core>, memory: &MemSet, boundaries: &[Version]) -> Result<NewFiles> {
    write_files_to(core, memory, boundaries, &Place::of(&core.env))
}

/// As [`write_files`], to `place`.
///
/// # Errors
///
/// As [`write_files`].
pub fn write_files_to(core: &Arc<Core>, memory: &MemSet, boundaries: &[Version], place: &Place) -> Result<NewFiles> {
    let info = &|table| core.views.table_info(table);
    write_tables(core, memory, &Extract { info, boundaries, up_to: Version::MAX, is_run: false, place })
}

/// As [`write_files`], to `place`, with what a reader at `at` sees of the tables in `files`. All commits up to this version are
/// applied. Others may be applied meanwhile, and tables may be dropped.
///
/// # Errors
///
/// As [`write_files`].
pub fn write_version_to(
    core: &Arc<Core>,
    memory: &MemSet,
    (files, at): (&FileSet, Version),
    place: &Place,
) -> Result<NewFiles> {
    let info = &|table| files.tables.get(&table).map(|table| table.info.clone());
    write_tables(core, memory, &Extract { info, boundaries: &[at], up_to: at, is_run: false, place })
}

/// As [`write_files`], with the rows of a transaction that has not committed.
///
/// # Errors
///
/// As [`write_files`].
pub fn write_run(core: &Arc<Core>, memory: &MemSet, boundaries: &[Version]) -> Result<NewFiles> {
    let (info, place) = (&|table| core.views.table_info(table), &Place::of(&core.env));
    write_tables(core, memory, &Extract { info, boundaries, up_to: Version::MAX, is_run: true, place })
}

/// What is written of memtables, and where.
struct Extract<'a> {
    /// Tables by their ids. The rows of those that are not there are left out.
    info: &'a dyn Fn(TableId) -> Option<Arc<TableInfo>>,
    /// What readers see at these versions.
    boundaries: &'a [Version],
    /// Nothing that is newer than this.
    up_to: Version,
    /// Whether the rows are of a transaction that has not committed.
    is_run: bool,
    place: &'a Place,
}

fn write_tables(core: &Arc<Core>, memory: &MemSet, extract: &Extract<'_>) -> Result<NewFiles> {
    let mut all = NewFiles::none(extract.place);
    for (table, memtable) in memory.all() {
        if memtable.is_empty() {
            continue;
        }
        let Some(info) = (extract.info)(table) else { continue };
        all.append(write_table(core, &info, &memtable, extract)?);
    }
    Ok(all)
}

fn write_table(
    core: &Arc<Core>,
    table: &Arc<TableInfo>,
    memtable: &Memtable,
    &Extract { boundaries, up_to, is_run, place, .. }: &Extract<'_>,
) -> Result<NewFiles> {
    let mut erases = memtable.range_erases().map(|mut erase| {
        erase.versions.retain(|&version| version <= up_to);
        let versions = keep::newest_of_each_stripe(boundaries, &erase.versions);
        RangeErase { keys: erase.keys.to_vecs(), versions }
    });
    let mut outputs = Outputs::new(core, table, u64::MAX, false).of_run(is_run).at(place);
    let mut covers = CoverStream::new(|| Ok(erases.next()));
    let mut filter = KeyFilter::default();
    let mut key: Option<Vec<u8>> = None;
    for row in memtable.all_versions().filter(|row| row.version() <= up_to) {
        if key.as_deref() != Some(row.key()) {
            let key = key.get_or_insert_default();
            key.clear();
            key.extend_from_slice(row.key());
            filter = KeyFilter::default();
            while let Some(erase) = covers.advance(Some(row.key()))? {
                outputs.add_erase(erase.clone())?;
            }
        }
        if filter.keep(boundaries, row.version(), covers.of(row.key())) {
            outputs.add_joined(row.key(), row.version(), row.kind(), row.value())?;
        }
    }
    while let Some(erase) = covers.advance(None)? {
        outputs.add_erase(erase.clone())?;
    }
    let new = outputs.finish(0, 0)?;
    core.env.written.flush.fetch_add(new.bytes(), Ordering::Relaxed);
    Ok(new)
}

/// Freezes the memtables and waits until all rows are in files.
///
/// # Errors
///
/// Why writes are refused; why a flush or a compaction failed.
pub fn flush_all(core: &Arc<Core>) -> Result<()> {
    core.check_writable()?;
    // It first waits for memtables that are frozen already, so that memory stays within the write buffer.
    wait_for_flushes(core)?;
    wait_for_level0(core, None)?;
    {
        let mut guard = core.writes.writer.lock();
        let writer = guard.as_mut().ok_or(Error::ReadOnly)?;
        core.check_writable()?;
        if !writer.memory().is_empty() {
            rotate(core, writer)?;
        }
    }
    wait_for_flushes(core)
}
