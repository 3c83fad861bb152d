//! One pass over one tree, from the edge where the reader starts to the edge where it stops. It does not know what rows
//! mean; of a page it looks at keys and at which rows are erased.
//!
//! ```text
//!                        near edge                          far edge
//!   forward     low ─────────●────────────────────────────────▶●  high, and the row there
//!   backward    the row before it, and low  ●◀─────────────────●───── high
//! ```
//!
//! The page at the near edge is read whatever the limits. Going on, a child is taken if it is needed even if the page at
//! the near edge gave everything it could; when that page is in memory, what it gives is known.

use super::{Asked, Pass, Share};
use crate::Direction;
use crate::format::PageRows;
use crate::format::data_page::Layout;
use crate::format::meta::Tree;
use crate::format::node::{Node, Totals};
use crate::read::Descent;
use crate::row::RowKind;
use pages::{Address, PACK_BYTES, PageRef, PageSource, Result, Stop};
use std::ops::{Bound, Range};

/// Pages may unpack to about so many times their stored length; more is left to the pass that knows them.
const UNPACKED_TIMES: u64 = 6;

/// One end of what is wanted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Side<'k> {
    /// The first row there may be, or the end of those.
    pub row: u64,
    /// The key there.
    pub key: Bound<&'k [u8]>,
}

impl<'k> Side<'k> {
    fn key(&self) -> Option<&'k [u8]> {
        match self.key {
            Bound::Unbounded => None,
            Bound::Included(key) | Bound::Excluded(key) => Some(key),
        }
    }
}

/// A child of a node on the way.
#[derive(Clone, Copy)]
struct Step {
    address: Address,
    /// Totals before and through it.
    before: Totals,
    through: Totals,
    /// Height above the data pages.
    level: u8,
    /// Whether the edges of the range lie in it.
    is_near: bool,
    is_far: bool,
}

/// The pass.
pub(super) struct Walk<'a, 's, S: ?Sized> {
    source: &'a S,
    asked: &'a Asked,
    descent: Descent<'a>,
    totals: Totals,
    low: Side<'a>,
    high: Side<'a>,
    direction: Direction,
    share: &'s mut Share,
    /// Stored bytes that may be read beside the first page, which is free if this is the first file.
    most_bytes: u64,
    most_memory_bytes: u64,
    is_first: bool,
    /// Rows that are wanted at most.
    pub rows_left: u64,
    /// Whether erased rows count, too.
    pub counts_erased: bool,
    /// Whether the last row must be known, not only the page it is in.
    pub needs_last_row: bool,
    /// Whether the rows are some of several pieces, so that the near edge may lie in another: then nothing is looked at.
    pub is_piece: bool,
    near: Near,
    pass: Pass,
    /// Row up to which, seen from the near edge, everything is needed.
    reached: u64,
    /// Nothing beyond `reached` is known to be needed as a row, though pages may be.
    stuck: bool,
    /// A limit is reached before the far edge.
    cut: bool,
}

/// What is known of the edge where the reader starts.
#[derive(Clone, Copy, Default)]
struct Near {
    /// The deepest child on the way to it.
    before: Totals,
    through: Totals,
    /// Whether that is a data page.
    is_page: bool,
    /// The first row in the range, going forward; the end of the rows in it, going backward.
    row: Option<u64>,
    /// Rows before `row` that are not erased.
    items: Option<u64>,
}

impl<'a, 's, S: PageSource + ?Sized> Walk<'a, 's, S> {
    pub fn new(
        source: &'a S,
        asked: &'a Asked,
        descent: Descent<'a>,
        tree: &Tree,
        (low, high): (Side<'a>, Side<'a>),
        direction: Direction,
        share: &'s mut Share,
    ) -> Self {
        Self {
            source,
            asked,
            descent,
            totals: tree.totals,
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
            near: Near::default(),
            pass: Pass::default(),
            reached: 0,
            stuck: false,
            cut: false,
        }
    }

    /// Rows that count up to somewhere.
    fn items(&self, totals: &Totals) -> u64 {
        if self.counts_erased { totals.rows } else { totals.rows.saturating_sub(totals.erased) }
    }

    /// Whether some rows of a page do not count.
    fn has_uncounted(&self, before: &Totals, through: &Totals) -> bool {
        !self.counts_erased && before.erased != through.erased
    }

    pub fn run(&mut self) -> Result<Pass> {
        if self.low.row >= self.high.row {
            return Ok(Pass::default());
        }
        if !self.find_near()? {
            return Ok(Pass { overshot: true, ..Pass::default() });
        }
        let near = self.near;
        self.reached =
            near.row.unwrap_or(if self.direction.is_forward() { near.through.rows } else { near.before.rows });
        let start = self.reached;
        let root = Step {
            address: self.descent.root_address(),
            before: Totals::default(),
            through: self.totals,
            level: self.descent.height(),
            is_near: true,
            is_far: true,
        };
        self.child(&root)?;
        // Nearest first: as long as the near edge is not known, nothing else is asked for the rows beyond it.
        let reached = if near.row.is_some() { self.reached } else { start };
        self.pass.rows =
            if self.direction.is_forward() { start..reached.max(start) } else { reached.min(start)..start };
        Ok(std::mem::take(&mut self.pass))
    }

    /// A page that decides what else is needed; `None` if it is not in memory, and asked for.
    fn look(&mut self, address: &Address, level: u8) -> Result<Option<PageRef>> {
        match self.descent.page(self.source, address, level) {
            Ok(page) => Ok(Some(page)),
            Err(Stop::Fault) => {
                self.pass.missing = true;
                Ok(None)
            }
            Err(Stop::Failed(error)) => Err(*error),
        }
    }

    /// A node, likewise, whose totals are those its parent gives it.
    fn look_at_node(
        &mut self,
        address: &Address,
        level: u8,
        before: &Totals,
        through: &Totals,
    ) -> Result<Option<PageRef>> {
        let Some(page) = self.look(address, level)? else { return Ok(None) };
        let node = self.descent.node(&page, address)?;
        self.descent.check_totals(&node, address, before, through)?;
        Ok(Some(page))
    }

    /// A data page of rows with keys, likewise.
    fn look_at_rows(&mut self, address: &Address, before: &Totals, through: &Totals) -> Result<Option<Rows>> {
        let Some(page) = self.look(address, 0)? else { return Ok(None) };
        let layout = Layout::of(&page);
        self.descent.check_rows(&layout, before.rows..through.rows, address)?;
        let rows = Rows { page, layout, counts_erased: self.counts_erased };
        if self.counts_items() && !self.counts_erased {
            let erased = layout.rows() - rows.kept(0..layout.rows()).count();
            if before.erased.checked_add(erased as u64) != Some(through.erased) {
                let said = through.erased.wrapping_sub(before.erased);
                let why = format!("{erased} of its rows are erased, its parent says {said}");
                return Err(self.descent.file().corrupt(self.descent.page_kind(), address.offset, why));
            }
        }
        Ok(Some(rows))
    }

    /// The child of `node` where `side` is, among those with rows that may be wanted.
    fn child_at(&self, node: &Node<'_>, side: &Side<'_>) -> usize {
        let (first, last) = (node.search_row(self.low.row), node.search_row(self.high.row - 1));
        match side.key() {
            Some(key) => node.search(key).clamp(first, last),
            None if side.row == self.low.row => first,
            None => last,
        }
    }

    /// Whether the near edge lies under a child of `node` beyond those with rows that may be wanted.
    fn is_past(&self, node: &Node<'_>, near: &Side<'_>) -> bool {
        let Some(key) = near.key() else { return false };
        let child = node.search(key);
        if self.direction.is_forward() {
            child > node.search_row(self.high.row - 1)
        } else {
            child < node.search_row(self.low.row)
        }
    }

    /// The first row at or after the low end, if `rows` is the page where it is; `None` if only the page can say.
    fn low_row(&self, rows: Option<&Rows>, before: &Totals) -> Option<u64> {
        let Some(key) = self.low.key() else { return Some(self.low.row.max(before.rows)) };
        let row = match (rows?.search(key), self.low.key) {
            (Ok(row), Bound::Excluded(_)) => row + 1,
            (Ok(row) | Err(row), _) => row,
        };
        Some(row.clamp(self.low.row, self.high.row))
    }

    /// The end of the rows before the high end, likewise.
    fn high_row(&self, rows: Option<&Rows>, through: &Totals) -> Option<u64> {
        let Some(key) = self.high.key() else { return Some(self.high.row.min(through.rows)) };
        let row = match (rows?.search(key), self.high.key) {
            (Ok(row), Bound::Included(_)) => row + 1,
            (Ok(row) | Err(row), _) => row,
        };
        Some(row.clamp(self.low.row, self.high.row))
    }

    /// How many rows before `row`, which lies in the page, are not erased; `None` if only the page can say.
    fn items_before(&self, row: u64, rows: Option<&Rows>, before: &Totals, through: &Totals) -> Option<u64> {
        if !self.has_uncounted(before, through) {
            return Some(self.items(before) + row.clamp(before.rows, through.rows) - before.rows);
        }
        if row >= through.rows {
            return Some(self.items(through));
        }
        Some(self.items(before) + rows?.kept(0..row.saturating_sub(before.rows) as usize).count() as u64)
    }

    fn counts_items(&self) -> bool {
        self.rows_left < u64::MAX
    }

    /// Goes down to the near edge as far as nodes are in memory. False if all rows that may be wanted lie before it.
    fn find_near(&mut self) -> Result<bool> {
        self.near = Near { before: Totals::default(), through: self.totals, ..Near::default() };
        let side = if self.direction.is_forward() { self.low } else { self.high };
        let mut address = self.descent.root_address();
        for level in (1..=self.descent.height()).rev() {
            let Near { before, through, .. } = self.near;
            let Some(page) = self.look_at_node(&address, level, &before, &through)? else { return Ok(true) };
            let node = Node::new(&page);
            if self.is_piece && self.is_past(&node, &side) {
                return Ok(false);
            }
            let i = self.child_at(&node, &side);
            if i > 0 {
                self.near.before = node.child(i - 1).totals;
            }
            let child = node.child(i);
            (self.near.through, address) = (child.totals, child.address);
        }
        let Near { before, through, .. } = self.near;
        self.near.is_page = true;
        let has_erased = self.has_uncounted(&before, &through);
        let rows = match side.key().is_some() || has_erased && self.counts_items() {
            true => self.look_at_rows(&address, &before, &through)?,
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

    /// At most so many rows that count lie between the near edge and the rows given: before them going forward, after them
    /// going backward.
    fn items_on_the_way_at_most(&self, before: &Totals, through: &Totals) -> u64 {
        if self.direction.is_forward() {
            self.items(before).saturating_sub(self.near.items.unwrap_or(self.items(&self.near.before)))
        } else {
            self.near.items.unwrap_or(self.items(&self.near.through)).saturating_sub(self.items(through))
        }
    }

    /// Whether a child other than the one at the near edge is needed for certain.
    fn is_wanted(&self, step: &Step) -> bool {
        let Step { before, through, level, .. } = step;
        if self.is_enough(step) {
            return false;
        }
        // Of a node its first page at least.
        let least = if *level == 0 { through.bytes - before.bytes } else { PACK_BYTES };
        // The first page of the first file is free, once it is known which that is.
        let is_free = self.is_first && self.near.is_page;
        let bytes = match (self.direction, is_free) {
            (Direction::Forward, true) => before.bytes.saturating_sub(self.near.through.bytes),
            (Direction::Forward, false) => before.bytes.saturating_sub(self.near.before.bytes),
            (Direction::Backward, true) => self.near.before.bytes.saturating_sub(through.bytes),
            (Direction::Backward, false) => self.near.through.bytes.saturating_sub(through.bytes),
        };
        let bytes = bytes.saturating_add(least);
        // Not to come further out than there is room for when the near edge is known: pages may unpack to some times more.
        let has_room = self.near.is_page || bytes.saturating_mul(UNPACKED_TIMES) <= self.most_memory_bytes;
        bytes <= self.most_bytes && has_room
    }

    /// Asks for a child and what is needed under it.
    fn child(&mut self, step: &Step) -> Result<()> {
        if step.level == 0 {
            return self.data(step);
        }
        let Some(page) = self.look_at_node(&step.address, step.level, &step.before, &step.through)? else {
            self.unknown(step);
            return Ok(());
        };
        let node = Node::new(&page);
        let (near_side, far_side) = self.direction.near_far((self.low, self.high));
        let (first, last) = self.direction.near_far((0, node.children() - 1));
        let near = if step.is_near { self.child_at(&node, &near_side) } else { first };
        let far = if step.is_far { self.child_at(&node, &far_side) } else { last };
        let mut i = near;
        loop {
            let child = node.child(i);
            let next = Step {
                address: child.address,
                before: if i > 0 { node.child(i - 1).totals } else { step.before },
                through: child.totals,
                level: step.level - 1,
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

    /// Whether the rows before `step` may be all that are wanted.
    fn is_enough(&self, step: &Step) -> bool {
        self.items_on_the_way_at_most(&step.before, &step.through) >= self.rows_left
    }

    /// How many rows that count the reader has had at most when it comes to `step`.
    fn had_before(&self, step: &Step) -> u64 {
        self.items_on_the_way_at_most(&step.before, &step.through).min(self.rows_left)
    }

    /// How many it has had at most when it leaves `step`.
    fn had_through(&self, step: &Step) -> u64 {
        let edge = if self.direction.is_forward() { step.through } else { step.before };
        self.items_on_the_way_at_most(&edge, &edge).min(self.rows_left)
    }

    /// A page or node that is not in memory, or whose rows are not known.
    fn unknown(&mut self, step: &Step) {
        self.pass.items = self.had_through(step);
        if step.level > 0 {
            // Nearest first: what lies under it may take so much of what is left for what comes behind it.
            let bytes = step.through.bytes - step.before.bytes;
            self.share.take(bytes, bytes.saturating_mul(UNPACKED_TIMES));
        }
        if step.is_far || self.may_end_in(step) {
            self.stuck = true;
        } else if !step.is_near && !self.stuck {
            self.reached = if self.direction.is_forward() { step.through.rows } else { step.before.rows };
        }
    }

    /// Whether the last row that is wanted may lie in `step`.
    fn may_end_in(&self, step: &Step) -> bool {
        self.counts_items() && self.had_through(step) >= self.rows_left
    }

    /// A data page.
    fn data(&mut self, step: &Step) -> Result<()> {
        let (near, far) = self.direction.near_far((self.low, self.high));
        let by_key = step.is_far && far.key().is_some() || step.is_near && near.key().is_some();
        let erased = self.has_uncounted(&step.before, &step.through);
        let by_items = self.counts_items()
            && (erased && (step.is_far || step.is_near) || self.needs_last_row && self.may_end_in(step));
        // Room is taken whether the page is here or not, so that every pass comes as far.
        if step.is_near {
            self.share.take(
                if self.is_first { 0 } else { step.through.bytes - step.before.bytes },
                self.share.memory_of(&step.address),
            );
        } else if !self.share.take_page(&step.address) {
            self.cut = true;
            self.pass.is_cut = true;
            self.pass.items = self.had_before(step);
            self.stuck = true;
            return Ok(());
        }
        let rows = if by_key || by_items {
            let rows = self.look_at_rows(&step.address, &step.before, &step.through)?;
            if rows.is_none() {
                self.unknown(step);
                return Ok(());
            }
            rows
        } else {
            self.ask(&step.address);
            None
        };
        let end = match (step.is_far, self.direction) {
            (false, Direction::Forward) => Some(step.through.rows),
            (false, Direction::Backward) => Some(step.before.rows),
            (true, Direction::Forward) => self.high_row(rows.as_ref(), &step.through),
            (true, Direction::Backward) => self.low_row(rows.as_ref(), &step.before),
        };
        let end = end.expect("a page that must be looked at was");
        let items_left = match self.counts_items() {
            true => match self.items_left(step, end, rows.as_ref()) {
                Some(left) => left,
                // What the page at the near edge gives is not known yet.
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

    /// How many rows are still wanted when the reader has come through `step` to row `end` of it; `None` if that depends
    /// on what is not known.
    fn items_left(&self, step: &Step, end: u64, rows: Option<&Rows>) -> Option<u64> {
        let near = self.near.items?;
        let here = self.items_before(end, rows, &step.before, &step.through)?;
        let came = if self.direction.is_forward() { here.saturating_sub(near) } else { near.saturating_sub(here) };
        Some(self.rows_left.saturating_sub(came))
    }

    /// Forward the end of the rows that are wanted, backward their first, in the page where the limit is reached.
    fn last_row(&self, step: &Step, rows: &Rows) -> Result<u64> {
        let Near { items: Some(near_items), row: Some(near_row), .. } = self.near else {
            unreachable!("the limit is known to be reached")
        };
        let near_row = (near_row - step.before.rows.min(near_row)) as usize;
        let nth = if self.direction.is_forward() {
            let (from, had) = match step.is_near {
                true => (near_row, 0),
                false => (0, self.items(&step.before).saturating_sub(near_items)),
            };
            rows.kept(from..rows.layout.rows()).nth((self.rows_left - had - 1) as usize).map(|i| i + 1)
        } else {
            let (to, had) = match step.is_near {
                true => (near_row, 0),
                false => (rows.layout.rows(), near_items.saturating_sub(self.items(&step.through))),
            };
            rows.kept(0..to).rev().nth((self.rows_left - had - 1) as usize)
        };
        nth.map(|nth| step.before.rows + nth as u64).ok_or_else(|| {
            let why = "more of its rows are erased than the nodes above it say".to_owned();
            self.descent.file().corrupt(self.descent.page_kind(), step.address.offset, why)
        })
    }

    /// The far edge is reached: the reader looks at one row more to see that it is.
    fn beyond(&mut self, step: &Step, end: u64) -> Result<()> {
        if self.direction.is_forward() {
            if end >= self.high.row {
                self.pass.overshot = !self.pass.missing;
            } else if end >= step.through.rows {
                self.row_beyond(end)?;
            }
        } else if end <= self.low.row {
            self.pass.overshot = !self.pass.missing;
        } else if end <= step.before.rows {
            self.row_beyond(end - 1)?;
        }
        Ok(())
    }

    /// Asks for the page that holds row `row`, the one beside the far edge.
    fn row_beyond(&mut self, row: u64) -> Result<()> {
        let mut address = self.descent.root_address();
        for level in (1..=self.descent.height()).rev() {
            let Some(page) = self.look(&address, level)? else { return Ok(()) };
            let node = self.descent.node(&page, &address)?;
            address = node.address(node.search_row(row));
        }
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
struct Rows {
    page: PageRef,
    layout: Layout,
    counts_erased: bool,
}

impl Rows {
    /// The row with this key, or the first with a greater one.
    fn search(&self, key: &[u8]) -> std::result::Result<u64, u64> {
        let row = |i: usize| self.layout.first_row() + i as u64;
        self.layout.search(&self.page, key).map(row).map_err(row)
    }

    /// Those of the rows that count.
    fn kept(&self, within: Range<usize>) -> impl DoubleEndedIterator<Item = usize> {
        within.filter(|&i| self.counts_erased || self.layout.record(&self.page, i).kind != RowKind::Erase)
    }
}
