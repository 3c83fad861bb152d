//! A precharge of a key range loads, from all files of a table, everything that a read of the range will need:
//! files, groups and values together, in one round for each level of the index. [`sst::precharge`] does this for
//! one file.
//!
//! The files of a level follow each other in key order. If the number of rows is limited, the precharge cannot
//! know at the start how many files of a level the read will reach. So it asks for pages of the next file only
//! when it is certain that the read reaches this file. It also cannot know how many rows the merge will take from
//! each level. So it assumes for each level that all rows up to the limit come from this level.

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

/// Loads the pages of `table` that `reading` needs, up to a quarter of the cache, and waits for them. The row ids
/// of `reading` are ignored.
pub fn precharge(session: &Session, table: TableView<'_>, reading: &ReadPlan<'_>) -> Result<Prefetched> {
    let (reads, rounds) = (session.page_reads(), session.rounds());
    let mut precharge = Precharge::new(session, table, reading);
    retry(session, || precharge.pass(session, reading))?;
    Ok(Prefetched { page_reads: session.page_reads() - reads, rounds: session.rounds() - rounds })
}

/// A precharge that is under way: its files, and the pages for which it has asked so far.
#[derive(Debug)]
pub struct Precharge {
    runs: Vec<Vec<Arc<DbFile>>>,
    /// The most memory for the pages of one tree of one run, in bytes.
    share_bytes: u64,
    passes: Passes,
}

impl Precharge {
    /// A precharge that has not asked for any page yet. Each later call of [`Precharge::pass`] must get the same
    /// `reading`.
    pub fn new(session: &Session, table: TableView<'_>, reading: &ReadPlan<'_>) -> Self {
        let (level0, deeper) = table.files.levels.split_at(1);
        let level0 = level0.iter().flat_map(|files| files.chunks(1));
        let runs = level0.chain(deeper.iter().map(|level| &level[..]));
        let asked = |run: &[Arc<DbFile>]| run[files_asked_between(session, run, reading.low, reading.high)].to_vec();
        let runs: Vec<Vec<Arc<DbFile>>> = runs.map(asked).filter(|run| !run.is_empty()).collect();

        // A quarter of the cache is divided into equal shares. Each tree of each run gets one, and the values
        // outside pages get such shares, too.
        let trees: usize =
            runs.iter().map(|run| precharge::shares_of(run.iter().map(|file| &*file.sst), reading)).sum();
        let share_bytes = session.cache().budget_bytes() / 4 / trees.max(1) as u64;
        let bound =
            |run: &Vec<Arc<DbFile>>| run.iter().map(|file| precharge::rounds_at_most(&file.sst, reading)).sum::<u64>();
        let passes = Passes::new(runs.iter().map(bound).max().unwrap_or(0));
        Self { runs, share_bytes, passes }
    }

    /// Asks for all pages that are known to be needed. It faults as long as some of these pages are missing, or as
    /// long as further needed pages may become known. This is a step.
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

/// Asks for the known pages of the files of a run, up to the last file that the reader certainly reads. The files
/// follow each other in key order. The pages of one tree in all these files may take `memory_bytes` bytes.
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
            // As long as it is not known how many rows of a file are read, the pass assumes the greatest possible
            // number.
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

/// Whether some of the keys to be read come after the bounds of `file`, in the direction of the read.
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
