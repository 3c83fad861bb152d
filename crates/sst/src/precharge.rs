//! Walking the index ahead of a read to find all the pages it will need, so that they come in one round a level instead
//! of one by one. It gives no rows and knows one file; its caller walks all files that it reads in the same rounds.
//!
//! A [`pass`] goes down every tree by the nodes that are in memory and asks for what is missing; then the pages are
//! fetched and the next pass is made, until nothing is missing. A pass starts from the roots, and may miss a node that
//! the pass before it had.
//!
//! * What is asked for is needed for certain. While the way to an edge of the range is not known, the rows under it are
//!   left out: no page is read that turns out not to be needed.
//! * Pages that decide what else is needed are pinned until the precharge is over: nodes, the pages at both edges of a
//!   key range, and, under a limit, the page with the last row. The others are read ahead, each once, nearest first,
//!   and only as many as have room ([`Shares`]): others may evict them, but they do not evict each other.
//! * Limits: the first page is free. Rows count if they are not erased. A read at a version older than the newest of
//!   the file cannot know that, so all rows count. Stored bytes of pages count for each tree by itself.
//! * Range erases of the keys come too; they are few.
//! * Rounds: [`rounds_at_most`], and one more for each [`PASS_PAGES`] pages.

mod asked;
mod versions;
mod walk;

pub use asked::{AskedPages, PASS_PAGES, Share, Shares};

use crate::Direction;
use crate::format::meta::TreeKind;
use crate::read::{Groups, Sst};
use crate::row::Version;
use pages::{PageSource, Result, Stop, retry};
use std::ops::{Bound, Range};
use versions::{PresentPage, Versions};
use walk::{PrechargeWalk, RangeSide};

/// How much of a range will be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Rows that are not erased.
    pub rows: u64,
    /// Stored bytes of data pages, for each tree of a file. The first page is free.
    pub bytes: u64,
}

impl Limits {
    /// All of the range.
    pub const NONE: Self = Self { rows: u64::MAX, bytes: u64::MAX };

    /// This many rows.
    pub fn rows(rows: u64) -> Self {
        Self { rows, ..Self::NONE }
    }

    /// This many bytes.
    pub fn bytes(bytes: u64) -> Self {
        Self { bytes, ..Self::NONE }
    }
}

/// What will be read of a file.
#[derive(Clone, Debug)]
pub struct ReadPlan<'k> {
    /// Where keys begin.
    pub low: Bound<&'k [u8]>,
    /// Where they end. A reader sees that they do by looking at the row after.
    pub high: Bound<&'k [u8]>,
    /// Row ids within which it stays.
    pub rows: Range<u64>,
    /// Which end it starts from.
    pub direction: Direction,
    /// When it stops.
    pub limits: Limits,
    /// Column groups whose parts it reads.
    pub groups: Groups,
    /// Version it reads at.
    pub at: Version,
    /// Whether it reads values that lie outside their pages.
    pub values: bool,
}

impl ReadPlan<'_> {
    /// Everything, from the start, as of now, of the main group.
    pub const ALL: Self = Self {
        low: Bound::Unbounded,
        high: Bound::Unbounded,
        rows: 0..u64::MAX,
        direction: Direction::Forward,
        limits: Limits::NONE,
        groups: Groups::MAIN,
        at: Version::MAX,
        values: true,
    };

    /// Whether newer versions than the one that is read may stand in the file's main tree.
    fn is_old(&self, sst: &Sst) -> bool {
        self.at.0 < sst.meta.newest.0.saturating_add(sst.version_offset)
    }

    fn reads_values(&self, sst: &Sst) -> bool {
        self.values && sst.meta.value_bytes > 0
    }

    /// Whether anything but keys, versions and kinds is read, so that it matters which rows exactly are.
    fn needs_rows(&self, sst: &Sst) -> bool {
        self.groups.any_beside_main() || self.is_old(sst) && sst.meta.history.is_some() || self.reads_values(sst)
    }
}

/// What a pass found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pass {
    /// Pages are missing that decide what else is needed: after the next round there is more to ask for.
    pub missing: bool,
    /// Pages were asked for, or are left for the next pass.
    pub noted: bool,
    /// Every page of the main tree that decides what is needed was in memory.
    pub is_known: bool,
    /// Main rows that will be read: those known so far. The row after the end of a key range, which is looked at, is
    /// not among them.
    pub rows: Range<u64>,
    /// At most this many rows of the file are read that count against a limit; exactly so if the main tree is known.
    pub items: u64,
    /// The reader comes to the end of the file before it has what it wants, and will go on in the next one. Not before
    /// the main tree is known.
    pub overshot: bool,
    /// The reader comes further than there is room for.
    pub is_cut: bool,
}

impl Pass {
    fn add(&mut self, other: &Self) {
        self.missing |= other.missing;
        self.noted |= other.noted;
        self.is_cut |= other.is_cut;
    }
}

/// Rounds that a precharge of `sst` takes at most while nothing is evicted: the way down the main tree, the page beside
/// the edge of a key range if that is where its end shows, then the tallest group, the history, its groups, and values.
/// With a limit of rows the pieces of a slice are walked one after the other.
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

/// How many shares reading takes of files that follow each other: one for each tree that is read, and one for values.
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

/// The state between the passes over any number of files, which are made until there is nothing more to ask for.
#[derive(Debug)]
pub struct Passes {
    asked: AskedPages,
    rounds_left: u64,
}

impl Passes {
    /// No pass yet. At most `rounds` rounds follow, beside those that a pass filled up: so it ends also in a cache that
    /// is too small for what is needed.
    pub fn new(rounds: u64) -> Self {
        Self { asked: AskedPages::default(), rounds_left: rounds }
    }

    /// Makes one more: `pass` makes one over all files and says what it found in sum. A fault if there is more to ask
    /// for once what was noted has been fetched. A step.
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

/// Makes passes until there is nothing more to ask for, see [`Passes`].
///
/// # Errors
///
/// [`pages::Error`] if a page cannot be read, or is not what was written.
pub fn run<S: PageSource + ?Sized>(
    source: &S,
    rounds: u64,
    mut pass: impl FnMut(&AskedPages) -> Result<Pass>,
) -> Result<Pass> {
    let mut passes = Passes::new(rounds);
    retry(source, || passes.next(&mut pass))
}

/// Asks for everything that can be known to be needed from what is in memory. To be made again after
/// [`PageSource::fetch`], which [`run`] does.
///
/// `shares` are what is left for the files that are read one after the other, of which this is the next.
///
/// # Errors
///
/// [`pages::Error`] if a page cannot be read, or is not what was written.
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
    // What is seen of a file in several pieces is read one after the other, as files that follow each other are.
    let mut reading = reading.clone();
    for rows in order {
        reading.rows = rows;
        let found = trees.main(&reading, shares)?;
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
        // A later file has what is left if this one gives all it can.
        for (kind, tree) in with_rows() {
            shares.of(kind).take(tree.totals.bytes, tree.totals.bytes);
        }
        shares.values.take(sst.meta.value_bytes, sst.meta.value_bytes);
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

/// The trees of a file, to be walked.
struct Trees<'a, S: ?Sized> {
    sst: &'a Sst,
    source: &'a S,
    asked: &'a AskedPages,
    direction: Direction,
}

impl<'a, S: PageSource + ?Sized> Trees<'a, S> {
    /// The main rows of `reading` that are seen, and what belongs to them in other trees.
    fn main(&mut self, reading: &ReadPlan<'_>, shares: &mut Shares) -> Result<Pass> {
        let sst = self.sst;
        let Some(descent) = sst.descent(TreeKind::Main) else {
            return Ok(Pass { overshot: true, is_known: true, ..Pass::default() });
        };
        let rows = &reading.rows;
        let sides = (RangeSide { row: rows.start, key: reading.low }, RangeSide { row: rows.end, key: reading.high });
        let mut walk = PrechargeWalk::new(self.source, self.asked, descent, sides, reading.direction, &mut shares.main);
        walk.rows_left = reading.limits.rows;
        walk.counts_erased = reading.is_old(sst);
        walk.needs_last_row = reading.needs_rows(sst);
        walk.is_piece = sst.rows().iter().nth(1).is_some();
        let main = walk.walk()?;
        let mut sum = Pass { is_known: !main.missing, ..main };
        if !sum.rows.is_empty() && reading.needs_rows(sst) {
            let found = Versions::new(self, reading, shares, sum.rows.clone()).run()?;
            sum.add(&found);
        }
        Ok(sum)
    }

    /// The range erases that begin among the keys, and the one before, which may reach into them.
    fn range_erases(&mut self, low: Bound<&'a [u8]>, high: Bound<&'a [u8]>, share: &mut Share) -> Result<Pass> {
        let Some(descent) = self.sst.descent(TreeKind::RangeErases) else { return Ok(Pass::default()) };
        let mut walk = |low, high, direction| {
            let sides = (RangeSide { row: 0, key: low }, RangeSide { row: descent.rows(), key: high });
            PrechargeWalk::new(self.source, self.asked, descent, sides, direction, share).walk()
        };
        let mut sum = Pass::default();
        // Going backward a walk ends with a look at the row before: going forward that is another walk.
        if self.direction == Direction::Forward
            && let Bound::Included(low) | Bound::Excluded(low) = low
        {
            sum.add(&walk(Bound::Included(low), Bound::Included(low), Direction::Backward)?);
        }
        sum.add(&walk(low, high, self.direction)?);
        Ok(sum)
    }

    /// The pages of a tree that hold `rows`.
    fn rows(&mut self, kind: TreeKind, rows: Range<u64>, share: &mut Share) -> Result<Pass> {
        let Some(descent) = self.sst.descent(kind) else { return Ok(Pass::default()) };
        let side = |row: u64| RangeSide { row: row.min(descent.rows()), key: Bound::Unbounded };
        let sides = (side(rows.start), side(rows.end));
        let found = PrechargeWalk::new(self.source, self.asked, descent, sides, self.direction, share).walk()?;
        Ok(Pass { rows: 0..0, ..found })
    }

    /// Shows every page of a tree that holds some of `rows` and is in memory, nearest first, with those of its rows.
    fn pages(
        &self,
        kind: TreeKind,
        rows: Range<u64>,
        mut show: impl FnMut(PresentPage<'_>) -> Result<()>,
    ) -> Result<()> {
        let Some(descent) = self.sst.descent(kind) else { return Ok(()) };
        let mut left = rows.start..rows.end.min(descent.rows());
        while !left.is_empty() {
            let next = if self.direction == Direction::Forward { left.start } else { left.end - 1 };
            let (page, span) = descent.peek_row(self.source, next);
            if let Some(page) = page {
                // Its parent says which rows it holds; if it holds others, the read that needs it reports that.
                let here = left.start.max(span.start)..left.end.min(span.end);
                if let Some(found) = PresentPage::new(kind, &page, &span, here) {
                    show(found)?;
                }
            }
            match self.direction {
                Direction::Forward => left.start = span.end.max(next + 1),
                Direction::Backward => left.end = span.start.min(next),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
