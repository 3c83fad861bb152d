//! Does what was picked: moves a file or merges files, installs the outcome, and reports it as events. It does not choose,
//! and does not know how versions are merged.
//!
//! The caller shares the lock of levels and claims what the pick changes, or has the lock alone.

use super::kept_files::KeptFiles;
use super::merge::{MergePlan, MergeResult, merge_files};
use super::pick::{self, Pick};
use crate::core::Core;
use crate::error::Result;
use crate::event::{CompactionReason, Event};
use crate::files::fresh::FreshFiles;
use crate::manifest::{DbFile, Edit, Level, TableFiles};
use crate::warm;
use os::sync::Arc;
use os::sync::atomic::Ordering;
use std::collections::HashSet;

/// Does what `pick` says and returns whether levels changed. They do not if there is nothing to do, or if `go_on` returns
/// false: it receives the bytes that were read and the bytes to read in all, and says whether to go on.
///
/// # Errors
///
/// As [`Core::install`]; an input that cannot be read, or an output that cannot be written.
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
        Pick::Merge { inputs, to, reason, .. } => {
            let begin = core.env.machine.clock.now();
            let name = || table.info.name.clone();
            let is_input = |level: usize, file: &DbFile| inputs.contains(&(level, file.number));
            core.env.report(|| Event::CompactionStarted {
                table: name(),
                files: inputs.len() as u64,
                bytes: table.files().filter(|(level, file)| is_input(*level, file)).map(|(_, file)| file.bytes()).sum(),
                to: *to,
                reason: *reason,
            });
            let Some(Merged { files, bytes }) = merge(core, table, (inputs, *to, *reason), go_on)? else {
                return Ok(false);
            };
            let time = core.env.machine.clock.now() - begin;
            core.env.report(|| Event::CompactionFinished { table: name(), files, bytes, time });
            Ok(true)
        }
    }
}

/// What a merge wrote.
struct Merged {
    files: u64,
    bytes: u64,
}

fn merge(
    core: &Arc<Core>,
    table: &TableFiles,
    (inputs, to, reason): (&[(usize, u64)], usize, CompactionReason),
    go_on: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<Option<Merged>> {
    let is_input = |level: usize, file: &DbFile| inputs.contains(&(level, file.number));
    let mut sources: Vec<Level> = Vec::new();
    for (level, files) in table.levels.iter().enumerate() {
        let files: Vec<Arc<DbFile>> = files.iter().filter(|file| is_input(level, file)).cloned().collect();
        match level {
            0 => sources.extend(files.into_iter().map(|file| Arc::new(vec![file]))),
            _ if files.is_empty() => {}
            _ => sources.push(Arc::new(files)),
        }
    }
    let bounds = sources.iter().flat_map(|level| level.iter()).map(|file| file.sst.bounds().clone());
    let bounds = bounds.reduce(|a, b| a.union(&b)).expect("a merge has inputs");
    let bottom =
        table.levels[to + 1..].iter().flat_map(|level| level.iter()).all(|f| !f.sst.bounds().overlaps(&bounds));
    let (base, _) = pick::targets(table, &core.env.options.levels);
    let file_bytes = pick::file_bytes(to, base, &core.env.options.levels);
    let kept = if takes_over(reason) {
        KeptFiles::among(&table.info, &sources, file_bytes, bottom)
    } else {
        KeptFiles::default()
    };
    let runs = sources.clone();
    let below = table.levels[to + 1..].iter().find(|level| !level.is_empty()).cloned().unwrap_or_default();
    let plan = MergePlan { sources, bottom, file_bytes, below, kept, rewrite: None, is_run: false };
    let boundaries = core.views.boundaries();
    let Some(MergeResult { outputs, taken_over }) = merge_files(core, &table.info, plan, &boundaries, go_on)? else {
        return Ok(None);
    };
    let new = outputs.finish(to as u8, 0)?;
    core.background.let_others_compact();
    let (files, bytes) = (new.files.len() as u64, new.bytes());
    let taken_over: HashSet<u64> = taken_over.iter().map(|file| file.number).collect();
    let mut moves = 0;
    let mut edits = Vec::with_capacity(inputs.len() + new.files.len());
    for &(level, number) in inputs {
        let (table, from) = (table.info.id, level as u8);
        if !taken_over.contains(&number) {
            edits.push(Edit::RemoveFile { table, level: from, number });
        } else if level != to {
            moves += 1;
            edits.push(Edit::MoveFile { table, level: from, number, to: to as u8 });
        }
    }
    warm::install::install(
        core,
        new,
        rewritten(runs, &taken_over),
        |added| edits.into_iter().chain(added).collect(),
        |_| {},
    )?;
    core.env.written.trivial_moves.fetch_add(moves, Ordering::Relaxed);
    core.env.written.compaction.fetch_add(bytes, Ordering::Relaxed);
    core.env.written.compactions.fetch_add(1, Ordering::Relaxed);
    Ok(Some(Merged { files, bytes }))
}

/// Whether a compaction for this reason leaves files as they are where it can. The others are there to rewrite what they take.
fn takes_over(reason: CompactionReason) -> bool {
    matches!(reason, CompactionReason::Level0 | CompactionReason::LevelSize)
}

/// The files of `runs` that were not taken over.
fn rewritten(runs: Vec<Level>, taken_over: &HashSet<u64>) -> Vec<Level> {
    if taken_over.is_empty() {
        return runs;
    }
    let rest = |run: Level| run.iter().filter(|file| !taken_over.contains(&file.number)).cloned().collect();
    runs.into_iter().map(|run| Arc::new(rest(run))).filter(|run: &Level| !run.is_empty()).collect()
}
