//! Reads all of a file in the order of its trees, each page once. This module serves `check` and `dump`, which
//! walk the trees in their own ways. It decides how far ahead pages are asked for. It knows no rows.
//!
//! * The source has a fixed amount of memory for pages that are asked for ahead. Three quarters of it are a
//!   window. If several trees are walked side by side, they share this window. The rest is for nodes and for
//!   values. A page is asked for only if there is room for it, so no page is evicted before it was read.
//! * When the window has looked into a node, the node is held here until the walk has left it, because a source
//!   may forget it.

use super::descent::Descent;
use super::readahead::{Ahead, Readahead, WantedRows};
use super::sst::Sst;
use crate::Direction;
use crate::format::meta::{Tree, TreeKind};
use crate::slice::RowRanges;
use os::sync::Arc;
use pages::{Address, PageAt, PageKind, PageLender, PageRef, PageSource, PagedFile, Result, Stop, retry};
use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;

/// One whole file, read through `source`.
pub(crate) struct Whole<'a, S: ?Sized> {
    file: &'a Arc<PagedFile>,
    source: &'a S,
    /// The memory, in bytes, that the source has for pages that are asked for ahead.
    room_bytes: u64,
    state: RefCell<AskedAhead>,
}

#[derive(Default)]
struct AskedAhead {
    /// The memory of each page that was asked for and not returned yet, by the page's offset.
    asked: HashMap<u64, u64>,
    asked_bytes: u64,
    /// The nodes among these pages that have arrived. The source keeps them for one more round, so they still take
    /// room.
    looked_at: Vec<u64>,
    /// The nodes of the walks and of the windows ahead of them, by their offsets.
    nodes: HashMap<u64, PageRef>,
}

impl AskedAhead {
    fn ask(&mut self, at: &Address) {
        let bytes = at.memory_bytes();
        if self.asked.insert(at.offset, bytes).is_none() {
            self.asked_bytes += bytes;
        }
    }

    fn given(&mut self, offset: u64) {
        self.asked_bytes -= self.asked.remove(&offset).unwrap_or(0);
    }

    fn node(&self, at: &Address, kind: PageKind) -> Option<PageRef> {
        self.nodes.get(&at.offset).filter(|page| page.kind() == kind && page.address() == *at).cloned()
    }
}

impl<'a, S: PageSource + ?Sized> Whole<'a, S> {
    pub fn new(sst: &'a Sst, source: &'a S) -> Self {
        Self { file: &sst.file, source, room_bytes: source.ahead_bytes(), state: RefCell::default() }
    }

    /// The window. Trees that are walked side by side share it.
    pub fn readahead(&self) -> Readahead {
        Readahead::full(self.room_bytes / 4 * 3)
    }

    /// Reads a page that belongs to no tree, or to a tree for which no pages are asked for ahead.
    pub fn page_at(&self, at: &Address, kind: PageKind) -> Result<PageRef> {
        retry(self, || self.page(self.file.at(at, kind)))
    }

    /// Asks for the first of the `next` pages, as many as there is room for. All of them are of the kind `kind`.
    /// Returns how many it has asked for.
    pub fn ask_next(&self, kind: PageKind, next: &[Address]) -> usize {
        let fits = |at: &&Address| {
            let fits = self.has_room(at);
            self.ahead(self.file.at(at, kind));
            fits
        };
        next.iter().take_while(fits).count()
    }

    /// Notes that the walk has left the node at `at`.
    pub fn leave(&self, at: &Address) {
        self.state.borrow_mut().nodes.remove(&at.offset);
    }

    fn has_room(&self, at: &Address) -> bool {
        self.state.borrow().asked_bytes.saturating_add(at.memory_bytes()) <= self.room_bytes
    }
}

impl<S: PageSource + ?Sized> PageLender for Whole<'_, S> {
    type Page = PageRef;

    fn fetches(&self) -> bool {
        true
    }

    fn page(&self, at: PageAt<'_>) -> Result<PageRef, Stop> {
        let page = self.source.page(at)?;
        self.state.borrow_mut().given(at.address.offset);
        Ok(page)
    }

    fn peek(&self, at: PageAt<'_>) -> Option<PageRef> {
        if !matches!(at.kind, PageKind::Index | PageKind::Flat) {
            return self.source.peek(at);
        }
        let state = &mut *self.state.borrow_mut();
        if let Some(node) = state.node(&at.address, at.kind) {
            return Some(node);
        }
        let node = self.source.peek(at)?;
        state.nodes.insert(at.address.offset, node.clone());
        state.looked_at.push(at.address.offset);
        Some(node)
    }

    fn ahead(&self, at: PageAt<'_>) -> bool {
        let address = &at.address;
        if self.state.borrow().asked.contains_key(&address.offset) || !self.has_room(address) {
            return false;
        }
        let noted = self.source.ahead(at);
        if noted {
            self.state.borrow_mut().ask(address);
        }
        noted
    }

    fn ahead_if_spare(&self, _: PageAt<'_>) -> bool {
        false
    }

    pages::pass_on!(source: take_read, release);
}

impl<S: PageSource + ?Sized> PageSource for Whole<'_, S> {
    fn glance(&self, at: PageAt<'_>) -> Option<PageRef> {
        self.state.borrow().node(&at.address, at.kind).or_else(|| self.source.glance(at))
    }

    fn ahead_bytes(&self) -> u64 {
        self.room_bytes
    }

    fn fetch(&self) -> Result<()> {
        let outcome = self.source.fetch();
        let state = &mut *self.state.borrow_mut();
        for offset in std::mem::take(&mut state.looked_at) {
            state.given(offset);
        }
        outcome
    }
}

/// One tree of the file, for a walk from its first page to its last.
pub(crate) struct WholeTree {
    kind: TreeKind,
    tree: Tree,
    rows: RowRanges,
    ahead: Ahead,
}

impl WholeTree {
    /// `tree`, walked by its B-tree, or by its flat list if it has no B-tree.
    pub fn new(kind: TreeKind, tree: Tree, readahead: Readahead) -> Self {
        let mut ahead = Ahead::NONE;
        ahead.set(readahead);
        ahead.begin(Direction::Forward);
        Self { kind, tree, rows: RowRanges::from(0..tree.totals.rows), ahead }
    }

    /// The node at `at`, whose first row is `row`. It is held until the walk leaves it.
    pub fn node<S: PageSource + ?Sized>(
        &mut self,
        whole: &Whole<'_, S>,
        at: &Address,
        kind: PageKind,
        row: u64,
    ) -> Result<PageRef> {
        if let Some(node) = whole.state.borrow().node(at, kind) {
            return Ok(node);
        }
        let page = retry(whole, || {
            let page = whole.page(whole.file.at(at, kind));
            if matches!(page, Err(Stop::Fault)) {
                let state = &mut *whole.state.borrow_mut();
                // The source still keeps the node until the next round, so it counts as one more page that was
                // asked for.
                state.ask(at);
                state.looked_at.push(at.offset);
            }
            self.noting(whole, page, row, None)
        })?;
        whole.state.borrow_mut().nodes.insert(at.offset, page.clone());
        Ok(page)
    }

    /// The data page at `at`, whose first row is `row`.
    pub fn data<S: PageSource + ?Sized>(&mut self, whole: &Whole<'_, S>, at: &Address, row: u64) -> Result<PageRef> {
        retry(whole, || {
            let page = whole.page(whole.file.at(at, self.kind.page_kind()));
            self.noting(whole, page, row, Some(at))
        })
    }

    /// Notes that the walk has come to the data page at `at`, which has the rows `rows`, as its parent says.
    pub fn arrived<S: PageSource + ?Sized>(&mut self, whole: &Whole<'_, S>, at: &Address, rows: &Range<u64>) {
        let Self { kind, tree, rows: all, ahead } = self;
        if !ahead.is_none() && ahead.arrived(all, tree.totals.rows, rows, at) {
            let descent = Descent::new(whole.file, *kind, tree, false);
            ahead.top_up(whole, &descent, &WantedRows { rows: all, far: None, edge: None });
        }
    }

    /// Returns `found`. If this is a fault, more pages are asked for in the same round.
    fn noting<S: PageSource + ?Sized>(
        &mut self,
        whole: &Whole<'_, S>,
        found: Result<PageRef, Stop>,
        row: u64,
        data: Option<&Address>,
    ) -> Result<PageRef, Stop> {
        let Self { kind, tree, rows, ahead } = self;
        if matches!(found, Err(Stop::Fault)) && !ahead.is_none() {
            let descent = Descent::new(whole.file, *kind, tree, false);
            ahead.missed(whole, &descent, &WantedRows { rows, far: None, edge: None }, row, data);
        }
        found
    }
}
