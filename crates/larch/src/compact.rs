//! Keeping levels in shape: what to do is picked by a pure function, which versions survive is decided by another, and
//! only running a choice has effects.

pub mod cut;
pub mod keep;
pub mod output;
pub mod pick;
pub mod run;

use crate::core::{Core, StopOnPanic};
use crate::error::{Error, Result};
use crate::manifest::TableId;
use crate::read::View;
use os::sync::{Arc, Weak};
use os::{Job, Polled};
use pick::Choice;

/// The job that compacts while there is something to compact.
#[derive(Debug)]
pub struct CompactJob(pub Weak<Core>);

impl Job for CompactJob {
    fn poll(&self) -> Polled {
        let Some(core) = self.0.upgrade() else { return Polled::Idle };
        if core.check_writable().is_err() {
            return Polled::Idle;
        }
        let _guard = StopOnPanic(&core);
        // Whoever has the turn wakes this job when done with it.
        let Some(_turn) = core.compacting.try_lock() else { return Polled::Idle };
        match compact_once(&core) {
            // Without the table that was dropped meanwhile, again.
            Ok(true) | Err(Error::NoSuchTable(_)) => Polled::Worked,
            Ok(false) => Polled::Idle,
            Err(error) => {
                // Without compaction reads and space get worse from flush to flush: better to say so now.
                core.stop_writes(error);
                Polled::Idle
            }
        }
    }
}

/// Does the most wanted compaction of any table; false if none is wanted or the database is closing.
fn compact_once(core: &Arc<Core>) -> Result<bool> {
    let view = core.view();
    let boundaries = core.boundaries();
    let mut is_cut = false;
    for table in view.files.tables.values() {
        is_cut |= cut::run(core, table, &boundaries)?;
    }
    if is_cut {
        core.background.tell_progress();
        return Ok(true);
    }
    let picks = view.files.tables.values().map(|table| (table, pick::pick(table, &core.options.levels)));
    let Some((table, choice)) = picks.max_by(|(_, a), (_, b)| a.score().total_cmp(&b.score())) else {
        return Ok(false);
    };
    if choice == Choice::Nothing {
        return Ok(false);
    }
    let done = run::run(core, table, &choice, &mut |_, _| true)?;
    core.background.tell_progress();
    Ok(done)
}

/// Compacts until no table wants it.
pub fn settle(core: &Arc<Core>) -> Result<()> {
    loop {
        core.check_writable()?;
        let outcome = {
            let _turn = core.compacting.lock();
            compact_once(core)
        };
        match outcome {
            Ok(true) | Err(Error::NoSuchTable(_)) => {}
            Ok(false) => break,
            Err(error) => return Err(error),
        }
    }
    core.background.wake_compact();
    Ok(())
}

/// Merges everything a table has into its deepest level. `progress` is told bytes read and bytes to read.
pub fn compact_table(core: &Arc<Core>, table: TableId, progress: &mut dyn FnMut(u64, u64)) -> Result<()> {
    crate::flush::flush_all(core)?;
    let outcome = {
        let _turn = core.compacting.lock();
        merge_all(core, table, progress)
    };
    core.background.wake_compact();
    core.background.tell_progress();
    match outcome {
        Ok(_) | Err(Error::NoSuchTable(_)) => Ok(()),
        Err(error) => Err(error),
    }
}

/// As [`compact_table`], for who changes levels.
fn merge_all(core: &Arc<Core>, table: TableId, progress: &mut dyn FnMut(u64, u64)) -> Result<bool> {
    let files = |view: &View| view.files.tables.get(&table).cloned();
    let Some(before) = files(&core.view()) else { return Ok(false) };
    cut::run(core, &before, &core.boundaries())?;
    let Some(files) = files(&core.view()) else { return Ok(false) };
    run::run(core, &files, &pick::everything(&files), &mut |done, total| {
        progress(done, total);
        true
    })
}
