//! Moves the writes of a transaction into files when they take too much memory, and commits a transaction whose
//! writes are in files. This module does not look at the rows.
//!
//! ```text
//! operations in memory ──▶ run ┐
//!                          run ├─▶ run, merged ┐
//!                          run ┘               ├─▶ a file of level 0 for each table
//!                                      run ────┘
//! ```
//!
//! A run is one file with a part for each table. For each savepoint among its writes, a run keeps the rows that
//! were visible at this savepoint. Eight runs that were merged equally often are merged into one, so a transaction
//! of any size has only a few dozen files. The commit merges all runs, and installs the result as a [large
//! batch](super::large).
//!
//! No manifest names the files of runs. They are removed when the transaction ends or, after a crash, by the next
//! open.

use super::commit::{compare, work_if_simulated};
use super::flush::write_run;
use super::indexed::Indexed;
use super::large;
use super::not_committed::NotCommitted;
use super::validation::Validation;
use crate::base::boundaries::Boundaries;
use crate::base::error::{Error, Result};
use crate::base::table::{TableId, TableInfo};
use crate::core::Core;
use crate::files::merge::{MergePlan, Rewrite, merge_files};
use crate::files::output::{OneFile, Target};
use crate::manifest::db_file::FileOpener;
use crate::manifest::new_files::NewFiles;
use crate::manifest::{DbFile, Level};
use crate::view::own_writes::{OwnWrites, WriteMark};
use crate::view::run::Run;
use os::sync::Arc;
use sst::Version;
use std::collections::BTreeSet;

/// This many runs that were merged equally often are merged into one.
const MERGED_RUNS: usize = 8;

/// Moves all `writes` into files. `savepoints` has the number of writes before each savepoint to which the
/// transaction may still roll back.
///
/// # Errors
///
/// An error if a file cannot be written or read. The writes then stay where they were.
pub fn spill(core: &Arc<Core>, writes: &mut OwnWrites, savepoints: &[u64]) -> Result<()> {
    move_into_run(core, writes, savepoints)?;
    while let [.., first, _, _, _, _, _, _, last] = writes.runs()
        && first.merges == last.merges
    {
        let (from, through, merges) = (writes.runs().len() - MERGED_RUNS, last.through, last.merges + 1);
        let runs = &writes.runs()[from..];
        let is_erases_only = runs.iter().all(|run| run.is_erases_only);
        let boundaries = boundaries(writes, savepoints, through);
        let files = with_reserve(core, is_erases_only, || run_of(core, writes, runs, &boundaries, None))?;
        writes.replace_runs(from, Some(Run { through, merges, is_erases_only, files }));
    }
    Ok(())
}

/// Moves the writes that are still in memory into a new run.
fn move_into_run(core: &Arc<Core>, writes: &mut OwnWrites, savepoints: &[u64]) -> Result<()> {
    if writes.ops().is_empty() {
        return Ok(());
    }
    let (through, is_erases_only) = (writes.count(), writes.ops().is_erases_only());
    let files = with_reserve(core, is_erases_only, || {
        let scratch = core.env.scratch.get()?;
        let one = OneFile::at(&scratch.place);
        let target = Target::One(one.clone());
        let new = write_run(core, &writes.memtables(), &boundaries(writes, savepoints, through), &target)?;
        one.sync()?;
        check_not_dropped(core, writes)?;
        Ok(open(&scratch.opener, new))
    })?;
    writes.moved_into(Run { through, merges: 0, is_erases_only, files });
    Ok(())
}

/// Calls `write`, which writes files. On a full disk, erases may use the reserve. The reserve is refilled before
/// puts are written, or they would use up the space that erases have freed.
fn with_reserve<T>(core: &Core, is_erases_only: bool, mut write: impl FnMut() -> Result<T>) -> Result<T> {
    core.check_writable()?;
    if core.env.options.read_only {
        return Err(Error::ReadOnly);
    }
    let reserve = &core.writes.reserve;
    loop {
        if !reserve.is_full() && !is_erases_only {
            reserve.fill()?;
        }
        match write() {
            Err(error) if error.is_disk_full() && is_erases_only && reserve.give_back() => {}
            outcome => return outcome,
        }
    }
}

/// Returns an error if the transaction has written to a table that was dropped meanwhile. The rows of such a table
/// were not written to files, so the transaction can neither commit nor roll back to a savepoint. A dropped index
/// is no error: the commit will find that the indexes have changed, and the work is done again without this index.
fn check_not_dropped(core: &Core, writes: &OwnWrites) -> Result<()> {
    let view = core.views.newest();
    let mut of_users = writes.tables().iter().filter(|table| table.index.is_none());
    of_users.try_for_each(|table| view.files_of(table).map(drop))
}

/// The merged files of `runs`.
fn run_of(
    core: &Arc<Core>,
    writes: &OwnWrites,
    runs: &[Run],
    boundaries: &Boundaries,
    rewrite: Option<Rewrite>,
) -> Result<Vec<(TableId, Arc<DbFile>)>> {
    let scratch = core.env.scratch.get()?;
    let one = OneFile::at(&scratch.place);
    let new = merge(core, runs, boundaries, rewrite, &Target::One(one.clone()))?;
    one.sync()?;
    check_not_dropped(core, writes)?;
    Ok(open(&scratch.opener, new))
}

/// Rolls back all writes after `mark`. `savepoints` is as in [`spill`].
///
/// # Errors
///
/// The errors of [`spill`].
pub fn rewind(core: &Arc<Core>, writes: &mut OwnWrites, mark: &WriteMark, savepoints: &[u64]) -> Result<()> {
    let through = mark.count();
    if through < writes.in_runs() {
        let from = writes.runs().partition_point(|run| run.through <= through);
        let begins = from.checked_sub(1).map_or(0, |before| writes.runs()[before].through);
        let mut cut = None;
        if begins < through {
            let boundaries = boundaries(writes, savepoints, through);
            let rewrite = Rewrite { through: writes.version(through), into: None };
            let Run { merges, is_erases_only, .. } = writes.runs()[from];
            let runs = &writes.runs()[from..=from];
            let files = with_reserve(core, is_erases_only, || run_of(core, writes, runs, &boundaries, Some(rewrite)))?;
            cut = Some(Run { through, merges, is_erases_only, files });
        }
        writes.replace_runs(from, cut);
        writes.clear_memory();
    }
    writes.rewind(mark);
    Ok(())
}

/// Commits `writes`, some of which are in files, if `validation` finds no conflict. When this returns, the writes
/// are durable.
///
/// # Errors
///
/// [`NotCommitted::Conflict`] if there is a conflict with another commit; the errors of [`spill`] and
/// [`large::install`].
pub fn commit(
    core: &Arc<Core>,
    writes: &mut OwnWrites,
    indexed: Indexed,
    mut validation: Validation<'_>,
) -> Result<Version, NotCommitted> {
    compare(core, &mut validation, writes.ops().into())?;
    move_into_run(core, writes, &[])?;
    let through = writes.version(writes.count());
    let rewrite = Rewrite { through, into: Some(large::FILE_VERSION) };
    let is_erases_only = writes.is_erases_only();
    let installed = loop {
        let new = with_reserve(core, is_erases_only, || {
            merge(core, writes.runs(), &Boundaries::only(through), Some(rewrite), &Target::Database)
        })?;
        let (ops, tables) = (writes.ops(), writes.tables());
        let installed = large::install(core, new, ops.into(), (tables, indexed), Some(&mut validation));
        // The compaction job could begin nothing while the levels lock was held, so wake it now.
        core.background.wake_compact();
        match installed {
            Err(NotCommitted::Failed(error))
                if error.is_disk_full() && is_erases_only && core.writes.reserve.give_back() => {}
            installed => break installed?,
        }
    };
    work_if_simulated(core);
    Ok(installed)
}

/// The versions at which the transaction may read a run whose last write is the transaction's write number
/// `through`.
fn boundaries(writes: &OwnWrites, savepoints: &[u64], through: u64) -> Boundaries {
    let before = savepoints.iter().copied().filter(|&savepoint| savepoint < through);
    Boundaries::new(before.chain([through]).map(|count| writes.version(count)).collect(), None)
}

/// Opens the parts of one file.
fn open(opener: &FileOpener, mut new: NewFiles) -> Vec<(TableId, Arc<DbFile>)> {
    let opened = opener.open_parts(&new.files);
    new.fresh.take_paths();
    new.files.iter().map(|file| file.table).zip(opened).collect()
}

/// Merges `runs`, which are oldest first. The result has one file, or one part of a file, for each table that still
/// exists.
fn merge(
    core: &Arc<Core>,
    runs: &[Run],
    boundaries: &Boundaries,
    rewrite: Option<Rewrite>,
    target: &Target,
) -> Result<NewFiles> {
    let tables: BTreeSet<TableId> = runs.iter().flat_map(|run| &run.files).map(|(table, _)| *table).collect();
    let mut all = NewFiles::none(&target.place(&core.env));
    let is_run = rewrite.is_none_or(|rewrite| rewrite.into.is_none());
    let infos = tables.into_iter().filter_map(|table| core.views.table_info(table));
    for info in infos.collect::<Vec<Arc<TableInfo>>>() {
        let files = runs.iter().rev().filter_map(|run| run.file_of(info.id));
        let sources: Vec<Level> = files.map(|file| Arc::new(vec![file.clone()])).collect();
        let (below, kept) = (Level::default(), Default::default());
        let (bottom, file_bytes, target) = (false, u64::MAX, target.clone());
        let plan =
            MergePlan { sources, bottom, file_bytes, below, kept, rewrite, is_run, is_judged: false, target, now: 0 };
        let Some(merged) = merge_files(core, &info, plan, boundaries, &mut |_, _| true)? else {
            return Err(Error::WritesStopped("the database is closing".to_owned()));
        };
        all.append(merged.outputs.finish(0, 0)?);
    }
    Ok(all)
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
