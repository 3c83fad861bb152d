//! The look-ups of several keys in stages. Each stage asks the memory for what the next stage reads and does not
//! wait for it. A stage is run for all keys before the next stage begins, so the keys wait for the memory together.
//! It does not know in which files a key is looked up, and it answers only if the row is the whole answer.
//!
//! * An approach only saves work. It uses what is in memory, and a look-up goes on from wherever its approach has
//!   stopped.
//! * No later stage looks again for what a stage has found: an approach that has come to the row hands on the page,
//!   and the place in the page to which the heads of the keys lead.
//! * Nodes are kept from one key to the next, with their layouts, so that each node is found once for all keys that
//!   lead through it.

use super::descent::Descent;
use crate::format::PageRows;
use crate::format::data_page::{HeadGuess, HeadMatch, Layout, RowRecord};
use crate::format::node::{BegunSearch, IndexNode, NodeLayout};
use os::sync::Arc;
use pages::{Address, PageKind, PageRef, PageSource, PagedFile, Stop};
use std::ops::Range;

/// The most nodes that are kept in addition to those of the keys under way: each pins its page, and they are
/// searched one after the other.
const MAX_NODES: usize = 64;

/// The number of places in the table that says where nodes are.
const PLACES: usize = 128;

/// The look-ups of several keys, and how far each has come. It keeps pages in memory, so it ends with the step that
/// began it.
#[derive(Default)]
pub struct Approaches<'f, 'k> {
    nodes: Nodes<'f>,
    /// The elements after the first `count` are memory that is used again.
    all: Vec<Approach<'f, 'k>>,
    count: usize,
}

/// How far the look-up of a key in a file has come.
#[derive(Default)]
struct Approach<'f, 'k> {
    stage: Stage,
    /// Whether the page that is next is a data page.
    is_above_data: bool,
    key: &'k [u8],
    file: Option<&'f Arc<PagedFile>>,
    /// The node that it has come to, by its number among the nodes, and the child of it that leads to the key.
    node: usize,
    child: usize,
    search: BegunSearch<'k>,
    /// Where that child lies.
    address: Address,
    /// The data page that it has come to.
    page: Option<PageRef>,
    layout: Layout,
    guess: HeadGuess<'k>,
    heads: HeadMatch<'k>,
}

/// What an approach does next.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
enum Stage {
    /// Nothing: the look-up begins at the root.
    #[default]
    None,
    /// It finishes the search of a node, whose samples were searched before.
    Node,
    /// It reads the address of the child that leads to the key.
    Child,
    /// It takes the page that is next.
    Page,
    /// It guesses where the key is in the data page.
    Guess,
    /// It searches the heads at that place.
    Heads,
    /// Nothing: the page that is next is not in memory.
    Missing,
    /// Nothing: the heads of the data page are searched.
    Row,
}

/// The nodes through which keys have led.
struct Nodes<'f> {
    all: Vec<Node>,
    /// A table of the numbers of child nodes. A node that has no place in it is found in the cache again.
    below: [u32; PLACES],
    /// The roots of the files, by their numbers among the nodes. `None` if no approach may begin in the file.
    roots: Vec<(&'f Arc<PagedFile>, Option<usize>)>,
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
    /// The node in `page`, if it has separators. A node without separators does not belong here; a step that needs
    /// it will report that.
    fn new(page: PageRef, level: u8, above: (usize, usize)) -> Option<Self> {
        let node = IndexNode::new(&page);
        let layout = *node.layout();
        let is_by_row = node.is_by_row();
        (!is_by_row).then_some(Self { page, layout, level, above })
    }

    #[inline]
    fn get(&self) -> IndexNode<'_> {
        IndexNode::known(&self.page, &self.layout)
    }
}

impl Default for Nodes<'_> {
    fn default() -> Self {
        Self { all: Vec::new(), below: [0; PLACES], roots: Vec::new() }
    }
}

impl<'f> Nodes<'f> {
    /// The number of the root of `file`. The first time, `find` finds the root.
    #[inline]
    fn root(&mut self, file: &'f Arc<PagedFile>, find: impl FnOnce() -> Option<(PageRef, u8)>) -> Option<usize> {
        if let Some((_, root)) = self.roots.iter().find(|(known, _)| std::ptr::eq(*known, file)) {
            return *root;
        }
        let number = self.all.len();
        let root = find().and_then(|(page, level)| Node::new(page, level, (number, 0)));
        let root = root.map(|root| {
            self.all.push(root);
            number
        });
        self.roots.push((file, root));
        root
    }

    /// The number of the node that is child `child` of node `node`, if it is known.
    #[inline]
    fn child(&self, node: usize, child: usize) -> Option<usize> {
        let number = self.below[Self::place(node, child)] as usize;
        let is_it = |known: &Node| known.above == (node, child) && number != node;
        self.all.get(number).is_some_and(is_it).then_some(number)
    }

    /// Adds the node in `page` below another node, if it belongs there.
    fn add(&mut self, page: PageRef, level: u8, above: (usize, usize)) -> Option<usize> {
        let number = self.all.len();
        self.all.push(Node::new(page, level, above)?);
        self.below[Self::place(above.0, above.1)] = number as u32;
        Some(number)
    }

    #[inline]
    fn place(node: usize, child: usize) -> usize {
        (node * 37 + child) % PLACES
    }

    /// Forgets the nodes if they are many: keys far apart in a table of many files share few nodes.
    fn limit(&mut self) {
        if self.all.len() > MAX_NODES {
            self.all.clear();
            self.roots.clear();
        }
    }
}

impl<'f, 'k> Approaches<'f, 'k> {
    /// Forgets the look-ups and keeps the nodes.
    pub fn clear(&mut self) {
        self.count = 0;
        self.nodes.limit();
    }

    /// Adds a look-up that begins at the root.
    #[inline]
    pub fn add(&mut self) {
        let i = self.count;
        if i == self.all.len() {
            self.all.push(Approach::default());
        }
        self.all[i].stage = Stage::None;
        self.all[i].page = None;
        self.count += 1;
    }

    /// Adds the look-up of `key` in `file`. `root` gives the root of the tree of rows and its level, if the root is
    /// a node, is in memory, and may be asked before the look-up. If it gives nothing, the look-up does not begin.
    #[inline]
    pub(super) fn begin(
        &mut self,
        file: &'f Arc<PagedFile>,
        key: &'k [u8],
        root: impl FnOnce() -> Option<(PageRef, u8)>,
    ) {
        self.add();
        if let Some(root) = self.nodes.root(file, root) {
            let approach = &mut self.all[self.count - 1];
            (approach.key, approach.file, approach.node) = (key, Some(file), root);
            approach.search_node(&self.nodes);
        }
    }

    /// Advances all look-ups until none can advance further.
    pub fn run<S: PageSource + ?Sized>(&mut self, source: &S) {
        while self.advance(source) {}
    }

    /// Runs the next stage of each look-up. Returns false if no look-up has a next stage.
    fn advance<S: PageSource + ?Sized>(&mut self, source: &S) -> bool {
        let Self { nodes, all, count } = self;
        let mut goes_on = false;
        for approach in &mut all[..*count] {
            goes_on |= approach.advance(source, nodes);
        }
        goes_on
    }

    /// How far look-up `i` has come.
    #[inline]
    pub fn reached(&self, i: usize) -> Reached<'_, 'k> {
        Reached { nodes: &self.nodes.all, approach: &self.all[..self.count][i] }
    }

    /// The page with the value of the row that look-up `i` has come to, and the place of the value in it. It
    /// returns them if `is_all` says that this row is the whole answer; then the look-up no longer has the page.
    #[inline]
    pub(super) fn take_value(
        &mut self,
        i: usize,
        is_all: impl FnOnce(&RowRecord) -> bool,
    ) -> Option<(PageRef, Range<usize>)> {
        let approach = &mut self.all[..self.count][i];
        if approach.stage != Stage::Row {
            return None;
        }
        let record = approach.layout.lone_match(approach.page.as_ref()?, &approach.heads)?;
        let page = if is_all(&record) { approach.page.take()? } else { return None };
        Some((page, record.value_at..record.value_at + record.value_bytes))
    }
}

impl<'f, 'k> Approach<'f, 'k> {
    /// Runs the next stage. Returns false if there is none.
    #[inline]
    fn advance<S: PageSource + ?Sized>(&mut self, source: &S, nodes: &mut Nodes<'f>) -> bool {
        match self.stage {
            Stage::None | Stage::Missing | Stage::Row => return false,
            Stage::Node => {
                let child = nodes.all[self.node].get().end_search(&self.search);
                self.come_to(nodes, child);
            }
            Stage::Child => {
                let Node { page, layout, .. } = &nodes.all[self.node];
                self.address = IndexNode::known(page, layout).address(self.child);
                match self.is_above_data {
                    true => page.prefetch_child_head(self.child),
                    false => page.prefetch_child(self.child),
                }
                self.stage = Stage::Page;
            }
            Stage::Page => self.take_page(source, nodes),
            Stage::Guess => {
                let page = self.page.as_ref().expect("the stage before took it");
                self.stage = match self.layout.guess_heads(page, self.key) {
                    Ok(guess) => {
                        self.guess = guess;
                        Stage::Heads
                    }
                    Err(heads) => {
                        self.heads = heads;
                        Stage::Row
                    }
                };
            }
            Stage::Heads => {
                let page = self.page.as_ref().expect("a stage before took it");
                self.heads = self.layout.match_guessed(page, &self.guess);
                self.stage = Stage::Row;
            }
        }
        true
    }

    /// Searches the samples of the node that it has come to. If the node has no samples, it searches the whole
    /// node.
    #[inline]
    fn search_node(&mut self, nodes: &Nodes<'f>) {
        let node = nodes.all[self.node].get();
        let search = node.begin_search(self.key);
        if search.is_sampled() {
            node.prefetch_block(&search);
            self.search = search;
            self.stage = Stage::Node;
        } else {
            let child = node.end_search(&search);
            self.come_to(nodes, child);
        }
    }

    /// Goes on to a child of the node.
    #[inline]
    fn come_to(&mut self, nodes: &Nodes<'f>, child: usize) {
        let Node { page, layout, level, .. } = &nodes.all[self.node];
        self.child = child;
        self.is_above_data = *level == 1;
        if !self.is_above_data
            && let Some(number) = nodes.child(self.node, child)
        {
            self.node = number;
            return self.search_node(nodes);
        }
        IndexNode::known(page, layout).prefetch_address(child);
        page.prefetch_hint(child);
        self.stage = Stage::Child;
    }

    #[inline]
    fn take_page<S: PageSource + ?Sized>(&mut self, source: &S, nodes: &mut Nodes<'f>) {
        let file = self.file.expect("it was begun in a file");
        let Node { page: parent, level, .. } = &nodes.all[self.node];
        if !self.is_above_data {
            let number = match nodes.child(self.node, self.child) {
                Some(number) => Some(number),
                None => {
                    let at = file.at(&self.address, parent.kind());
                    let (page, level) = (source.peek(at.under(parent, self.child).prefetched()), level - 1);
                    page.and_then(|page| nodes.add(page, level, (self.node, self.child)))
                }
            };
            return match number {
                Some(number) => {
                    self.node = number;
                    self.search_node(nodes);
                }
                None => self.stage = Stage::Missing,
            };
        }
        let at = file.at(&self.address, PageKind::Data);
        let Some(page) = source.peek(at.under(parent, self.child).prefetched()) else {
            self.stage = Stage::Missing;
            return;
        };
        self.layout = Layout::of(&page);
        self.layout.prefetch_ends(&page);
        self.page = Some(page);
        self.stage = Stage::Guess;
    }
}

/// How far one look-up has come among those that were begun together.
#[derive(Clone, Copy)]
pub struct Reached<'a, 'k> {
    nodes: &'a [Node],
    approach: &'a Approach<'a, 'k>,
}

impl<'a, 'k> Reached<'a, 'k> {
    /// The data page under which the key lies if it exists, and what the heads of the page say about the key.
    /// `None` if the approach has not come so far.
    #[inline]
    pub(super) fn row(&self) -> Option<(&'a PageRef, &'a Layout, &'a HeadMatch<'k>)> {
        let Approach { stage, page, layout, heads, .. } = self.approach;
        let page = page.as_ref().filter(|_| *stage == Stage::Row)?;
        Some((page, layout, heads))
    }

    /// The data page under which the key lies if it exists. `None` if the approach has not come to the node above
    /// it.
    #[inline]
    pub(super) fn page<S: PageSource + ?Sized>(
        &self,
        main: &Descent<'_>,
        source: &S,
    ) -> Option<Result<(PageRef, Layout), Stop>> {
        let Approach { stage, is_above_data, node, child, address, .. } = self.approach;
        let is_above = *stage == Stage::Missing && *is_above_data;
        is_above.then(|| {
            let at = main.file().at(address, PageKind::Data).under(&self.nodes[*node].page, *child);
            let page = source.page(at)?;
            let layout = Layout::of(&page);
            Ok((page, layout))
        })
    }
}

#[cfg(test)]
mod tests;
