//! Keeping levels in shape: what to do is picked by a pure function, which versions survive is decided by another, and
//! only running a choice has effects.

pub mod cut;
pub mod erases;
pub mod keep;
pub mod pick;
pub mod picks;
pub mod run;

use crate::cancel::Limit;
use crate::core::{Core, StopOnPanic};
use crate::error::{Error, Result};
use crate::manifest::{TableId, TableInfo};
use crate::read::View;
use os::sync::{Arc, Weak};
use os::{Job, Polled};

/// What a cancelled compaction is called.
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
        // Whoever has the turn wakes this job when done with it.
        let Some(_turn) = core.writes.compacting.try_lock() else { return Polled::Idle };
        let troubles = &core.background.troubles;
        let now = core.env.machine.clock.now();
        match compact_once(&core, |table| !troubles.compaction_is_held(table, now)) {
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
            // Without the table that was dropped meanwhile, again.
            Err((_, Error::NoSuchTable(_))) => Polled::Worked,
            // The other tables go on.
            Err((table, error)) => {
                let trouble = troubles.compaction_failed(table.id, &table.name, &error, core.env.machine.clock.now());
                core.env.report(|| trouble.event());
                core.background.tell_progress();
                if core.check_writable().is_ok() { Polled::Worked } else { Polled::Idle }
            }
        }
    }
}

/// Watches the oldest readers if a table waits until they are gone; whether they went before they were watched.
fn has_lost_readers(core: &Core) -> bool {
    let watched = core.writes.picks.waits_for();
    core.views.snapshots.watch(watched);
    watched.is_some_and(|oldest| core.views.oldest_seen() != oldest)
}

/// Does the most wanted compaction of the tables that `may` be compacted; false if none is wanted or the database is
/// closing. An error comes with the table whose files could not be compacted.
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
        match cut::run(core, table, &boundaries) {
            // It has changed, and is looked at again.
            Ok(true) => is_cut = true,
            Ok(false) => {
                let choice = pick::pick(table, &core.env.options.levels, oldest);
                core.writes.picks.looked(id, choice, cut::is_waiting(table) || pick::is_waiting(table, oldest));
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
    let Some((table, choice)) = core.writes.picks.most_wanted(&view.files, &may) else { return Ok(false) };
    let outcome = run::run(core, table, &choice, &mut |_, _| true);
    let done = outcome.map_err(|error| (table.info.clone(), error))?;
    if done {
        core.background.troubles.compaction_succeeded(table.info.id);
    }
    core.background.tell_progress();
    Ok(done)
}

/// Compacts until no table wants it.
pub fn compact_due(core: &Arc<Core>) -> Result<()> {
    loop {
        core.check_writable()?;
        let outcome = {
            let _turn = core.writes.compacting.lock();
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

/// Merges everything a table has into its deepest level, until `limit` says otherwise. `progress` is told bytes read and bytes
/// to read.
pub fn compact_table(
    core: &Arc<Core>,
    table: TableId,
    limit: &Limit,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<()> {
    limit.check(WORK)?;
    crate::write::flush::flush_all(core)?;
    let outcome = {
        let _turn = core.writes.compacting.lock();
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

/// As [`compact_table`], for who changes levels.
fn merge_all(core: &Arc<Core>, table: TableId, limit: &Limit, progress: &mut dyn FnMut(u64, u64)) -> Result<bool> {
    let files = |view: &View| view.files.tables.get(&table).cloned();
    let Some(before) = files(&core.views.newest()) else { return Ok(false) };
    cut::run(core, &before, &core.views.boundaries())?;
    let Some(files) = files(&core.views.newest()) else { return Ok(false) };
    run::run(core, &files, &pick::everything(&files), &mut |done, total| {
        progress(done, total);
        !limit.is_over()
    })
}
