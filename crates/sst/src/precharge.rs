//! Walking the index ahead of a read to find all the pages it will need, so that they come in one round a level instead of
//! one by one. It gives no rows and knows one file; whoever reads from many walks all of them in the same rounds.
//!
//! A [`pass`] goes down every tree as far as nodes are in memory and asks for what is missing; then the pages are fetched
//! and it is made again, until nothing is missing. So a pass keeps no state, and may find a node gone that it had before.
//!
//! * What is asked for is needed for certain. While the way to an edge of the range is not known, the rows under it are
//!   left out: nothing is read in vain because an index is partly in memory.
//! * Pages that decide what else is needed are pinned until the precharge is over: nodes, the pages at both edges of a key
//!   range, and, under a limit, the page with the last row. The others are read ahead and may be gone again when there
//!   are more than the cache can hold.
//! * Limits: the first page is free. Rows count if they are not erased; stored bytes of pages count for each tree by
//!   itself.
//! * Range erases of the keys come too; they are few.
//! * Rounds: [`rounds_at_most`].

mod walk;

use crate::build::history_key;
use crate::format::PageRows;
use crate::format::data_page::{Layout, OutsideValue};
use crate::format::group_page::GroupLayout;
use crate::format::meta::TreeKind;
use crate::read::{Groups, Sst};
use crate::row::Version;
use pages::{PageRef, PageSource, Result, Stop};
use std::ops::{Bound, Range};
use walk::{Side, Walk};

/// Which way a reader goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Direction {
    /// Keys and row ids grow.
    #[default]
    Forward,
    /// They shrink.
    Backward,
}

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

/// What a reader is about to read of a file.
#[derive(Clone, Debug)]
pub struct Reading<'k> {
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

impl Reading<'_> {
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

    /// Whether anything but keys, versions and kinds is read, so that it matters which rows exactly are.
    fn needs_rows(&self, sst: &Sst) -> bool {
        self.groups.beside_main().next().is_some() || self.needs_history(sst) || self.values && sst.meta.value_bytes > 0
    }

    fn needs_history(&self, sst: &Sst) -> bool {
        sst.meta.history.is_some()
            && self.at.0 >= sst.version_offset
            && self.at.0 - sst.version_offset < sst.meta.newest.0
    }
}

/// What a pass found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pass {
    /// Pages are missing that decide what else is needed: after the next round there is more to ask for.
    pub missing: bool,
    /// Pages were asked for.
    pub noted: bool,
    /// Main rows that will be read: all of them unless pages are missing, otherwise those known so far. The row after the
    /// end of a key range, which is looked at, is not among them.
    pub rows: Range<u64>,
    /// At most this many rows of the file are read that are not erased; exactly so unless pages are missing.
    pub items: u64,
    /// Stored bytes of the pages of the main tree that are read; unknown while pages are missing.
    pub bytes: u64,
    /// Of these, the first page, which no limit counts.
    pub free_bytes: u64,
    /// The reader comes to the end of the file before it has what it wants, and will go on in the next one. Unknown and
    /// false while pages are missing.
    pub overshot: bool,
}

/// Rounds that a precharge of `sst` takes at most while nothing is evicted: the way down the main tree, the page beside
/// the edge of a key range if that is where its end shows, then the tallest group, the history, its groups, and values.
pub fn rounds_at_most(sst: &Sst, wanted: &Reading<'_>) -> u64 {
    let height = |kind: TreeKind| sst.meta.tree(kind).map(|tree| u64::from(tree.root(sst.prefer_flat).height) + 1);
    let tallest =
        |kind: fn(u8) -> TreeKind| wanted.groups.beside_main().filter_map(|group| height(kind(group as u8))).max();
    let history = if wanted.needs_history(sst) {
        2 * height(TreeKind::History).unwrap_or(0) + tallest(TreeKind::GroupHistory).unwrap_or(0)
    } else {
        0
    };
    let values = u64::from(wanted.values && sst.meta.value_bytes > 0);
    let keyed = [TreeKind::Main, TreeKind::RangeErases].into_iter().filter_map(height).max();
    2 * keyed.unwrap_or(0) + tallest(TreeKind::Group).unwrap_or(0) + history + values
}

/// Asks for everything that can be known to be needed from what is in memory. To be followed by
/// [`PageSource::fetch`] and made again while pages are missing, and [`PageSource::release`] at the end.
pub fn pass<S: PageSource + ?Sized>(sst: &Sst, source: &S, wanted: &Reading<'_>) -> Result<Pass> {
    if wanted.limits.rows == 0 || is_empty(&wanted.low, &wanted.high) {
        return Ok(Pass::default());
    }
    let erases = range_erases(sst, source, wanted)?;
    let rows = wanted.rows.start..wanted.rows.end.min(sst.meta.rows());
    let Some(tree) = sst.meta.main.filter(|_| !rows.is_empty()) else {
        return Ok(Pass { overshot: true, ..erases });
    };
    let low = Side { row: rows.start, key: wanted.low };
    let high = Side { row: rows.end, key: wanted.high };
    let descent = sst.descent(TreeKind::Main).expect("the tree is there");
    let mut main = Walk::new(source, descent, &tree, low, high, wanted.direction, wanted.limits);
    main.needs_last_row = wanted.needs_rows(sst);
    let mut pass = main.run()?;
    pass.missing |= erases.missing;
    pass.noted |= erases.noted;
    if !pass.rows.is_empty() && main.needs_last_row {
        let mut rest = Rest { sst, source, wanted, pass: &mut pass };
        rest.groups()?;
        rest.versions_and_values()?;
    }
    Ok(pass)
}

/// Asks for the range erases that begin among the keys, and for the one before, which may reach into them.
fn range_erases<S: PageSource + ?Sized>(sst: &Sst, source: &S, wanted: &Reading<'_>) -> Result<Pass> {
    let Some(tree) = sst.meta.range_erases else { return Ok(Pass::default()) };
    let descent = sst.descent(TreeKind::RangeErases).expect("the tree is there");
    let low = Side { row: 0, key: wanted.low };
    let high = Side { row: tree.totals.rows, key: wanted.high };
    // Going backward a walk ends with a look at the row before.
    let limits = Limits { rows: u64::MAX, ..wanted.limits };
    let found = Walk::new(source, descent, &tree, low, high, Direction::Backward, limits).run()?;
    Ok(Pass { missing: found.missing, noted: found.noted, ..Pass::default() })
}

/// Makes passes over any number of files until nothing is missing: `pass` makes one over all of them and says what it
/// found in sum. Not more than `rounds` rounds: a cache too small for what was asked does not make this go on for ever.
pub fn run<S: PageSource + ?Sized>(source: &S, rounds: u64, mut pass: impl FnMut() -> Result<Pass>) -> Result<Pass> {
    let outcome = (|| {
        let mut found = pass()?;
        for _ in 0..rounds {
            if !found.missing && !found.noted {
                break;
            }
            source.fetch()?;
            found = pass()?;
        }
        Ok(found)
    })();
    source.release();
    outcome
}

/// Whether no key can lie between the bounds.
pub fn is_empty(low: &Bound<&[u8]>, high: &Bound<&[u8]>) -> bool {
    match (low, high) {
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
        (Bound::Included(low), Bound::Included(high)) => low > high,
        (Bound::Included(low) | Bound::Excluded(low), Bound::Included(high) | Bound::Excluded(high)) => low >= high,
    }
}

/// What is wanted beside the main tree, of the main rows found so far.
struct Rest<'a, 'k, S: ?Sized> {
    sst: &'a Sst,
    source: &'a S,
    wanted: &'a Reading<'k>,
    pass: &'a mut Pass,
}

impl<S: PageSource + ?Sized> Rest<'_, '_, S> {
    fn groups(&mut self) -> Result<()> {
        for group in self.wanted.groups.beside_main() {
            self.walk_rows(TreeKind::Group(group as u8), self.pass.rows.clone())?;
        }
        Ok(())
    }

    /// Asks for the pages of a tree that hold `rows`.
    fn walk_rows(&mut self, kind: TreeKind, rows: Range<u64>) -> Result<()> {
        let Some(tree) = self.sst.meta.tree(kind) else { return Ok(()) };
        let descent = self.sst.descent(kind).expect("the tree is there");
        let side = |row: u64| Side { row: row.min(tree.totals.rows), key: Bound::Unbounded };
        let limits = Limits { rows: u64::MAX, ..self.wanted.limits };
        let direction = self.wanted.direction;
        let mut walk = Walk::new(self.source, descent, &tree, side(rows.start), side(rows.end), direction, limits);
        self.add(&walk.run()?);
        Ok(())
    }

    fn add(&mut self, other: &Pass) {
        self.pass.missing |= other.missing;
        self.pass.noted |= other.noted;
    }

    /// Whether a step has all its pages; those that it misses it asked for.
    fn is_here<T>(&mut self, step: std::result::Result<T, Stop>) -> Result<Option<T>> {
        match step {
            Ok(value) => Ok(Some(value)),
            Err(Stop::Fault) => {
                self.pass.missing = true;
                Ok(None)
            }
            Err(Stop::Failed(error)) => Err(*error),
        }
    }

    /// Looks into the pages of the rows, as far as they have come, for rows to be read in older versions and for values
    /// that lie outside. A page that is gone again is passed by.
    fn versions_and_values(&mut self) -> Result<()> {
        let values = self.wanted.values && self.sst.meta.value_bytes > 0;
        let history = self.wanted.needs_history(self.sst);
        if !values && !history {
            return Ok(());
        }
        let mut value_bytes = 0;
        let mut look = |rest: &mut Self, kind: TreeKind, rows: Range<u64>, older: &mut Vec<u64>| -> Result<()> {
            let descent = rest.sst.descent(kind).expect("the rows are in it");
            let mut row = rows.start;
            while row < rows.end {
                let (page, span) = descent.peek_row(rest.source, row);
                if let Some(page) = page.filter(|page| holds(kind, page, &span)) {
                    for row in row..span.end.min(rows.end) {
                        let i = (row - span.start) as usize;
                        rest.look_at(kind, &page, i, row, older, &mut value_bytes)?;
                    }
                }
                row = span.end.max(row + 1);
            }
            Ok(())
        };
        let rows = self.pass.rows.clone();
        let mut older = Vec::new();
        look(self, TreeKind::Main, rows.clone(), &mut older)?;
        let groups: Vec<usize> = self.wanted.groups.beside_main().collect();
        if values {
            for &group in &groups {
                look(self, TreeKind::Group(group as u8), rows.clone(), &mut Vec::new())?;
            }
        }
        // Neighbouring older versions share their pages.
        for span in spans(&mut older) {
            look(self, TreeKind::History, span.clone(), &mut Vec::new())?;
            for &group in &groups {
                self.walk_rows(TreeKind::GroupHistory(group as u8), span.clone())?;
                if values {
                    look(self, TreeKind::GroupHistory(group as u8), span.clone(), &mut Vec::new())?;
                }
            }
        }
        Ok(())
    }

    /// One row of a page: its value if that lies outside, and its visible version if that is an older one, whose row id
    /// in the history goes to `older`.
    fn look_at(
        &mut self,
        kind: TreeKind,
        page: &PageRef,
        i: usize,
        row: u64,
        older: &mut Vec<u64>,
        value_bytes: &mut u64,
    ) -> Result<()> {
        let (at, bytes, outside) = if kind.is_by_row() {
            let part = GroupLayout::of(page).part(page, i);
            (part.at, part.bytes, part.outside)
        } else {
            let record = Layout::of(page).record(page, i);
            if kind == TreeKind::Main && record.version.0 + self.sst.version_offset > self.wanted.at.0 {
                return if record.has_history { self.older(row, older) } else { Ok(()) };
            }
            (record.value_at, record.value_bytes, record.outside && self.wanted.groups.contains(0))
        };
        if outside && self.wanted.values {
            let reference = OutsideValue::new(&page[at..at + bytes]).expect("a validated page's references decode");
            for address in reference.chunks() {
                *value_bytes = value_bytes.saturating_add(u64::from(address.bytes));
                if *value_bytes > self.wanted.limits.bytes {
                    break;
                }
                self.pass.noted |= self.source.ahead(&self.sst.file, &address, pages::PageKind::Value);
            }
        }
        Ok(())
    }

    fn older(&mut self, row: u64, older: &mut Vec<u64>) -> Result<()> {
        let Some(history) = self.sst.descent(TreeKind::History) else { return Ok(()) };
        let Some(at) = self.wanted.at.0.checked_sub(self.sst.version_offset) else { return Ok(()) };
        let step = history.lower(self.source, &history_key(row, Version(at)));
        if let Some(Some((page, layout, i))) = self.is_here(step)? {
            let mut key = [0; 8];
            layout.copy_key(&page, i, &mut key);
            if u64::from_be_bytes(key) == row {
                older.push(layout.first_row() + i as u64);
            }
        }
        Ok(())
    }
}

/// Whether a page holds the rows its parent says. Whoever reads it will be told if not.
fn holds(kind: TreeKind, page: &PageRef, rows: &Range<u64>) -> bool {
    let (first, count) = if kind.is_by_row() {
        let layout = GroupLayout::of(page);
        (layout.first_row(), layout.rows())
    } else {
        let layout = Layout::of(page);
        (layout.first_row(), layout.rows())
    };
    first == rows.start && first + count as u64 == rows.end
}

/// The rows in as few ranges as there are runs of neighbours. Rows a dozen apart are not neighbours, but a page holds
/// more than that, and a walk costs more than the rows between.
fn spans(rows: &mut [u64]) -> Vec<Range<u64>> {
    rows.sort_unstable();
    let mut spans: Vec<Range<u64>> = Vec::new();
    for &row in rows.iter() {
        match spans.last_mut() {
            Some(span) if row <= span.end => span.end = span.end.max(row + 1),
            _ => spans.push(row..row + 1),
        }
    }
    spans
}

#[cfg(test)]
mod tests;
