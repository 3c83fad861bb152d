//! Goes down from the root of a tree to one of its data pages, by key or by row id. It knows no versions and keeps
//! no place.

use crate::format::PageRows;
use crate::format::data_page::Layout;
use crate::format::meta::{Root, Tree, TreeKind};
use crate::format::node::{IndexNode, Totals};
use crate::slice::RowRanges;
use os::sync::Arc;
use pages::{Address, Error, Page, PageAt, PageKind, PageLender, PageRef, PageSource, PagedFile, Stop};
use std::ops::Range;

/// A tree to go down in: its root, the kind of its nodes, and its totals.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Descent<'a> {
    file: &'a Arc<PagedFile>,
    kind: TreeKind,
    root: Root,
    root_kind: PageKind,
    totals: Totals,
}

pub(super) type TreePlace<L = Layout, P = PageRef> = (P, L, usize);

/// The outcome of a step that looks for a row: the row's place, if there is such a row.
type PlaceStep<S> = Result<Option<TreePlace<Layout, <S as PageLender>::Page>>, Stop>;

/// Where a key lies in a tree of which only some rows are visible.
pub(super) enum Under<P> {
    /// If the key exists, it lies in this page, or between this page and a neighbour.
    Page(P, Layout),
    /// The key lies among these rows of the tree, none of which is visible.
    Hidden(Range<u64>),
}

/// Where to go down to.
#[derive(Clone, Copy)]
enum WayTarget<'k> {
    /// The data page that has the key if any page does.
    Key(&'k [u8]),
    /// The data page that holds the row.
    Row(u64),
}

/// How far a way down has come: the next page, and the node above it.
pub(super) struct Way<P = PageRef> {
    pub address: Address,
    /// Height above the data pages.
    pub level: u8,
    /// The node above; `None` at the root, and if the node is not known.
    pub above: Option<Leaf<P>>,
}

impl<P> Way<P> {
    /// The way to the data page at `address`, without the nodes above it.
    pub fn to_page(address: Address) -> Self {
        Self { address, level: 0, above: None }
    }
}

/// Why a reader that does not wait for pages could not reach its page.
enum Missing {
    /// This page is not in memory.
    Page(Address, PageKind),
    /// A node has the wrong form for this tree. A step that needs the node will report that.
    Contradiction,
}

impl From<Error> for Missing {
    fn from(_: Error) -> Self {
        Self::Contradiction
    }
}

fn peek<S: PageLender + ?Sized>(source: &S, at: PageAt<'_>) -> Result<S::Page, Missing> {
    source.peek(at).ok_or(Missing::Page(at.address, at.kind))
}

/// Ids of the rows under child `i` of `node`, if `rows` are under `node`.
#[inline]
fn rows_under(node: &IndexNode<'_>, i: usize, rows: &Range<u64>) -> Range<u64> {
    node.rows_before(i).unwrap_or(rows.start)..node.rows_through(i)
}

/// A page of a tree with everything under it, as its parent describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subtree {
    /// Where its page lies.
    pub address: Address,
    /// Totals of everything in the tree before the subtree.
    pub before: Totals,
    /// Totals of everything in the tree up to the end of the subtree.
    pub through: Totals,
    /// Height above the data pages.
    pub level: u8,
}

impl Subtree {
    /// The subtree of child `i` of `node`, the node at the top of this subtree.
    pub fn child(&self, node: &IndexNode<'_>, i: usize) -> Self {
        let child = node.child(i);
        let before = if i > 0 { node.child(i - 1).totals } else { self.before };
        Self { address: child.address, before, through: child.totals, level: self.level - 1 }
    }

    /// Ids of its rows.
    pub fn rows(&self) -> Range<u64> {
        self.before.rows..self.through.rows
    }

    /// Totals of the subtree alone.
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
pub(super) struct Leaf<P = PageRef> {
    pub page: P,
    pub child: usize,
}

impl Leaf {
    /// The same node with the child that holds row `row`: this child, the next one, or the previous one if `row` is
    /// its last row. `None` if the row lies elsewhere, or if the node alone cannot tell.
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
    #[inline]
    pub(crate) fn new(file: &'a Arc<PagedFile>, kind: TreeKind, tree: &Tree, prefer_flat: bool) -> Self {
        let root = tree.root(prefer_flat);
        let is_flat = root.height > 0 && tree.flat == Some(root);
        let root_kind = if is_flat { PageKind::Flat } else { PageKind::Index };
        Self { file, kind, root, root_kind, totals: tree.totals }
    }

    /// The page at `address`, which lies under `above` unless it is the root.
    #[inline]
    pub(super) fn at<'p>(
        &'p self,
        address: &Address,
        kind: PageKind,
        above: Option<&'p Leaf<impl Page>>,
    ) -> PageAt<'p> {
        match above {
            Some(Leaf { page, child }) => self.under(address, kind, page, *child),
            None => self.file.at(address, kind),
        }
    }

    /// The page at `address`, which is child `child` of the node in `above`.
    #[inline]
    pub(super) fn under<'p>(
        &'p self,
        address: &Address,
        kind: PageKind,
        above: &'p impl Page,
        child: usize,
    ) -> PageAt<'p> {
        self.file.at(address, kind).under(above, child)
    }

    /// The way at the root, before any page was read.
    #[inline]
    fn top<P>(&self) -> Way<P> {
        Way { address: self.root.address, level: self.root.height, above: None }
    }

    /// Goes down `way` to the data page of `target`. `bring` gets each node. `visit` is called with the node and
    /// the number of the child that the way takes; if it returns false, the walk ends at that child. After an
    /// error, the way stays at the node that failed.
    #[inline]
    fn walk<P: Page, E: From<Error>>(
        &self,
        way: &mut Way<P>,
        target: WayTarget<'_>,
        bring: impl Fn(PageAt<'_>) -> Result<P, E>,
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
    fn way_to<S: PageLender + ?Sized>(&self, source: &S, target: WayTarget<'_>) -> Result<Way<S::Page>, Stop> {
        let mut way = self.top();
        self.walk(&mut way, target, |at| source.page(at), |_, _| true)?;
        Ok(way)
    }

    /// Goes down towards the data page of `target` as far as the nodes are in memory. Returns the way and the rows
    /// under its end.
    fn peek_way<S: PageLender + ?Sized>(&self, source: &S, target: WayTarget<'_>) -> (Way<S::Page>, Range<u64>) {
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

    /// The address of the data page that has `key` if any page does, and the page's rows. If a node on the way is
    /// not in memory, `None`, and a larger range of rows.
    pub(super) fn peek_address_of_key<S: PageSource + ?Sized>(
        &self,
        source: &S,
        key: &[u8],
    ) -> (Option<Address>, Range<u64>) {
        let (way, rows) = self.peek_way(source, WayTarget::Key(key));
        ((way.level == 0).then_some(way.address), rows)
    }

    /// The address of the data page to which `leaf` leads. In a tree without nodes it is the address of the only
    /// page.
    #[inline]
    pub(super) fn address_under(&self, leaf: Option<&Leaf>) -> Address {
        leaf.map_or(self.root.address, |Leaf { page, child }| IndexNode::new(page).address(*child))
    }

    /// The page that a way has come to.
    #[inline]
    fn page_at<S: PageLender + ?Sized>(&self, source: &S, way: &Way<S::Page>) -> Result<S::Page, Stop> {
        source.page(self.at(&way.address, self.kind_at(way.level), way.above.as_ref()))
    }

    /// The kind of the tree's pages that are `level` levels above its data pages.
    #[inline]
    pub(super) fn kind_at(&self, level: u8) -> PageKind {
        if level == 0 { self.kind.page_kind() } else { self.root_kind }
    }

    /// The node above the data page that holds row `row`, with the child that is this page; `None` in a tree of one
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

    /// Like [`Descent::top_of`], for a subtree with a node at its top. Checks the node's totals against its
    /// parent's.
    pub(crate) fn node_of<S: PageSource + ?Sized>(&self, source: &S, subtree: &Subtree) -> Result<PageRef, Stop> {
        let page = self.top_of(source, subtree)?;
        let node = self.node(&page, &subtree.address)?;
        self.check_totals(&node, subtree)?;
        Ok(page)
    }

    /// The number of index pages on the way to a data page.
    pub(crate) fn height(&self) -> u8 {
        self.root.height
    }

    /// A data page, if it is in memory.
    pub(crate) fn peek<S: PageLender + ?Sized>(&self, source: &S, at: &Address) -> Option<S::Page> {
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

    /// A node, if it is in memory and has the right form for this tree.
    pub(crate) fn peek_node<S: PageSource + ?Sized>(&self, source: &S, at: &Address) -> Option<PageRef> {
        let page = source.peek(self.file.at(at, self.root_kind))?;
        self.node(&page, at).is_ok().then_some(page)
    }

    /// Kind of its nodes.
    pub(crate) fn node_kind(&self) -> PageKind {
        self.root_kind
    }

    /// How many rows lie before `key`; if `after` is set, a row with this key counts, too. The number is exact if
    /// the way to the row is in memory. Otherwise it is an upper bound if `most` is set, and a lower bound if not.
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

    /// The node in `page`. It must have separators if the tree's rows have keys, and none otherwise.
    #[inline]
    pub(crate) fn node<'p>(&self, page: &'p impl Page, at: &Address) -> Result<IndexNode<'p>, Error> {
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

    /// Checks the totals of a node against its parent: they must start above `subtree.before` and end exactly at
    /// `subtree.through`.
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

    /// The data page that holds row `row`, and its rows. If the page is not in memory, `None`, and the rows around
    /// `row` that are missing for the same reason.
    pub(crate) fn peek_row<S: PageSource + ?Sized>(&self, source: &S, row: u64) -> (Option<PageRef>, Range<u64>) {
        let (way, rows) = self.peek_way(source, WayTarget::Row(row));
        let page = if way.level == 0 { self.peek(source, &way.address) } else { None };
        (page, rows)
    }

    /// The data page that holds row `row`, if the page and the nodes above it are in memory. This does not count as
    /// a use of them.
    pub(super) fn glance_row<S: PageSource + ?Sized>(&self, source: &S, row: u64) -> Option<PageRef> {
        let mut way = self.top();
        let glance = |at: PageAt<'_>| source.glance(at).ok_or(Missing::Page(at.address, at.kind));
        self.walk(&mut way, WayTarget::Row(row), glance, |_, _| true).ok()?;
        source.glance(self.at(&way.address, self.kind.page_kind(), way.above.as_ref()))
    }

    /// Checks that a page holds exactly `rows`, as its parent says.
    pub(crate) fn check_rows(&self, layout: &impl PageRows, rows: Range<u64>, at: &Address) -> Result<(), Error> {
        let found = layout.first_row()..layout.first_row() + layout.rows() as u64;
        if found == rows {
            return Ok(());
        }
        let why = format!("it holds rows {found:?}, its parent says {rows:?}");
        Err(self.file.corrupt(self.kind.page_kind(), at.offset, why))
    }

    /// The address of the data page that has `key` if any page does.
    #[inline]
    pub(crate) fn address_of_key<S: PageSource + ?Sized>(&self, source: &S, key: &[u8]) -> Result<Address, Stop> {
        Ok(self.way_to(source, WayTarget::Key(key))?.address)
    }

    /// The address of the data page that holds row `row`, which must be a row of the tree.
    pub(crate) fn address_of_row<S: PageSource + ?Sized>(&self, source: &S, row: u64) -> Result<Address, Stop> {
        Ok(self.way_to(source, WayTarget::Row(row))?.address)
    }

    /// Like [`Self::page_of_key`], but only with what is in memory: returns the page, or the first page on the way
    /// that is missing. `None` if the tree contradicts itself; a step that needs the page will report that.
    #[inline]
    pub(crate) fn peek_key<S: PageLender + ?Sized>(
        &self,
        source: &S,
        key: &[u8],
    ) -> Result<Option<S::Page>, (Address, PageKind)> {
        let mut way = self.top();
        let come = self.walk(&mut way, WayTarget::Key(key), |at| peek(source, at), |_, _| true);
        let page = come.and_then(|()| peek(source, self.at(&way.address, self.kind.page_kind(), way.above.as_ref())));
        match page {
            Ok(page) => Ok(Some(page)),
            Err(Missing::Page(at, kind)) => Err((at, kind)),
            Err(Missing::Contradiction) => Ok(None),
        }
    }

    /// The first row of the page that has `key` if any page does; `None` if a node above the page is not in memory.
    pub(crate) fn peek_first_row<S: PageLender + ?Sized>(&self, source: &S, key: &[u8]) -> Option<u64> {
        let (way, rows) = self.peek_way(source, WayTarget::Key(key));
        (way.level == 0).then_some(rows.start)
    }

    /// The data page that has `key` if any page does. If all its keys are less than `key`, the next greater row
    /// begins the next page.
    #[inline]
    pub(crate) fn page_of_key<S: PageLender + ?Sized>(
        &self,
        source: &S,
        key: &[u8],
    ) -> Result<(S::Page, Layout), Stop> {
        self.page_under(source, &self.way_of_key(source, key)?)
    }

    /// The way to the data page that has `key` if any page does.
    #[inline]
    pub(super) fn way_of_key<S: PageLender + ?Sized>(&self, source: &S, key: &[u8]) -> Result<Way<S::Page>, Stop> {
        self.way_to(source, WayTarget::Key(key))
    }

    /// The data page that `way` leads to.
    #[inline]
    pub(super) fn page_under<S: PageLender + ?Sized>(
        &self,
        source: &S,
        way: &Way<S::Page>,
    ) -> Result<(S::Page, Layout), Stop> {
        let page = self.page_at(source, way)?;
        let layout = Layout::of(&page);
        Ok((page, layout))
    }

    /// Like [`Descent::page_of_key`], but goes down only to pages that have some of `rows`.
    pub(super) fn page_among<S: PageLender + ?Sized>(
        &self,
        source: &S,
        key: &[u8],
        rows: &RowRanges,
    ) -> Result<Under<S::Page>, Stop> {
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
    pub(crate) fn page_of_row<S: PageLender + ?Sized, L: PageRows>(
        &self,
        source: &S,
        row: u64,
    ) -> Result<(S::Page, L), Stop> {
        if row >= self.totals.rows {
            // This happens if a page says that it begins after the end of the tree.
            let why = format!("row {row} is beyond the {} rows of the tree", self.totals.rows);
            return Err(self.file.corrupt(self.kind.page_kind(), self.root.address.offset, why).into());
        }
        let way = self.way_to(source, WayTarget::Row(row))?;
        let page = self.page_at(source, &way)?;
        let layout = L::of(&page);
        self.check_row(row, &layout, &way.address)?;
        Ok((page, layout))
    }

    /// Checks that a page holds row `row`, to which its parent led.
    #[inline]
    pub(super) fn check_row(&self, row: u64, layout: &impl PageRows, address: &Address) -> Result<(), Stop> {
        if row.checked_sub(layout.first_row()).is_some_and(|i| i < layout.rows() as u64) {
            return Ok(());
        }
        let why = format!("row {row} is not among its {} rows from {}", layout.rows(), layout.first_row());
        Err(self.file.corrupt(self.kind.page_kind(), address.offset, why).into())
    }

    /// The row before row `row`.
    pub(crate) fn before<S: PageLender + ?Sized>(&self, source: &S, row: u64) -> PlaceStep<S> {
        let Some(row) = row.checked_sub(1) else { return Ok(None) };
        let (page, layout): (S::Page, Layout) = self.page_of_row(source, row)?;
        let i = (row - layout.first_row()) as usize;
        Ok(Some((page, layout, i)))
    }

    /// The first row whose key is not less than `key`.
    pub(crate) fn lower<S: PageLender + ?Sized>(&self, source: &S, key: &[u8]) -> PlaceStep<S> {
        let (page, layout) = self.page_of_key(source, key)?;
        let i = layout.search(&page, key).unwrap_or_else(|i| i);
        self.at_or_next(source, page, layout, i)
    }

    /// Row `i` of `page`. If `i` is the number of its rows, the first row of the next page.
    fn at_or_next<S: PageLender + ?Sized>(&self, source: &S, page: S::Page, layout: Layout, i: usize) -> PlaceStep<S> {
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
