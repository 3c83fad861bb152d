//! Asks for the pages of a scan before the scan reaches them. This module knows the index of one tree, the part of
//! the tree that a cursor will visit, and where the cursor is. It returns no rows and waits for nothing.
//!
//! ```text
//!   passed        asked for, not yet passed           not asked for yet
//!   ──────●═══════════════════════════════════●───────────────────────────▶  data pages
//!         └─────────── window ────────────────┘
//!                                             └──── window after this ───┘   nodes above them
//!                                                                        └──────────────┘   nodes above those …
//! ```
//!
//! * The window is measured in the memory that data pages take. When a page is missing, or less than half a window
//!   is left (the low watermark), pages are asked for until the window is full (the high watermark). These pages
//!   are read in the next round of reads, even if another cursor starts that round.
//! * Nodes are asked for further ahead: those that lead to the windows after the present one, measured by the data
//!   under them. So a scan waits for a node only at its start.
//! * Only one row is remembered: the row up to which pages were asked for. Each time, the way to this row is
//!   walked again from the root, as far as its nodes are in memory. So the cache may evict any page in between.
//! * A page that was asked for may be evicted before the cursor comes to it. Then the cache has no room for so
//!   many pages, and the window is halved. If such a page is still on its way, the disk is slower than the reader,
//!   and the window grows.
//! * Nothing is asked for outside the rows of the cursor, in a gap between these rows, or beyond the key at which
//!   the scan ends.

use super::descent::{Descent, Subtree};
use crate::Direction;
use crate::format::node::IndexNode;
use crate::slice::RowRanges;
use os::sync::Arc;
use pages::{Address, PageRef, PageSource};
use std::ops::{Bound, Range};

/// The size of the first window that is not empty: one page of the default size.
pub(super) const FIRST_BYTES: u64 = 16 << 10;

/// If several trees share a window, each tree gets at least this many bytes of it. A smaller share would make the
/// reads of the disk too small to be fast.
const LEAST_SHARE_BYTES: u64 = 64 << 10;

/// A damaged node may say that a child has no data. The walk counts at least this many bytes for each child, so
/// that it ends.
const LEAST_CHILD_BYTES: u64 = 4 << 10;

/// How far a cursor asks ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Readahead {
    start_bytes: u64,
    /// The least size of the second window that is not empty.
    second_bytes: u64,
    high_bytes: u64,
}

impl Readahead {
    /// The cursor does not ask ahead.
    pub const NONE: Self = Self { start_bytes: 0, second_bytes: 0, high_bytes: 0 };

    /// A window of `bytes` from the start, for a scan that reads everything.
    pub fn full(bytes: u64) -> Self {
        Self { start_bytes: bytes, second_bytes: bytes, high_bytes: bytes }
    }

    /// Asks for nothing at the first missing page, then for one page, then for twice as much each time, at most
    /// `high_bytes`. So a short range asks for no more than it has read already.
    pub fn growing(high_bytes: u64) -> Self {
        Self { start_bytes: 0, second_bytes: 0, high_bytes }
    }

    /// Like [`Readahead::growing`], but after the first window, which is one page, the next window has at least
    /// `second_bytes`. This is useful if the disk reads this many bytes nearly as fast as one page.
    #[must_use]
    pub fn then(self, second_bytes: u64) -> Self {
        Self { second_bytes, ..self }
    }

    /// The share of the window that one of several trees gets if they are read side by side. The tree has `bytes`
    /// bytes, and all the trees together have `all_bytes`. With such shares, the reader comes to the end of all
    /// the windows at the same time.
    #[must_use]
    pub fn share(self, bytes: u64, all_bytes: u64) -> Self {
        if self.is_none() || bytes == all_bytes {
            return self;
        }
        let scale = |whole: u64| {
            let part = u128::from(whole) * u128::from(bytes) / u128::from(all_bytes.max(1));
            (part as u64).clamp(whole.min(LEAST_SHARE_BYTES), whole)
        };
        Self {
            start_bytes: scale(self.start_bytes),
            second_bytes: scale(self.second_bytes),
            high_bytes: scale(self.high_bytes),
        }
    }

    /// Whether nothing is asked ahead.
    #[inline]
    pub fn is_none(&self) -> bool {
        self.high_bytes == 0
    }

    /// Whether everything will be read.
    pub(super) fn is_full(&self) -> bool {
        self.start_bytes == self.high_bytes
    }

    pub(super) fn start_bytes(&self) -> u64 {
        self.start_bytes
    }

    pub(super) fn high_bytes(&self) -> u64 {
        self.high_bytes
    }

    /// The size of the next window, after a window of `window_bytes`.
    pub(super) fn after(&self, window_bytes: u64) -> u64 {
        let least_bytes = if window_bytes == 0 { FIRST_BYTES } else { self.second_bytes.max(FIRST_BYTES) };
        window_bytes.saturating_mul(2).max(least_bytes).min(self.high_bytes)
    }
}

/// The end of a range of keys at which a scan ends: the high end for a forward scan, the low end for a backward
/// scan.
#[derive(Clone, Debug)]
pub(crate) struct Far {
    key: Arc<[u8]>,
    is_included: bool,
}

impl Far {
    /// `None` if the range has no bound at this end.
    pub fn new(bound: Bound<&[u8]>) -> Option<Self> {
        match bound {
            Bound::Unbounded => None,
            Bound::Included(key) => Some(Self { key: key.into(), is_included: true }),
            Bound::Excluded(key) => Some(Self { key: key.into(), is_included: false }),
        }
    }

    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// Whether a scan to `bound` ends here.
    pub fn is_at(&self, bound: Bound<&[u8]>) -> bool {
        match bound {
            Bound::Unbounded => false,
            Bound::Included(key) => self.is_included && *key == *self.key,
            Bound::Excluded(key) => !self.is_included && *key == *self.key,
        }
    }

    pub fn is_included(&self) -> bool {
        self.is_included
    }

    /// The last child of `node`, in the order of the scan, that may have keys of the range.
    fn child(&self, node: &IndexNode<'_>, direction: Direction) -> usize {
        let child = node.search(&self.key);
        let ends_before = |child: usize| {
            let mut separator = Vec::new();
            node.separator(child - 1, &mut separator);
            separator == *self.key
        };
        if direction.is_forward() && !self.is_included && child > 0 && ends_before(child) { child - 1 } else { child }
    }
}

/// The rows of a tree that a scan will visit.
pub(crate) struct WantedRows<'a> {
    pub rows: &'a RowRanges,
    /// In a tree that is ordered by user keys: the key at which the scan ends.
    pub far: Option<&'a Far>,
    /// In other trees: the row up to which the scan is known to want rows.
    pub edge: Option<u64>,
}

/// What is left of a window that reaches beyond the end of a file. It is asked for in the next file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reach {
    /// How many bytes of data pages are wanted.
    data_bytes: u64,
    /// Bytes of data pages that the walk has passed, counted from where the scan's last request ended.
    at_bytes: u64,
    /// The lowest level of the tree at which pages are still wanted. Level 0 is the level of the data pages.
    lowest: u8,
    window_bytes: u64,
    readahead: Readahead,
    is_missed: bool,
}

impl Reach {
    /// The place up to which pages of level `level` are wanted, in bytes of data pages.
    fn end(&self, level: u8) -> u64 {
        let mut end = self.data_bytes;
        let mut window = self.window_bytes;
        for _ in 0..level.min(if window == 0 { 0 } else { u8::MAX }) {
            window = self.readahead.after(window);
            end = end.saturating_add(window);
        }
        end
    }

    fn is_done(&mut self, level: u8) -> bool {
        while self.lowest <= level && self.at_bytes >= self.end(self.lowest) {
            self.lowest += 1;
        }
        self.lowest > level
    }
}

/// How far a cursor has come, and up to which position it has asked for pages. Positions count rows from the end
/// of the tree at which the scan begins, so both directions are treated alike.
#[derive(Debug)]
pub(crate) struct Ahead {
    readahead: Readahead,
    direction: Direction,
    /// Whether the caller has set the direction. If so, a single move in the other direction does not change it.
    is_given: bool,
    window_bytes: u64,
    /// `None` until a page was visited, and after a change of direction.
    place: Option<PagesWindow>,
    /// The rest of the window that reaches into the next file of the scan.
    rest: Option<Reach>,
}

#[derive(Clone, Debug)]
struct PagesWindow {
    /// Where the page visited last begins.
    page: u64,
    /// The cursor has passed all positions before this one.
    passed: u64,
    /// Pages were asked for up to this position.
    until: u64,
    /// All pages up to this position were asked for before the last round of reads, so they should be in memory.
    came: u64,
    /// The memory that the pages from `passed` to `until` take.
    left_bytes: u64,
    /// Why nothing is left to ask for in this tree; `None` if something is left.
    end: Option<WalkEnd>,
}

impl PagesWindow {
    fn at(position: u64) -> Self {
        Self { page: position, passed: position, until: position, came: position, left_bytes: 0, end: None }
    }
}

impl Ahead {
    pub const NONE: Self = Self {
        readahead: Readahead::NONE,
        direction: Direction::Forward,
        is_given: false,
        window_bytes: 0,
        place: None,
        rest: None,
    };

    pub fn set(&mut self, readahead: Readahead) {
        self.readahead = readahead;
        self.restart();
    }

    pub fn is_none(&self) -> bool {
        self.readahead.is_none()
    }

    /// Continues with `readahead`, a share of the window that is not larger than the present one.
    pub fn narrow(&mut self, readahead: Readahead) {
        self.readahead = readahead;
        self.window_bytes = self.window_bytes.min(readahead.high_bytes);
    }

    pub fn direction(&self) -> Direction {
        self.direction
    }

    /// Begins a walk in this direction. The pages that were asked for in the other direction no longer count.
    pub fn begin(&mut self, direction: Direction) {
        (self.direction, self.is_given) = (direction, true);
        self.restart();
    }

    /// Notes that the cursor has moved in this direction.
    pub fn note_direction(&mut self, direction: Direction) {
        if self.direction != direction && !self.is_given {
            self.direction = direction;
            self.restart();
        }
    }

    fn looks_beside(&self, position: u64) -> bool {
        self.is_given && self.place.as_ref().is_some_and(|place| position < place.page)
    }

    fn restart(&mut self) {
        self.place = None;
        self.rest = None;
        self.window_bytes = self.readahead.start_bytes;
    }

    /// Notes that the walk has come from the file of `before` to this file.
    pub fn follow(&mut self, before: &Self) {
        if (self.direction, self.is_given) != (before.direction, before.is_given) {
            (self.direction, self.is_given) = (before.direction, before.is_given);
            self.restart();
        }
    }

    /// Whether the window reaches into the next file of the scan.
    #[inline]
    pub fn has_rest(&self) -> bool {
        self.rest.is_some()
    }

    pub fn take_rest(&mut self) -> Option<Reach> {
        self.rest.take()
    }

    /// Notes that the cursor has arrived at the page at `at`. The page has the rows `rows`, and the tree has `all`
    /// rows. Returns whether it is time to ask for more pages.
    pub fn arrived(&mut self, bounds: &RowRanges, all: u64, rows: &Range<u64>, at: &Address) -> bool {
        let span = positions(rows, all, self.direction);
        if self.looks_beside(span.start) {
            return false;
        }
        if self.place.as_ref().is_some_and(|place| !goes_on(place, span.start, bounds, all, self.direction)) {
            self.restart();
        }
        let place = self.place.get_or_insert_with(|| PagesWindow::at(span.end));
        place.page = span.start;
        if span.end > place.passed {
            if span.start > place.passed && place.until > place.passed {
                // The cursor has skipped some pages that were asked for. Their bytes are estimated by their share
                // of the rows.
                let rest = place.until.saturating_sub(span.start);
                let whole = place.until - place.passed;
                place.left_bytes = (u128::from(place.left_bytes) * u128::from(rest) / u128::from(whole)) as u64;
            }
            place.left_bytes = place.left_bytes.saturating_sub(at.memory_bytes());
            place.passed = span.end;
            if place.until < span.end {
                (place.until, place.left_bytes) = (span.end, 0);
            }
        }
        place.left_bytes < self.window_bytes / 2
    }

    /// Asks for the part of the window that was not asked for yet.
    pub fn top_up<S: PageSource + ?Sized>(&mut self, source: &S, descent: &Descent<'_>, wanted: &WantedRows<'_>) {
        self.fill(source, descent, wanted, None, false);
    }

    /// Notes that the step has found a page missing on the way to row `row`. If this is the data page itself,
    /// `page` is its address.
    pub fn missed<S: PageSource + ?Sized>(
        &mut self,
        source: &S,
        descent: &Descent<'_>,
        wanted: &WantedRows<'_>,
        row: u64,
        page: Option<&Address>,
    ) {
        let all = descent.rows();
        let position = if self.direction.is_forward() { row } else { all.saturating_sub(row + 1) };
        if self.looks_beside(position) {
            return;
        }
        if self.place.as_ref().is_some_and(|place| !goes_on(place, position, wanted.rows, all, self.direction)) {
            self.restart();
        }
        let place = self.place.get_or_insert_with(|| PagesWindow::at(position));
        let mut grows = page.is_some();
        // The source answers true if it takes the request: then the page was neither in memory nor on its way.
        let is_gone = |page: &Address| source.ahead(descent.file().at(page, descent.page_kind()));
        if position < place.came && page.is_some_and(is_gone) {
            // The page was asked for before, and then it was evicted, or the cache had no room for it.
            grows = false;
            self.window_bytes = (self.window_bytes / 2).max(FIRST_BYTES.min(self.readahead.high_bytes));
            *place = PagesWindow { page: place.page, ..PagesWindow::at(position) };
        } else if place.until < position {
            *place = PagesWindow { page: place.page, ..PagesWindow::at(position) };
        }
        self.fill(source, descent, wanted, page.map(|page| page.offset), true);
        let place = self.place.as_mut().expect("there is one since above");
        place.came = place.until;
        // If a node was missing, the window could not be filled. Then it is not known whether a full window would
        // be too small, so the window does not grow.
        let is_full = place.left_bytes >= self.window_bytes || self.rest.is_some();
        if grows && is_full {
            self.window_bytes = self.readahead.after(self.window_bytes);
        }
    }

    /// Asks for the part of the window that was not asked for yet. The page at `missed` is on its way already.
    fn fill<S: PageSource + ?Sized>(
        &mut self,
        source: &S,
        descent: &Descent<'_>,
        wanted: &WantedRows<'_>,
        missed: Option<u64>,
        is_missed: bool,
    ) {
        let left_bytes = self.place.as_ref().map_or(0, |place| place.left_bytes);
        let reach = Reach {
            data_bytes: self.window_bytes.saturating_sub(left_bytes),
            at_bytes: 0,
            lowest: 0,
            window_bytes: self.window_bytes,
            readahead: self.readahead,
            is_missed,
        };
        self.walk(source, descent, wanted, missed, reach);
    }

    /// Takes over the rest of a window, `reach`, from a cursor that has come to the end of the previous file.
    pub fn go_on<S: PageSource + ?Sized>(
        &mut self,
        source: &S,
        descent: &Descent<'_>,
        wanted: &WantedRows<'_>,
        mut reach: Reach,
    ) {
        self.readahead = reach.readahead;
        self.window_bytes = reach.window_bytes;
        let place = self.place.get_or_insert_with(|| PagesWindow::at(0));
        let asked = place.left_bytes;
        place.came = if reach.is_missed { place.until } else { place.came };
        if !reach.is_missed && reach.data_bytes.saturating_sub(asked) <= reach.window_bytes / 2 {
            // With what was asked for in this file, more than half of the window is left.
            return;
        }
        reach.at_bytes = reach.at_bytes.saturating_add(asked);
        self.walk(source, descent, wanted, None, reach);
        if reach.is_missed {
            let place = self.place.as_mut().expect("there is one since above");
            place.came = place.until;
        }
    }

    fn walk<S: PageSource + ?Sized>(
        &mut self,
        source: &S,
        descent: &Descent<'_>,
        wanted: &WantedRows<'_>,
        missed: Option<u64>,
        reach: Reach,
    ) {
        self.rest = None;
        let Some(place) = &mut self.place else { return };
        if let Some(end) = place.end {
            self.rest = (end == WalkEnd::OfRows).then_some(reach);
            return;
        }
        let mut walk = AheadWalk {
            source,
            descent,
            wanted,
            direction: self.direction,
            missed,
            reach,
            at: place.until,
            until: place.until,
            passed: place.passed,
            asked_bytes: 0,
            end: None,
        };
        walk.walk();
        let AheadWalk { reach, until, passed, asked_bytes, end, .. } = walk;
        (place.until, place.passed) = (until, passed);
        place.left_bytes += asked_bytes;
        if let Some(end) = end {
            // If some data pages of the window could not be asked for yet, the walk must be made again later.
            place.end = (reach.lowest == 0).then_some(end);
            self.rest = (end == WalkEnd::OfRows).then_some(reach);
        }
    }
}

/// Whether a walk at `place` can go on at `position`: `position` does not lie before the page of the walk, and all
/// wanted rows before `position` were asked for.
fn goes_on(place: &PagesWindow, position: u64, bounds: &RowRanges, all: u64, direction: Direction) -> bool {
    position >= place.page
        && (position <= place.until
            || next_position(bounds, place.until, all, direction).is_none_or(|next| position <= next))
}

/// Rows as positions.
fn positions(rows: &Range<u64>, all: u64, direction: Direction) -> Range<u64> {
    if direction.is_forward() { rows.clone() } else { all.saturating_sub(rows.end)..all.saturating_sub(rows.start) }
}

/// The first position at or after `position` whose row is wanted.
pub(super) fn next_position(bounds: &RowRanges, position: u64, all: u64, direction: Direction) -> Option<u64> {
    if direction.is_forward() {
        bounds.at_or_after(position)
    } else {
        bounds.before(all.saturating_sub(position)).map(|row| all - row - 1)
    }
}

/// What ran out when a walk ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WalkEnd {
    OfRows,
    OfKeys,
}

/// One walk over the part of the index that is in memory.
struct AheadWalk<'a, S: ?Sized> {
    source: &'a S,
    descent: &'a Descent<'a>,
    wanted: &'a WantedRows<'a>,
    direction: Direction,
    /// The offset of the data page that was missing when the step ended. This page is on its way already.
    missed: Option<u64>,
    reach: Reach,
    /// The position to which the walk has come.
    at: u64,
    /// Data pages are asked for up to this position.
    until: u64,
    passed: u64,
    asked_bytes: u64,
    end: Option<WalkEnd>,
}

impl<S: PageSource + ?Sized> AheadWalk<'_, S> {
    fn walk(&mut self) {
        let level = self.descent.height();
        let root = self.descent.whole();
        match self.next_row() {
            Some(row) if !self.is_beyond(row) && !self.reach.is_done(level) => self.child(&root),
            _ => {}
        }
        // The window may also want nodes on levels above this file's root. Only the next file can have these.
        if self.end.is_none() && self.next_row().is_none() {
            self.end = Some(WalkEnd::OfRows);
        }
    }

    /// The next row of the walk.
    fn next_row(&self) -> Option<u64> {
        let all = self.descent.rows();
        let next = next_position(self.wanted.rows, self.at, all, self.direction)?;
        Some(if self.direction.is_forward() { next } else { all - next - 1 })
    }

    /// Whether `row` lies beyond the rows that are known to be wanted.
    fn is_beyond(&self, row: u64) -> bool {
        self.wanted.edge.is_some_and(|edge| if self.direction.is_forward() { row >= edge } else { row < edge })
    }

    fn child(&mut self, child: &Subtree) {
        let through = positions(&child.rows(), self.descent.rows(), self.direction).end;
        if child.level == 0 {
            self.data(child, through);
        } else {
            self.node(child);
        }
        self.at = self.at.max(through);
    }

    fn data(&mut self, child: &Subtree, through: u64) {
        self.until = through;
        if self.missed == Some(child.address.offset) {
            self.passed = self.passed.max(through);
            return;
        }
        self.source.ahead(self.descent.file().at(&child.address, self.descent.page_kind()));
        let bytes = child.address.memory_bytes();
        self.asked_bytes += bytes;
        self.reach.at_bytes = self.reach.at_bytes.saturating_add(bytes);
    }

    fn node(&mut self, child: &Subtree) {
        let Subtree { address, level, .. } = child;
        let through = child.totals().bytes.max(LEAST_CHILD_BYTES);
        let through = self.reach.at_bytes.saturating_add(through);
        match self.descent.peek_node(self.source, address) {
            Some(page) if self.reach.lowest < *level => {
                self.children(&page, child);
                if self.end.is_some() || self.reach.lowest == 0 {
                    return;
                }
            }
            Some(_) => {}
            None => {
                self.source.ahead(self.descent.file().at(address, self.descent.node_kind()));
                // The children of this node are not known before it is in memory. Until then, no page of lower
                // levels is asked for behind it.
                self.reach.lowest = self.reach.lowest.max(*level);
            }
        }
        self.reach.at_bytes = self.reach.at_bytes.max(through);
    }

    /// Adds the children of `page` that are wanted.
    fn children(&mut self, page: &PageRef, parent: &Subtree) {
        let level = parent.level - 1;
        let node = IndexNode::new(page);
        // A node may have the wrong form in a damaged file. The read that needs the node reports this.
        let far = self.wanted.far.filter(|_| !node.is_by_row()).map(|far| far.child(&node, self.direction));
        while !self.reach.is_done(level) {
            let Some(row) = self.next_row() else {
                self.end = Some(WalkEnd::OfRows);
                return;
            };
            if self.is_beyond(row) || !parent.rows().contains(&row) {
                // It is not known yet whether rows beyond the edge are wanted. Later, the edge will be further
                // away.
                if self.is_beyond(row) {
                    self.reach.lowest = u8::MAX;
                }
                return;
            }
            let i = node.search_row(row);
            if far.is_some_and(|far| if self.direction.is_forward() { i > far } else { i < far }) {
                self.end = Some(WalkEnd::OfKeys);
                return;
            }
            let child = parent.child(&node, i);
            if !child.rows().contains(&row) {
                // The node is damaged, and its reader will find that out.
                self.reach.lowest = u8::MAX;
                return;
            }
            self.child(&child);
            if self.end.is_some() {
                return;
            }
        }
    }
}
