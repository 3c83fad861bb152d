//! How a precharge walks the trees of a file. It asks for the range erases of some keys, or for the pages of some
//! rows in any tree. This module does not know why these rows are read.

use super::asked::{AskedPages, Share};
use super::found::Pass;
use super::present_page::PresentPage;
use super::walk::{PrechargeWalk, RangeSide};
use crate::Direction;
use crate::format::meta::TreeKind;
use crate::read::Sst;
use pages::{PageSource, Result};
use std::ops::{Bound, Range};

/// The trees of a file, to be walked.
pub(super) struct Trees<'a, S: ?Sized> {
    pub sst: &'a Sst,
    pub source: &'a S,
    pub asked: &'a AskedPages,
    pub direction: Direction,
}

impl<'a, S: PageSource + ?Sized> Trees<'a, S> {
    /// Asks for the range erases that begin among the keys. It also asks for the range erase before them, because
    /// that one may reach into the keys.
    pub fn range_erases(&mut self, low: Bound<&'a [u8]>, high: Bound<&'a [u8]>, share: &mut Share) -> Result<Pass> {
        let Some(descent) = self.sst.descent(TreeKind::RangeErases) else { return Ok(Pass::default()) };
        let mut walk = |low, high, direction| {
            let sides = (RangeSide { row: 0, key: low }, RangeSide { row: descent.rows(), key: high });
            PrechargeWalk::new(self.source, self.asked, descent, sides, direction, share).walk()
        };
        let mut sum = Pass::default();
        // A backward walk ends with a look at the row before the range. A forward walk does not look at this row,
        // so a second walk looks at it.
        if self.direction == Direction::Forward
            && let Bound::Included(low) | Bound::Excluded(low) = low
        {
            sum.add(&walk(Bound::Included(low), Bound::Included(low), Direction::Backward)?);
        }
        sum.add(&walk(low, high, self.direction)?);
        Ok(sum)
    }

    /// Asks for the pages of a tree that hold `rows`.
    pub fn rows(&mut self, kind: TreeKind, rows: Range<u64>, share: &mut Share) -> Result<Pass> {
        let Some(descent) = self.sst.descent(kind) else { return Ok(Pass::default()) };
        let side = |row: u64| RangeSide { row: row.min(descent.rows()), key: Bound::Unbounded };
        let sides = (side(rows.start), side(rows.end));
        let found = PrechargeWalk::new(self.source, self.asked, descent, sides, self.direction, share).walk()?;
        Ok(Pass { rows: 0..0, ..found })
    }

    /// Calls `show` with every page of a tree that is in memory and holds some of `rows`, the nearest page first.
    /// `show` also gets the ids of those of `rows` that are in the page.
    pub fn pages(
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
                // The parent says which rows the page holds. If the page holds other rows than its parent says, the
                // read that needs the page reports this.
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
