//! Builds the index over the pages of one tree. When a page is closed, its address and totals go to the node above
//! it. A node is closed only once the waiting children are enough for two nodes, so that the last two nodes of a
//! level can share their children evenly. This module does not know what the pages hold.
//!
//! Closed leaf nodes wait in memory and are written together, as one *extent*. So the index of a small file lies
//! in one place. A node above the leaves is written together with the last of the extents that have its children.

use super::file_writer::FileWriter;
use super::options::BuildOptions;
use crate::format::MAX_NODE_BYTES;
use crate::format::meta::{NODE_SAMPLES, Root, Tree, TreeKind};
use crate::format::node::{Child, NodeBuilder, Totals};
use pages::page::Packing;
use pages::{Address, Compression, PageKind, Result};

/// When closed leaf nodes of this many bytes wait, they are written as one extent. Files below about 800 MB get a
/// single extent, which lies at their end.
const EXTENT_BYTES: usize = 1 << 20;
/// If separators are huge, a node may grow up to [`MAX_NODE_BYTES`] to get this many children.
const WANTED_CHILDREN: usize = 4;
/// Limit on the separators of one node in bytes, counted before their common prefix is cut off: eight of the
/// longest possible separators. The node, which stores that prefix once, may be much shorter.
const MAX_SEPARATOR_BYTES: usize = 512 << 10;
/// Limit on a flat index in bytes. A tree that would need a larger flat index gets a B-tree instead.
const MAX_FLAT_BYTES: usize = 4 << 20;

#[derive(Debug)]
pub struct TreeBuilder {
    kind: TreeKind,
    totals: Totals,
    data_pages: u64,
    only_page: Option<Address>,
    levels: Vec<TreeLevel>,
    closed: Vec<ClosedNode>,
    closed_bytes: usize,
    btree_bytes: u64,
    /// Whether the B-tree is being built.
    grows: bool,
    /// Whether a node with samples was written.
    has_samples: bool,
    flat: Option<NodeBuilder>,
    flat_bytes: usize,
}

/// Rows of a page that is being closed.
#[derive(Clone, Copy, Debug)]
pub struct ClosingPage {
    /// Rows of the tree up to and including this page.
    pub rows: u64,
    /// How many rows of this page are erases.
    pub erased: u64,
    /// The stored bytes of everything that belongs to the rows so far but lies outside this tree.
    pub elsewhere: u64,
}

/// The children that wait on one level of the tree. Level 0 holds data pages.
#[derive(Debug)]
struct TreeLevel {
    waiting: NodeBuilder,
    /// The separator before the first waiting child.
    separator: Vec<u8>,
    /// When this many children wait, the size that their node would have is computed again.
    look_again: usize,
    /// The size is also computed again when the separators of the waiting children have this many bytes: later
    /// separators may be longer than earlier ones.
    look_again_bytes: usize,
}

#[derive(Debug)]
struct ClosedNode {
    page: Vec<u8>,
    separator: Vec<u8>,
    totals: Totals,
}

impl TreeBuilder {
    pub fn new(kind: TreeKind, options: &BuildOptions) -> Self {
        Self {
            kind,
            totals: Totals::default(),
            data_pages: 0,
            only_page: None,
            levels: Vec::new(),
            closed: Vec::new(),
            closed_bytes: 0,
            btree_bytes: 0,
            grows: options.index.has_btree(),
            has_samples: false,
            flat: options.index.has_flat().then(|| new_node(kind, options)),
            flat_bytes: 0,
        }
    }

    /// Closed data pages.
    pub fn data_pages(&self) -> u64 {
        self.data_pages
    }

    /// Stored bytes of closed data pages.
    pub fn page_bytes(&self) -> u64 {
        self.totals.bytes
    }

    /// Whether some node has samples.
    pub fn has_samples(&self) -> bool {
        self.has_samples
    }

    /// How many bytes the closed nodes that still wait will add to the file. The separators that wait with them
    /// are included.
    pub fn waiting_bytes(&self) -> u64 {
        self.closed_bytes as u64
    }

    /// The memory that the closed nodes and the waiting children take.
    pub fn memory_bytes(&self) -> usize {
        let levels = self.levels.iter().map(|level| level.waiting.memory_bytes() + level.separator.capacity());
        let closed = self.closed.iter().map(|node| node.page.capacity() + node.separator.capacity());
        self.levels.capacity() * size_of::<TreeLevel>()
            + levels.sum::<usize>()
            + self.closed.capacity() * size_of::<ClosedNode>()
            + closed.sum::<usize>()
            + self.flat.as_ref().map_or(0, NodeBuilder::memory_bytes)
    }

    /// Writes the data page `page` and adds it to the index. `separator` lies between this page and the page before
    /// it.
    pub fn add_page(
        &mut self,
        writer: &mut FileWriter,
        options: &BuildOptions,
        page: &mut Vec<u8>,
        separator: &[u8],
        rows: ClosingPage,
    ) -> Result<()> {
        // A filter cannot be compressed.
        let compression = if self.kind == TreeKind::Filter { Compression::None } else { options.compression };
        let address = writer.write_page(page, self.kind.page_kind(), 0, compression, Packing::Block)?;
        self.data_pages += 1;
        self.totals = Totals {
            rows: rows.rows,
            bytes: self.totals.bytes + u64::from(address.bytes),
            group_bytes: rows.elsewhere,
            erased: self.totals.erased + rows.erased,
        };
        self.only_page = (self.data_pages == 1).then_some(address);
        let child = Child { address, totals: self.totals };
        if self.grows {
            self.add_child(writer, options, 0, separator, child)?;
        }
        if let Some(flat) = &mut self.flat {
            flat.add(separator, child);
            // Each entry takes at most its separator and 40 bytes: the checksum, the head, the tail offset, and
            // some bytes to spare. The sum must not be too low, because the list must not be longer than a page may
            // be.
            self.flat_bytes += separator.len() + 40;
            if self.flat_bytes > MAX_FLAT_BYTES {
                self.replace_flat_by_btree(writer, options)?;
            }
        }
        Ok(())
    }

    fn replace_flat_by_btree(&mut self, writer: &mut FileWriter, options: &BuildOptions) -> Result<()> {
        let list = self.flat.take().expect("the list is what outgrew its page");
        if !std::mem::replace(&mut self.grows, true) {
            for (separator, child) in list.entries() {
                self.add_child(writer, options, 0, separator, child)?;
            }
        }
        Ok(())
    }

    fn add_child(
        &mut self,
        writer: &mut FileWriter,
        options: &BuildOptions,
        level: usize,
        separator: &[u8],
        child: Child,
    ) -> Result<()> {
        if self.levels.len() == level {
            self.levels.push(TreeLevel::new(self.kind, options));
        }
        let here = &mut self.levels[level];
        if here.waiting.children() == 0 {
            here.separator.clear();
            here.separator.extend_from_slice(separator);
        }
        here.waiting.add(separator, child);
        let count = here.waiting.children();
        let separator_bytes = here.waiting.separator_bytes(count);
        if count >= here.look_again || separator_bytes >= here.look_again_bytes {
            let bytes = here.waiting.bytes(count);
            let two_nodes = bytes > 2 * options.node_bytes as usize
                || count > 2 * options.max_node_children
                || separator_bytes > 2 * MAX_SEPARATOR_BYTES;
            let fit = if two_nodes { fitting(&here.waiting, options) } else { count };
            if two_nodes && count >= 2 * fit.min(WANTED_CHILDREN) && fit < count - 1 {
                (here.look_again, here.look_again_bytes) = (0, 0);
                self.close_node(writer, options, level, fit)?;
            } else {
                // The size is computed again after half of the children that the node probably still takes. So it
                // is computed only a few times for each node.
                let missing = (2 * options.node_bytes as usize).saturating_sub(bytes) / (bytes / count).max(1);
                here.look_again = count + (missing / 2).clamp(1, options.max_node_children / 2 + 1);
                here.look_again_bytes = separator_bytes + options.node_bytes as usize;
            }
        }
        Ok(())
    }

    /// Closes a node with the first `count` waiting children of `level`.
    fn close_node(
        &mut self,
        writer: &mut FileWriter,
        options: &BuildOptions,
        level: usize,
        count: usize,
    ) -> Result<()> {
        let here = &mut self.levels[level];
        let totals = here.waiting.totals(count);
        self.has_samples |= here.waiting.has_samples(count);
        let mut page = Vec::new();
        let mut next = Vec::new();
        here.waiting.finish(count, &mut page, &mut next);
        let separator = std::mem::replace(&mut here.separator, next);
        if level == 0 {
            self.closed_bytes += page.len() + separator.len();
            self.closed.push(ClosedNode { page, separator, totals });
            if self.closed_bytes >= EXTENT_BYTES {
                self.write_extent(writer, options)?;
            }
            return Ok(());
        }
        let address = self.write_node(writer, page, level)?;
        self.add_child(writer, options, level + 1, &separator, Child { address, totals })
    }

    fn write_node(&mut self, writer: &mut FileWriter, mut page: Vec<u8>, level: usize) -> Result<Address> {
        let address =
            writer.write_page(&mut page, PageKind::Index, level as u8 + 1, Compression::None, Packing::Block)?;
        self.btree_bytes += u64::from(address.bytes);
        Ok(address)
    }

    fn write_extent(&mut self, writer: &mut FileWriter, options: &BuildOptions) -> Result<()> {
        self.closed_bytes = 0;
        for ClosedNode { page, separator, totals } in std::mem::take(&mut self.closed) {
            let address = self.write_node(writer, page, 0)?;
            self.add_child(writer, options, 1, &separator, Child { address, totals })?;
        }
        Ok(())
    }

    /// Writes all that is left of the index, and describes the tree; `None` if the tree has no pages.
    pub fn finish(&mut self, writer: &mut FileWriter, options: &BuildOptions) -> Result<Option<Tree>> {
        if self.data_pages == 0 {
            return Ok(None);
        }
        let (totals, data_pages) = (self.totals, self.data_pages);
        if let Some(address) = self.only_page {
            let root = Some(Root { address, height: 0, index_bytes: 0 });
            let (btree, flat) = (root.filter(|_| options.index.has_btree()), root.filter(|_| options.index.has_flat()));
            return Ok(Some(Tree { totals, data_pages, btree, flat }));
        }
        let flat = match self.flat.take() {
            Some(mut list) => {
                self.has_samples |= list.has_samples(list.children());
                Some(write_flat(writer, &mut list)?)
            }
            None => None,
        };
        let btree = if self.grows { Some(self.finish_btree(writer, options)?) } else { None };
        Ok(Some(Tree { totals, data_pages, btree, flat }))
    }

    fn finish_btree(&mut self, writer: &mut FileWriter, options: &BuildOptions) -> Result<Root> {
        let mut level = 0;
        loop {
            if level == 1 {
                self.write_extent(writer, options)?;
            }
            let is_root = self.levels.len() == level + 1
                && self.levels[level].waiting.children() == 1
                && (level > 0 || self.closed.is_empty());
            if is_root {
                let root = self.levels[level].waiting.take_only();
                return Ok(Root { address: root.address, height: level as u8, index_bytes: self.btree_bytes });
            }
            while self.levels[level].waiting.children() > 0 {
                let waiting = &self.levels[level].waiting;
                let (left, fit) = (waiting.children(), fitting(waiting, options));
                // If all children that are left fit into one node, this node takes all of them. If they need two
                // nodes, each node takes half of them.
                let count = if fit == left { left } else { fit.min(left.div_ceil(2)) };
                self.close_node(writer, options, level, count)?;
            }
            level += 1;
        }
    }
}

fn new_node(kind: TreeKind, options: &BuildOptions) -> NodeBuilder {
    if kind.is_by_row() {
        NodeBuilder::by_row()
    } else if options.features & NODE_SAMPLES != 0 {
        NodeBuilder::sampled()
    } else {
        NodeBuilder::default()
    }
}

impl TreeLevel {
    fn new(kind: TreeKind, options: &BuildOptions) -> Self {
        Self { waiting: new_node(kind, options), separator: Vec::new(), look_again: 0, look_again_bytes: 0 }
    }
}

/// How many of the waiting children a node takes. It takes as many as its target length allows, but at least two if
/// two children wait.
fn fitting(waiting: &NodeBuilder, options: &BuildOptions) -> usize {
    let all = waiting.children();
    let fits = |count: usize| {
        let bytes = waiting.bytes(count);
        count <= 2
            || count <= options.max_node_children
                && waiting.separator_bytes(count) <= MAX_SEPARATOR_BYTES
                && (bytes <= options.node_bytes as usize || count <= WANTED_CHILDREN && bytes <= MAX_NODE_BYTES)
    };
    if fits(all) {
        return all;
    }
    let (mut low, mut high) = (2.min(all), all);
    while high - low > 1 {
        let middle = usize::midpoint(low, high);
        if fits(middle) { low = middle } else { high = middle }
    }
    low
}

fn write_flat(writer: &mut FileWriter, list: &mut NodeBuilder) -> Result<Root> {
    let (mut page, mut rest) = (Vec::new(), Vec::new());
    list.finish(list.children(), &mut page, &mut rest);
    let address = writer.write_page(&mut page, PageKind::Flat, 1, Compression::None, Packing::Block)?;
    Ok(Root { address, height: 1, index_bytes: u64::from(address.bytes) })
}

#[cfg(test)]
mod tests;
