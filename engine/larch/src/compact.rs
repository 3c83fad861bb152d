//! Keeps levels in shape. Picking the next compaction and deciding which versions it keeps are pure functions
//! elsewhere; this module runs what was picked. It does not know how commits arrive.
//!
//! Compactions hold the lock of levels (`Writes::levels`) in shared mode. Before a compaction begins, it claims the
//! levels and keys that it will change, so that no two concurrent compactions change the same keys of a level
//! (decision 56). Only one thread at a time picks.

pub mod cut;
pub mod execute;
pub mod offering;
pub mod result;
pub mod yielding;

use crate::base::error::{Error, Result};
use crate::base::event::CompactionReason;
use crate::base::table::{TableId, TableInfo};
use crate::base::watch::Watch;
use crate::core::{Core, StopOnPanic};
use crate::levels::level0::{self, Now};
use crate::levels::levels_lock::SharedLevels;
use crate::levels::offers::Place;
use crate::levels::pick::{self, Pick};
use crate::levels::picks::Claimed;
use crate::levels::{expiry, waste};
use crate::view::View;
use offering::Merger;
use os::sync::{Arc, Weak};
use os::{Job, Polled};
use std::time::Duration;
use yielding::Yielding;

/// The name that this work has in the error about cancelled work.
pub const WORK: &str = "the compaction";

/// The job that runs compactions as long as there is something to compact.
#[derive(Debug)]
pub struct CompactJob(pub Weak<Core>);

impl Job for CompactJob {
    fn poll(&self) -> Polled {
        let Some(core) = self.0.upgrade() else { return Polled::Idle };
        if core.check_writable().is_err() {
            return Polled::Idle;
        }
        let _guard = StopOnPanic::new(&core);
        // If the lock cannot be shared, another thread holds it exclusively or waits to, and wakes this job when it
        // is done.
        let Some(levels) = core.writes.levels.try_share() else { return Polled::Idle };
        let troubles = &core.background.troubles;
        let now = core.env.machine.clock.now();
        match compact_once(&core, Some(levels), |table| !troubles.compaction_must_wait(table, now)) {
            Ok(Compacted::Something) => Polled::Worked,
            Ok(Compacted::Nothing) if has_lost_readers(&core) => Polled::Worked,
            Ok(Compacted::ChosenElsewhere) => Polled::Idle,
            Ok(Compacted::Nothing) => {
                let view = core.views.newest();
                let exists = |table| view.files.tables.contains_key(&table);
                let next_expiry = core.writes.picks.next_expiry();
                // The clock of rows stands still while that of the machine is behind it.
                let wall = u64::try_from(core.env.machine.clock.wall().as_millis()).unwrap_or(u64::MAX);
                let until = |time: u64| Duration::from_millis(time.saturating_sub(wall).max(1));
                let next =
                    [troubles.next_compaction(exists, now), core.writes.picks.next_rest(now), next_expiry.map(until)];
                if let Some(time) = next.into_iter().flatten().min() {
                    core.background.wake_compact_after(time);
                }
                Polled::Idle
            }
            // The picked table was dropped meanwhile; the next poll looks at the other tables.
            Err((_, Error::NoSuchTable(_))) => Polled::Worked,
            // This table has to wait for its retry; the next poll compacts other tables.
            Err((table, error)) => {
                let trouble = troubles.compaction_failed(table.id, &table.name, &error, core.env.machine.clock.now());
                core.env.report(|| trouble.event());
                core.background.tell_progress();
                if core.check_writable().is_ok() { Polled::Worked } else { Polled::Idle }
            }
        }
    }
}

/// If a table can be compacted only once the readers at the oldest version are gone, begins to watch these readers.
/// Returns true if they were gone before the watch began.
fn has_lost_readers(core: &Core) -> bool {
    let watched = core.writes.picks.waits_for();
    core.views.snapshots.watch(watched);
    watched.is_some_and(|oldest| core.views.oldest_seen() != oldest)
}

/// The outcome of one call of [`compact_once`].
enum Compacted {
    Something,
    /// Nothing can be compacted, or the database is closing.
    Nothing,
    /// Another thread is choosing a compaction right now. It wakes the jobs when it is done.
    ChosenElsewhere,
}

/// Does one compaction, or offers it to a worker: the pick with the highest score, among the tables for which `may`
/// is true, that does not overlap with a compaction under way. `levels` is `None` if a caller asked for the
/// compaction and holds the lock of levels exclusively. Such a compaction does not wait for level 0 to get more
/// files, and is not offered to a worker. An error names the table that could not be compacted.
fn compact_once(
    core: &Arc<Core>,
    levels: Option<SharedLevels>,
    may: impl Fn(TableId) -> bool,
) -> Result<Compacted, (Arc<TableInfo>, Error)> {
    let (view, table, pick, claimed, place) = match choose(core, levels.is_none(), &may)? {
        Choice::Nothing => return Ok(Compacted::Nothing),
        Choice::Elsewhere => return Ok(Compacted::ChosenElsewhere),
        Choice::Cut => {
            core.background.tell_progress();
            return Ok(Compacted::Something);
        }
        Choice::Pick { view, table, pick, claimed, place } => (view, table, pick, claimed, place),
    };
    let Some(table) = view.files.tables.get(&table) else { return Ok(Compacted::Something) };
    // Let other threads choose and start more compactions meanwhile.
    core.background.wake_compact();
    let own = match (levels, place) {
        (Some(levels), Some(_place)) => {
            offering::offer(core, table, &pick, (claimed, levels)).map(|(c, l)| (c, Some(l)))
        }
        (levels, _) => Some((claimed, levels)),
    };
    let Some(own) = own else { return Ok(Compacted::Something) };
    let mut yielding = Yielding::new(core, table.info.id);
    let outcome = execute::execute(core, table, &pick, &mut |_, _| {
        yielding.offer();
        true
    });
    drop(own);
    let is_done = outcome.map_err(|error| (table.info.clone(), error))?;
    if is_done {
        core.background.troubles.compaction_succeeded(table.info.id);
    }
    core.background.wake_compact();
    core.background.tell_progress();
    Ok(if is_done { Compacted::Something } else { Compacted::Nothing })
}

/// What a call of [`choose`] decided.
enum Choice {
    Nothing,
    /// Another thread is choosing.
    Elsewhere,
    /// Files were cut, so choose again.
    Cut,
    /// A compaction of the table was picked from the files in `view`. `claimed` keeps other compactions away from
    /// the levels and keys that it changes.
    Pick {
        view: Arc<View>,
        table: TableId,
        pick: Pick,
        claimed: Claimed,
        /// The place reserved with a worker, if a worker should do the merge.
        place: Option<Place>,
    },
}

/// Examines the tables that have changed, cuts files where range erases hide enough of their rows, and claims the
/// best pick. If another thread is already choosing, returns at once; that thread wakes the jobs when it is done.
fn choose(core: &Arc<Core>, is_asked: bool, may: &impl Fn(TableId) -> bool) -> Result<Choice, (Arc<TableInfo>, Error)> {
    let picks = &core.writes.picks;
    let Some(_choosing) = picks.try_choose() else { return Ok(Choice::Elsewhere) };
    let all_boundaries = core.views.boundaries();
    let looks = level0::looks(&core.env.cache.counters().snapshot());
    let now = Now { time: core.env.machine.clock.now(), is_asked, looks };
    let row_clock = &core.env.row_clock;
    // Without rows that expire, the clock is not asked.
    let millis = if row_clock.has_times() { row_clock.now() } else { 0 };
    picks.wake_expired(millis);
    let mut tables = picks.take(&all_boundaries, now).into_iter();
    // The order of these two calls matters. A compaction that ends between them is in `under_way`, and its new files
    // are in `view`. In the other order, it could be missing from both.
    let under_way = picks.under_way();
    let view = core.views.newest();
    let mut is_cut = false;
    while let Some(id) = tables.next() {
        let Some(table) = view.files.tables.get(&id) else {
            picks.forget(id);
            continue;
        };
        if !may(id) {
            picks.put_off([id]);
            continue;
        }
        let claims = under_way.get(&id).map_or(&[][..], Vec::as_slice);
        let boundaries = all_boundaries.of(id);
        let oldest = boundaries.oldest();
        if !claims.is_empty() && cut::is_due(table, &boundaries) {
            // Files can be cut only while no compaction of the table runs, so the table gets no new compaction until
            // then.
            picks.examined(id, Pick::Nothing, true);
            picks.put_off([id]);
            continue;
        }
        match cut::cut(core, table, &boundaries) {
            // Installing the cut marked the table as changed, so it will be examined again.
            Ok(true) => is_cut = true,
            Ok(false) => {
                let options = &core.env.options.levels;
                let wastes = waste::is_due(table, oldest);
                let level0 = picks.level0_use(table, now, level0::few_files(options), wastes);
                let mut pick = expiry::drop_files(table, millis, claims);
                if pick == Pick::Nothing {
                    pick = pick::pick(table, options, oldest, level0, claims);
                }
                if pick == Pick::Nothing && millis > 0 {
                    pick = expiry::pick(table, pick::targets(table, options).0, millis, claims);
                }
                if pick == Pick::Nothing && wastes && level0.is_at_rest {
                    pick = waste::pick(table, pick::targets(table, options).0, oldest, claims);
                }
                let is_waiting =
                    cut::is_waiting(table) || pick::is_waiting(table, oldest) || waste::is_waiting(table, oldest);
                picks.examined(id, pick, is_waiting);
                picks.note_expiry(id, if millis > 0 { expiry::next(table, millis) } else { None });
            }
            Err(error) => {
                picks.put_off(std::iter::once(id).chain(tables));
                return Err((table.info.clone(), error));
            }
        }
    }
    if is_cut {
        return Ok(Choice::Cut);
    }
    let is_expired = |pick: &Pick| matches!(pick, Pick::Merge { reason: CompactionReason::Expired, .. });
    let merger = if is_asked { Merger::Writer } else { offering::next_merger(core) };
    // A worker drops no rows that have expired, and has no filter.
    let is_own = |table: TableId, pick: &Pick| is_expired(pick) || core.filters.of(table).is_some();
    let is_later = |table: TableId, pick: &Pick| {
        matches!((pick, &merger), (Pick::Merge { .. }, Merger::Later)) && !is_own(table, pick)
    };
    let Some((table, pick)) = picks.best(&view.files, |table, pick| may(table) && !is_later(table, pick)) else {
        return Ok(Choice::Nothing);
    };
    let Some(claim) = pick.claim(table) else { return Ok(Choice::Nothing) };
    let place = match merger {
        Merger::Worker(place) if matches!(pick, Pick::Merge { .. }) && !is_own(table.info.id, &pick) => Some(place),
        _ => None,
    };
    let table = table.info.id;
    let claimed = picks.claim(table, claim);
    Ok(Choice::Pick { view: view.clone(), table, pick, claimed, place })
}

/// Compacts all tables until nothing is left to pick.
///
/// # Errors
///
/// Returns why writes are refused, or why a compaction failed.
pub fn compact_due(core: &Arc<Core>) -> Result<()> {
    let next = || {
        core.check_writable()?;
        let _levels = core.own_levels();
        match compact_once(core, None, |_| true) {
            Ok(Compacted::Something) | Err((_, Error::NoSuchTable(_))) => Ok(true),
            Ok(Compacted::Nothing | Compacted::ChosenElsewhere) => Ok(false),
            Err((_, error)) => Err(error),
        }
    };
    let outcome = loop {
        match next() {
            Ok(true) => {}
            Ok(false) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    // The compaction jobs could do nothing while this thread held the lock, even if they were woken.
    core.background.wake_compact();
    outcome
}

/// Merges all files of a table into its deepest level, unless `watch` ends the merge early. Reports to `watch` how
/// many bytes were read.
///
/// # Errors
///
/// Returns why writes are refused, why the compaction failed, or that `watch` has ended it.
pub fn compact_table(core: &Arc<Core>, table: TableId, watch: &Watch<'_>) -> Result<()> {
    let outcome = {
        let _levels = core.own_levels();
        watch.check().and_then(|()| merge_all(core, table, watch))
    };
    core.background.wake_compact();
    core.background.tell_progress();
    if matches!(outcome, Ok(true)) {
        core.background.troubles.compaction_succeeded(table);
    }
    match outcome {
        Ok(false) => watch.check(),
        Ok(true) | Err(Error::NoSuchTable(_)) => Ok(()),
        Err(error) => Err(error),
    }
}

/// The part of [`compact_table`] that holds the lock of levels exclusively. Returns whether levels changed.
fn merge_all(core: &Arc<Core>, table: TableId, watch: &Watch<'_>) -> Result<bool> {
    let files = |view: &View| view.files.tables.get(&table).cloned();
    let Some(before) = files(&core.views.newest()) else { return Ok(false) };
    cut::cut(core, &before, &core.views.boundaries().of(table))?;
    let Some(before) = files(&core.views.newest()) else { return Ok(false) };
    let row_clock = &core.env.row_clock;
    let now = if row_clock.has_times() { row_clock.now() } else { 0 };
    let is_dropped = execute::execute(core, &before, &expiry::drop_files(&before, now, &[]), &mut |_, _| true)?;
    let Some(files) = files(&core.views.newest()) else { return Ok(is_dropped) };
    let everything = pick::everything(&files, now, core.filters.of(table).is_some());
    Ok(execute::execute(core, &files, &everything, &mut |done, total| watch.tell(done, total))? || is_dropped)
}

#[cfg(test)]
mod tests;
