//! A precharge of a key range loads everything that a read of the range will need from all files of a table. It loads
//! index nodes, data pages, groups and values, in one round for each level of the index. [`sst::precharge`] does this
//! for one file.
//!
//! The files of a level follow one another in key order. With a limit on the rows, nobody knows beforehand how many
//! files of a level the read will reach, so the precharge asks for pages of the next file only when the read is
//! certain to reach it. Nor is it known how many rows the merge will take from each level, so it assumes that every
//! level gives all rows up to the limit.

use super::TableView;
use super::level::files_asked_between;
use crate::base::error::Result;
use crate::manifest::db_file::DbFile;
use os::sync::Arc;
use pages::{PageSource, Session, Stop, retry};
use sst::Direction;
use sst::precharge::{self, AskedPages, Pass, Passes, ReadPlan, Shares};
use std::ops::Bound;

/// What a precharge did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Prefetched {
    /// The number of pages that were read from disk.
    pub page_reads: u64,
    /// How often the precharge waited for a round of reads from the disk.
    pub rounds: u64,
}

/// Loads the pages of `table` that `reading` needs, up to a quarter of the cache, and waits for them. It ignores the
/// row ids of `reading`.
pub fn precharge(session: &Session, table: TableView<'_>, reading: &ReadPlan<'_>) -> Result<Prefetched> {
    let (reads, rounds) = (session.page_reads(), session.rounds());
    let mut precharge = Precharge::new(session, table, reading);
    retry(session, || precharge.pass(session, reading))?;
    Ok(Prefetched { page_reads: session.page_reads() - reads, rounds: session.rounds() - rounds })
}

/// A precharge under way: its files, and the pages that it has asked for so far.
#[derive(Debug)]
pub struct Precharge {
    runs: Vec<Vec<Arc<DbFile>>>,
    /// The most bytes for the pages of one tree of one run.
    share_bytes: u64,
    passes: Passes,
}

impl Precharge {
    /// A precharge that has asked for no page yet. Every call of [`Precharge::pass`] must get the same `reading`.
    pub fn new(session: &Session, table: TableView<'_>, reading: &ReadPlan<'_>) -> Self {
        let (level0, deeper) = table.files.levels.split_at(1);
        let level0 = level0.iter().flat_map(|files| files.chunks(1));
        let runs = level0.chain(deeper.iter().map(|level| &level[..]));
        let asked = |run: &[Arc<DbFile>]| run[files_asked_between(session, run, reading.low, reading.high)].to_vec();
        let runs: Vec<Vec<Arc<DbFile>>> = runs.map(asked).filter(|run| !run.is_empty()).collect();

        // A quarter of the cache is split into equal shares: in each run, one for each kind of tree and one for the
        // values outside pages.
        let trees: usize =
            runs.iter().map(|run| precharge::shares_of(run.iter().map(|file| &*file.sst), reading)).sum();
        let share_bytes = session.cache().budget_bytes() / 4 / trees.max(1) as u64;
        let bound =
            |run: &Vec<Arc<DbFile>>| run.iter().map(|file| precharge::rounds_at_most(&file.sst, reading)).sum::<u64>();
        let passes = Passes::new(runs.iter().map(bound).max().unwrap_or(0));
        Self { runs, share_bytes, passes }
    }

    /// Asks for all pages that are known to be needed. It faults as long as some of them are missing or more may
    /// become known. A step.
    pub fn pass(&mut self, session: &Session, reading: &ReadPlan<'_>) -> Result<(), Stop> {
        self.passes.next(|asked| {
            let mut sum = Pass::default();
            for run in &self.runs {
                let found = pass(session, run, reading, self.share_bytes, asked)?;
                sum.missing |= found.missing;
                sum.noted |= found.noted;
            }
            Ok(sum)
        })?;
        Ok(())
    }
}

/// Asks for the known pages of the files of a `run`, which follow one another in key order, up to the last file that
/// the reader certainly reaches. The pages of one tree in all these files may take `memory_bytes`.
pub fn pass<S: PageSource + ?Sized>(
    source: &S,
    run: &[Arc<DbFile>],
    reading: &ReadPlan<'_>,
    memory_bytes: u64,
    asked: &AskedPages,
) -> pages::Result<Pass> {
    let mut reading = reading.clone();
    let mut shares = Shares::new(reading.limits.bytes, memory_bytes);
    let mut sum = Pass::default();
    let order: Box<dyn Iterator<Item = &Arc<DbFile>>> = match reading.direction {
        Direction::Forward => Box::new(run.iter()),
        Direction::Backward => Box::new(run.iter().rev()),
    };
    for file in order {
        let found = precharge::pass(&file.sst, source, &reading, &mut shares, asked)?;
        sum.missing |= found.missing;
        sum.noted |= found.noted;
        sum.overshot = found.overshot;
        if reading.limits.rows < u64::MAX {
            // As long as it is unknown how many rows of a file are read, the largest possible number is assumed.
            reading.limits.rows = reading.limits.rows.saturating_sub(found.items);
            sum.items += found.items;
        }
        let goes_on = if found.is_known { found.overshot } else { goes_on_after(file, &reading) };
        if !goes_on || found.is_cut || reading.limits.rows == 0 {
            break;
        }
    }
    Ok(sum)
}

/// Whether some of the keys to read lie beyond the bounds of `file`, in the direction of the read.
fn goes_on_after(file: &DbFile, reading: &ReadPlan<'_>) -> bool {
    let bounds = file.sst.bounds();
    match (reading.direction, reading.low, reading.high) {
        (Direction::Forward, _, Bound::Unbounded) | (Direction::Backward, Bound::Unbounded, _) => true,
        (Direction::Forward, _, Bound::Included(far) | Bound::Excluded(far)) => {
            bounds.high.as_deref().is_some_and(|high| high < far)
        }
        (Direction::Backward, Bound::Included(far) | Bound::Excluded(far), _) => far < bounds.low.as_slice(),
    }
}

#[cfg(test)]
mod tests;
