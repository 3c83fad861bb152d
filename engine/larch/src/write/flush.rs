//! Flushes memtables to files of level 0, and removes their logs. This module does not know deeper levels.
//!
//! The flush job flushes one memory set at a time, oldest first. Other threads never flush themselves; they wait
//! for the job. After a flush has found the disk full, the job flushes all frozen sets as if they were one. Rows of
//! an older set that a newer set erases are then not written, so the flush needs less room.

use super::joined::{Joined, joined_erases};
use super::keep;
use super::room::{freeze_for_room, rotate, wait_for_flushes, wait_for_level0};
use super::subscribe;
use crate::base::boundaries::Boundaries;
use crate::base::error::{Error, Result};
use crate::base::event::Event;
use crate::base::operand::{Collected, MergeFunctions, Merged};
use crate::base::table::{TableId, TableInfo};
use crate::core::writer::log_path;
use crate::core::{Core, StopOnPanic};
use crate::files::erases::CoverStream;
use crate::files::keep::{KeyFilter, newest_of_each_interval};
use crate::files::output::{Outputs, Target};
use crate::levels::pick;
use crate::manifest::directory::place::Place;
use crate::manifest::new_files::NewFiles;
use crate::manifest::{Edit, FileSet};
use crate::memtable::set::MemSet;
use crate::memtable::{self, MemRow, Memtable};
use crate::view::View;
use crate::warm;
use os::sync::atomic::Ordering;
use os::sync::{Arc, Weak};
use os::{Job, Polled};
use sst::{RangeErase, RowKind, Version};
use std::collections::BTreeMap;

/// The job that flushes the oldest frozen memory set.
#[derive(Debug)]
pub struct FlushJob(pub Weak<Core>);

impl Job for FlushJob {
    fn poll(&self) -> Polled {
        let Some(core) = self.0.upgrade() else { return Polled::Idle };
        attempt(&core)
    }
}

/// Flushes the oldest frozen memory set. Does nothing if the last attempt failed and it is too early to retry.
pub fn attempt(core: &Arc<Core>) -> Polled {
    if core.check_writable().is_err() {
        return Polled::Idle;
    }
    let troubles = &core.background.troubles;
    if let Some(time) = troubles.flush_waits(core.env.machine.clock.now()) {
        core.background.wake_flush_after(time);
        return Polled::Idle;
    }
    let _guard = StopOnPanic::new(core);
    let is_joint = troubles.flush_cause().is_some_and(|cause| cause.is_disk_full());
    if is_joint {
        freeze_for_room(core);
    }
    let mut sets = frozen(core);
    if !is_joint {
        sets.truncate(1);
    }
    if sets.is_empty() {
        return Polled::Idle;
    }
    if is_joint && sets.iter().any(|set| set.has_erases()) {
        // The erases in this flush will free disk space, now or in later compactions, so it may use the reserve.
        core.writes.reserve.give_back();
    }
    let flushed = flush(core, &sets);
    // Free the memory of these sets before the commits that wait for it are woken below.
    drop(sets);
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
        // A table was dropped during the flush. The next poll flushes again, without this table.
        Err(Error::NoSuchTable(_)) => Polled::Worked,
        Err(error) => {
            let trouble = troubles.flush_failed(&error, core.env.machine.clock.now());
            core.background.wake_flush_after(trouble.retry_in.unwrap_or_default());
            if is_joint {
                // If the disk is too full for the reserve, the next put reports it.
                core.writes.reserve.fill().ok();
            }
            core.env.report(|| trouble.event());
            core.background.tell_progress();
            Polled::Idle
        }
    }
}

/// The frozen memory sets, oldest first.
fn frozen(core: &Core) -> Vec<Arc<MemSet>> {
    core.views.newest().memory.iter().skip(1).rev().cloned().collect()
}

/// Writes `sets` to level 0 as if they were one set, and removes their logs. `sets` are the oldest memory sets,
/// oldest first.
///
/// # Errors
///
/// An error if a file cannot be written; the errors of [`Core::install`].
pub fn flush(core: &Arc<Core>, sets: &[Arc<MemSet>]) -> Result<()> {
    let begin = core.env.machine.clock.now();
    core.env.report(|| Event::FlushStarted { bytes: sets.iter().map(|set| set.bytes()).sum() });
    let logs: Vec<u64> = sets.iter().map(|set| set.log).collect();
    let boundaries = core.views.boundaries_without(&logs);
    let info = &|table| core.views.table_info(table);
    let target = &Target::Database;
    let extract = Extract {
        info,
        boundaries: &boundaries,
        up_to: Version::MAX,
        is_run: false,
        target,
        now: core.env.row_clock.now(),
    };
    let newest_first: Vec<&MemSet> = sets.iter().rev().map(|set| &**set).collect();
    let new = write_tables(core, &newest_first, &extract)?;
    let (files, bytes) = (new.files.len() as u64, new.bytes());
    let view = core.views.newest();
    let used_bytes = sets.iter().map(|set| set.used_bytes()).sum();
    core.writes.fill.note_flush(used_bytes, view.memory[0].used_bytes());
    let next_log = view.memory.iter().rev().nth(sets.len()).expect("frozen memtables have successors").log;
    drop(view);
    let flushed = flushed_with(core, &logs);
    let oldest = core.views.snapshots.oldest().unwrap_or(Version::MAX);
    sets.iter().for_each(|set| core.writes.recent.note_flush(set, oldest));
    let state = [Edit::OldestLog(next_log), Edit::LastVersion(flushed), Edit::FlushedVersion(flushed)];
    let mut past = keep::edits_of_flush(core, flushed);
    let acknowledged = subscribe::edits(core, flushed.max(core.writes.sync.durable()));
    let moves = !acknowledged.is_empty();
    past.extend(acknowledged);
    let expired = core.expired_edit();
    let edits = |added: Vec<Edit>| added.into_iter().chain(state).chain(past).chain(expired).collect();
    let change = |view: &mut View| view.memory.retain(|other| !logs.contains(&other.log));
    warm::install::install(core, new, Vec::new(), edits, change)?;
    keep::after_flush(core);
    subscribe::after_install(core, moves);
    core.writes.sync.note_durable(flushed);
    core.env.written.flushes.fetch_add(1, Ordering::Relaxed);
    core.env.report(|| Event::FlushFinished { files, bytes, time: core.env.machine.clock.now() - begin });
    for log in sets.iter().flat_map(|set| set.older_logs.iter().chain([&set.log])) {
        core.env.opener.leftovers.remove(&log_path(&core.env.directory, *log));
    }
    subscribe::let_go(core);
    Ok(())
}

/// The newest version up to which all commits are in files or in the memtables of `logs`.
fn flushed_with(core: &Core, logs: &[u64]) -> Version {
    // The version is read before the view, so the view has every commit up to this version.
    let visible = core.views.visible();
    let view = core.views.newest();
    let others = view.memory.iter().filter(|other| !logs.contains(&other.log));
    others.map(|other| Version(other.oldest().0 - 1)).fold(visible, Version::min)
}

/// Writes a file of level 0 for each table that has rows in `memory`. A file has the rows that readers at the
/// versions `boundaries` see.
///
/// # Errors
///
/// An error if a file cannot be written.
pub fn write_files(core: &Arc<Core>, memory: &MemSet, boundaries: &Boundaries) -> Result<NewFiles> {
    write_files_to(core, memory, boundaries, &core.env.place())
}

/// Like [`write_files`], but writes to `place`.
///
/// # Errors
///
/// The errors of [`write_files`].
pub fn write_files_to(core: &Arc<Core>, memory: &MemSet, boundaries: &Boundaries, place: &Place) -> Result<NewFiles> {
    let info = &|table| core.views.table_info(table);
    write_tables(
        core,
        &[memory],
        &Extract {
            info,
            boundaries,
            up_to: Version::MAX,
            is_run: false,
            target: &Target::Place(place.clone()),
            now: 0,
        },
    )
}

/// Like [`write_files`], but writes to `place`, and only the rows that a reader at the version `at`, or at an older one
/// with a name, sees in the tables of `files`. All commits up to `at` must have been applied. Meanwhile, later
/// commits may be applied and tables may be dropped.
///
/// # Errors
///
/// The errors of [`write_files`].
pub fn write_version_to(
    core: &Arc<Core>,
    memory: &MemSet,
    (files, at): (&FileSet, Version),
    place: &Place,
) -> Result<NewFiles> {
    let info = &|table| files.tables.get(&table).map(|table| table.info.clone());
    let boundaries = files.all_kept().map(|kept| kept.version.min(at)).chain([at]).collect();
    let boundaries = Boundaries::new(boundaries, files.retained_from()).with_tables(files.own_pasts());
    write_tables(
        core,
        &[memory],
        &Extract {
            info,
            boundaries: &boundaries,
            up_to: at,
            is_run: false,
            target: &Target::Place(place.clone()),
            now: 0,
        },
    )
}

/// Like [`write_files`], but for the rows of a transaction that has not committed. The files go to `target`.
///
/// # Errors
///
/// The errors of [`write_files`].
pub fn write_run(core: &Arc<Core>, memory: &MemSet, boundaries: &Boundaries, target: &Target) -> Result<NewFiles> {
    let info = &|table| core.views.table_info(table);
    write_tables(core, &[memory], &Extract { info, boundaries, up_to: Version::MAX, is_run: true, target, now: 0 })
}

/// Which rows of the memtables are written, and where to.
struct Extract<'a> {
    /// Returns a table by its id. A table for which this returns `None` is skipped.
    info: &'a dyn Fn(TableId) -> Option<Arc<TableInfo>>,
    /// Only rows that readers at these versions see are written.
    boundaries: &'a Boundaries,
    /// Rows that are newer than this version are left out.
    up_to: Version,
    /// Whether these are the rows of a transaction that has not committed.
    is_run: bool,
    target: &'a Target,
    /// Rows that have expired at this time, in milliseconds since 1970, become erases. 0 if none does.
    now: u64,
}

/// Writes the rows of `sets`, which are newest first, as if they were one set.
fn write_tables(core: &Arc<Core>, sets: &[&MemSet], extract: &Extract<'_>) -> Result<NewFiles> {
    let mut all = NewFiles::none(&extract.target.place(&core.env));
    let mut tables: BTreeMap<TableId, Vec<Arc<Memtable>>> = BTreeMap::new();
    for (table, memtable) in sets.iter().flat_map(|set| set.all()).filter(|(_, memtable)| !memtable.is_empty()) {
        tables.entry(table).or_default().push(memtable);
    }
    for (table, memtables) in tables {
        let Some(info) = (extract.info)(table) else { continue };
        all.append(write_table(core, &info, &memtables, extract)?);
    }
    Ok(all)
}

fn write_table(
    core: &Arc<Core>,
    table: &Arc<TableInfo>,
    memtables: &[Arc<Memtable>],
    &Extract { boundaries, up_to, is_run, target, now, .. }: &Extract<'_>,
) -> Result<NewFiles> {
    let boundaries = &boundaries.of(table.id);
    let joined_erases = joined_erases(memtables);
    let mut erases = joined_erases.range_erases().map(|mut erase| {
        erase.versions.retain(|&version| version <= up_to);
        let versions = newest_of_each_interval(boundaries, &erase.versions);
        RangeErase { keys: erase.keys.to_vecs(), versions }
    });
    let mut outputs = Outputs::new(core, table, u64::MAX, false).of_run(is_run).to(target);
    let mut covers = CoverStream::new(|| Ok(erases.next()));
    let mut filter = KeyFilter::default();
    let mut key: Option<Vec<u8>> = None;
    for row in Joined::of(memtables).filter(|row| row.version() <= up_to) {
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
            let kind = row.kind();
            let is_alone = || memtables.len() == 1 && memtable::is_whole(&row);
            if kind == RowKind::Merge && !is_alone() {
                let (kind, value) = merged(memtables, &row, &core.env.options.merge_functions, now);
                outputs.add_joined(row.key(), row.version(), (kind, None), &value)?;
                continue;
            }
            let until = if kind == RowKind::PutUntil { row.until() } else { None };
            if until.is_some_and(|until| until.millis() <= now) {
                outputs.add_joined(row.key(), row.version(), (RowKind::Erase, None), &[])?;
            } else {
                outputs.add_joined(row.key(), row.version(), (kind, until), row.value())?;
            }
        }
    }
    while let Some(erase) = covers.advance(None)? {
        outputs.add_erase(erase.clone())?;
    }
    let new = outputs.finish(0, 0)?;
    core.env.written.flush.fetch_add(new.bytes(), Ordering::Relaxed);
    Ok(new)
}

/// What the memtables say of the key of `row`, a merge, as of its version.
fn merged(memtables: &[Arc<Memtable>], row: &MemRow, functions: &MergeFunctions, now: u64) -> (RowKind, Vec<u8>) {
    let mut collected = Collected::default();
    memtables.iter().all(|memtable| memtable.collect(row.key(), row.version(), &mut collected).1);
    match collected.finish(row.key(), functions, now) {
        Merged::Value(value) => (RowKind::Put, value),
        Merged::Operand(operand) => (RowKind::Merge, operand),
    }
}

/// Freezes the current memtables, and waits until all memtables are flushed.
///
/// # Errors
///
/// The errors of [`Core::check_writable`] and [`rotate`]; [`Error::ReadOnly`] if there is no writer; the error of a
/// flush that failed.
pub fn flush_all(core: &Arc<Core>) -> Result<()> {
    core.check_writable()?;
    // First wait for memtables that are frozen already, so that memory stays within the write buffer.
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
