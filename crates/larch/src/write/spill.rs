//! If the writes of a transaction take too much memory, this module moves them into files. It also commits a
//! transaction with writes in files. It does not look at the rows.
//!
//! ```text
//! operations in memory ──▶ run ┐
//!                          run ├─▶ run, merged ┐
//!                          run ┘               ├─▶ a file of level 0 for each table
//!                                      run ────┘
//! ```
//!
//! A run is one file, which has a part for each table. For each savepoint within its writes, a run keeps the rows
//! that were visible at this savepoint. If there are eight runs that were merged equally often, these are merged
//! into one run. So a transaction of any size has only a few dozen files. The commit merges all runs, and installs
//! the result as a [large batch](super::large).
//!
//! No manifest names the files of runs. These files are removed when the transaction ends. After a crash, the next
//! open removes them.

use super::commit::{compare, work_if_simulated};
use super::flush::write_run;
use super::indexed::Indexed;
use super::large;
use super::not_committed::NotCommitted;
use super::validation::Validation;
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

/// If there are this many runs that were merged equally often, these are merged into one run.
const MERGED_RUNS: usize = 8;

/// Moves all `writes` into files. The transaction may go back to its savepoints. `savepoints` has the number of
/// writes before each savepoint.
///
/// # Errors
///
/// A file cannot be written or read. After an error, the writes are where they were before.
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

/// Moves the writes that are in no run into a new run.
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

/// Calls `write`, which writes files. On a full disk, erases may use the space of the reserve. Before puts are
/// written, the reserve is filled again, so that puts do not use up the space that erases have freed.
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

/// Returns an error if the transaction has written to a table that was dropped meanwhile. Rows of such a table
/// were not written to files, so the transaction can neither be committed nor go back to an earlier state. A
/// dropped index is no error, because nobody needs its entries: the commit will find that the indexes have
/// changed, and the work is done again without this index.
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
    boundaries: &[Version],
    rewrite: Option<Rewrite>,
) -> Result<Vec<(TableId, Arc<DbFile>)>> {
    let scratch = core.env.scratch.get()?;
    let one = OneFile::at(&scratch.place);
    let new = merge(core, runs, boundaries, rewrite, &Target::One(one.clone()))?;
    one.sync()?;
    check_not_dropped(core, writes)?;
    Ok(open(&scratch.opener, new))
}

/// Takes back all writes after `mark`. `savepoints` has the same meaning as in [`spill`].
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

/// Commits `writes`, if no commit contradicts `validation`. Some of the writes are in files. When this returns, the
/// writes are durable.
///
/// # Errors
///
/// The conflict; the errors of [`large::install`].
pub fn commit(
    core: &Arc<Core>,
    writes: &mut OwnWrites,
    indexed: Indexed,
    mut validation: Validation<'_>,
) -> Result<Version, NotCommitted> {
    compare(core, &mut validation, writes.ops())?;
    move_into_run(core, writes, &[])?;
    let through = writes.version(writes.count());
    let rewrite = Rewrite { through, into: Some(large::FILE_VERSION) };
    let is_erases_only = writes.is_erases_only();
    let installed = loop {
        let new = with_reserve(core, is_erases_only, || {
            merge(core, writes.runs(), &[through], Some(rewrite), &Target::Database)
        })?;
        let (ops, tables) = (writes.ops(), writes.tables());
        let installed = large::install(core, new, ops, (tables, indexed), Some(&mut validation));
        // While the lock of levels was taken, the compaction job could not begin a compaction. So it is woken now.
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

/// The versions at which the transaction may read a run. The last write in this run is number `through` of the
/// transaction.
fn boundaries(writes: &OwnWrites, savepoints: &[u64], through: u64) -> Vec<Version> {
    let before = savepoints.iter().copied().filter(|&savepoint| savepoint < through);
    let mut all: Vec<Version> = before.chain([through]).map(|count| writes.version(count)).collect();
    all.dedup();
    all
}

/// Opens the parts of one file.
fn open(opener: &FileOpener, mut new: NewFiles) -> Vec<(TableId, Arc<DbFile>)> {
    let opened = opener.open_parts(&new.files);
    new.fresh.take_paths();
    new.files.iter().map(|file| file.table).zip(opened).collect()
}

/// Merges `runs`, oldest first. The result has one file, or one part of a file, for each table that still exists.
fn merge(
    core: &Arc<Core>,
    runs: &[Run],
    boundaries: &[Version],
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
        let plan = MergePlan { sources, bottom, file_bytes, below, kept, rewrite, is_run, target };
        let Some(merged) = merge_files(core, &info, plan, boundaries, &mut |_, _| true)? else {
            return Err(Error::WritesStopped("the database is closing".to_owned()));
        };
        all.append(merged.outputs.finish(0, 0)?);
    }
    Ok(all)
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
