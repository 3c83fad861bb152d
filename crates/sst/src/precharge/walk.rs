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

use super::{Direction, Limits, Pass};
use crate::format::PageRows;
use crate::format::data_page::Layout;
use crate::format::meta::Tree;
use crate::format::node::{Node, Totals};
use crate::read::Descent;
use crate::row::RowKind;
use pages::{Address, PACK_BYTES, PageRef, PageSource, Result, Stop};
use std::ops::{Bound, Range};

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
pub(super) struct Walk<'a, S: ?Sized> {
    source: &'a S,
    descent: Descent<'a>,
    totals: Totals,
    low: Side<'a>,
    high: Side<'a>,
    forward: bool,
    limits: Limits,
    /// Whether the last row must be known, not only the page it is in.
    pub needs_last_row: bool,
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

fn items(totals: &Totals) -> u64 {
    totals.rows.saturating_sub(totals.erased)
}

impl<'a, S: PageSource + ?Sized> Walk<'a, S> {
    pub fn new(
        source: &'a S,
        descent: Descent<'a>,
        tree: &Tree,
        low: Side<'a>,
        high: Side<'a>,
        direction: Direction,
        limits: Limits,
    ) -> Self {
        Self {
            source,
            descent,
            totals: tree.totals,
            low,
            high,
            forward: direction == Direction::Forward,
            limits,
            needs_last_row: false,
            near: Near::default(),
            pass: Pass::default(),
            reached: 0,
            stuck: false,
            cut: false,
        }
    }

    pub fn run(&mut self) -> Result<Pass> {
        if self.low.row >= self.high.row {
            return Ok(Pass::default());
        }
        self.find_near()?;
        let near = self.near;
        self.reached = near.row.unwrap_or(if self.forward { near.through.rows } else { near.before.rows });
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
        self.pass.rows = if self.forward { start..self.reached.max(start) } else { self.reached.min(start)..start };
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
        let first = node.child(0).totals;
        let grows = first.rows > before.rows
            && first.bytes >= before.bytes
            && first.erased >= before.erased
            && first.group_bytes >= before.group_bytes;
        if grows && node.child(node.children() - 1).totals == *through {
            return Ok(Some(page));
        }
        Err(self.descent.corrupt_node(address, format!("its totals do not lead from {before:?} to {through:?}")))
    }

    /// A data page of rows with keys, likewise.
    fn look_at_rows(&mut self, address: &Address, before: &Totals, through: &Totals) -> Result<Option<Rows>> {
        let Some(page) = self.look(address, 0)? else { return Ok(None) };
        let layout = Layout::of(&page);
        self.descent.check_rows(&layout, before.rows..through.rows, address)?;
        Ok(Some(Rows { page, layout }))
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
        if before.erased == through.erased {
            return Some(items(before) + row.clamp(before.rows, through.rows) - before.rows);
        }
        if row >= through.rows {
            return Some(items(through));
        }
        Some(items(before) + rows?.kept(0..row.saturating_sub(before.rows) as usize).count() as u64)
    }

    fn counts_items(&self) -> bool {
        self.limits.rows < u64::MAX
    }

    /// Goes down to the near edge as far as nodes are in memory.
    fn find_near(&mut self) -> Result<()> {
        self.near = Near { before: Totals::default(), through: self.totals, ..Near::default() };
        let side = if self.forward { self.low } else { self.high };
        let mut address = self.descent.root_address();
        for level in (1..=self.descent.height()).rev() {
            let Near { before, through, .. } = self.near;
            let Some(page) = self.look_at_node(&address, level, &before, &through)? else { return Ok(()) };
            let node = Node::new(&page);
            let i = self.child_at(&node, &side);
            if i > 0 {
                self.near.before = node.child(i - 1).totals;
            }
            let child = node.child(i);
            (self.near.through, address) = (child.totals, child.address);
        }
        let Near { before, through, .. } = self.near;
        self.near.is_page = true;
        let has_erased = before.erased != through.erased;
        let rows = match side.key().is_some() || has_erased && self.counts_items() {
            true => self.look_at_rows(&address, &before, &through)?,
            false => None,
        };
        self.near.row = match self.forward {
            true => self.low_row(rows.as_ref(), &before),
            false => self.high_row(rows.as_ref(), &through),
        };
        if self.counts_items() {
            self.near.items = self.near.row.and_then(|row| self.items_before(row, rows.as_ref(), &before, &through));
        }
        Ok(())
    }

    /// At most so many rows that count lie between the near edge and the rows given: before them going forward, after them
    /// going backward.
    fn items_on_the_way_at_most(&self, before: &Totals, through: &Totals) -> u64 {
        if self.forward {
            items(before).saturating_sub(self.near.items.unwrap_or(items(&self.near.before)))
        } else {
            self.near.items.unwrap_or(items(&self.near.through)).saturating_sub(items(through))
        }
    }

    /// Whether a child other than the one at the near edge is needed for certain.
    fn is_wanted(&self, step: &Step) -> bool {
        let Step { before, through, level, .. } = step;
        if self.items_on_the_way_at_most(before, through) >= self.limits.rows {
            return false;
        }
        // Of a node its first page at least.
        let least = if *level == 0 { through.bytes - before.bytes } else { PACK_BYTES };
        let bytes = match (self.forward, self.near.is_page) {
            (true, true) => before.bytes.saturating_sub(self.near.through.bytes),
            (true, false) => before.bytes.saturating_sub(self.near.before.bytes),
            (false, true) => self.near.before.bytes.saturating_sub(through.bytes),
            (false, false) => self.near.through.bytes.saturating_sub(through.bytes),
        };
        bytes.saturating_add(least) <= self.limits.bytes
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
        let (near_side, far_side) = if self.forward { (self.low, self.high) } else { (self.high, self.low) };
        let (first, last) = if self.forward { (0, node.children() - 1) } else { (node.children() - 1, 0) };
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
                self.pass.items = self.items_came_at_most(&next);
                return Ok(());
            }
            self.child(&next)?;
            if self.cut || i == far {
                return Ok(());
            }
            i = if self.forward { i + 1 } else { i - 1 };
        }
    }

    /// How many rows the reader has had at most when it comes to `step`, or leaves it.
    fn items_came_at_most(&self, step: &Step) -> u64 {
        self.items_on_the_way_at_most(&step.before, &step.through).min(self.limits.rows)
    }

    fn items_left_at_most(&self, step: &Step) -> u64 {
        // What lies beyond the step, seen from the near edge.
        let edge = if self.forward { step.through } else { step.before };
        self.items_on_the_way_at_most(&edge, &edge).min(self.limits.rows)
    }

    /// A page or node that is not in memory, or whose rows are not known.
    fn unknown(&mut self, step: &Step) {
        self.pass.items = self.items_left_at_most(step);
        if step.is_far || self.may_end_in(step) {
            self.stuck = true;
        } else if !step.is_near && !self.stuck {
            self.reached = if self.forward { step.through.rows } else { step.before.rows };
        }
    }

    /// Whether the last row that is wanted may lie in `step`.
    fn may_end_in(&self, step: &Step) -> bool {
        self.counts_items() && self.items_left_at_most(step) >= self.limits.rows
    }

    /// A data page.
    fn data(&mut self, step: &Step) -> Result<()> {
        let (near, far) = if self.forward { (self.low, self.high) } else { (self.high, self.low) };
        let by_key = step.is_far && far.key().is_some() || step.is_near && near.key().is_some();
        let erased = step.before.erased != step.through.erased;
        let by_items = self.counts_items()
            && (erased && (step.is_far || step.is_near) || self.needs_last_row && self.may_end_in(step));
        let rows = if by_key || by_items {
            let rows = self.look_at_rows(&step.address, &step.before, &step.through)?;
            if rows.is_none() {
                self.unknown(step);
                return Ok(());
            }
            rows
        } else {
            self.pass.noted |= self.descent.ahead(self.source, &step.address);
            None
        };
        let bytes = step.through.bytes - step.before.bytes;
        self.pass.bytes += bytes;
        if step.is_near {
            self.pass.free_bytes = bytes;
        }
        let end = match (step.is_far, self.forward) {
            (false, true) => Some(step.through.rows),
            (false, false) => Some(step.before.rows),
            (true, true) => self.high_row(rows.as_ref(), &step.through),
            (true, false) => self.low_row(rows.as_ref(), &step.before),
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
            self.pass.items = self.limits.rows;
            let last = rows.filter(|_| self.needs_last_row).map_or(end, |rows| self.last_row(step, &rows));
            self.reach(last);
            return Ok(());
        }
        self.pass.items = if self.counts_items() { self.limits.rows - items_left } else { u64::MAX };
        self.reach(end);
        if step.is_far {
            self.beyond(step, end)?;
        }
        Ok(())
    }

    fn reach(&mut self, row: u64) {
        if !self.stuck {
            self.reached = if self.forward { row.max(self.reached) } else { row.min(self.reached) };
        }
    }

    /// How many rows are still wanted when the reader has come through `step` to row `end` of it; `None` if that depends
    /// on what is not known.
    fn items_left(&self, step: &Step, end: u64, rows: Option<&Rows>) -> Option<u64> {
        let near = self.near.items?;
        let here = self.items_before(end, rows, &step.before, &step.through)?;
        let came = if self.forward { here.saturating_sub(near) } else { near.saturating_sub(here) };
        Some(self.limits.rows.saturating_sub(came))
    }

    /// Forward the end of the rows that are wanted, backward their first, in the page where the limit is reached.
    fn last_row(&self, step: &Step, rows: &Rows) -> u64 {
        let Near { items: Some(near_items), row: Some(near_row), .. } = self.near else {
            unreachable!("the limit is known to be reached")
        };
        let near_row = (near_row - step.before.rows.min(near_row)) as usize;
        let nth = if self.forward {
            let (from, had) = match step.is_near {
                true => (near_row, 0),
                false => (0, items(&step.before).saturating_sub(near_items)),
            };
            rows.kept(from..rows.layout.rows()).nth((self.limits.rows - had - 1) as usize).map(|i| i + 1)
        } else {
            let (to, had) = match step.is_near {
                true => (near_row, 0),
                false => (rows.layout.rows(), near_items.saturating_sub(items(&step.through))),
            };
            rows.kept(0..to).rev().nth((self.limits.rows - had - 1) as usize)
        };
        step.before.rows + nth.expect("the limit is reached in this page") as u64
    }

    /// The far edge is reached: the reader looks at one row more to see that it is.
    fn beyond(&mut self, step: &Step, end: u64) -> Result<()> {
        if self.forward {
            if end >= self.high.row {
                self.pass.overshot = !self.pass.missing;
            } else if end >= step.through.rows {
                self.row_beyond(end, &step.through)?;
            }
        } else if end <= self.low.row {
            self.pass.overshot = !self.pass.missing;
        } else if end <= step.before.rows {
            self.row_beyond(end - 1, &step.before)?;
        }
        Ok(())
    }

    /// Asks for the page that holds row `row`, the one beside the far edge; `edge` are the totals there.
    fn row_beyond(&mut self, row: u64, edge: &Totals) -> Result<()> {
        let mut address = self.descent.root_address();
        let mut bytes = 0;
        for level in (1..=self.descent.height()).rev() {
            let Some(page) = self.look(&address, level)? else { return Ok(()) };
            let node = self.descent.node(&page, &address)?;
            let child = node.child(node.search_row(row));
            (address, bytes) = (child.address, u64::from(child.address.bytes));
        }
        let way = match self.forward {
            true => edge.bytes.saturating_sub(self.near.through.bytes),
            false => self.near.before.bytes.saturating_sub(edge.bytes),
        };
        if way.saturating_add(bytes) <= self.limits.bytes {
            self.pass.bytes += bytes;
            self.pass.noted |= self.descent.ahead(self.source, &address);
        }
        Ok(())
    }
}

/// A page of rows with keys.
struct Rows {
    page: PageRef,
    layout: Layout,
}

impl Rows {
    /// The row with this key, or the first with a greater one.
    fn search(&self, key: &[u8]) -> std::result::Result<u64, u64> {
        let row = |i: usize| self.layout.first_row() + i as u64;
        self.layout.search(&self.page, key).map(row).map_err(row)
    }

    /// Those of the rows that are not erased.
    fn kept(&self, within: Range<usize>) -> impl DoubleEndedIterator<Item = usize> {
        within.filter(|&i| self.layout.record(&self.page, i).kind != RowKind::Erase)
    }
}
