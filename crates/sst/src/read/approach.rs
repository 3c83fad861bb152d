//! A look-up in stages, for a caller that looks up several keys. Each stage asks the memory for what the next one reads and
//! does not wait for it, so that the caller runs a stage for all keys before it runs the next: then the keys wait for the
//! memory together. It does not know how many keys there are, and answers nothing itself.
//!
//! * An approach only spares work. It takes what is in memory, and a look-up goes on from wherever the approach has stopped.
//! * What a stage has found no later stage looks for again: an approach that has come to the row hands on the page, and where
//!   in it the heads of the keys lead.

use super::descent::{Descent, Leaf, Subtree, Way};
use crate::format::PageRows;
use crate::format::data_page::{HeadMatch, Layout};
use crate::format::node::{BegunSearch, IndexNode};
use os::sync::Arc;
use pages::{PageKind, PageRef, PageSource, PagedFile, Stop};

/// How far the look-up of a key in a file has come. It keeps pages, so it ends with the step that began it.
#[derive(Default)]
pub struct Approach<'k> {
    stage: Stage,
    /// The way down to the page that is next.
    way: Way,
    node_kind: Option<PageKind>,
    search: BegunSearch<'k>,
    /// The node or data page that the approach has come to, while it is not the one above the next.
    page: Option<PageRef>,
    layout: Layout,
    heads: HeadMatch<'k>,
}

/// What an approach does next.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
enum Stage {
    /// Nothing: the look-up begins at the root.
    #[default]
    None,
    /// It takes the page that is next.
    Page,
    /// It ends the search of a node, whose samples it has searched.
    Node,
    /// It reads where the child of a node lies that leads to the key.
    Child,
    /// Nothing: the page that is next is not in memory.
    Missing,
    /// Nothing: the heads of the data page are searched.
    Row,
}

/// The most roots that are kept: they are searched one by one, and each pins its page.
const MAX_ROOTS: usize = 32;

/// The roots of the files in which keys are looked up together: each is found once for all keys. `None` for a file in which no
/// approach may begin.
#[derive(Default)]
pub struct Roots<'f>(Vec<(&'f Arc<PagedFile>, Option<ApproachRoot>)>);

/// The root of a tree that has nodes.
pub(super) struct ApproachRoot {
    page: PageRef,
    kind: PageKind,
    level: u8,
}

impl ApproachRoot {
    /// The root of `main`, if it is a node and in memory.
    pub(super) fn find<S: PageSource + ?Sized>(main: &Descent<'_>, source: &S) -> Option<Self> {
        let Subtree { address, level, .. } = main.whole();
        let page = if level > 0 { main.peek_node(source, &address)? } else { return None };
        Some(Self { page, kind: main.node_kind(), level })
    }
}

impl<'f> Roots<'f> {
    /// The root of `file`, which is found by `find` at the first time.
    #[inline]
    pub(super) fn of(
        &mut self,
        file: &'f Arc<PagedFile>,
        find: impl FnOnce() -> Option<ApproachRoot>,
    ) -> Option<&ApproachRoot> {
        let known = self.0.iter().position(|(known, _)| std::ptr::eq(*known, file));
        let i = known.unwrap_or_else(|| {
            // Keys far apart in a table of many files share few of them.
            self.0.truncate(MAX_ROOTS - 1);
            self.0.push((file, find()));
            self.0.len() - 1
        });
        self.0[i].1.as_ref()
    }
}

impl<'k> Approach<'k> {
    /// Begins the look-up of `key` at the root of its file.
    #[inline]
    pub(super) fn begin(&mut self, root: &ApproachRoot, key: &'k [u8]) {
        self.node_kind = Some(root.kind);
        self.way.level = root.level;
        self.search_node(root.page.clone(), key);
    }

    /// Runs the next stage towards `key` in `file`. False if there is none.
    #[inline]
    pub fn advance<S: PageSource + ?Sized>(&mut self, source: &S, file: &Arc<PagedFile>, key: &'k [u8]) -> bool {
        match self.stage {
            Stage::None | Stage::Missing | Stage::Row => return false,
            Stage::Page => self.take_page(source, file, key),
            Stage::Node => {
                let page = self.page.take().expect("the stage before took it");
                let node = IndexNode::new(&page);
                let child = node.end_search(&self.search);
                node.prefetch_address(child);
                page.prefetch_hint(child);
                self.way.above = Some(Leaf { page, child });
                self.stage = Stage::Child;
            }
            Stage::Child => self.read_child(),
        }
        true
    }

    fn take_page<S: PageSource + ?Sized>(&mut self, source: &S, file: &Arc<PagedFile>, key: &'k [u8]) {
        let kind = if self.way.level > 0 { self.node_kind } else { None }.unwrap_or(PageKind::Data);
        let at = file.at(&self.way.address, kind);
        let Leaf { page: parent, child } = self.way.above.as_ref().expect("an approach begins below the root");
        let Some(page) = source.peek(at.under(parent, *child).prefetched()) else {
            self.stage = Stage::Missing;
            return;
        };
        if self.way.level > 0 {
            return self.search_node(page, key);
        }
        self.layout = Layout::of(&page);
        self.heads = self.layout.match_heads(&page, key);
        self.page = Some(page);
        self.stage = Stage::Row;
    }

    /// Searches the samples of a node; all of it, if it has none.
    #[inline]
    fn search_node(&mut self, page: PageRef, key: &'k [u8]) {
        let node = IndexNode::new(&page);
        if node.is_by_row() {
            // It does not belong here, which a step that needs it will report.
            self.stage = Stage::None;
            return;
        }
        let search = node.begin_search(key);
        if search.is_sampled() {
            node.prefetch_block(&search);
            self.search = search;
            self.page = Some(page);
            self.stage = Stage::Node;
        } else {
            let child = node.end_search(&search);
            self.way.above = Some(Leaf { page, child });
            self.read_child();
        }
    }

    #[inline]
    fn read_child(&mut self) {
        let Leaf { page, child } = self.way.above.as_ref().expect("the stage before found it");
        self.way.address = IndexNode::new(page).address(*child);
        self.way.level -= 1;
        page.prefetch_child(*child);
        self.stage = Stage::Page;
    }

    /// The data page under which the key lies if it exists, if the approach has come to it, and what its heads say of the key.
    #[inline]
    pub(super) fn row(&self) -> Option<(&PageRef, &Layout, &HeadMatch<'k>)> {
        let page = self.page.as_ref().filter(|_| self.stage == Stage::Row)?;
        Some((page, &self.layout, &self.heads))
    }

    /// The data page under which the key lies if it exists, if the approach has come to the node above it.
    #[inline]
    pub(super) fn page<S: PageSource + ?Sized>(
        &self,
        main: &Descent<'_>,
        source: &S,
    ) -> Option<Result<(PageRef, Layout), Stop>> {
        let is_above = self.stage == Stage::Missing && self.way.level == 0;
        is_above.then(|| main.page_under(source, &self.way))
    }
}

#[cfg(test)]
mod tests;
