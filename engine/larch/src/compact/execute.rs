//! Executes a pick: moves a file or merges files, installs the result, and reports events. This module does not
//! pick, and does not know how versions are merged.
//!
//! The caller either holds the levels lock exclusively, or shares it and has claimed what the pick changes.

use crate::base::boundaries::Boundaries;
use crate::base::error::Result;
use crate::base::event::{CompactionReason, Event};
use crate::core::Core;
use crate::files::kept_files::KeptFiles;
use crate::files::merge::{MergePlan, MergeResult, merge_files};
use crate::files::output::Target;
use crate::levels::pick::Pick;
use crate::levels::work::MergeWork;
use crate::manifest::directory::fresh::FreshFiles;
use crate::manifest::new_files::NewFiles;
use crate::manifest::{Edit, Level, TableFiles};
use crate::warm;
use os::sync::Arc;
use os::sync::atomic::Ordering;
use std::collections::HashSet;
use std::time::Duration;

/// Executes `pick`. Returns false if there was nothing to do, `go_on` returned false, or the database is closing.
/// `go_on` gets the number of bytes read so far and the number to read in all.
///
/// # Errors
///
/// Fails as [`Core::install`] does, or if an input cannot be read or an output cannot be written.
pub fn execute(
    core: &Arc<Core>,
    table: &TableFiles,
    pick: &Pick,
    go_on: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<bool> {
    match pick {
        Pick::Nothing => Ok(false),
        Pick::Move { from, to, number, .. } => {
            let edit = Edit::MoveFile { table: table.info.id, level: *from as u8, number: *number, to: *to as u8 };
            core.install(&[edit], FreshFiles::new(&core.env.opener.leftovers), |_| {})?;
            core.env.written.trivial_moves.fetch_add(1, Ordering::Relaxed);
            let table = || table.info.name.clone();
            core.env.report(|| Event::FileMoved { table: table(), from: *from, to: *to });
            Ok(true)
        }
        Pick::Drop { files, .. } => drop_files(core, table, files),
        Pick::Merge { inputs, to, reason, .. } => {
            let work = MergeWork::of(table, (inputs, *to, *reason), &core.env.options.levels);
            merge(core, table, work, go_on)
        }
    }
}

/// Drops `files`, given by level and number, whose rows have all expired. The manifest then says that they have.
fn drop_files(core: &Arc<Core>, table: &TableFiles, files: &[(usize, u64)]) -> Result<bool> {
    let id = table.info.id;
    let removed = |&(level, number): &(usize, u64)| Edit::RemoveFile { table: id, level: level as u8, number };
    let edits: Vec<Edit> = files.iter().map(removed).chain(core.expired_edit()).collect();
    core.install(&edits, FreshFiles::new(&core.env.opener.leftovers), |_| {})?;
    let numbers: HashSet<u64> = files.iter().map(|(_, number)| *number).collect();
    let dropped = table.files().filter(|(_, file)| numbers.contains(&file.number));
    core.env.report(|| Event::FilesExpired {
        table: table.info.name.clone(),
        files: files.len() as u64,
        bytes: dropped.map(|(_, file)| file.bytes()).sum(),
    });
    Ok(true)
}

fn merge(
    core: &Arc<Core>,
    table: &TableFiles,
    work: MergeWork,
    go_on: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<bool> {
    let begin = core.env.machine.clock.now();
    report_begin(core, &work);
    let boundaries = core.views.boundaries().of(work.table.id);
    let Some(MergeResult { outputs, taken_over }) =
        merge_work(core, table, &work, &boundaries, core.env.row_clock.now(), go_on)?
    else {
        return Ok(false);
    };
    let new = outputs.finish(work.to as u8, 0)?;
    core.background.let_others_compact();
    let bytes = new.bytes();
    let taken_over: HashSet<u64> = taken_over.iter().map(|file| file.number).collect();
    install_work(core, work, new, &taken_over, begin)?;
    core.env.written.compaction.fetch_add(bytes, Ordering::Relaxed);
    Ok(true)
}

/// Reports that a merge begins.
pub fn report_begin(core: &Core, work: &MergeWork) {
    core.env.report(|| Event::CompactionStarted {
        table: work.table.name.clone(),
        files: work.inputs.len() as u64,
        bytes: work.bytes(),
        to: work.to,
        reason: work.reason,
    });
}

/// The input files of `work` that the merge may take over without rewriting them.
pub fn kept_files(work: &MergeWork) -> KeptFiles {
    if takes_over(work.reason) {
        KeptFiles::among(&work.table, &work.sources, work.file_bytes, work.bottom)
    } else {
        KeptFiles::default()
    }
}

/// Merges the inputs of `work` into files that are not part of the table yet. Outputs may end early where files of
/// the next deeper level of `table` begin. Rows that have expired at `now`, in milliseconds since 1970, become erases.
///
/// # Errors
///
/// Fails as [`merge_files`] does, which also says when the result is `None`.
pub fn merge_work(
    core: &Arc<Core>,
    table: &TableFiles,
    work: &MergeWork,
    boundaries: &Boundaries,
    now: u64,
    go_on: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<Option<MergeResult>> {
    let below = table.levels[work.to + 1..].iter().find(|level| !level.is_empty()).cloned().unwrap_or_default();
    let (sources, bottom, file_bytes) = (work.sources.clone(), work.bottom, work.file_bytes);
    let plan = MergePlan {
        sources,
        bottom,
        file_bytes,
        below,
        kept: kept_files(work),
        rewrite: None,
        is_run: false,
        is_judged: true,
        target: Target::Database,
        now,
    };
    merge_files(core, &work.table, plan, boundaries, go_on)
}

/// Replaces the inputs of `work` by the `new` files, except inputs in `taken_over`, which were not rewritten and
/// only move or stay. `begin` is the time when the merge began.
///
/// # Errors
///
/// Fails as [`Core::install`] does.
pub fn install_work(
    core: &Core,
    work: MergeWork,
    new: NewFiles,
    taken_over: &HashSet<u64>,
    begin: Duration,
) -> Result<()> {
    let (files, bytes) = (new.files.len() as u64, new.bytes());
    let mut moves = 0;
    let mut edits = Vec::with_capacity(work.inputs.len() + new.files.len());
    for &(level, number) in &work.inputs {
        let (table, from) = (work.table.id, level as u8);
        if !taken_over.contains(&number) {
            edits.push(Edit::RemoveFile { table, level: from, number });
        } else if level != work.to {
            moves += 1;
            edits.push(Edit::MoveFile { table, level: from, number, to: work.to as u8 });
        }
    }
    let expired = core.expired_edit();
    let edits = |added| edits.into_iter().chain::<Vec<Edit>>(added).chain(expired).collect();
    warm::install::install(core, new, rewritten(work.sources, taken_over), edits, |_| {})?;
    core.env.written.trivial_moves.fetch_add(moves, Ordering::Relaxed);
    core.env.written.compactions.fetch_add(1, Ordering::Relaxed);
    let (table, time) = (|| work.table.name.clone(), core.env.machine.clock.now() - begin);
    core.env.report(|| Event::CompactionFinished { table: table(), files, bytes, time });
    Ok(())
}

/// Whether a compaction for this reason takes over inputs if it can. Compactions for other reasons have to rewrite
/// them.
fn takes_over(reason: CompactionReason) -> bool {
    matches!(reason, CompactionReason::Level0 | CompactionReason::LevelSize)
}

/// The files of `runs` whose numbers are not in `taken_over`.
fn rewritten(runs: Vec<Level>, taken_over: &HashSet<u64>) -> Vec<Level> {
    if taken_over.is_empty() {
        return runs;
    }
    let rest = |run: Level| run.iter().filter(|file| !taken_over.contains(&file.number)).cloned().collect();
    runs.into_iter().map(|run| Arc::new(rest(run))).filter(|run: &Level| !run.is_empty()).collect()
}
