//! Moves writes of a transaction into files when they take too much memory, and commits such a transaction. It does not know which
//! rows they are.
//!
//! ```text
//! operations in memory ──▶ run ┐
//!                          run ├─▶ run, merged ┐
//!                          run ┘               ├─▶ a file of level 0 for each table
//!                                      run ────┘
//! ```
//!
//! A run keeps what each savepoint in it saw. Eight runs that were merged equally often become one, so that a transaction of any size
//! has a few dozen files. Its commit merges them all, and installs the outcome as a [large batch](super::large).
//!
//! The files are in no manifest: they go with the transaction, and after a crash the next open removes them.

use super::commit::{compare, work_if_simulated};
use super::flush::write_files;
use super::indexed::Indexed;
use super::large;
use super::not_committed::NotCommitted;
use crate::compact::merge::{MergePlan, Rewrite, merge_files};
use crate::core::Core;
use crate::error::{Error, Result};
use crate::files::output::NewFiles;
use crate::manifest::{Level, TableId, TableInfo};
use crate::transaction::conflict::Conflict;
use crate::transaction::own_writes::{OwnWrites, WriteMark};
use crate::transaction::run::Run;
use crate::transaction::validation::Validation;
use os::sync::Arc;
use sst::Version;
use std::collections::BTreeSet;

/// So many runs that were merged equally often are merged.
const MERGED_RUNS: usize = 8;

/// Moves all `writes` into files. `savepoints` are the numbers of writes before the places to which the transaction may go back.
///
/// # Errors
///
/// A file could not be written or read; then the writes are where they were.
pub fn spill(core: &Arc<Core>, writes: &mut OwnWrites, savepoints: &[u64]) -> Result<()> {
    if !writes.ops().is_empty() {
        let through = writes.count();
        let new = write_files(core, &writes.memtables(), &boundaries(writes, savepoints, through))?;
        writes.moved_into(open(core, new, through, 0));
    }
    while let [.., first, _, _, _, _, _, _, last] = writes.runs()
        && first.merges == last.merges
    {
        let (from, through, merges) = (writes.runs().len() - MERGED_RUNS, last.through, last.merges + 1);
        let new = merge(core, &writes.runs()[from..], &boundaries(writes, savepoints, through), None)?;
        writes.replace_runs(from, Some(open(core, new, through, merges)));
    }
    Ok(())
}

/// Takes back all writes after `mark`. `savepoints` are as in [`spill`].
///
/// # Errors
///
/// As [`spill`].
pub fn rewind(core: &Arc<Core>, writes: &mut OwnWrites, mark: &WriteMark, savepoints: &[u64]) -> Result<()> {
    let through = mark.count();
    if through < writes.in_runs() {
        let from = writes.runs().partition_point(|run| run.through <= through);
        let begins = from.checked_sub(1).map_or(0, |before| writes.runs()[before].through);
        let mut cut = None;
        if begins < through {
            let boundaries = boundaries(writes, savepoints, through);
            let rewrite = Rewrite { through: writes.version(through), into: None };
            let run = &writes.runs()[from];
            let new = merge(core, std::slice::from_ref(run), &boundaries, Some(rewrite))?;
            cut = Some(open(core, new, through, run.merges));
        }
        writes.replace_runs(from, cut);
        writes.clear_memory();
    }
    writes.rewind(mark);
    Ok(())
}

/// Commits `writes`, some of which are in files, if no commit contradicts `validation`. They are durable when this returns.
///
/// # Errors
///
/// As [`large::install`].
pub fn commit(
    core: &Arc<Core>,
    writes: &mut OwnWrites,
    indexed: Indexed,
    mut validation: Validation<'_>,
) -> Result<Result<Version, Conflict>> {
    core.check_writable()?;
    if core.env.options.read_only {
        return Err(Error::ReadOnly);
    }
    if let Err(conflict) = compare(core, &mut validation, writes.ops()) {
        return Ok(Err(conflict));
    }
    spill(core, writes, &[])?;
    let through = writes.version(writes.count());
    let rewrite = Rewrite { through, into: Some(large::FILE_VERSION) };
    let new = merge(core, writes.runs(), &[through], Some(rewrite))?;
    let (ops, tables) = writes.parts_mut();
    let installed = large::install(core, new, ops, (tables, indexed), Some(&mut validation));
    // The compaction job may have found its lock taken.
    core.background.wake_compact();
    work_if_simulated(core);
    match installed {
        Ok(version) => Ok(Ok(version)),
        Err(NotCommitted::Conflict(conflict)) => Ok(Err(conflict)),
        Err(NotCommitted::Failed(error)) => Err(error),
    }
}

/// The versions at which a run with writes up to number `through` may be read.
fn boundaries(writes: &OwnWrites, savepoints: &[u64], through: u64) -> Vec<Version> {
    let before = savepoints.iter().copied().filter(|&savepoint| savepoint < through);
    let mut all: Vec<Version> = before.chain([through]).map(|count| writes.version(count)).collect();
    all.dedup();
    all
}

fn open(core: &Core, mut new: NewFiles, through: u64, merges: u32) -> Run {
    let files = new.files.iter().map(|file| {
        let opened = core.env.opener.open(file.number, file.epoch, file.version_offset, file.meta.clone());
        (file.table, opened)
    });
    let files = files.collect();
    new.fresh.take_paths();
    Run { through, merges, files }
}

/// Merges `runs`, oldest first, into one file for each table that is there still.
fn merge(core: &Arc<Core>, runs: &[Run], boundaries: &[Version], rewrite: Option<Rewrite>) -> Result<NewFiles> {
    let tables: BTreeSet<TableId> = runs.iter().flat_map(|run| &run.files).map(|(table, _)| *table).collect();
    let mut all = NewFiles::none(&core.env);
    let infos = tables.into_iter().filter_map(|table| core.views.table_info(table));
    for info in infos.collect::<Vec<Arc<TableInfo>>>() {
        let files = runs.iter().rev().filter_map(|run| run.file_of(info.id));
        let sources: Vec<Level> = files.map(|file| Arc::new(vec![file.clone()])).collect();
        let (below, kept) = (Level::default(), Default::default());
        let plan = MergePlan { sources, bottom: false, file_bytes: u64::MAX, below, kept, rewrite };
        let Some(merged) = merge_files(core, &info, plan, boundaries, &mut |_, _| true)? else {
            return Err(Error::WritesStopped("the database is closing".to_owned()));
        };
        all.append(merged.outputs.finish(0, 0)?);
    }
    Ok(all)
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
