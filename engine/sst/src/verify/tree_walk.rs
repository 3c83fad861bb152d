//! Walks one tree of a file, page by page, in the order of the keys. Every index node is compared with the pages
//! found under it. The walk does not look into the rows. Some totals can be counted only from the rows, and the
//! caller of the walk adds them.
//!
//! The walk does not use [`Subtree`](crate::Subtree), which trusts the parent's rows and totals. It checks the
//! parents, so it counts the rows of all pages before a page to find the page's row ids.
//!
//! The keys of every page must lie between the separators around the page, and the upper separator of a page is the
//! lower separator of the next. So keys are in order across pages, too. Because every page has rows, the separators
//! of a node also lie between the separators of the node above.

use super::check::{Check, check_level};
use crate::KeyRange;
use crate::format::PageRows;
use crate::format::data_page::Layout;
use crate::format::meta::{Root, Tree, TreeKind};
use crate::format::node::{IndexNode, Totals};
use crate::read::{Readahead, WholeTree};
use pages::{Address, PageKind, PageRef, PageSource, Result};

/// A walk in progress.
pub(super) struct TreeWalk {
    kind: TreeKind,
    tree: Tree,
    /// The same tree, for reading its pages.
    whole: WholeTree,
    state: WalkState,
    /// The nodes from the root to the page that was returned last.
    path: Vec<OpenNode>,
    /// The range of keys that the page returned last may have: from the separator before it to the separator after
    /// it.
    keys: KeyRange,
    /// The flat index, if the tree has both a flat index and a B-tree. The walk compares its children with the
    /// pages of the B-tree, one by one.
    list: Option<PageRef>,
    /// The totals of the pages that have been walked so far. The caller adds erased rows and group bytes, except in
    /// the walk over the flat list.
    pub(super) totals: Totals,
    data_pages: u64,
    index_bytes: u64,
}

#[derive(PartialEq, Eq)]
enum WalkState {
    Start,
    Inside,
    End,
}

/// A data page of layout `L`.
#[derive(Clone)]
pub(super) struct DataPage<L = Layout> {
    pub page: PageRef,
    pub layout: L,
    pub at: Address,
}

/// A node on the path.
struct OpenNode {
    page: PageRef,
    at: Address,
    /// The child that the path goes through; `None` before the first child.
    child: Option<usize>,
    /// The range of keys that the node may have: from the separator before the node to the separator after it.
    keys: KeyRange,
}

/// A page to open: its address, and the range of keys that it may have.
struct NextPage {
    at: Address,
    keys: KeyRange,
}

impl OpenNode {
    fn step(&self, i: usize) -> NextPage {
        let node = IndexNode::new(&self.page);
        NextPage { at: node.address(i), keys: node.keys_under(i, &self.keys) }
    }
}

impl TreeWalk {
    pub fn new(kind: TreeKind, tree: Tree, readahead: Readahead) -> Self {
        Self {
            kind,
            tree,
            whole: WholeTree::new(kind, tree, readahead),
            state: WalkState::Start,
            path: Vec::new(),
            keys: KeyRange::ALL,
            list: None,
            totals: Totals::default(),
            data_pages: 0,
            index_bytes: 0,
        }
    }

    fn root(&self) -> Root {
        self.tree.root(false)
    }

    fn node_kind(&self) -> PageKind {
        if self.tree.btree.is_some() { PageKind::Index } else { PageKind::Flat }
    }

    /// Returns the next data page. Returns `None` after the last page, when everything about the tree has been
    /// checked.
    pub fn next<S: PageSource + ?Sized, L: PageRows>(
        &mut self,
        check: &mut Check<'_, S>,
    ) -> Result<Option<DataPage<L>>> {
        let step = match self.state {
            WalkState::Start => {
                self.state = WalkState::Inside;
                self.open_list(check)?;
                Some(NextPage { at: self.root().address, keys: KeyRange::ALL })
            }
            WalkState::Inside => self.leave(check)?,
            WalkState::End => return Ok(None),
        };
        let Some(mut step) = step else {
            self.state = WalkState::End;
            self.check_meta(check)?;
            return Ok(None);
        };
        while self.path.len() < usize::from(self.root().height) {
            self.open_node(check, step)?;
            let node = self.path.last_mut().expect("a node was opened");
            node.child = Some(0);
            step = node.step(0);
        }
        let data = self.open_data(check, &step)?;
        self.keys = step.keys;
        Ok(Some(data))
    }

    /// The range of keys that the page returned last may have: from the separator before the page to the separator
    /// after it.
    pub fn keys(&self) -> &KeyRange {
        &self.keys
    }

    /// Whether no page follows the page that was returned last.
    pub fn is_at_last_page(&self) -> bool {
        self.path.iter().all(|open| open.child.is_some_and(|child| child + 1 == IndexNode::new(&open.page).children()))
    }

    /// Opens the flat index, if the tree has both a flat index and a B-tree. The walk compares the two.
    fn open_list<S: PageSource + ?Sized>(&mut self, check: &mut Check<'_, S>) -> Result<()> {
        let Tree { btree: Some(_), flat: Some(flat), .. } = self.tree else { return Ok(()) };
        if flat.height == 0 {
            return Ok(());
        }
        let page = check.page(&flat.address, PageKind::Flat)?;
        if flat.index_bytes != u64::from(flat.address.bytes) {
            return Err(self.meta_error(check, "a flat list is one page"));
        }
        check_level(check, &page, &flat.address, 1)?;
        self.check_form(check, &page)?;
        self.list = Some(page);
        Ok(())
    }

    fn open_node<S: PageSource + ?Sized>(&mut self, check: &mut Check<'_, S>, step: NextPage) -> Result<()> {
        let NextPage { at, keys } = step;
        let kind = self.node_kind();
        let page = self.whole.node(&check.whole, &at, kind, self.totals.rows)?;
        check.count(&page, &at, kind)?;
        check_level(check, &page, &at, usize::from(self.root().height) - self.path.len())?;
        self.check_form(check, &page)?;
        self.index_bytes += u64::from(at.bytes);
        self.path.push(OpenNode { page, at, child: None, keys });
        Ok(())
    }

    /// Checks that nodes have separators if the rows have keys, and that they have none otherwise.
    fn check_form<S: PageSource + ?Sized>(&self, check: &Check<'_, S>, page: &PageRef) -> Result<()> {
        if IndexNode::new(page).is_by_row() == self.kind.is_by_row() {
            return Ok(());
        }
        let why = format!("the {} tree does not have such nodes", self.kind);
        Err(check.corrupt(page.kind(), page.address().offset, why))
    }

    fn open_data<S: PageSource + ?Sized, L: PageRows>(
        &mut self,
        check: &mut Check<'_, S>,
        step: &NextPage,
    ) -> Result<DataPage<L>> {
        let at = step.at;
        let page = self.whole.data(&check.whole, &at, self.totals.rows)?;
        check.count(&page, &at, self.kind.page_kind())?;
        check_level(check, &page, &at, 0)?;
        let layout = L::of(&page);
        let why = if layout.first_row() != self.totals.rows {
            format!("its first row is {}, the one before it was the last of {}", layout.first_row(), self.totals.rows)
        } else if self.has_keys() && !holds_page(&step.keys, &page) {
            "its keys are not between its parent's separators".to_owned()
        } else if !self.is_listed(&at, &step.keys.start) {
            "the flat list says otherwise than the tree about it".to_owned()
        } else {
            String::new()
        };
        if !why.is_empty() {
            return Err(check.corrupt(self.kind.page_kind(), at.offset, why));
        }
        let rows = layout.first_row()..layout.first_row() + layout.rows() as u64;
        self.whole.arrived(&check.whole, &at, &rows);
        self.data_pages += 1;
        self.totals.rows += layout.rows() as u64;
        self.totals.bytes += u64::from(at.bytes);
        Ok(DataPage { page, layout, at })
    }

    /// Whether the tree's pages have keys that can be compared with separators.
    fn has_keys(&self) -> bool {
        !self.kind.is_by_row() && self.kind != TreeKind::Filter
    }

    /// Whether the flat index lists the page at the same place as the tree, and after the same separator. True if
    /// there is no flat index.
    fn is_listed(&self, at: &Address, before: &[u8]) -> bool {
        let Some(list) = &self.list else { return true };
        let (list, i) = (IndexNode::new(list), self.data_pages as usize);
        let mut separator = Vec::new();
        if i >= list.children() || list.address(i) != *at {
            return false;
        }
        if let Some(last) = i.checked_sub(1).filter(|_| !list.is_by_row()) {
            list.separator(last, &mut separator);
        }
        separator == before
    }

    /// Leaves the page that was returned last: compares the totals of all nodes that end with this page, and steps
    /// to the next child.
    fn leave<S: PageSource + ?Sized>(&mut self, check: &Check<'_, S>) -> Result<Option<NextPage>> {
        if let Some(list) = &self.list {
            let said = IndexNode::new(list).child(self.data_pages as usize - 1).totals;
            let at = self.tree.flat.expect("the list was read from it").address;
            self.compare(check, PageKind::Flat, at.offset, said)?;
        }
        let kind = self.node_kind();
        while let Some(open) = self.path.last() {
            let node = IndexNode::new(&open.page);
            let child = open.child.expect("a node on the path has a child there");
            self.compare(check, kind, open.at.offset, node.child(child).totals)?;
            if child + 1 < node.children() {
                let open = self.path.last_mut().expect("looked at above");
                open.child = Some(child + 1);
                return Ok(Some(open.step(child + 1)));
            }
            check.whole.leave(&open.at);
            self.path.pop();
        }
        Ok(None)
    }

    fn compare<S: PageSource + ?Sized>(
        &self,
        check: &Check<'_, S>,
        kind: PageKind,
        offset: u64,
        said: Totals,
    ) -> Result<()> {
        if said == self.totals {
            return Ok(());
        }
        let why = format!("after {} data pages it has {said:?}, the pages have {:?}", self.data_pages, self.totals);
        Err(check.corrupt(kind, offset, why))
    }

    fn check_meta<S: PageSource + ?Sized>(&self, check: &Check<'_, S>) -> Result<()> {
        self.compare(check, PageKind::Footer, check.footer_offset(), self.tree.totals)?;
        let listed = self.list.as_ref().map_or(self.data_pages, |list| IndexNode::new(list).children() as u64);
        if self.tree.data_pages != self.data_pages || listed != self.data_pages {
            let why = format!("{} data pages, {listed} in the list, {} found", self.tree.data_pages, self.data_pages);
            return Err(self.meta_error(check, &why));
        }
        if self.root().index_bytes != self.index_bytes {
            let why = format!("{} bytes of index, {} found", self.root().index_bytes, self.index_bytes);
            return Err(self.meta_error(check, &why));
        }
        Ok(())
    }

    fn meta_error<S: PageSource + ?Sized>(&self, check: &Check<'_, S>, why: &str) -> pages::Error {
        check.corrupt(PageKind::Footer, check.footer_offset(), format!("{} tree: {why}", self.kind))
    }
}

impl<S: PageSource + ?Sized> Check<'_, S> {
    /// A walk over a tree that is read in step with other trees. Together, these trees have `all_bytes` bytes of
    /// data pages.
    pub fn walk(&self, kind: TreeKind, tree: Tree, all_bytes: u64) -> TreeWalk {
        TreeWalk::new(kind, tree, self.whole.readahead().share(tree.totals.bytes, all_bytes))
    }
}

/// Whether the first key and the last key of a page lie in `keys`.
fn holds_page(keys: &KeyRange, page: &PageRef) -> bool {
    let layout = Layout::of(page);
    let mut key = Vec::new();
    [0, layout.rows() - 1].into_iter().all(|i| {
        layout.read_row(page, i, &mut key);
        keys.contains(&key)
    })
}
