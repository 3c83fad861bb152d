//! Precharge of a key range over all files of a table: everything that reading it will need, in one round a level for all
//! files, groups and values together. See [`sst::precharge`] for one file.
//!
//! Files of a level follow each other. How far into a level a limit of rows reaches shows only on the way: the next file
//! is asked about once it is certain that the reader comes to it. Each level may give all the rows there is a limit for,
//! because which of them gives how many is known only when they are merged.

use super::level::files_between;
use super::view::TableView;
use crate::error::Result;
use crate::manifest::Level;
use crate::manifest::file_set::DbFile;
use os::sync::Arc;
use pages::{PageSource, Session};
use sst::precharge::{self, Pass, Reading};
use sst::{Direction, Limits};
use std::ops::Bound;

/// What a precharge did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Prefetched {
    /// Pages read from disk.
    pub page_reads: u64,
    /// Rounds of waiting for the disk.
    pub rounds: u64,
}

/// Brings what `wanted` needs of `table` into memory, a quarter of the cache at most. Its row ids are not looked at.
pub fn precharge(session: &Session, table: TableView<'_>, wanted: &Reading<'_>) -> Result<Prefetched> {
    let Some(files) = table.files() else { return Ok(Prefetched::default()) };
    let (level0, deeper) = files.levels.split_first().expect("a table has levels");
    let level0 = level0.iter().map(|file| Arc::new(vec![file.clone()]));
    let runs: Vec<Level> = level0.chain(deeper.iter().filter(|level| !level.is_empty()).cloned()).collect();
    let runs: Vec<&[Arc<DbFile>]> = runs.iter().map(|run| &run[files_between(run, wanted.low, wanted.high)]).collect();

    // Every tree of every run has its share of a quarter of the cache.
    let trees = |run: &&[Arc<DbFile>]| run.iter().map(|file| file.sst.meta.trees().count()).max().unwrap_or(0) as u64;
    let share = session.cache().budget_bytes() / 4 / runs.iter().map(trees).sum::<u64>().max(1);
    let wanted =
        Reading { limits: Limits { bytes: wanted.limits.bytes.min(share), ..wanted.limits }, ..wanted.clone() };

    let (reads, rounds) = (session.page_reads(), session.rounds());
    let bound =
        |run: &&[Arc<DbFile>]| run.iter().map(|file| precharge::rounds_at_most(&file.sst, &wanted)).sum::<u64>();
    let bound = runs.iter().map(bound).max().unwrap_or(0);
    precharge::run(session, bound, || {
        let mut sum = Pass::default();
        for run in &runs {
            let found = pass(session, run, &wanted)?;
            sum.missing |= found.missing;
            sum.noted |= found.noted;
        }
        Ok(sum)
    })?;
    Ok(Prefetched { page_reads: session.page_reads() - reads, rounds: session.rounds() - rounds })
}

/// A pass over the files of a run that follow each other, as far as the reader is certain to come.
pub fn pass<S: PageSource + ?Sized>(source: &S, run: &[Arc<DbFile>], wanted: &Reading<'_>) -> pages::Result<Pass> {
    let mut wanted = wanted.clone();
    let mut sum = Pass::default();
    let order: Box<dyn Iterator<Item = &Arc<DbFile>>> = match wanted.direction {
        Direction::Forward => Box::new(run.iter()),
        Direction::Backward => Box::new(run.iter().rev()),
    };
    for (i, file) in order.enumerate() {
        let found = precharge::pass(&file.sst, source, &wanted)?;
        sum.missing |= found.missing;
        sum.noted |= found.noted;
        sum.overshot = found.overshot;
        // While pages are missing, the file is taken to give all it can.
        let (comes_on, bytes) = match found.missing {
            true => (goes_on_after(file, &wanted), file.sst.meta.main.map_or(0, |tree| tree.totals.bytes)),
            // Free is the first page of all, not of every file.
            false => (found.overshot, found.bytes - if i == 0 { found.free_bytes } else { 0 }),
        };
        let Limits { rows: rows_left, bytes: bytes_left } = &mut wanted.limits;
        if *rows_left < u64::MAX {
            *rows_left = rows_left.saturating_sub(found.items);
            sum.items += found.items;
        }
        *bytes_left = bytes_left.saturating_sub(bytes);
        if !comes_on || wanted.limits.rows == 0 || wanted.limits.bytes == 0 {
            break;
        }
    }
    Ok(sum)
}

/// Whether the wanted keys go on beyond those of `file`, as far as its bounds tell.
fn goes_on_after(file: &DbFile, wanted: &Reading<'_>) -> bool {
    let bounds = &file.sst.meta.bounds;
    match (wanted.direction, wanted.low, wanted.high) {
        (Direction::Forward, _, Bound::Unbounded) | (Direction::Backward, Bound::Unbounded, _) => true,
        (Direction::Forward, _, Bound::Included(far) | Bound::Excluded(far)) => {
            bounds.high.as_deref().is_some_and(|high| high < far)
        }
        (Direction::Backward, Bound::Included(far) | Bound::Excluded(far), _) => far < bounds.low.as_slice(),
    }
}

#[cfg(test)]
mod tests;
