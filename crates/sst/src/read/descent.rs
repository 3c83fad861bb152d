//! The way from the root of a tree to one of its data pages, by a key or by a row. Knows no versions and keeps no
//! place.

use crate::format::PageRows;
use crate::format::data_page::Layout;
use crate::format::meta::{Root, Tree, TreeKind};
use crate::format::node::{IndexNode, Totals};
use crate::slice::RowRanges;
use os::sync::Arc;
use pages::{Address, Error, PageAt, PageKind, PageRef, PageSource, PagedFile, Stop};
use std::ops::Range;

/// A tree as a way down needs it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Descent<'a> {
    file: &'a Arc<PagedFile>,
    kind: TreeKind,
    root: Root,
    root_kind: PageKind,
    totals: Totals,
}

pub(super) type TreePlace<L = Layout> = (PageRef, L, usize);

/// Where a key lies among some of a tree's rows.
pub(super) enum Under {
    /// In this page, or between it and a neighbour, if anywhere.
    Page(PageRef, Layout),
    /// Among these rows of the tree, none of which is seen.
    Hidden(Range<u64>),
}

/// What a way down leads to.
#[derive(Clone, Copy)]
enum WayTarget<'k> {
    /// The data page under which the key lies if it exists.
    Key(&'k [u8]),
    /// The data page that holds the row.
    Row(u64),
}

/// How far a way down has come: the page that is next, and the node above it.
#[derive(Default)]
pub(super) struct Way {
    pub address: Address,
    /// Height above the data pages.
    pub level: u8,
    /// The node above; `None` at the root, and where the node is not known.
    pub above: Option<Leaf>,
}

impl Way {
    /// A way that is known only by its end, the data page at `address`.
    pub fn to_page(address: Address) -> Self {
        Self { address, level: 0, above: None }
    }
}

/// Why a way ends above the data pages for a reader that does not wait.
enum Missing {
    /// This page is not in memory.
    Page(Address, PageKind),
    /// A node is not one that belongs here, which a step that needs it will report.
    Contradiction,
}

impl From<Error> for Missing {
    fn from(_: Error) -> Self {
        Self::Contradiction
    }
}

fn peek<S: PageSource + ?Sized>(source: &S, at: PageAt<'_>) -> Result<PageRef, Missing> {
    source.peek(at).ok_or(Missing::Page(at.address, at.kind))
}

/// Rows of the tree under child `i` of `node`, which has `rows`.
#[inline]
fn rows_under(node: &IndexNode<'_>, i: usize, rows: &Range<u64>) -> Range<u64> {
    node.rows_before(i).unwrap_or(rows.start)..node.rows_through(i)
}

/// A page of a tree, with all that lies under it, as its parent describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subtree {
    /// Where its page lies.
    pub address: Address,
    /// Totals of the tree before it.
    pub before: Totals,
    /// Totals of the tree up to its end.
    pub through: Totals,
    /// Height above the data pages.
    pub level: u8,
}

impl Subtree {
    /// Child `i` of the node at the top.
    pub fn child(&self, node: &IndexNode<'_>, i: usize) -> Self {
        let child = node.child(i);
        let before = if i > 0 { node.child(i - 1).totals } else { self.before };
        Self { address: child.address, before, through: child.totals, level: self.level - 1 }
    }

    /// Its rows.
    pub fn rows(&self) -> Range<u64> {
        self.before.rows..self.through.rows
    }

    /// What lies in it.
    pub fn totals(&self) -> Totals {
        let Totals { rows, bytes, group_bytes, erased } = self.through;
        Totals {
            rows: rows.saturating_sub(self.before.rows),
            bytes: bytes.saturating_sub(self.before.bytes),
            group_bytes: group_bytes.saturating_sub(self.before.group_bytes),
            erased: erased.saturating_sub(self.before.erased),
        }
    }
}

/// A node above data pages, and one of its children.
#[derive(Clone, Debug)]
pub(super) struct Leaf {
    pub page: PageRef,
    pub child: usize,
}

impl Leaf {
    /// The same node at the child that holds row `row`, if that is this child or a neighbour of it.
    #[inline]
    pub fn beside(&self, row: u64) -> Option<Self> {
        let node = IndexNode::new(&self.page);
        let ends_after = |child: usize| child < node.children() && row < node.rows_through(child);
        let begins_before = |child: usize| child.checked_sub(1).is_none_or(|before| node.rows_through(before) <= row);
        let holds = |child: usize| child > 0 && begins_before(child) && ends_after(child);
        let before_last = self.child.checked_sub(1).filter(|&before| row + 1 == node.rows_through(before));
        let child = [self.child + 1, self.child].into_iter().find(|&child| holds(child)).or(before_last)?;
        Some(Self { page: self.page.clone(), child })
    }
}

impl<'a> Descent<'a> {
    pub(crate) fn new(file: &'a Arc<PagedFile>, kind: TreeKind, tree: &Tree, prefer_flat: bool) -> Self {
        let root = tree.root(prefer_flat);
        let is_flat = root.height > 0 && tree.flat == Some(root);
        let root_kind = if is_flat { PageKind::Flat } else { PageKind::Index };
        Self { file, kind, root, root_kind, totals: tree.totals }
    }

    /// The page at `address`, which lies under `above` unless it is the root.
    #[inline]
    pub(super) fn at<'p>(&'p self, address: &Address, kind: PageKind, above: Option<&'p Leaf>) -> PageAt<'p> {
        let at = self.file.at(address, kind);
        match above {
            Some(Leaf { page, child }) => at.under(page, *child),
            None => at,
        }
    }

    /// The way down, before its first page.
    #[inline]
    fn top(&self) -> Way {
        Way { address: self.root.address, level: self.root.height, above: None }
    }

    /// Goes down `way` towards `target`, to a data page, by the nodes that `bring` brings. `visit` is called with each
    /// node and the number of the child that the way leads to; if it answers false, the walk ends below that node.
    /// After an error the way stays at the page that was not brought.
    #[inline]
    fn walk<E: From<Error>>(
        &self,
        way: &mut Way,
        target: WayTarget<'_>,
        bring: impl Fn(PageAt<'_>) -> Result<PageRef, E>,
        mut visit: impl FnMut(&IndexNode<'_>, usize) -> bool,
    ) -> Result<(), E> {
        while way.level > 0 {
            let page = bring(self.at(&way.address, self.root_kind, way.above.as_ref()))?;
            let node = self.node(&page, &way.address)?;
            let child = match target {
                WayTarget::Key(key) => node.search(key),
                WayTarget::Row(row) => node.search_row(row),
            };
            let goes_on = visit(&node, child);
            way.address = node.address(child);
            way.level -= 1;
            way.above = Some(Leaf { page, child });
            if !goes_on {
                break;
            }
        }
        Ok(())
    }

    /// The way to the data page of `target`.
    #[inline]
    fn way_to<S: PageSource + ?Sized>(&self, source: &S, target: WayTarget<'_>) -> Result<Way, Stop> {
        let mut way = self.top();
        self.walk(&mut way, target, |at| source.page(at), |_, _| true)?;
        Ok(way)
    }

    /// The way to the data page of `target` up to the first node that is not in memory, and the rows of the tree under
    /// its end.
    fn peek_way<S: PageSource + ?Sized>(&self, source: &S, target: WayTarget<'_>) -> (Way, Range<u64>) {
        let (mut way, mut rows) = (self.top(), 0..self.totals.rows);
        let come = self.walk(
            &mut way,
            target,
            |at| peek(source, at),
            |node, child| {
                rows = rows_under(node, child, &rows);
                true
            },
        );
        drop(come);
        (way, rows)
    }

    /// Address of the data page under `key`, if the nodes on the way to it are in memory, and its rows; otherwise rows
    /// around them.
    pub(super) fn peek_address_of_key<S: PageSource + ?Sized>(
        &self,
        source: &S,
        key: &[u8],
    ) -> (Option<Address>, Range<u64>) {
        let (way, rows) = self.peek_way(source, WayTarget::Key(key));
        ((way.level == 0).then_some(way.address), rows)
    }

    /// Address of the data page that `leaf` has come to; in a tree without nodes that of the only page.
    #[inline]
    pub(super) fn address_under(&self, leaf: Option<&Leaf>) -> Address {
        leaf.map_or(self.root.address, |Leaf { page, child }| IndexNode::new(page).address(*child))
    }

    /// The page that a way has come to.
    #[inline]
    fn page_at<S: PageSource + ?Sized>(&self, source: &S, way: &Way) -> Result<PageRef, Stop> {
        source.page(self.at(&way.address, self.kind_at(way.level), way.above.as_ref()))
    }

    /// Kind of the tree's pages of this height above its data pages.
    #[inline]
    pub(super) fn kind_at(&self, level: u8) -> PageKind {
        if level == 0 { self.kind.page_kind() } else { self.root_kind }
    }

    /// The node above the data page that holds row `row`, and which of its children that is; `None` in a tree of one
    /// page.
    #[inline]
    pub(super) fn leaf_of_row<S: PageSource + ?Sized>(&self, source: &S, row: u64) -> Result<Option<Leaf>, Stop> {
        Ok(self.way_to(source, WayTarget::Row(row))?.above)
    }

    /// The whole tree.
    pub(crate) fn whole(&self) -> Subtree {
        let Root { address, height, .. } = self.root;
        Subtree { address, before: Totals::default(), through: self.totals, level: height }
    }

    /// The page at the top of `subtree`.
    pub(crate) fn top_of<S: PageSource + ?Sized>(&self, source: &S, subtree: &Subtree) -> Result<PageRef, Stop> {
        source.page(self.file.at(&subtree.address, self.kind_at(subtree.level)))
    }

    /// As [`Descent::top_of`], of a subtree that is more than a data page; its totals must be those that its parent
    /// says.
    pub(crate) fn node_of<S: PageSource + ?Sized>(&self, source: &S, subtree: &Subtree) -> Result<PageRef, Stop> {
        let page = self.top_of(source, subtree)?;
        let node = self.node(&page, &subtree.address)?;
        self.check_totals(&node, subtree)?;
        Ok(page)
    }

    /// Index pages on the way to a data page.
    pub(crate) fn height(&self) -> u8 {
        self.root.height
    }

    /// A data page, if it is in memory.
    pub(crate) fn peek<S: PageSource + ?Sized>(&self, source: &S, at: &Address) -> Option<PageRef> {
        source.peek(self.file.at(at, self.kind.page_kind()))
    }

    /// Kind of the tree's data pages.
    pub(crate) fn page_kind(&self) -> PageKind {
        self.kind.page_kind()
    }

    /// The file.
    pub(crate) fn file(&self) -> &'a Arc<PagedFile> {
        self.file
    }

    /// Rows of the tree.
    pub(crate) fn rows(&self) -> u64 {
        self.totals.rows
    }

    /// A node, if it is in memory and of the form that belongs here.
    pub(crate) fn peek_node<S: PageSource + ?Sized>(&self, source: &S, at: &Address) -> Option<PageRef> {
        let page = source.peek(self.file.at(at, self.root_kind))?;
        self.node(&page, at).is_ok().then_some(page)
    }

    /// Kind of its nodes.
    pub(crate) fn node_kind(&self) -> PageKind {
        self.root_kind
    }

    /// How many rows lie before `key`; with `after`, a row with this key counts, too. The number is exact if the way to
    /// the row is in memory; otherwise it is an upper bound if `most` says so, else a lower one.
    pub(super) fn peek_rank<S: PageSource + ?Sized>(&self, source: &S, key: &[u8], after: bool, most: bool) -> u64 {
        let (way, rows) = self.peek_way(source, WayTarget::Key(key));
        let page = if way.level == 0 { self.peek(source, &way.address) } else { None };
        let Some(page) = page else { return if most { rows.end } else { rows.start } };
        let layout = Layout::of(&page);
        let i = match layout.search(&page, key) {
            Ok(i) => i + usize::from(after),
            Err(i) => i,
        };
        rows.start.saturating_add(i as u64).min(rows.end)
    }

    /// The node that is `page`. It has separators where rows have keys, and none elsewhere.
    #[inline]
    pub(crate) fn node<'p>(&self, page: &'p PageRef, at: &Address) -> Result<IndexNode<'p>, Error> {
        let node = IndexNode::new(page);
        if node.is_by_row() == self.kind.is_by_row() {
            return Ok(node);
        }
        Err(self.wrong_form(at))
    }

    #[cold]
    fn wrong_form(&self, at: &Address) -> Error {
        let why = format!("a node of the {} tree has separators where none belong, or none", self.kind);
        self.corrupt_node(at, why)
    }

    /// Checks that the totals of a node begin at those that its parent has before it, and end at those that its parent
    /// has through it.
    fn check_totals(&self, node: &IndexNode<'_>, subtree: &Subtree) -> Result<(), Error> {
        let Subtree { address, before, through, .. } = subtree;
        let first = node.child(0).totals;
        let grows = first.rows > before.rows
            && first.bytes >= before.bytes
            && first.erased >= before.erased
            && first.group_bytes >= before.group_bytes;
        if grows && node.child(node.children() - 1).totals == *through {
            return Ok(());
        }
        Err(self.corrupt_node(address, format!("its totals do not lead from {before:?} to {through:?}")))
    }

    /// An error about a node.
    pub(crate) fn corrupt_node(&self, at: &Address, why: String) -> Error {
        self.file.corrupt(self.root_kind, at.offset, why)
    }

    /// The data page that holds row `row`, if it is in memory, and which rows it holds; otherwise rows around `row` for
    /// which the answer is the same.
    pub(crate) fn peek_row<S: PageSource + ?Sized>(&self, source: &S, row: u64) -> (Option<PageRef>, Range<u64>) {
        let (way, rows) = self.peek_way(source, WayTarget::Row(row));
        let page = if way.level == 0 { self.peek(source, &way.address) } else { None };
        (page, rows)
    }

    /// The data page that holds row `row`, if it and the nodes above it are in memory. Their uses are not counted.
    pub(super) fn glance_row<S: PageSource + ?Sized>(&self, source: &S, row: u64) -> Option<PageRef> {
        let mut way = self.top();
        let glance = |at: PageAt<'_>| source.glance(at).ok_or(Missing::Page(at.address, at.kind));
        self.walk(&mut way, WayTarget::Row(row), glance, |_, _| true).ok()?;
        source.glance(self.at(&way.address, self.kind.page_kind(), way.above.as_ref()))
    }

    /// A page must hold the rows that its parent says.
    pub(crate) fn check_rows(&self, layout: &impl PageRows, rows: Range<u64>, at: &Address) -> Result<(), Error> {
        let found = layout.first_row()..layout.first_row() + layout.rows() as u64;
        if found == rows {
            return Ok(());
        }
        let why = format!("it holds rows {found:?}, its parent says {rows:?}");
        Err(self.file.corrupt(self.kind.page_kind(), at.offset, why))
    }

    /// Address of the data page under which `key` lies if it exists.
    #[inline]
    pub(crate) fn address_of_key<S: PageSource + ?Sized>(&self, source: &S, key: &[u8]) -> Result<Address, Stop> {
        Ok(self.way_to(source, WayTarget::Key(key))?.address)
    }

    /// Address of the data page that holds row `row`, which is one of the tree's.
    pub(crate) fn address_of_row<S: PageSource + ?Sized>(&self, source: &S, row: u64) -> Result<Address, Stop> {
        Ok(self.way_to(source, WayTarget::Row(row))?.address)
    }

    /// As [`Self::page_of_key`] with what is in memory: the page, or the first one on the way that is missing. `None`
    /// if the tree contradicts itself, which a step that needs the page will report.
    pub(crate) fn peek_key<S: PageSource + ?Sized>(
        &self,
        source: &S,
        key: &[u8],
    ) -> Result<Option<PageRef>, (Address, PageKind)> {
        let mut way = self.top();
        let come = self.walk(&mut way, WayTarget::Key(key), |at| peek(source, at), |_, _| true);
        let page = come.and_then(|()| peek(source, self.at(&way.address, self.kind.page_kind(), way.above.as_ref())));
        match page {
            Ok(page) => Ok(Some(page)),
            Err(Missing::Page(at, kind)) => Err((at, kind)),
            Err(Missing::Contradiction) => Ok(None),
        }
    }

    /// First row of the page under which `key` lies if it exists; `None` if a node above it is not in memory.
    pub(crate) fn peek_first_row<S: PageSource + ?Sized>(&self, source: &S, key: &[u8]) -> Option<u64> {
        let (way, rows) = self.peek_way(source, WayTarget::Key(key));
        (way.level == 0).then_some(rows.start)
    }

    /// The data page under which `key` lies if it exists. The first row not less than it may begin the next page.
    #[inline]
    pub(crate) fn page_of_key<S: PageSource + ?Sized>(
        &self,
        source: &S,
        key: &[u8],
    ) -> Result<(PageRef, Layout), Stop> {
        self.page_under(source, &self.way_of_key(source, key)?)
    }

    /// The way to the data page under which `key` lies if it exists.
    #[inline]
    pub(super) fn way_of_key<S: PageSource + ?Sized>(&self, source: &S, key: &[u8]) -> Result<Way, Stop> {
        self.way_to(source, WayTarget::Key(key))
    }

    /// The data page that `way` leads to.
    #[inline]
    pub(super) fn page_under<S: PageSource + ?Sized>(&self, source: &S, way: &Way) -> Result<(PageRef, Layout), Stop> {
        let page = self.page_at(source, way)?;
        let layout = Layout::of(&page);
        Ok((page, layout))
    }

    /// As [`Descent::page_of_key`], but goes down only to pages that have some of `rows`.
    pub(super) fn page_among<S: PageSource + ?Sized>(
        &self,
        source: &S,
        key: &[u8],
        rows: &RowRanges,
    ) -> Result<Under, Stop> {
        if *rows == RowRanges::from(0..self.totals.rows) {
            return self.page_of_key(source, key).map(|(page, layout)| Under::Page(page, layout));
        }
        let (mut way, mut span) = (self.top(), 0..self.totals.rows);
        let visit = |node: &IndexNode<'_>, child| {
            span = rows_under(node, child, &span);
            rows.count_within(span.clone()) > 0
        };
        self.walk(&mut way, WayTarget::Key(key), |at| source.page(at), visit)?;
        if rows.count_within(span.clone()) == 0 {
            return Ok(Under::Hidden(span));
        }
        let page = self.page_at(source, &way)?;
        let layout = Layout::of(&page);
        self.check_rows(&layout, span, &way.address)?;
        Ok(Under::Page(page, layout))
    }

    /// The data page that holds row `row`.
    #[inline]
    pub(crate) fn page_of_row<S: PageSource + ?Sized, L: PageRows>(
        &self,
        source: &S,
        row: u64,
    ) -> Result<(PageRef, L), Stop> {
        if row >= self.totals.rows {
            // A page that says it begins after the tree's end sends us here.
            let why = format!("row {row} is beyond the {} rows of the tree", self.totals.rows);
            return Err(self.file.corrupt(self.kind.page_kind(), self.root.address.offset, why).into());
        }
        let way = self.way_to(source, WayTarget::Row(row))?;
        let page = self.page_at(source, &way)?;
        let layout = L::of(&page);
        self.check_row(row, &layout, &way.address)?;
        Ok((page, layout))
    }

    /// A page must hold the rows that its parent says.
    #[inline]
    pub(super) fn check_row(&self, row: u64, layout: &impl PageRows, address: &Address) -> Result<(), Stop> {
        if row.checked_sub(layout.first_row()).is_some_and(|i| i < layout.rows() as u64) {
            return Ok(());
        }
        let why = format!("row {row} is not among its {} rows from {}", layout.rows(), layout.first_row());
        Err(self.file.corrupt(self.kind.page_kind(), address.offset, why).into())
    }

    /// The row before row `row`.
    pub(crate) fn before<S: PageSource + ?Sized>(&self, source: &S, row: u64) -> Result<Option<TreePlace>, Stop> {
        let Some(row) = row.checked_sub(1) else { return Ok(None) };
        let (page, layout): (PageRef, Layout) = self.page_of_row(source, row)?;
        let i = (row - layout.first_row()) as usize;
        Ok(Some((page, layout, i)))
    }

    /// The first row whose key is not less than `key`.
    pub(crate) fn lower<S: PageSource + ?Sized>(&self, source: &S, key: &[u8]) -> Result<Option<TreePlace>, Stop> {
        let (page, layout) = self.page_of_key(source, key)?;
        let i = layout.search(&page, key).unwrap_or_else(|i| i);
        self.at_or_next(source, page, layout, i)
    }

    /// Row `i` of `page`, or the first of the next page if `i` is one past its last.
    fn at_or_next<S: PageSource + ?Sized>(
        &self,
        source: &S,
        page: PageRef,
        layout: Layout,
        i: usize,
    ) -> Result<Option<TreePlace>, Stop> {
        if i < layout.rows() {
            return Ok(Some((page, layout, i)));
        }
        let row = layout.first_row() + layout.rows() as u64;
        if row >= self.totals.rows {
            return Ok(None);
        }
        let (page, layout) = self.page_of_row(source, row)?;
        Ok(Some((page, layout, 0)))
    }
}
