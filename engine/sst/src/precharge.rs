//! Walks the index ahead of a read to find all the pages that the read will need. So the pages come in one round
//! for each level of the tree, instead of one by one. This module returns no rows and knows one file. A read may
//! need several files. The caller of this module makes a pass over each of them in every round.
//!
//! A [`pass`] goes down every tree by the nodes that are in memory and asks for missing pages. Then the missing
//! pages are fetched and the next pass is made, until no page is missing. Every pass starts from the roots. A pass
//! may miss a node that was in memory during an earlier pass.
//!
//! * A pass asks only for pages that the read certainly needs. While the way to an edge of the range is not known,
//!   the rows near that edge are left out. So no page is read without need.
//! * Pages that decide what else is needed are pinned until the precharge is over: nodes, the pages at both edges
//!   of a key range, and, under a limit, the page with the last row. The other pages are read ahead: each page
//!   once, the nearest pages first, and only as many as there is room for ([`Shares`]). Pages that other readers
//!   load may evict the pages read ahead, but these do not evict each other.
//! * Limits: the stored bytes of the first page do not count. Only rows that are not erased count against a limit
//!   of rows. A read may be at a version that is older than the newest version of the file. Such a read cannot
//!   know which rows are erased at its version, so in that case all rows count. The limit on stored bytes holds
//!   for each tree separately.
//! * The range erases of the keys are loaded, too; they are few.
//! * Rounds: [`rounds_at_most`], plus one round for each [`PASS_PAGES`] pages.

mod asked;
mod found;
mod plan;
mod present_page;
mod trees;
mod versions;
mod walk;

pub use asked::{AskedPages, PASS_PAGES, Share, Shares};
pub use found::Pass;
pub use plan::{AtMost, ReadPlan};

use crate::Direction;
use crate::format::meta::TreeKind;
use crate::read::Sst;
use pages::{PageSource, Result, Stop, retry};
use std::ops::{Bound, Range};
use trees::Trees;
use versions::Versions;
use walk::{PrechargeWalk, RangeSide};

/// The most rounds that a precharge of `sst` takes while no page is evicted. The rounds go down the main tree. If
/// only the page beside the end of a key range shows that the range has ended, the next rounds go down to this
/// page. Then rounds go down the tallest group, the history and its groups, and at last to the values. A slice may
/// contain several pieces of a file. With a limit of rows, these pieces are walked one after the other.
pub fn rounds_at_most(sst: &Sst, reading: &ReadPlan<'_>) -> u64 {
    let height = |kind: TreeKind| sst.meta.tree(kind).map(|tree| u64::from(tree.root(sst.prefer_flat).height) + 1);
    let tallest =
        |kind: fn(u8) -> TreeKind| reading.groups.beside_main().filter_map(|group| height(kind(group as u8))).max();
    let history = match reading.is_old(sst) {
        true => 2 * height(TreeKind::History).unwrap_or(0) + tallest(TreeKind::GroupHistory).unwrap_or(0),
        false => 0,
    };
    let keyed = [TreeKind::Main, TreeKind::RangeErases].into_iter().filter_map(height).max();
    let pieces = if reading.limits.rows < u64::MAX { sst.rows().iter().count().max(1) as u64 } else { 1 };
    let piece = 2 * keyed.unwrap_or(0) + tallest(TreeKind::Group).unwrap_or(0) + history;
    pieces * (piece + u64::from(reading.reads_values(sst)))
}

/// The number of [`Shares`] that a read of several files in turn needs: one for each kind of tree that it reads,
/// and one for values.
pub fn shares_of<'f>(files: impl Iterator<Item = &'f Sst>, reading: &ReadPlan<'_>) -> usize {
    let mut kinds: Vec<TreeKind> = Vec::new();
    let mut values = false;
    for sst in files {
        values |= reading.reads_values(sst);
        for (kind, _) in sst.meta.trees() {
            let is_read = match kind {
                TreeKind::Main | TreeKind::RangeErases => true,
                TreeKind::Filter => false,
                TreeKind::History => reading.is_old(sst),
                TreeKind::Group(group) => reading.groups.contains(usize::from(group)),
                TreeKind::GroupHistory(group) => reading.is_old(sst) && reading.groups.contains(usize::from(group)),
            };
            if is_read && !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
    }
    kinds.len() + usize::from(values)
}

/// The state between the passes over any number of files. Passes are made until no page remains to be asked for.
#[derive(Debug)]
pub struct Passes {
    asked: AskedPages,
    rounds_left: u64,
}

impl Passes {
    /// The state before the first pass. At most `rounds` rounds follow. A round is not subtracted from `rounds` if
    /// its pass asked for as many pages as a pass may ask for. So the precharge ends even if the cache is too
    /// small for the pages that are needed.
    pub fn new(rounds: u64) -> Self {
        Self { asked: AskedPages::default(), rounds_left: rounds }
    }

    /// Makes one more pass: `pass` walks all files and returns the sum of what it found. If a later pass may ask
    /// for more pages, the result is a fault: the noted pages must be fetched first. A step.
    ///
    /// # Errors
    ///
    /// [`Stop::Fault`] if the next pass has more to ask for; [`Stop::Failed`] if `pass` failed.
    pub fn next(&mut self, mut pass: impl FnMut(&AskedPages) -> Result<Pass>) -> Result<Pass, Stop> {
        self.asked.begin_pass();
        let found = pass(&self.asked)?;
        if !found.missing && !found.noted {
            return Ok(found);
        }
        if !self.asked.is_full() {
            let Some(less) = self.rounds_left.checked_sub(1) else { return Ok(found) };
            self.rounds_left = less;
        }
        Err(Stop::Fault)
    }
}

/// Makes passes until no page remains to be asked for; see [`Passes`].
///
/// # Errors
///
/// [`pages::Error`] if a page cannot be read or is corrupt.
pub fn run<S: PageSource + ?Sized>(
    source: &S,
    rounds: u64,
    mut pass: impl FnMut(&AskedPages) -> Result<Pass>,
) -> Result<Pass> {
    let mut passes = Passes::new(rounds);
    retry(source, || passes.next(&mut pass))
}

/// Asks for all pages that are certainly needed, as far as the nodes in memory show them. The pass is made again
/// after [`PageSource::fetch`]; [`run`] does both.
///
/// A read may take several files one after the other. Then `sst` is the next of these files. `shares` are the
/// shares that are left for this file and for the files after it.
///
/// # Errors
///
/// [`pages::Error`] if a page cannot be read or is corrupt.
pub fn pass<S: PageSource + ?Sized>(
    sst: &Sst,
    source: &S,
    reading: &ReadPlan<'_>,
    shares: &mut Shares,
    asked: &AskedPages,
) -> Result<Pass> {
    let with_rows = || sst.meta.trees().filter(|(kind, _)| *kind != TreeKind::Filter);
    let pages = with_rows().fold(0u64, |sum, (_, tree)| sum.saturating_add(tree.data_pages));
    shares.expect(sst.meta.user_bytes / pages.max(1));
    let mut trees = Trees { sst, source, asked, direction: reading.direction };
    let ReadPlan { low, high, direction, limits, .. } = *reading;
    if limits.rows == 0 || is_empty(&low, &high) {
        return Ok(Pass { is_known: true, ..Pass::default() });
    }
    let mut sum = trees.range_erases(low, high, &mut shares.erases)?;
    (sum.overshot, sum.is_known) = (true, true);
    let rows = sst.rows().within(reading.rows.clone());
    let order: Box<dyn Iterator<Item = Range<u64>>> = match direction {
        Direction::Forward => Box::new(rows.iter()),
        Direction::Backward => Box::new(rows.iter().rev()),
    };
    // A slice of a file may consist of several pieces. They are read one after the other, like several files.
    let mut reading = reading.clone();
    for rows in order {
        reading.rows = rows;
        let found = main_rows(&mut trees, &reading, shares)?;
        sum.add(&found);
        sum.rows = if sum.rows.is_empty() {
            found.rows
        } else {
            sum.rows.start.min(found.rows.start)..sum.rows.end.max(found.rows.end)
        };
        sum.items = sum.items.saturating_add(found.items);
        (sum.overshot, sum.is_known) = (found.overshot, sum.is_known && found.is_known);
        if limits.rows < u64::MAX {
            reading.limits.rows = reading.limits.rows.saturating_sub(found.items);
        }
        let goes_on = if found.is_known { found.overshot } else { limits.rows == u64::MAX };
        if !goes_on || sum.is_cut || reading.limits.rows == 0 {
            break;
        }
    }
    if !sum.is_known {
        // It is not known yet how much of the shares this file uses. So the most that it can use is subtracted, and
        // later files get the rest.
        for (kind, tree) in with_rows() {
            shares.of(kind).take(tree.totals.bytes, tree.totals.bytes);
        }
        shares.values.take(sst.meta.value_bytes, sst.meta.value_bytes);
    }
    Ok(sum)
}

/// Asks for the main rows of `reading` that the reader sees, and for the data of these rows in other trees.
fn main_rows<S: PageSource + ?Sized>(
    trees: &mut Trees<'_, S>,
    reading: &ReadPlan<'_>,
    shares: &mut Shares,
) -> Result<Pass> {
    let sst = trees.sst;
    let Some(descent) = sst.descent(TreeKind::Main) else {
        return Ok(Pass { overshot: true, is_known: true, ..Pass::default() });
    };
    let rows = &reading.rows;
    let sides = (RangeSide { row: rows.start, key: reading.low }, RangeSide { row: rows.end, key: reading.high });
    let mut walk = PrechargeWalk::new(trees.source, trees.asked, descent, sides, reading.direction, &mut shares.main);
    walk.rows_left = reading.limits.rows;
    walk.counts_erased = reading.is_old(sst);
    walk.needs_last_row = reading.needs_rows(sst);
    walk.is_piece = sst.rows().iter().nth(1).is_some();
    let main = walk.walk()?;
    let mut sum = Pass { is_known: !main.missing, ..main };
    if !sum.rows.is_empty() && reading.needs_rows(sst) {
        let found = Versions::new(trees, reading, shares, sum.rows.clone()).run()?;
        sum.add(&found);
    }
    Ok(sum)
}

/// Whether no key can lie between the bounds.
pub fn is_empty(low: &Bound<&[u8]>, high: &Bound<&[u8]>) -> bool {
    match (low, high) {
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
        (Bound::Included(low), Bound::Included(high)) => low > high,
        (Bound::Included(low) | Bound::Excluded(low), Bound::Included(high) | Bound::Excluded(high)) => low >= high,
    }
}

#[cfg(test)]
mod tests;
