//! Does what was picked: moves a file or merges files, installs the outcome, and reports it as events. It does not choose,
//! and does not know how versions are merged.
//!
//! The caller shares the lock of levels and claims what the pick changes, or has the lock alone.

use super::merge::MergeResult;
use super::pick::Pick;
use super::work::MergeWork;
use crate::core::Core;
use crate::error::Result;
use crate::event::Event;
use crate::files::fresh::FreshFiles;
use crate::manifest::{Edit, TableFiles};
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
            let work = MergeWork::of(table, (inputs, *to, *reason), &core.env.options.levels);
            merge(core, table, work, go_on)
        }
    }
}

fn merge(
    core: &Arc<Core>,
    table: &TableFiles,
    work: MergeWork,
    go_on: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<bool> {
    let begin = core.env.machine.clock.now();
    work.report_begin(core);
    let below = table.levels[work.to + 1..].iter().find(|level| !level.is_empty()).cloned().unwrap_or_default();
    let boundaries = core.views.boundaries();
    let Some(MergeResult { outputs, taken_over }) = work.merge(core, below, &boundaries, go_on)? else {
        return Ok(false);
    };
    let new = outputs.finish(work.to as u8, 0)?;
    core.background.let_others_compact();
    let bytes = new.bytes();
    let taken_over: HashSet<u64> = taken_over.iter().map(|file| file.number).collect();
    work.install(core, new, &taken_over, begin)?;
    core.env.written.compaction.fetch_add(bytes, Ordering::Relaxed);
    Ok(true)
}
