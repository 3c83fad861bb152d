//! Keeps levels in shape: one pure function picks what to do, another one decides which versions are kept, and only executing a
//! pick has effects. It does not know how commits arrive.
//!
//! Levels change under the lock of compactions (`Writes::compacting`), so that one compaction runs at a time.

pub mod cut;
pub mod erases;
pub mod execute;
pub mod keep;
pub mod kept_files;
pub mod merge;
pub mod pick;
pub mod picks;

use crate::cancel::Limit;
use crate::core::{Core, StopOnPanic};
use crate::error::{Error, Result};
use crate::manifest::{TableId, TableInfo};
use crate::read::View;
use os::sync::{Arc, Weak};
use os::{Job, Polled};

/// The name of the work in the error about a cancelled compaction.
const WORK: &str = "the compaction";

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
        // Other code that takes this lock wakes the job after it.
        let Some(_compacting) = core.writes.compacting.try_lock() else { return Polled::Idle };
        let troubles = &core.background.troubles;
        let now = core.env.machine.clock.now();
        match compact_once(&core, |table| !troubles.compaction_must_wait(table, now)) {
            Ok(true) => Polled::Worked,
            Ok(false) if has_lost_readers(&core) => Polled::Worked,
            Ok(false) => {
                let view = core.views.newest();
                let exists = |table| view.files.tables.contains_key(&table);
                if let Some(time) = troubles.next_compaction(exists, now) {
                    core.background.wake_compact_after(time);
                }
                Polled::Idle
            }
            // The table was dropped meanwhile: the next poll finds the others.
            Err((_, Error::NoSuchTable(_))) => Polled::Worked,
            // The next poll compacts other tables.
            Err((table, error)) => {
                let trouble = troubles.compaction_failed(table.id, &table.name, &error, core.env.machine.clock.now());
                core.env.report(|| trouble.event());
                core.background.tell_progress();
                if core.check_writable().is_ok() { Polled::Worked } else { Polled::Idle }
            }
        }
    }
}

/// Watches the oldest readers if a table waits until they are gone. Returns whether they were gone before the watch began.
fn has_lost_readers(core: &Core) -> bool {
    let watched = core.writes.picks.waits_for();
    core.views.snapshots.watch(watched);
    watched.is_some_and(|oldest| core.views.oldest_seen() != oldest)
}

/// Does the compaction with the highest score among the tables that `may` be compacted. False if there is none, or if the
/// database is closing. An error comes with the table whose files could not be compacted.
fn compact_once(core: &Arc<Core>, may: impl Fn(TableId) -> bool) -> Result<bool, (Arc<TableInfo>, Error)> {
    let boundaries = core.views.boundaries();
    let oldest = boundaries[0];
    let mut tables = core.writes.picks.take(oldest).into_iter();
    let view = core.views.newest();
    let mut is_cut = false;
    while let Some(id) = tables.next() {
        let Some(table) = view.files.tables.get(&id) else {
            core.writes.picks.forget(id);
            continue;
        };
        if !may(id) {
            core.writes.picks.put_off([id]);
            continue;
        }
        match cut::cut(core, table, &boundaries) {
            // The install has noted that the table changed, so it will be examined again.
            Ok(true) => is_cut = true,
            Ok(false) => {
                let pick = pick::pick(table, &core.env.options.levels, oldest);
                core.writes.picks.examined(id, pick, cut::is_waiting(table) || pick::is_waiting(table, oldest));
            }
            Err(error) => {
                core.writes.picks.put_off(std::iter::once(id).chain(tables));
                return Err((table.info.clone(), error));
            }
        }
    }
    if is_cut {
        core.background.tell_progress();
        return Ok(true);
    }
    let Some((table, pick)) = core.writes.picks.best(&view.files, &may) else { return Ok(false) };
    let outcome = execute::execute(core, table, &pick, &mut |_, _| true);
    let is_done = outcome.map_err(|error| (table.info.clone(), error))?;
    if is_done {
        core.background.troubles.compaction_succeeded(table.info.id);
    }
    core.background.tell_progress();
    Ok(is_done)
}

/// Compacts until there is nothing left to pick in any table.
///
/// # Errors
///
/// Why writes are refused; why a compaction failed.
pub fn compact_due(core: &Arc<Core>) -> Result<()> {
    loop {
        core.check_writable()?;
        let outcome = {
            let _compacting = core.writes.compacting.lock();
            compact_once(core, |_| true)
        };
        match outcome {
            Ok(true) | Err((_, Error::NoSuchTable(_))) => {}
            Ok(false) => break,
            Err((_, error)) => return Err(error),
        }
    }
    core.background.wake_compact();
    Ok(())
}

/// Merges everything a table has into its deepest level, unless `limit` ends it before. `progress` receives the bytes that
/// were read and the bytes to read in all.
///
/// # Errors
///
/// Why writes are refused; why the flush before it or the compaction failed; that `limit` has ended it.
pub fn compact_table(
    core: &Arc<Core>,
    table: TableId,
    limit: &Limit,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<()> {
    limit.check(WORK)?;
    crate::write::flush::flush_all(core)?;
    let outcome = {
        let _compacting = core.writes.compacting.lock();
        limit.check(WORK).and_then(|()| merge_all(core, table, limit, progress))
    };
    core.background.wake_compact();
    core.background.tell_progress();
    if outcome.is_ok() {
        core.background.troubles.compaction_succeeded(table);
    }
    match outcome {
        Ok(false) => limit.check(WORK),
        Ok(true) | Err(Error::NoSuchTable(_)) => Ok(()),
        Err(error) => Err(error),
    }
}

/// The part of [`compact_table`] that runs under the lock of compactions. Returns whether levels changed.
fn merge_all(core: &Arc<Core>, table: TableId, limit: &Limit, progress: &mut dyn FnMut(u64, u64)) -> Result<bool> {
    let files = |view: &View| view.files.tables.get(&table).cloned();
    let Some(before) = files(&core.views.newest()) else { return Ok(false) };
    cut::cut(core, &before, &core.views.boundaries())?;
    let Some(files) = files(&core.views.newest()) else { return Ok(false) };
    execute::execute(core, &files, &pick::everything(&files), &mut |done, total| {
        progress(done, total);
        !limit.is_over()
    })
}
