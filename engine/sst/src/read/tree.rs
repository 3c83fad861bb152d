//! A cursor over the rows of one tree of a file. This module knows no versions.
//!
//! A cursor keeps its data page and its place in the page. Once it has gone from a page to a neighbouring page, it
//! also keeps the node above. It finds a neighbouring page through that node, and any other page by a row id from
//! the root. So no stack has to be repaired after a fault, and nodes higher up are pinned only while a step runs.

use super::descent::{Descent, Leaf, TreePlace, Under};
use super::readahead::{Ahead, Readahead, WantedRows};
use super::scan_end::ScanEnd;
use super::values::{LoadedRows, ValuesAhead};
use crate::Direction;
use crate::format::data_page::{Layout, RowRecord};
use crate::format::group_page::GroupLayout;
use crate::format::meta::{Tree, TreeKind};
use crate::format::{PageRows, Seen};
use crate::slice::RowRanges;
use os::sync::Arc;
use pages::{Address, PageRef, PageSource, PagedFile, Stop};
use std::ops::Range;

/// Where a cursor stops relative to the key it seeks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seek {
    /// At the key itself, or nowhere.
    Exact,
    /// Forward: at the first row not less than the key. Backward: at the last row not greater than the key.
    Lower,
    /// Forward: at the first row greater than the key. Backward: at the last row less than the key.
    Upper,
}

/// A cursor in one tree with pages of layout `L`. Row ids bound where it may go. Creating one allocates nothing.
#[derive(Debug)]
pub struct TreeCursor<L = Layout> {
    file: Arc<PagedFile>,
    kind: TreeKind,
    tree: Tree,
    prefer_flat: bool,
    bounds: RowRanges,
    here: Option<TreePlace<L>>,
    /// The node above the cursor's data page. It is kept once the cursor has gone from a page to its neighbour.
    leaf: Option<Leaf>,
    ahead: Ahead,
    values: ValuesAhead,
    /// How the cursor asks ahead for data pages once it also asks for values. Values take a part of the window
    /// then, and data pages get the rest.
    beside_values: Option<Readahead>,
    /// The end of the scan. Nothing beyond it is asked for ahead.
    edge: Option<ScanEnd>,
}

/// A cursor over the parts of a column group.
pub type PartCursor = TreeCursor<GroupLayout>;

impl<L: PageRows> TreeCursor<L> {
    /// A cursor over rows `bounds` of `tree`. It has no place yet.
    pub fn new(
        file: &Arc<PagedFile>,
        kind: TreeKind,
        tree: Tree,
        prefer_flat: bool,
        bounds: impl Into<RowRanges>,
    ) -> Self {
        let bounds = bounds.into().within(0..tree.totals.rows);
        let (here, leaf, ahead, values, beside_values, edge) = (None, None, Ahead::NONE, ValuesAhead::NONE, None, None);
        Self { file: file.clone(), kind, tree, prefer_flat, bounds, here, leaf, ahead, values, beside_values, edge }
    }

    /// Lets the cursor ask ahead as `readahead` says when it goes from page to page.
    pub fn set_readahead(&mut self, readahead: Readahead) {
        self.ahead.set(readahead);
    }

    /// Lets the cursor ask ahead for values as `values` says, once the caller first [announces](Self::load_ahead)
    /// that it loads a value. From then on, the cursor asks ahead for data pages as `pages` says.
    pub(super) fn set_values_ahead(&mut self, pages: Readahead, values: Readahead) {
        self.values.set(values);
        self.beside_values = Some(pages);
    }

    /// Announces that the caller will load the value of the cursor's row, and then the values of those rows after
    /// it that `seen` describes.
    #[inline]
    pub(super) fn load_ahead<S: PageSource + ?Sized>(&mut self, source: &S, seen: Seen) {
        if !self.values.is_none() {
            self.visit_value(source, seen);
        }
    }

    fn visit_value<S: PageSource + ?Sized>(&mut self, source: &S, seen: Seen) {
        let Self { file, kind, tree, prefer_flat, bounds, here, ahead, values, beside_values, edge, .. } = self;
        let Some((page, layout, i)) = here else { return };
        if layout.outside(page, *i, Seen::All).is_none() {
            return;
        }
        if let Some(pages) = beside_values.take() {
            ahead.narrow(pages);
        }
        let descent = Descent::new(file, *kind, tree, *prefer_flat);
        let direction = ahead.direction();
        let loaded = LoadedRows { rows: bounds, seen, edge: edge.as_ref(), kind: *kind };
        values.visit(source, &descent, (page, layout, *i), direction, &loaded);
    }

    /// Lets the cursor ask ahead only for what lies before `edge`, the end of the scan.
    pub(crate) fn set_edge(&mut self, edge: Option<ScanEnd>) {
        self.edge = edge;
    }

    /// Begins a walk in this direction. The walk may also look up rows or keys, as long as their row ids go in this
    /// direction.
    pub fn begin(&mut self, direction: Direction) {
        self.ahead.begin(direction);
    }

    /// Whether the readahead window reaches beyond the end of this file, so that pages of the next file of the
    /// scan must be asked for.
    #[inline]
    pub(crate) fn has_rest(&self) -> bool {
        self.ahead.has_rest()
    }

    /// Asks for the first pages of this file. The cursor `before` over the previous file has come to the end of
    /// its file.
    pub(crate) fn ask_after<S: PageSource + ?Sized>(&mut self, source: &S, before: &mut Self) {
        self.values.follow(&before.values);
        let Some(reach) = before.ahead.take_rest() else { return };
        self.ahead.follow(&before.ahead);
        self.ask(source, |ahead, descent, wanted| ahead.go_on(source, descent, wanted, reach));
    }

    /// Notes that no file is read after this one.
    pub(crate) fn forget_rest(&mut self) {
        self.ahead.take_rest();
    }

    fn ask<S: PageSource + ?Sized>(&mut self, source: &S, ask: impl FnOnce(&mut Ahead, &Descent<'_>, &WantedRows<'_>)) {
        let Self { file, kind, tree, prefer_flat, bounds, ahead, edge, .. } = self;
        let descent = Descent::new(file, *kind, tree, *prefer_flat);
        let far = edge.as_ref().filter(|_| *kind == TreeKind::Main).map(|edge| &edge.far);
        let edge = edge.as_ref().filter(|_| *kind != TreeKind::Main);
        let edge = edge.and_then(|edge| edge.row(source, *kind, ahead.direction()));
        ask(ahead, &descent, &WantedRows { rows: bounds, far, edge });
    }

    /// Notes that the step has found a page missing on the way to row `row`. If this is the data page itself,
    /// `page` is its address.
    #[cold]
    fn missed<S: PageSource + ?Sized>(&mut self, source: &S, row: u64, page: Option<Address>) {
        if !self.ahead.is_none() {
            self.ask(source, |ahead, descent, wanted| ahead.missed(source, descent, wanted, row, page.as_ref()));
        }
    }

    /// Notes that the cursor has come to a data page: to another one, or to the same one again by a new search.
    fn arrived<S: PageSource + ?Sized>(&mut self, source: &S) {
        if self.ahead.is_none() {
            return;
        }
        let Self { here: Some((page, layout, _)), bounds, tree, ahead, .. } = self else { return };
        let rows = layout.first_row()..layout.first_row() + layout.rows() as u64;
        if ahead.arrived(bounds, tree.totals.rows, &rows, &page.address()) {
            self.ask(source, |ahead, descent, wanted| ahead.top_up(source, descent, wanted));
        }
    }

    fn descent(&self) -> Descent<'_> {
        Descent::new(&self.file, self.kind, &self.tree, self.prefer_flat)
    }

    /// The id of the row at which the cursor stands, if there is one.
    pub fn row(&self) -> Option<u64> {
        self.here.as_ref().map(|(_, layout, i)| layout.first_row() + *i as u64)
    }

    /// Whether the cursor stands at the last row of its bounds, or at no row.
    pub fn is_last(&self) -> bool {
        self.row().is_none_or(|row| self.bounds.last() == Some(row))
    }

    /// Whether the cursor stands at the first row of its bounds, or at no row.
    pub fn is_first(&self) -> bool {
        self.row().is_none_or(|row| self.bounds.first() == Some(row))
    }

    /// The data page in which the cursor stands, and the position of its row in this page.
    pub fn place(&self) -> Option<(&PageRef, &L, usize)> {
        self.here.as_ref().map(|(page, layout, i)| (page, layout, *i))
    }

    /// How many rows the tree has.
    pub(super) fn rows(&self) -> u64 {
        self.tree.totals.rows
    }

    /// The rows before and after `row` that the cursor may visit, up to the next gap in its bounds on each side.
    /// `row` must be within the bounds.
    pub(super) fn rows_around(&self, row: u64) -> Range<u64> {
        self.bounds.around(row)
    }

    /// Goes to row `i` of the page in which the cursor stands.
    pub(super) fn go_within(&mut self, i: usize) {
        let Some((_, layout, at)) = &mut self.here else { return };
        assert!(i < layout.rows(), "a page of {} rows has no row {i}", layout.rows());
        *at = i;
    }

    /// The memory, in bytes, of the pages that the cursor keeps from one step to the next.
    pub fn pinned_bytes(&self) -> u64 {
        let here = self.here.as_ref().map_or(0, |(page, ..)| page.cost_bytes());
        here + self.leaf.as_ref().map_or(0, |leaf| leaf.page.cost_bytes())
    }

    /// Leaves the cursor at no row and drops its page.
    pub fn clear(&mut self) {
        self.here = None;
    }

    /// Leaves the cursor at no row and drops its pages.
    #[inline]
    pub(super) fn leave_place(&mut self) {
        (self.here, self.leaf) = (None, None);
    }

    /// Leaves the cursor as a new one: it has no place and does not ask ahead. It keeps its bounds and the end of the
    /// scan.
    pub(super) fn restart(&mut self) {
        self.leave_place();
        (self.ahead, self.values, self.beside_values) = (Ahead::NONE, ValuesAhead::NONE, None);
    }

    /// Goes to `place` if the row there is within the bounds. Otherwise the cursor is at no row afterwards.
    fn stand_at(&mut self, place: Option<TreePlace<L>>) -> bool {
        self.here = place;
        if self.row().is_some_and(|row| !self.bounds.contains(row)) {
            self.here = None;
        }
        self.here.is_some()
    }

    /// Goes to row `row`. If `row` is outside the bounds, the cursor is at no row afterwards. A step.
    ///
    /// # Errors
    ///
    /// [`Stop::Fault`] if a page is not in memory; [`Stop::Failed`] if a page cannot be read or is corrupt.
    pub fn seek_row<S: PageSource + ?Sized>(&mut self, source: &S, row: u64) -> Result<bool, Stop> {
        self.go(source, row, None)
    }

    /// Goes to row `row`. This counts as a move in `direction`. If `direction` is `None`, it counts as a move in
    /// the direction in which the row lies from the cursor.
    #[inline]
    fn go<S: PageSource + ?Sized>(&mut self, source: &S, row: u64, direction: Option<Direction>) -> Result<bool, Stop> {
        if !self.bounds.contains(row) {
            self.here = None;
            return Ok(false);
        }
        if let Some((_, layout, i)) = &mut self.here
            && let Some(within) = row.checked_sub(layout.first_row()).filter(|&i| i < layout.rows() as u64)
        {
            *i = within as usize;
            return Ok(true);
        }
        let towards = |from| Direction::towards(from, row);
        self.ahead.note_direction(direction.or(self.row().map(towards)).unwrap_or(self.ahead.direction()));
        let descent = self.descent();
        let leaf = match self.leaf.as_ref().and_then(|leaf| leaf.beside(row)) {
            Some(leaf) => Some(leaf),
            None => match descent.leaf_of_row(source, row) {
                Ok(leaf) => leaf,
                Err(stop) => return Err(self.stopped(source, stop, row, None)),
            },
        };
        let address = descent.address_under(leaf.as_ref());
        let page = match source.page(self.file.at(&address, self.kind.page_kind())) {
            Ok(page) => page,
            Err(stop) => return Err(self.stopped(source, stop, row, Some(address))),
        };
        let layout = L::of(&page);
        descent.check_row(row, &layout, &address)?;
        let i = (row - layout.first_row()) as usize;
        self.here = Some((page, layout, i));
        self.leaf = leaf;
        self.arrived(source);
        Ok(true)
    }

    /// Ends a step that stops with `stop`. If this is a fault, notes which page was missing, and asks for more
    /// pages in the same round.
    fn stopped<S: PageSource + ?Sized>(&mut self, source: &S, stop: Stop, row: u64, page: Option<Address>) -> Stop {
        if matches!(stop, Stop::Fault) {
            self.missed(source, row, page);
        }
        stop
    }

    /// Goes to `row`. With `None`, the cursor is at no row afterwards. A step.
    fn seek_some<S: PageSource + ?Sized>(
        &mut self,
        source: &S,
        row: Option<u64>,
        direction: Direction,
    ) -> Result<bool, Stop> {
        match row {
            Some(row) => self.go(source, row, Some(direction)),
            None => Ok(self.stand_at(None)),
        }
    }

    /// Goes to the first row of the bounds. A step.
    ///
    /// # Errors
    ///
    /// [`Stop::Fault`] if a page is not in memory; [`Stop::Failed`] if a page cannot be read or is corrupt.
    pub fn seek_first<S: PageSource + ?Sized>(&mut self, source: &S) -> Result<bool, Stop> {
        self.seek_some(source, self.bounds.first(), Direction::Forward)
    }

    /// Goes to the last row of the bounds. A step.
    ///
    /// # Errors
    ///
    /// [`Stop::Fault`] if a page is not in memory; [`Stop::Failed`] if a page cannot be read or is corrupt.
    pub fn seek_last<S: PageSource + ?Sized>(&mut self, source: &S) -> Result<bool, Stop> {
        self.seek_some(source, self.bounds.last(), Direction::Backward)
    }

    /// Goes to the next row. After the last row, the cursor is at no row. A cursor that is at no row stays there.
    /// A step.
    ///
    /// # Errors
    ///
    /// [`Stop::Fault`] if a page is not in memory; [`Stop::Failed`] if a page cannot be read or is corrupt.
    pub fn next<S: PageSource + ?Sized>(&mut self, source: &S) -> Result<bool, Stop> {
        match self.row() {
            Some(row) => self.seek_some(source, self.bounds.at_or_after(row + 1), Direction::Forward),
            None => Ok(false),
        }
    }

    /// Goes to the previous row. Before the first row, the cursor is at no row. A cursor that is at no row stays
    /// there. A step.
    ///
    /// # Errors
    ///
    /// [`Stop::Fault`] if a page is not in memory; [`Stop::Failed`] if a page cannot be read or is corrupt.
    pub fn prev<S: PageSource + ?Sized>(&mut self, source: &S) -> Result<bool, Stop> {
        match self.row() {
            Some(row) => self.seek_some(source, self.bounds.before(row), Direction::Backward),
            None => Ok(false),
        }
    }
}

impl TreeCursor {
    /// Replaces `key` with the key of the cursor's row, and returns the rest of this row.
    pub fn read(&self, key: &mut Vec<u8>) -> Option<RowRecord> {
        self.here.as_ref().map(|(page, layout, i)| layout.read_row(page, *i, key))
    }

    /// Goes to `place`, which was found by a key.
    fn found<S: PageSource + ?Sized>(&mut self, source: &S, place: TreePlace) -> bool {
        let there = self.stand_at(Some(place));
        self.arrived(source);
        there
    }

    /// Like [`Descent::page_among`]; if it faults, the cursor also asks ahead.
    fn page_among<S: PageSource + ?Sized>(&mut self, source: &S, key: &[u8]) -> Result<Under<PageRef>, Stop> {
        let descent = self.descent();
        match descent.page_among(source, key, &self.bounds) {
            Err(Stop::Fault) if !self.ahead.is_none() => {
                let (address, rows) = descent.peek_address_of_key(source, key);
                let row = if self.ahead.direction().is_forward() { rows.start } else { rows.end.saturating_sub(1) };
                self.missed(source, row, address);
                Err(Stop::Fault)
            }
            other => other,
        }
    }

    /// Goes forward to `key` as `seek` says. A step.
    ///
    /// # Errors
    ///
    /// [`Stop::Fault`] if a page is not in memory; [`Stop::Failed`] if a page cannot be read or is corrupt.
    pub fn seek<S: PageSource + ?Sized>(&mut self, source: &S, key: &[u8], seek: Seek) -> Result<bool, Stop> {
        self.ahead.note_direction(Direction::Forward);
        self.descend(source, key, seek)
    }

    /// Like [`TreeCursor::look_up`], but looks only into the page in which the cursor stands. A source that keeps
    /// no pages would otherwise have to read this page again. `None` if the answer may lie in another page.
    fn look_up_here(&mut self, key: &[u8], seek: Seek) -> Option<bool> {
        let (page, layout, _) = self.here.as_ref()?;
        let i = match (layout.search(page, key), seek) {
            (Ok(i), Seek::Exact | Seek::Lower) => i,
            (Ok(i), Seek::Upper) => i + 1,
            (Err(i), Seek::Lower | Seek::Upper) if i > 0 => i,
            (Err(_), _) => return None,
        };
        let first = layout.first_row();
        let row = self.bounds.at_or_after(first + i as u64)?;
        let is_it = seek != Seek::Exact || row == first + i as u64;
        let i = usize::try_from(row - first).ok().filter(|&i| is_it && i < layout.rows())?;
        self.go_within(i);
        Some(true)
    }

    /// Like [`TreeCursor::seek`], for a walk that looks up one key after the other in the direction in which it
    /// [began](Self::begin).
    ///
    /// # Errors
    ///
    /// [`Stop::Fault`] if a page is not in memory; [`Stop::Failed`] if a page cannot be read or is corrupt.
    pub fn look_up<S: PageSource + ?Sized>(&mut self, source: &S, key: &[u8], seek: Seek) -> Result<bool, Stop> {
        match self.look_up_here(key, seek) {
            Some(there) => Ok(there),
            None => self.descend(source, key, seek),
        }
    }

    /// Searches for `key` from the root. The walk keeps its direction.
    fn descend<S: PageSource + ?Sized>(&mut self, source: &S, key: &[u8], seek: Seek) -> Result<bool, Stop> {
        if self.bounds.is_empty() {
            return Ok(self.stand_at(None));
        }
        let direction = self.ahead.direction();
        let (page, layout) = match self.page_among(source, key)? {
            Under::Page(page, layout) => (page, layout),
            Under::Hidden(_) if seek == Seek::Exact => return Ok(self.stand_at(None)),
            Under::Hidden(rows) => return self.seek_some(source, self.bounds.at_or_after(rows.end), direction),
        };
        let i = match (layout.search(&page, key), seek) {
            (Ok(i), Seek::Exact) => return Ok(self.found(source, (page, layout, i))),
            (Err(_), Seek::Exact) => return Ok(self.stand_at(None)),
            (Ok(i), Seek::Upper) => i + 1,
            (Ok(i) | Err(i), _) => i,
        };
        let first = layout.first_row();
        let row = self.bounds.at_or_after(first + i as u64);
        match row.map(|row| (row - first) as usize).filter(|&i| i < layout.rows()) {
            Some(i) => Ok(self.found(source, (page, layout, i))),
            None => self.seek_some(source, row, direction),
        }
    }

    /// Goes backward to `key` as `seek` says. A step.
    ///
    /// # Errors
    ///
    /// [`Stop::Fault`] if a page is not in memory; [`Stop::Failed`] if a page cannot be read or is corrupt.
    pub fn seek_back<S: PageSource + ?Sized>(&mut self, source: &S, key: &[u8], seek: Seek) -> Result<bool, Stop> {
        self.ahead.note_direction(Direction::Backward);
        if self.bounds.is_empty() {
            return Ok(self.stand_at(None));
        }
        let (page, layout) = match self.page_among(source, key)? {
            Under::Page(page, layout) => (page, layout),
            Under::Hidden(_) if seek == Seek::Exact => return Ok(self.stand_at(None)),
            Under::Hidden(rows) => return self.seek_some(source, self.bounds.before(rows.start), Direction::Backward),
        };
        // The sought row is the last row before this place, counted within the page.
        let end = match (layout.search(&page, key), seek) {
            (Ok(i), Seek::Exact) => return Ok(self.found(source, (page, layout, i))),
            (Err(_), Seek::Exact) => return Ok(self.stand_at(None)),
            (Ok(i), Seek::Lower) => i + 1,
            (Ok(i) | Err(i), _) => i,
        };
        let first = layout.first_row();
        let row = self.bounds.before(first + end as u64);
        match row.and_then(|row| row.checked_sub(first)) {
            Some(i) => Ok(self.found(source, (page, layout, i as usize))),
            None => self.seek_some(source, row, Direction::Backward),
        }
    }
}
