//! Goes down to the data pages of several keys together, so that their CPU cache misses overlap. On every level of
//! the trees, all ways take the same small step before any way takes the next one, and each step prefetches what
//! the next one reads. This module does not know in which files a key is looked up.
//!
//! * Ways only save work. They use what is in memory; from where its way ended, a look-up continues with a
//!   [`Descent`].
//! * A way that reaches its data page hands on the page, and the place of the key that the heads in the page point
//!   to.
//! * Nodes are kept from one key to the next, with their layouts, so each node is found once for all keys that lead
//!   through it.

use super::descent::Descent;
use crate::format::PageRows;
use crate::format::data_page::{HeadGuess, HeadMatch, Layout, RowRecord};
use crate::format::meta::TreeKind;
use crate::format::node::{BegunSearch, IndexNode, NodeLayout};
use os::sync::Arc;
use pages::{Address, PageRef, PageSource, PagedFile, Part, Stop};
use std::ops::Range;

/// If more nodes than this are kept, [`Ways::clear`] drops them, because each pins its page.
const MAX_NODES: usize = 64;

/// The number of slots in the table of child nodes.
const PLACES: usize = 128;

/// The ways to several keys. Pins pages, so it ends with the step that began it.
#[derive(Default)]
pub struct Ways<'f, 'k> {
    nodes: Nodes<'f>,
    /// Elements after the first `count` are kept for reuse.
    all: Vec<KeyWay<'k>>,
    count: usize,
}

/// The way to one key in one file, and where it has come to.
#[derive(Default)]
struct KeyWay<'k> {
    at: At,
    key: &'k [u8],
    /// Index of the tree in [`Nodes::trees`].
    tree: usize,
    /// Index in [`Nodes::all`] of the node that the way has reached, and the child of this node that leads to the
    /// key.
    node: usize,
    child: usize,
    search: BegunSearch<'k>,
    /// Where that child lies.
    address: Address,
    /// The data page to which the way has come.
    page: Option<PageRef>,
    layout: Layout,
    /// Where the key is guessed to be in the page. `None` if `heads` are known without a guess.
    guess: Option<HeadGuess<'k>>,
    heads: HeadMatch<'k>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
enum At {
    /// The way does not begin: the look-up begins at the root.
    #[default]
    Nowhere,
    /// At a node, which is searched next.
    Node,
    /// At a child of a node, whose page is looked up next.
    Child,
    /// The way has ended: a page above the data pages is not in memory.
    AboveMissing,
    /// The way has ended: the data page is not in memory.
    DataMissing,
    /// The way has reached the data page, and holds it until [`Ways::take_value`] takes it.
    Page,
}

/// The nodes through which keys have led.
struct Nodes<'f> {
    all: Vec<Node>,
    /// A hash table of child nodes without collision chains. A node that another one has displaced is looked up in
    /// the cache again.
    below: [u32; PLACES],
    trees: Vec<KnownTree<'f>>,
}

/// The main tree of a file.
struct KnownTree<'f> {
    file: &'f Arc<PagedFile>,
    /// The tree, and the number of its root among the nodes. `None` if no way may begin in the file.
    root: Option<(Descent<'f>, usize)>,
}

struct Node {
    page: PageRef,
    layout: NodeLayout,
    /// Height above the data pages.
    level: u8,
    /// The number of the node above, and which of its children this node is; a root has itself above.
    above: (usize, usize),
}

impl Node {
    /// The node in `page` at `address` of `tree`; `None` if it has the wrong form. A step that needs it will report
    /// that.
    fn new(tree: &Descent<'_>, page: PageRef, address: &Address, level: u8, above: (usize, usize)) -> Option<Self> {
        let layout = *tree.node(&page, address).ok()?.layout();
        Some(Self { page, layout, level, above })
    }

    #[inline]
    fn get(&self) -> IndexNode<'_> {
        IndexNode::known(&self.page, &self.layout)
    }
}

impl Default for Nodes<'_> {
    fn default() -> Self {
        Self { all: Vec::new(), below: [0; PLACES], trees: Vec::new() }
    }
}

impl<'f> Nodes<'f> {
    /// The number of the main tree of `file`, and the number of its root. The first time, `find` finds both.
    #[inline]
    fn tree(
        &mut self,
        file: &'f Arc<PagedFile>,
        find: impl FnOnce() -> Option<(Descent<'f>, PageRef)>,
    ) -> Option<(usize, usize)> {
        if let Some(tree) = self.trees.iter().position(|tree| std::ptr::eq(tree.file, file)) {
            return self.trees[tree].root.map(|(_, root)| (tree, root));
        }
        let number = self.all.len();
        let root = find().and_then(|(tree, page)| {
            let whole = tree.whole();
            self.all.push(Node::new(&tree, page, &whole.address, whole.level, (number, 0))?);
            Some((tree, number))
        });
        self.trees.push(KnownTree { file, root });
        root.map(|_| (self.trees.len() - 1, number))
    }

    /// The number of the node that is child `child` of node `node`, if it is known.
    #[inline]
    fn child(&self, node: usize, child: usize) -> Option<usize> {
        let number = self.below[Self::place(node, child)] as usize;
        let is_it = |known: &Node| known.above == (node, child) && number != node;
        self.all.get(number).is_some_and(is_it).then_some(number)
    }

    /// Adds a node below another node. Returns its number.
    fn add(&mut self, node: Node) -> usize {
        let number = self.all.len();
        self.below[Self::place(node.above.0, node.above.1)] = number as u32;
        self.all.push(node);
        number
    }

    #[inline]
    fn place(node: usize, child: usize) -> usize {
        (node * 37 + child) % PLACES
    }

    /// The tree with the number `tree`, in which a way has begun.
    #[inline]
    fn descent(&self, tree: usize) -> &Descent<'f> {
        &self.trees[tree].root.as_ref().expect("a way has begun in it").0
    }

    /// Forgets all nodes if they are too many: keys far apart in a table of many files share few nodes.
    fn limit(&mut self) {
        if self.all.len() > MAX_NODES {
            self.all.clear();
            self.trees.clear();
        }
    }
}

impl<'f, 'k> Ways<'f, 'k> {
    /// Forgets the ways and keeps the nodes.
    pub fn clear(&mut self) {
        self.count = 0;
        self.nodes.limit();
    }

    /// Adds a way that does not begin.
    #[inline]
    pub fn add(&mut self) {
        let i = self.count;
        if i == self.all.len() {
            self.all.push(KeyWay::default());
        }
        self.all[i].at = At::Nowhere;
        self.all[i].page = None;
        self.count += 1;
    }

    /// Adds the way to `key` in `file`. `find` returns the main tree and its root node; if it returns `None`, the
    /// way does not begin.
    #[inline]
    pub(super) fn begin(
        &mut self,
        file: &'f Arc<PagedFile>,
        key: &'k [u8],
        find: impl FnOnce() -> Option<(Descent<'f>, PageRef)>,
    ) {
        self.add();
        if let Some((tree, root)) = self.nodes.tree(file, find) {
            let way = &mut self.all[self.count - 1];
            (way.at, way.key, way.tree, way.node) = (At::Node, key, tree, root);
        }
    }

    /// Goes down all ways to their ends.
    pub fn run<S: PageSource + ?Sized>(&mut self, source: &S) {
        let Self { nodes, all, count } = self;
        let ways = &mut all[..*count];
        while ways.iter().any(|way| way.at == At::Node) {
            ways.iter_mut().for_each(|way| way.search_samples(nodes));
            ways.iter_mut().for_each(|way| way.search_block(nodes));
            ways.iter_mut().for_each(|way| way.read_address(nodes));
            ways.iter_mut().for_each(|way| way.take_page(source, nodes));
        }
        ways.iter_mut().for_each(KeyWay::guess_heads);
        ways.iter_mut().for_each(KeyWay::match_heads);
    }

    /// Where way `i` has ended.
    #[inline]
    pub fn reached(&self, i: usize) -> Reached<'_, 'k> {
        Reached { nodes: &self.nodes.all, way: &self.all[..self.count][i] }
    }

    /// Takes the page that way `i` has reached, with the place of the row's value in it, if `is_all` says that this
    /// row is the whole answer.
    #[inline]
    pub(super) fn take_value<S: PageSource + ?Sized>(
        &mut self,
        source: &S,
        i: usize,
        is_all: impl FnOnce(&RowRecord) -> bool,
    ) -> Option<(PageRef, Range<usize>)> {
        let way = &mut self.all[..self.count][i];
        let (row, record) = way.layout.lone_match(way.page.as_ref()?, &way.heads)?;
        let page = if is_all(&record) { way.page.take()? } else { return None };
        source.note_part(&page, Part { number: row as u32, of: way.layout.rows() as u32 });
        Some((page, record.value_at..record.value_at + record.value_bytes))
    }
}

impl KeyWay<'_> {
    /// Searches the samples of the node.
    #[inline]
    fn search_samples(&mut self, nodes: &Nodes<'_>) {
        if self.at == At::Node {
            let node = nodes.all[self.node].get();
            self.search = node.begin_search(self.key);
            node.prefetch_block(&self.search);
        }
    }

    /// Finishes the search of the node. If the child is a node that is known, the way goes on there.
    #[inline]
    fn search_block(&mut self, nodes: &Nodes<'_>) {
        if self.at != At::Node {
            return;
        }
        let here = &nodes.all[self.node];
        let node = here.get();
        self.child = node.end_search(&self.search);
        if here.level > 1
            && let Some(number) = nodes.child(self.node, self.child)
        {
            self.node = number;
            return;
        }
        node.prefetch_address(self.child);
        here.page.prefetch_hint(self.child);
        self.at = At::Child;
    }

    /// Reads where the child lies.
    #[inline]
    fn read_address(&mut self, nodes: &Nodes<'_>) {
        if self.at == At::Child {
            let here = &nodes.all[self.node];
            self.address = here.get().address(self.child);
            match here.level {
                1 => here.page.prefetch_child_head(self.child),
                _ => here.page.prefetch_child(self.child),
            }
        }
    }

    /// Takes the page of the child: a node, or the data page.
    #[inline]
    fn take_page<S: PageSource + ?Sized>(&mut self, source: &S, nodes: &mut Nodes<'_>) {
        if self.at != At::Child {
            return;
        }
        let (tree, Node { page: above, level, .. }) = (nodes.descent(self.tree), &nodes.all[self.node]);
        let level = level - 1;
        // Another way may have come to the same node on this level.
        let known = if level > 0 { nodes.child(self.node, self.child) } else { None };
        if let Some(number) = known {
            (self.at, self.node) = (At::Node, number);
            return;
        }
        let at = tree.under(&self.address, tree.kind_at(level), above, self.child);
        let page = source.peek(at.prefetched());
        if level > 0 {
            let node = page.and_then(|page| Node::new(tree, page, &self.address, level, (self.node, self.child)));
            match node {
                Some(node) => (self.at, self.node) = (At::Node, nodes.add(node)),
                None => self.at = At::AboveMissing,
            }
        } else if let Some(page) = page {
            self.layout = Layout::of(&page);
            self.layout.prefetch_ends(&page);
            (self.at, self.page) = (At::Page, Some(page));
        } else {
            self.at = At::DataMissing;
        }
    }

    /// Guesses where the key is in the data page.
    #[inline]
    fn guess_heads(&mut self) {
        if let Some(page) = &self.page {
            match self.layout.guess_heads(page, self.key) {
                Ok(guess) => self.guess = Some(guess),
                Err(heads) => (self.guess, self.heads) = (None, heads),
            }
        }
    }

    /// Searches the heads at the guess.
    #[inline]
    fn match_heads(&mut self) {
        if let (Some(page), Some(guess)) = (&self.page, &self.guess) {
            self.heads = self.layout.match_guessed(page, guess);
        }
    }
}

/// Where one way has ended.
#[derive(Clone, Copy)]
pub struct Reached<'a, 'k> {
    nodes: &'a [Node],
    way: &'a KeyWay<'k>,
}

impl<'a, 'k> Reached<'a, 'k> {
    /// The data page that has the key if any page does, and what the page's heads say about the key. `None` if the
    /// way did not reach it.
    #[inline]
    pub(super) fn row(&self) -> Option<(&'a PageRef, &'a Layout, &'a HeadMatch<'k>)> {
        let KeyWay { page, layout, heads, .. } = self.way;
        Some((page.as_ref()?, layout, heads))
    }

    /// The data page that has the key if any page does. `None` unless the way ended at the node above that page.
    #[inline]
    pub(super) fn page<S: PageSource + ?Sized>(
        &self,
        main: &Descent<'_>,
        source: &S,
    ) -> Option<Result<(PageRef, Layout), Stop>> {
        let KeyWay { at, node, child, address, .. } = self.way;
        (*at == At::DataMissing).then(|| {
            let at = main.under(address, TreeKind::Main.page_kind(), &self.nodes[*node].page, *child);
            let page = source.page(at)?;
            let layout = Layout::of(&page);
            Ok((page, layout))
        })
    }
}

#[cfg(test)]
mod tests;
