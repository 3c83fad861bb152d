//! One pass over one tree, from the edge where the reader starts to the edge where it stops. This module does not
//! know what rows mean. It looks only at keys, and at which rows are erased.
//!
//! ```text
//!                        near edge                          far edge
//!   forward     low ─────────●────────────────────────────────▶●  high, and the row there
//!   backward    the row before it, and low  ●◀─────────────────●───── high
//! ```
//!
//! The page at the near edge is read whatever the limits are. Any other child is asked for only if it is certainly
//! needed, even if the page at the near edge gives as many rows as it can. Once that page is in memory, the number
//! of rows that it gives is known.

use super::asked::{AskedPages, Share};
use super::found::Pass;
use crate::Direction;
use crate::format::PageRows;
use crate::format::data_page::Layout;
use crate::format::node::{IndexNode, Totals};
use crate::read::{Descent, Subtree};
use crate::row::RowKind;
use pages::{Address, PACK_BYTES, PageRef, PageSource, Result, Stop};
use std::ops::{Bound, Range};

/// Packed pages are assumed to unpack to this many times their stored length. Once such a page has been loaded, the
/// next pass knows its true length.
const UNPACKED_TIMES: u64 = 6;

/// One end of the range that is read.
#[derive(Clone, Copy, Debug)]
pub(super) struct RangeSide<'k> {
    /// The row id at this end. On the low side, this is the first row that may belong to the range. On the high
    /// side, this is the end of the rows that may belong to the range.
    pub row: u64,
    /// The key at this end.
    pub key: Bound<&'k [u8]>,
}

impl<'k> RangeSide<'k> {
    fn key(&self) -> Option<&'k [u8]> {
        match self.key {
            Bound::Unbounded => None,
            Bound::Included(key) | Bound::Excluded(key) => Some(key),
        }
    }
}

/// A subtree on the way.
#[derive(Clone, Copy)]
struct WalkStep {
    subtree: Subtree,
    /// Whether the near edge of the range lies in the subtree; `is_far` says the same of the far edge.
    is_near: bool,
    is_far: bool,
}

/// One pass over one tree.
pub(super) struct PrechargeWalk<'a, 's, S: ?Sized> {
    source: &'a S,
    asked: &'a AskedPages,
    descent: Descent<'a>,
    low: RangeSide<'a>,
    high: RangeSide<'a>,
    direction: Direction,
    share: &'s mut Share,
    /// The stored bytes that may be read. If this is the first file, its first page is not counted.
    most_bytes: u64,
    most_memory_bytes: u64,
    is_first: bool,
    /// The most rows that are read.
    pub rows_left: u64,
    /// Whether erased rows count, too.
    pub counts_erased: bool,
    /// Whether the read must know the last row itself, and not only the page of that row.
    pub needs_last_row: bool,
    /// Whether the rows of the file are read in several pieces, and `low.row` and `high.row` bound only one of
    /// them. Then the near edge may lie in another piece. If it does, the walk asks for nothing.
    pub is_piece: bool,
    near: Near,
    pass: Pass,
    /// The row up to which all rows from the near edge are needed.
    reached: u64,
    /// Whether no row beyond `reached` is known to be needed. Pages beyond `reached` may still be needed.
    stuck: bool,
    /// Whether the read reaches a limit before the far edge.
    cut: bool,
}

/// What is known about the near edge, where the reader starts.
#[derive(Clone, Copy)]
struct Near {
    /// The deepest subtree on the way to the edge.
    subtree: Subtree,
    /// Whether this subtree is a data page.
    is_page: bool,
    /// In the forward direction, the first row in the range. In the backward direction, the end of the rows in the
    /// range.
    row: Option<u64>,
    /// The number of rows before `row` that count against the limit.
    items: Option<u64>,
}

impl<'a, 's, S: PageSource + ?Sized> PrechargeWalk<'a, 's, S> {
    pub fn new(
        source: &'a S,
        asked: &'a AskedPages,
        descent: Descent<'a>,
        (low, high): (RangeSide<'a>, RangeSide<'a>),
        direction: Direction,
        share: &'s mut Share,
    ) -> Self {
        Self {
            source,
            asked,
            descent,
            low,
            high,
            direction,
            most_bytes: share.bytes,
            most_memory_bytes: share.memory_bytes,
            is_first: share.is_first,
            share,
            rows_left: u64::MAX,
            counts_erased: false,
            needs_last_row: false,
            is_piece: false,
            near: Near { subtree: descent.whole(), is_page: false, row: None, items: None },
            pass: Pass::default(),
            reached: 0,
            stuck: false,
            cut: false,
        }
    }

    /// The number of rows in `totals` that count against the limit.
    fn items(&self, totals: &Totals) -> u64 {
        if self.counts_erased { totals.rows } else { totals.rows.saturating_sub(totals.erased) }
    }

    /// Whether some rows of a page do not count against the limit.
    fn has_uncounted(&self, before: &Totals, through: &Totals) -> bool {
        !self.counts_erased && before.erased != through.erased
    }

    pub fn walk(&mut self) -> Result<Pass> {
        if self.low.row >= self.high.row {
            return Ok(Pass::default());
        }
        if !self.find_near()? {
            return Ok(Pass { overshot: true, ..Pass::default() });
        }
        let near = self.near;
        self.reached = near.row.unwrap_or(if self.direction.is_forward() {
            near.subtree.through.rows
        } else {
            near.subtree.before.rows
        });
        let start = self.reached;
        let root = WalkStep { subtree: self.descent.whole(), is_near: true, is_far: true };
        self.child(&root)?;
        // The nearest pages come first. Until the row at the near edge is known, nothing outside the main tree is
        // asked for.
        let reached = if near.row.is_some() { self.reached } else { start };
        self.pass.rows =
            if self.direction.is_forward() { start..reached.max(start) } else { reached.min(start)..start };
        Ok(std::mem::take(&mut self.pass))
    }

    /// Unwraps a look-up whose result decides which other pages are needed. `None` after a fault: the page was not
    /// in memory and has been asked for.
    fn look<T>(&mut self, found: std::result::Result<T, Stop>) -> Result<Option<T>> {
        match found {
            Ok(found) => Ok(Some(found)),
            Err(Stop::Fault) => {
                self.pass.missing = true;
                Ok(None)
            }
            Err(Stop::Failed(error)) => Err(*error),
        }
    }

    /// The node at the top of `subtree`; `None` if it was not in memory and has been asked for.
    fn look_at_node(&mut self, subtree: Subtree) -> Result<Option<PageRef>> {
        self.look(self.descent.node_of(self.source, &subtree))
    }

    /// A data page whose rows have keys; `None` if it was not in memory and has been asked for.
    fn look_at_rows(&mut self, subtree: &Subtree) -> Result<Option<CountedPage>> {
        let Some(page) = self.look(self.descent.top_of(self.source, subtree))? else { return Ok(None) };
        let Subtree { address, before, through, .. } = subtree;
        let layout = Layout::of(&page);
        self.descent.check_rows(&layout, subtree.rows(), address)?;
        let rows = CountedPage { page, layout, counts_erased: self.counts_erased };
        if self.counts_items() && !self.counts_erased {
            let erased = layout.rows() - rows.counted(0..layout.rows()).count();
            if before.erased.checked_add(erased as u64) != Some(through.erased) {
                let said = through.erased.wrapping_sub(before.erased);
                let why = format!("{erased} of its rows are erased, its parent says {said}");
                return Err(self.descent.file().corrupt(self.descent.page_kind(), address.offset, why));
            }
        }
        Ok(Some(rows))
    }

    /// The child of `node` in which `side` lies. Only children with rows that may be wanted are considered.
    fn child_at(&self, node: &IndexNode<'_>, side: &RangeSide<'_>) -> usize {
        let (first, last) = (node.search_row(self.low.row), node.search_row(self.high.row - 1));
        match side.key() {
            Some(key) => node.search(key).clamp(first, last),
            None if side.row == self.low.row => first,
            None => last,
        }
    }

    /// Whether the near edge lies beyond all children of `node` that have wanted rows, as seen in the direction of
    /// the read.
    fn is_past(&self, node: &IndexNode<'_>, near: &RangeSide<'_>) -> bool {
        let Some(key) = near.key() else { return false };
        let child = node.search(key);
        if self.direction.is_forward() {
            child > node.search_row(self.high.row - 1)
        } else {
            child < node.search_row(self.low.row)
        }
    }

    /// The first row at or after the low end. `rows` is the page with that row, if the page is known. `None` if
    /// only the page can tell and it is not known.
    fn low_row(&self, rows: Option<&CountedPage>, before: &Totals) -> Option<u64> {
        let Some(key) = self.low.key() else { return Some(self.low.row.max(before.rows)) };
        let row = match (rows?.search(key), self.low.key) {
            (Ok(row), Bound::Excluded(_)) => row + 1,
            (Ok(row) | Err(row), _) => row,
        };
        Some(row.clamp(self.low.row, self.high.row))
    }

    /// The end of the rows before the high end. `rows` is the page with that end, if the page is known. `None` if
    /// only the page can tell and it is not known.
    fn high_row(&self, rows: Option<&CountedPage>, through: &Totals) -> Option<u64> {
        let Some(key) = self.high.key() else { return Some(self.high.row.min(through.rows)) };
        let row = match (rows?.search(key), self.high.key) {
            (Ok(row), Bound::Included(_)) => row + 1,
            (Ok(row) | Err(row), _) => row,
        };
        Some(row.clamp(self.low.row, self.high.row))
    }

    /// How many rows before `row`, which lies in the page, count against the limit. `None` if only the page can
    /// tell and it is not known.
    fn items_before(&self, row: u64, rows: Option<&CountedPage>, before: &Totals, through: &Totals) -> Option<u64> {
        if !self.has_uncounted(before, through) {
            return Some(self.items(before) + row.clamp(before.rows, through.rows) - before.rows);
        }
        if row >= through.rows {
            return Some(self.items(through));
        }
        Some(self.items(before) + rows?.counted(0..row.saturating_sub(before.rows) as usize).count() as u64)
    }

    fn counts_items(&self) -> bool {
        self.rows_left < u64::MAX
    }

    /// Goes down towards the near edge until it meets a node that is not in memory, or comes to the data page.
    /// Returns false if all rows that may be wanted come before that edge.
    fn find_near(&mut self) -> Result<bool> {
        self.near = Near { subtree: self.descent.whole(), is_page: false, row: None, items: None };
        let side = if self.direction.is_forward() { self.low } else { self.high };
        while self.near.subtree.level > 0 {
            let Some(page) = self.look_at_node(self.near.subtree)? else { return Ok(true) };
            let node = IndexNode::new(&page);
            if self.is_piece && self.is_past(&node, &side) {
                return Ok(false);
            }
            self.near.subtree = self.near.subtree.child(&node, self.child_at(&node, &side));
        }
        let subtree = self.near.subtree;
        let Subtree { before, through, .. } = subtree;
        self.near.is_page = true;
        let has_erased = self.has_uncounted(&before, &through);
        let rows = match side.key().is_some() || has_erased && self.counts_items() {
            true => self.look_at_rows(&subtree)?,
            false => None,
        };
        self.near.row = match self.direction {
            Direction::Forward => self.low_row(rows.as_ref(), &before),
            Direction::Backward => self.high_row(rows.as_ref(), &through),
        };
        if self.counts_items() {
            self.near.items = self.near.row.and_then(|row| self.items_before(row, rows.as_ref(), &before, &through));
        }
        Ok(true)
    }

    /// An upper bound on the rows that count against the limit between the near edge and the given rows. Forward,
    /// they lie before the given rows; backward, after them.
    fn items_on_the_way_at_most(&self, before: &Totals, through: &Totals) -> u64 {
        if self.direction.is_forward() {
            self.items(before).saturating_sub(self.near.items.unwrap_or(self.items(&self.near.subtree.before)))
        } else {
            self.near.items.unwrap_or(self.items(&self.near.subtree.through)).saturating_sub(self.items(through))
        }
    }

    /// Whether a child is certainly needed. The child must not be at the near edge.
    fn is_wanted(&self, step: &WalkStep) -> bool {
        let Subtree { before, through, level, .. } = &step.subtree;
        if self.is_enough(step) {
            return false;
        }
        // If a node is read, at least the first page under it is read, too.
        let least = if *level == 0 { through.bytes - before.bytes } else { PACK_BYTES };
        // The first page of the first file does not count against the limit. The walk can use this only if it
        // knows which page is the first.
        let is_free = self.is_first && self.near.is_page;
        let bytes = match (self.direction, is_free) {
            (Direction::Forward, true) => before.bytes.saturating_sub(self.near.subtree.through.bytes),
            (Direction::Forward, false) => before.bytes.saturating_sub(self.near.subtree.before.bytes),
            (Direction::Backward, true) => self.near.subtree.before.bytes.saturating_sub(through.bytes),
            (Direction::Backward, false) => self.near.subtree.through.bytes.saturating_sub(through.bytes),
        };
        let bytes = bytes.saturating_add(least);
        // While the near edge is not known, there must be room for all pages up to this child. All of them may be
        // packed, and then they take several times their stored length in memory.
        let has_room = self.near.is_page || bytes.saturating_mul(UNPACKED_TIMES) <= self.most_memory_bytes;
        bytes <= self.most_bytes && has_room
    }

    /// Asks for a child and for the pages that are needed under it.
    fn child(&mut self, step: &WalkStep) -> Result<()> {
        if step.subtree.level == 0 {
            return self.data(step);
        }
        let Some(page) = self.look_at_node(step.subtree)? else {
            self.unknown(step);
            return Ok(());
        };
        let node = IndexNode::new(&page);
        let (near_side, far_side) = self.direction.near_far((self.low, self.high));
        let (first, last) = self.direction.near_far((0, node.children() - 1));
        let near = if step.is_near { self.child_at(&node, &near_side) } else { first };
        let far = if step.is_far { self.child_at(&node, &far_side) } else { last };
        let mut i = near;
        loop {
            let next = WalkStep {
                subtree: step.subtree.child(&node, i),
                is_near: step.is_near && i == near,
                is_far: step.is_far && i == far,
            };
            if !next.is_near && !self.is_wanted(&next) {
                self.cut = true;
                self.pass.is_cut = !self.is_enough(&next);
                self.pass.items = self.had_before(&next);
                return Ok(());
            }
            self.child(&next)?;
            if self.cut || i == far {
                return Ok(());
            }
            i = if self.direction.is_forward() { i + 1 } else { i - 1 };
        }
    }

    /// Whether the read may have all rows that it wants before the walk comes to the page or node of `step`.
    fn is_enough(&self, step: &WalkStep) -> bool {
        self.items_on_the_way_at_most(&step.subtree.before, &step.subtree.through) >= self.rows_left
    }

    /// An upper bound on the rows that count against the limit before the reader reaches `step`.
    fn had_before(&self, step: &WalkStep) -> u64 {
        self.items_on_the_way_at_most(&step.subtree.before, &step.subtree.through).min(self.rows_left)
    }

    /// An upper bound on the rows that count against the limit until the reader leaves `step`.
    fn had_through(&self, step: &WalkStep) -> u64 {
        let edge = if self.direction.is_forward() { step.subtree.through } else { step.subtree.before };
        self.items_on_the_way_at_most(&edge, &edge).min(self.rows_left)
    }

    /// Handles a page or a node whose rows are not known, or that is not in memory.
    fn unknown(&mut self, step: &WalkStep) {
        self.pass.items = self.had_through(step);
        if step.subtree.level > 0 {
            // The nearest pages come first: the share gives room to all pages under this node before it gives room
            // to pages behind them.
            let bytes = step.subtree.through.bytes - step.subtree.before.bytes;
            self.share.take(bytes, bytes.saturating_mul(UNPACKED_TIMES));
        }
        if step.is_far || self.may_end_in(step) {
            self.stuck = true;
        } else if !step.is_near && !self.stuck {
            self.reached =
                if self.direction.is_forward() { step.subtree.through.rows } else { step.subtree.before.rows };
        }
    }

    /// Whether the last wanted row may lie in `step`.
    fn may_end_in(&self, step: &WalkStep) -> bool {
        self.counts_items() && self.had_through(step) >= self.rows_left
    }

    /// Handles a data page.
    fn data(&mut self, step: &WalkStep) -> Result<()> {
        let (near, far) = self.direction.near_far((self.low, self.high));
        let by_key = step.is_far && far.key().is_some() || step.is_near && near.key().is_some();
        let erased = self.has_uncounted(&step.subtree.before, &step.subtree.through);
        let by_items = self.counts_items()
            && (erased && (step.is_far || step.is_near) || self.needs_last_row && self.may_end_in(step));
        // The bytes of the page are subtracted from the share whether the page is in memory or not. So every pass
        // comes equally far.
        if step.is_near {
            self.share.take(
                if self.is_first { 0 } else { step.subtree.through.bytes - step.subtree.before.bytes },
                self.share.memory_of(&step.subtree.address),
            );
        } else if !self.share.take_page(&step.subtree.address) {
            self.cut = true;
            self.pass.is_cut = true;
            self.pass.items = self.had_before(step);
            self.stuck = true;
            return Ok(());
        }
        let rows = if by_key || by_items {
            let rows = self.look_at_rows(&step.subtree)?;
            if rows.is_none() {
                self.unknown(step);
                return Ok(());
            }
            rows
        } else {
            self.ask(&step.subtree.address);
            None
        };
        let end = match (step.is_far, self.direction) {
            (false, Direction::Forward) => Some(step.subtree.through.rows),
            (false, Direction::Backward) => Some(step.subtree.before.rows),
            (true, Direction::Forward) => self.high_row(rows.as_ref(), &step.subtree.through),
            (true, Direction::Backward) => self.low_row(rows.as_ref(), &step.subtree.before),
        };
        let end = end.expect("a page that must be looked at was");
        let items_left = match self.counts_items() {
            true => match self.items_left(step, end, rows.as_ref()) {
                Some(left) => left,
                // It is not known yet how many rows the page at the near edge gives.
                None => {
                    self.unknown(step);
                    return Ok(());
                }
            },
            false => u64::MAX,
        };
        if items_left == 0 {
            self.cut = true;
            self.pass.items = self.rows_left;
            let last = match rows.filter(|_| self.needs_last_row) {
                Some(rows) => self.last_row(step, &rows)?,
                None => end,
            };
            self.reach(last);
            return Ok(());
        }
        self.pass.items = if self.counts_items() { self.rows_left - items_left } else { u64::MAX };
        self.reach(end);
        if step.is_far {
            self.beyond(step, end)?;
        }
        Ok(())
    }

    fn reach(&mut self, row: u64) {
        if !self.stuck {
            self.reached = if self.direction.is_forward() { row.max(self.reached) } else { row.min(self.reached) };
        }
    }

    /// How many rows are still wanted when the reader has read `step` up to row `end`. `None` if not all numbers
    /// that decide this are known.
    fn items_left(&self, step: &WalkStep, end: u64, rows: Option<&CountedPage>) -> Option<u64> {
        let near = self.near.items?;
        let here = self.items_before(end, rows, &step.subtree.before, &step.subtree.through)?;
        let came = if self.direction.is_forward() { here.saturating_sub(near) } else { near.saturating_sub(here) };
        Some(self.rows_left.saturating_sub(came))
    }

    /// The last row that is wanted, in the page where the limit is reached. In the forward direction, the result
    /// is the end of the wanted rows. In the backward direction, the result is the first wanted row.
    fn last_row(&self, step: &WalkStep, rows: &CountedPage) -> Result<u64> {
        let Near { items: Some(near_items), row: Some(near_row), .. } = self.near else {
            unreachable!("the limit is known to be reached")
        };
        let near_row = (near_row - step.subtree.before.rows.min(near_row)) as usize;
        let nth = if self.direction.is_forward() {
            let (from, had) = match step.is_near {
                true => (near_row, 0),
                false => (0, self.items(&step.subtree.before).saturating_sub(near_items)),
            };
            rows.counted(from..rows.layout.rows()).nth((self.rows_left - had - 1) as usize).map(|i| i + 1)
        } else {
            let (to, had) = match step.is_near {
                true => (near_row, 0),
                false => (rows.layout.rows(), near_items.saturating_sub(self.items(&step.subtree.through))),
            };
            rows.counted(0..to).rev().nth((self.rows_left - had - 1) as usize)
        };
        nth.map(|nth| step.subtree.before.rows + nth as u64).ok_or_else(|| {
            let why = "more of its rows are erased than the nodes above it say".to_owned();
            self.descent.file().corrupt(self.descent.page_kind(), step.subtree.address.offset, why)
        })
    }

    /// Handles the far edge: the reader looks at one more row to see that the range has ended.
    fn beyond(&mut self, step: &WalkStep, end: u64) -> Result<()> {
        if self.direction.is_forward() {
            if end >= self.high.row {
                self.pass.overshot = !self.pass.missing;
            } else if end >= step.subtree.through.rows {
                self.row_beyond(end)?;
            }
        } else if end <= self.low.row {
            self.pass.overshot = !self.pass.missing;
        } else if end <= step.subtree.before.rows {
            self.row_beyond(end - 1)?;
        }
        Ok(())
    }

    /// Asks for the page that holds `row`, the first row beyond the far edge.
    fn row_beyond(&mut self, row: u64) -> Result<()> {
        let Some(address) = self.look(self.descent.address_of_row(self.source, row))? else { return Ok(()) };
        if self.share.take_page(&address) {
            self.ask(&address);
        } else {
            self.pass.is_cut = true;
        }
        Ok(())
    }

    /// Asks for a data page ahead.
    fn ask(&mut self, address: &Address) {
        let (file, kind) = (self.descent.file(), self.descent.page_kind());
        self.pass.noted |= self.asked.ahead(self.source, file.at(address, kind));
    }
}

/// A page of rows with keys.
struct CountedPage {
    page: PageRef,
    layout: Layout,
    counts_erased: bool,
}

impl CountedPage {
    /// The row with key `key`, or the first row with a greater key.
    fn search(&self, key: &[u8]) -> std::result::Result<u64, u64> {
        let row = |i: usize| self.layout.first_row() + i as u64;
        self.layout.search(&self.page, key).map(row).map_err(row)
    }

    /// The places of the rows that count.
    fn counted(&self, within: Range<usize>) -> impl DoubleEndedIterator<Item = usize> {
        within.filter(|&i| self.counts_erased || self.layout.record(&self.page, i).kind != RowKind::Erase)
    }
}
