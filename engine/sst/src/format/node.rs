//! An index node: its children with their addresses and running totals, and the separators between the children.
//!
//! A flat index is a single node, in the same layout, that lists every data page of its tree. A node stores neither
//! its own first row nor the separators on its two outer sides; its parent knows them.
//!
//! ```text
//!   0  page header                                                           16
//!  16  children u32 | prefix bytes u16 | form u8 | zero u8                    8
//!  24  fixed suffix bytes u32 | tails at u32                                  8
//!  32  column widths u8 x 6 | zero u16                                        8
//!  40  column bases u64 x 6                                                  48
//!  88  column steps u64 x 6                                                  48
//! 136  samples          u32 x (children - 1) / 16, where form bit 4 is set: head 15, 31, 47 …
//!      checksums        u32 x children
//!      heads            u32 x (children - 1)    none with form bit 3, by row
//!      residuals        width x children, for each column
//!      short suffixes   u8 x (children - 1)     where form bit 1 is set: bytes of the head that are the key's
//!      tail offsets     u16 or u32 (form bit 2) x children; absent in the fixed form (form bit 0)
//!      prefix           common to all separators; none by row
//!      tails            none by row
//! ```
//!
//! A node by row ids has form bit 3, and always form bit 0 as well. Such a node has no separators. The trees of
//! column groups consist of such nodes.
//!
//! A search first compares the key with the samples, which lie next to each other. The samples show in which block
//! of heads the search goes on. Then the search compares the heads of this block with the key. So a search touches
//! one cache line for every 256 children, and one more for the block.
//!
//! The columns are the page offset, the stored bytes, and four running totals: rows, bytes, group bytes, erased
//! rows. The totals of a child include the child. Totals count from the start of the file, so any node can be
//! searched for a row id, and the size of a range is one subtraction. Separator `i` is greater than every key under
//! child `i`, and not greater than any key under child `i + 1`. It may equal the first key under child `i + 1`, but
//! mostly it is only a prefix of that key. In the fixed form, the suffixes of all separators have the same length,
//! and the tails are stored without gaps.

use super::column::Column;
use super::key::{self, Suffix};
use super::little_endian::{u32_at, u64_at};
use crate::KeyRange;
use os::memory::prefetch;
use pages::{Address, page::HEADER_BYTES};
use std::ops::Deref;

const CHILDREN_AT: usize = HEADER_BYTES;
const COLUMNS: usize = 6;
const WIDTHS_AT: usize = 32;
const BASES_AT: usize = 40;
const STEPS_AT: usize = BASES_AT + COLUMNS * 8;
const HEAD_END: usize = STEPS_AT + COLUMNS * 8;

const FIXED: u8 = 1;
const SHORT: u8 = 1 << 1;
const WIDE: u8 = 1 << 2;
const BY_ROW: u8 = 1 << 3;
const SAMPLED: u8 = 1 << 4;

/// A node with at least this many separators has samples. In a node with fewer separators, the heads take only a
/// few cache lines.
const MIN_SAMPLED: usize = 4 * key::BLOCK;

/// The most bytes that a search prefetches of the tails of a block.
const MAX_PREFETCH_BYTES: usize = 128;

/// Totals of some pages of a tree: of all pages up to and including some page, of a range, or of the whole tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Totals {
    /// Rows.
    pub rows: u64,
    /// Stored bytes of the tree's own data pages.
    pub bytes: u64,
    /// Stored bytes that belong to the rows but lie outside this tree: large values, history, other groups.
    pub group_bytes: u64,
    /// Rows whose newest version is an erase.
    pub erased: u64,
}

/// A child as its parent describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Child {
    /// The address of its page.
    pub address: Address,
    /// The totals up to and including it.
    pub totals: Totals,
}

impl Child {
    fn columns(&self) -> [u64; COLUMNS] {
        let Self { address, totals } = self;
        [address.offset, u64::from(address.bytes), totals.rows, totals.bytes, totals.group_bytes, totals.erased]
    }
}

/// A node in its page.
#[derive(Clone, Copy, Debug)]
pub struct IndexNode<'p> {
    page: &'p [u8],
    layout: NodeLayout,
}

/// The offsets of the parts of a node. A reader that comes back to the page keeps these offsets, and need not read
/// the node's head again.
#[derive(Clone, Copy, Debug)]
pub struct NodeLayout {
    children: usize,
    form: u8,
    prefix_bytes: usize,
    fixed_bytes: usize,
    checksums_at: usize,
    residuals_at: usize,
    tails_at: usize,
}

/// A half-finished search of a node for a key.
#[derive(Clone, Copy, Debug, Default)]
pub struct BegunSearch<'k> {
    /// The part of the key that follows the prefix of the node.
    suffix: Suffix<'k>,
    found: Found,
}

/// What a search has found so far.
#[derive(Clone, Copy, Debug, Default)]
enum Found {
    /// The key begins with the node's prefix, and the node has no samples.
    #[default]
    Suffix,
    /// The number of samples that are less than the head of the key.
    Blocks(usize),
    /// The child that the search ends with. The child is known already, because the key does not begin with the
    /// prefix of the node.
    Child(usize),
}

impl BegunSearch<'_> {
    fn ended(child: usize) -> Self {
        Self { found: Found::Child(child), ..Self::default() }
    }
}

impl Deref for IndexNode<'_> {
    type Target = NodeLayout;

    #[inline]
    fn deref(&self) -> &NodeLayout {
        &self.layout
    }
}

impl<'p> IndexNode<'p> {
    /// Reads the head of a validated node.
    #[inline]
    pub fn new(page: &'p [u8]) -> Self {
        let head: &[u8; HEAD_END] = page.first_chunk().expect("a validated node has its head");
        let children = u32_at(head, CHILDREN_AT) as usize;
        let form = head[CHILDREN_AT + 6];
        let heads = if form & BY_ROW != 0 { 0 } else { children - 1 };
        let samples = if form & SAMPLED != 0 { heads / key::BLOCK } else { 0 };
        let checksums_at = HEAD_END + samples * 4;
        let layout = NodeLayout {
            children,
            form,
            prefix_bytes: usize::from(u16::from_le_bytes([head[CHILDREN_AT + 4], head[CHILDREN_AT + 5]])),
            fixed_bytes: u32_at(head, CHILDREN_AT + 8) as usize,
            checksums_at,
            residuals_at: checksums_at + children * 4 + heads * 4,
            tails_at: u32_at(head, CHILDREN_AT + 12) as usize,
        };
        Self { page, layout }
    }

    /// The node in `page`. The caller has already read the layout of this node.
    #[inline]
    pub fn known(page: &'p [u8], layout: &NodeLayout) -> Self {
        Self { page, layout: *layout }
    }

    /// Its layout.
    #[inline]
    pub fn layout(&self) -> &NodeLayout {
        &self.layout
    }

    /// The number of children, at least one.
    pub fn children(&self) -> usize {
        self.children
    }

    /// Whether all separators have the same length and are stored without offsets.
    pub fn is_fixed(&self) -> bool {
        self.form & FIXED != 0
    }

    /// Whether the node has no separators. Such a node can be searched only by row id.
    pub fn is_by_row(&self) -> bool {
        self.form & BY_ROW != 0
    }

    fn width(&self, column: usize) -> usize {
        usize::from(self.page[WIDTHS_AT + column])
    }

    #[inline]
    fn column(&self, column: usize, i: usize) -> u64 {
        let (header, residuals) = self.whole_column(column);
        header.get(residuals, i)
    }

    /// A column and its residuals, for a caller that reads many entries of the column.
    #[inline]
    fn whole_column(&self, column: usize) -> (Column, &'p [u8]) {
        let header = Column {
            base: u64_at(self.page, BASES_AT + column * 8),
            step: u64_at(self.page, STEPS_AT + column * 8),
            width: self.page[WIDTHS_AT + column],
        };
        if header.width == 0 {
            return (header, &[]);
        }
        let before: usize = (0..column).map(|other| self.width(other)).sum();
        let at = self.residuals_at + before * self.children;
        (header, &self.page[at..at + usize::from(header.width) * self.children])
    }

    /// Address of child `i`.
    #[inline]
    pub fn address(&self, i: usize) -> Address {
        Address {
            offset: self.column(0, i),
            bytes: self.column(1, i) as u32,
            crc: u32_at(self.page, self.checksums_at + i * 4),
        }
    }

    /// The number of rows up to and including child `i`.
    #[inline]
    pub fn rows_through(&self, i: usize) -> u64 {
        self.column(2, i)
    }

    /// The stored bytes of data pages up to and including child `i`.
    #[inline]
    pub fn bytes_through(&self, i: usize) -> u64 {
        self.column(3, i)
    }

    /// The number of rows in the whole tree before child `i`; `None` for the first child, because only the parent
    /// knows it.
    #[inline]
    pub fn rows_before(&self, i: usize) -> Option<u64> {
        i.checked_sub(1).map(|before| self.rows_through(before))
    }

    /// Child `i` as this node describes it.
    pub fn child(&self, i: usize) -> Child {
        let totals = Totals {
            rows: self.column(2, i),
            bytes: self.column(3, i),
            group_bytes: self.column(4, i),
            erased: self.column(5, i),
        };
        Child { address: self.address(i), totals }
    }

    fn prefix(&self) -> &'p [u8] {
        &self.page[self.tails_at - self.prefix_bytes..self.tails_at]
    }

    #[inline]
    fn heads(&self) -> &'p [[u8; 4]] {
        self.page[self.checksums_at + self.children * 4..self.residuals_at].as_chunks().0
    }

    /// The last head of each block of heads. The result is empty if the node has no samples.
    #[inline]
    fn samples(&self) -> &'p [[u8; 4]] {
        self.page[HEAD_END..self.checksums_at].as_chunks().0
    }

    fn shorts_at(&self) -> usize {
        self.residuals_at + (0..COLUMNS).map(|column| self.width(column)).sum::<usize>() * self.children
    }

    fn tail_offset(&self, i: usize) -> usize {
        let shorts = if self.form & SHORT != 0 { self.children - 1 } else { 0 };
        let at = self.shorts_at() + shorts;
        if self.form & WIDE != 0 {
            u32_at(self.page, at + i * 4) as usize
        } else {
            usize::from(u16::from_le_bytes([self.page[at + i * 2], self.page[at + i * 2 + 1]]))
        }
    }

    fn suffix(&self, i: usize) -> Suffix<'p> {
        let head = u32::from_le_bytes(self.heads()[i]);
        if self.is_fixed() {
            let head_bytes = self.fixed_bytes.min(key::HEAD_BYTES);
            let tail_bytes = self.fixed_bytes - head_bytes;
            let at = self.tails_at + i * tail_bytes;
            return Suffix { head, head_bytes: head_bytes as u8, tail: &self.page[at..at + tail_bytes] };
        }
        let head_bytes = if self.form & SHORT != 0 { self.page[self.shorts_at() + i] } else { key::HEAD_BYTES as u8 };
        let tail = &self.page[self.tails_at + self.tail_offset(i)..self.tails_at + self.tail_offset(i + 1)];
        Suffix { head, head_bytes, tail }
    }

    /// Appends the separator between children `i` and `i + 1` to `out`. The separator need not be the key of a row.
    /// The node must have separators.
    pub fn separator(&self, i: usize, out: &mut Vec<u8>) {
        out.extend_from_slice(self.prefix());
        self.suffix(i).append_to(out);
    }

    /// The keys under child `i`, where `keys` are the keys under the whole node. For a node by row, the result is
    /// all keys.
    pub fn keys_under(&self, i: usize, keys: &KeyRange) -> KeyRange {
        if self.is_by_row() {
            return KeyRange::ALL;
        }
        let separator = |i: usize| {
            let mut separator = Vec::new();
            self.separator(i, &mut separator);
            separator
        };
        KeyRange {
            start: if i == 0 { keys.start.clone() } else { separator(i - 1) },
            end: if i + 1 == self.children { keys.end.clone() } else { Some(separator(i)) },
        }
    }

    /// The number of the child under which `key` lies if the file has the key. It equals the number of separators
    /// that are not greater than `key`. The node must have separators.
    #[inline]
    pub fn search(&self, key: &[u8]) -> usize {
        self.end_search(&self.begin_search(key))
    }

    /// The part of [`IndexNode::search`] that reads the samples.
    #[inline(always)]
    pub fn begin_search<'k>(&self, key: &'k [u8]) -> BegunSearch<'k> {
        let suffix = match key::strip_prefix(key, self.page, self.tails_at - self.prefix_bytes..self.tails_at) {
            Ok(suffix) => suffix,
            Err(std::cmp::Ordering::Less) => return BegunSearch::ended(0),
            Err(_) => return BegunSearch::ended(self.children - 1),
        };
        let samples = self.samples();
        if samples.is_empty() {
            return BegunSearch { suffix, found: Found::Suffix };
        }
        BegunSearch { suffix, found: Found::Blocks(key::heads_below(samples, suffix.head)) }
    }

    /// The rest of [`IndexNode::search`].
    #[inline(always)]
    pub fn end_search(&self, begun: &BegunSearch<'_>) -> usize {
        let BegunSearch { suffix, found } = *begun;
        let (mut low, mut high) = match found {
            Found::Child(child) => return child,
            Found::Suffix => key::equal_heads(self.heads(), suffix.head),
            Found::Blocks(blocks) => key::equal_heads_in_block(self.heads(), blocks, suffix.head),
        };
        while low < high {
            let middle = usize::midpoint(low, high);
            if self.suffix(middle) <= suffix { low = middle + 1 } else { high = middle }
        }
        low
    }

    /// If the samples have led the search to a block, prefetches the bytes that the rest of the search reads
    /// first.
    #[inline]
    pub fn prefetch_block(&self, begun: &BegunSearch<'_>) {
        if let Found::Blocks(blocks) = begun.found {
            let heads = self.checksums_at + self.children * 4 + blocks * key::BLOCK * key::HEAD_BYTES;
            prefetch(self.page.as_ptr().addr() + heads, key::BLOCK * key::HEAD_BYTES);
            if self.is_fixed() {
                let tail_bytes = self.fixed_bytes.saturating_sub(key::HEAD_BYTES);
                let tails = self.tails_at + blocks * key::BLOCK * tail_bytes;
                prefetch(self.page.as_ptr().addr() + tails, (key::BLOCK * tail_bytes).min(MAX_PREFETCH_BYTES));
            }
        }
    }

    /// Prefetches the bytes that [`IndexNode::address`] reads for child `i`.
    #[inline]
    pub fn prefetch_address(&self, i: usize) {
        let (offset_bytes, length_bytes) = (self.width(0), self.width(1));
        let lengths_at = self.residuals_at + offset_bytes * self.children;
        let page = self.page.as_ptr().addr();
        prefetch(page + self.checksums_at + i * 4, 4);
        prefetch(page + self.residuals_at + i * offset_bytes, offset_bytes);
        prefetch(page + lengths_at + i * length_bytes, length_bytes);
    }

    /// The child that holds row `row`: the first child whose running total of rows is greater than `row`.
    #[inline]
    pub fn search_row(&self, row: u64) -> usize {
        let (rows_through, residuals) = self.whole_column(2);
        let (mut low, mut high) = (0, self.children - 1);
        while low < high {
            let middle = usize::midpoint(low, high);
            if rows_through.get(residuals, middle) <= row { low = middle + 1 } else { high = middle }
        }
        low
    }
}

/// Checks a node: its bounds, the order of its tails and separators, totals that never shrink, and addresses that
/// can exist in a file.
///
/// # Errors
///
/// The error says what is wrong with the page.
pub fn validate(page: &[u8]) -> Result<(), String> {
    let Some(head) = page.first_chunk::<HEAD_END>() else {
        return Err(format!("{} bytes are too few for an index node", page.len()));
    };
    let children = u64::from(u32_at(head, CHILDREN_AT));
    if children == 0 {
        return Err("an index node has no children".to_owned());
    }
    let form = head[CHILDREN_AT + 6];
    if form & !(FIXED | SHORT | WIDE | BY_ROW | SAMPLED) != 0
        || head[CHILDREN_AT + 7] != 0
        || head[WIDTHS_AT + COLUMNS..BASES_AT] != [0; 2]
    {
        return Err(format!("unknown form {form:#x}"));
    }
    let widths = &head[WIDTHS_AT..WIDTHS_AT + COLUMNS];
    if widths.iter().any(|&width| width > 8) {
        return Err(format!("column widths {widths:?} are beyond 8 bytes"));
    }
    let by_row = form & BY_ROW != 0;
    if by_row && form != FIXED | BY_ROW {
        return Err(format!("a node by row ids has the form {form:#x}"));
    }
    let separators = if by_row { 0 } else { children - 1 };
    let prefix = u64::from(u16::from_le_bytes([head[CHILDREN_AT + 4], head[CHILDREN_AT + 5]]));
    let fixed = u64::from(u32_at(head, CHILDREN_AT + 8));
    let shorts = if form & SHORT != 0 { separators } else { 0 };
    let offsets = match form & (FIXED | WIDE) {
        0 => children * 2,
        WIDE => children * 4,
        FIXED => 0,
        _ => return Err("a fixed form has no tail offsets".to_owned()),
    };
    if form & FIXED != 0 && form & SHORT != 0 {
        return Err("a fixed form has no short suffixes".to_owned());
    }
    let sum: u64 = widths.iter().map(|&width| u64::from(width)).sum();
    let samples = if form & SAMPLED != 0 { separators / key::BLOCK as u64 } else { 0 };
    let tails_at = HEAD_END as u64 + samples * 4 + children * (4 + sum) + separators * 4 + shorts + offsets + prefix;
    if tails_at != u64::from(u32_at(head, CHILDREN_AT + 12)) || tails_at > page.len() as u64 {
        return Err(format!("{children} children do not fit {} bytes", page.len()));
    }
    let node = IndexNode::new(page);
    let room = page.len() - node.tails_at;
    if by_row && (prefix > 0 || fixed > 0) {
        return Err("a node by row ids has separators".to_owned());
    }
    if form & FIXED != 0 {
        if separators * fixed.saturating_sub(key::HEAD_BYTES as u64) != room as u64 {
            return Err("separators do not fill the node".to_owned());
        }
    } else {
        let mut before = 0;
        for i in 0..node.children {
            let at = node.tail_offset(i);
            if at < before || at > room || (i == 0 && at != 0) || (i as u64 == separators && at != room) {
                return Err(format!("tail {i} starts at {at}, out of order or outside the node"));
            }
            before = at;
        }
    }
    if !node.samples().is_empty() && !key::samples(node.heads()).eq(node.samples()) {
        return Err("the samples are not those of the heads".to_owned());
    }
    for i in 1..(separators as usize).max(1) {
        if node.suffix(i - 1) >= node.suffix(i) {
            return Err(format!("separator {i} is not greater than the one before it"));
        }
    }
    for i in 0..separators as usize {
        let Suffix { head, head_bytes, tail } = node.suffix(i);
        let stray = |bytes: u8| head.to_be_bytes()[usize::from(bytes)..].iter().any(|&byte| byte != 0);
        if head_bytes > 4 || (head_bytes < 4 && (stray(head_bytes) || !tail.is_empty())) {
            return Err(format!("separator {i} is malformed"));
        }
    }
    let mut before = Totals::default();
    for i in 0..node.children {
        let Child { address, totals } = node.child(i);
        if node.column(1, i) > u64::from(u32::MAX)
            || address.bytes == 0
            || !address.offset.is_multiple_of(pages::PACK_BYTES)
            || !u64::from(address.bytes).is_multiple_of(pages::PACK_BYTES)
            || address.offset.checked_add(u64::from(address.bytes)).is_none()
        {
            return Err(format!("child {i} has an address no file can have: {address:?}"));
        }
        if (i > 0 && totals.rows <= before.rows)
            || totals.bytes < before.bytes
            || totals.group_bytes < before.group_bytes
            || totals.erased < before.erased
        {
            return Err(format!("totals shrink at child {i}: {totals:?} after {before:?}"));
        }
        before = totals;
    }
    Ok(())
}

/// Builds nodes: it collects children and separators until they are enough for a node.
#[derive(Debug, Default)]
pub struct NodeBuilder {
    by_row: bool,
    /// Whether nodes may have samples.
    may_sample: bool,
    children: Vec<Child>,
    /// The ends of the separators in `keys`. Separator `i` lies before child `i`; the separator of the first child
    /// is empty.
    ends: Vec<usize>,
    keys: Vec<u8>,
}

impl NodeBuilder {
    /// A builder for a tree that is searched only by row id: it keeps no separators.
    pub fn by_row() -> Self {
        Self { by_row: true, ..Self::default() }
    }

    /// A builder for a file whose features allow nodes with samples.
    pub fn sampled() -> Self {
        Self { may_sample: true, ..Self::default() }
    }

    /// An empty builder of the same kind.
    fn emptied(&self) -> Self {
        Self { by_row: self.by_row, may_sample: self.may_sample, ..Self::default() }
    }

    /// Children so far.
    pub fn children(&self) -> usize {
        self.children.len()
    }

    /// The memory that the children and their separators take.
    pub fn memory_bytes(&self) -> usize {
        self.children.capacity() * size_of::<Child>() + self.ends.capacity() * size_of::<usize>() + self.keys.capacity()
    }

    /// Adds a child. `separator` lies between the new child and the child before it. The separator of the first
    /// child is ignored.
    pub fn add(&mut self, separator: &[u8], child: Child) {
        if !self.children.is_empty() && !self.by_row {
            self.keys.extend_from_slice(separator);
        }
        self.ends.push(self.keys.len());
        self.children.push(child);
    }

    fn separator(&self, i: usize) -> &[u8] {
        &self.keys[self.ends[i - 1]..self.ends[i]]
    }

    /// The length of the separators between the first `count` children, if their common prefix is not cut off.
    pub fn separator_bytes(&self, count: usize) -> usize {
        self.ends[count - 1]
    }

    /// The children, each with the separator before it. The separator of the first child is empty.
    pub fn entries(&self) -> impl Iterator<Item = (&[u8], Child)> {
        let separator = |i: usize| if i == 0 { &[] } else { self.separator(i) };
        self.children.iter().enumerate().map(move |(i, child)| (separator(i), *child))
    }

    fn prefix(&self, count: usize) -> usize {
        if count < 2 || self.by_row {
            return 0;
        }
        key::common_prefix(self.separator(1), self.separator(count - 1)).min(u16::MAX.into())
    }

    fn shape(&self, count: usize) -> NodeShape {
        let prefix = self.prefix(count);
        let lengths = || (1..count).map(|i| self.ends[i] - self.ends[i - 1] - prefix);
        let first = lengths().next().unwrap_or(0);
        let fixed = lengths().all(|len| len == first);
        let short = !fixed && lengths().any(|len| len < key::HEAD_BYTES);
        let tails: usize = lengths().map(|len| len.saturating_sub(key::HEAD_BYTES)).sum();
        let columns = std::array::from_fn(|column| {
            Column::fit(self.children[..count].iter().map(|child| child.columns()[column]))
        });
        let (fixed, by_row) = (fixed.then_some(first), self.by_row);
        let sampled = self.has_samples(count);
        NodeShape { by_row, sampled, prefix, fixed, short, wide: tails > usize::from(u16::MAX), tails, columns }
    }

    /// Whether a node of the first `count` children has samples.
    pub fn has_samples(&self, count: usize) -> bool {
        self.may_sample && count > MIN_SAMPLED
    }

    /// The length of a node of the first `count` children.
    pub fn bytes(&self, count: usize) -> usize {
        let shape = self.shape(count);
        shape.tails_at(count) + shape.tails
    }

    /// The totals of all pages up to the end of the first `count` children.
    pub fn totals(&self, count: usize) -> Totals {
        self.children[count - 1].totals
    }

    /// Writes a node of the first `count` children into `out`, and removes these children. `out` is cleared first,
    /// and its page header stays zero. `separator` becomes the separator between these children and the rest.
    pub fn finish(&mut self, count: usize, out: &mut Vec<u8>, separator: &mut Vec<u8>) {
        let shape = self.shape(count);
        out.clear();
        out.resize(HEADER_BYTES, 0);
        out.extend_from_slice(&(count as u32).to_le_bytes());
        out.extend_from_slice(&(shape.prefix as u16).to_le_bytes());
        out.extend_from_slice(&[shape.form(), 0]);
        out.extend_from_slice(&(shape.fixed.unwrap_or(0) as u32).to_le_bytes());
        out.extend_from_slice(&(shape.tails_at(count) as u32).to_le_bytes());
        out.extend(shape.columns.iter().map(|column| column.width));
        out.extend_from_slice(&[0; 2]);
        for column in &shape.columns {
            out.extend_from_slice(&column.base.to_le_bytes());
        }
        for column in &shape.columns {
            out.extend_from_slice(&column.step.to_le_bytes());
        }
        let separators = if self.by_row { 1 } else { count };
        let suffixes = || (1..separators).map(|i| Suffix::new(&self.separator(i)[shape.prefix..]));
        if shape.sampled {
            for sample in suffixes().skip(key::BLOCK - 1).step_by(key::BLOCK) {
                out.extend_from_slice(&sample.head.to_le_bytes());
            }
        }
        for child in &self.children[..count] {
            out.extend_from_slice(&child.address.crc.to_le_bytes());
        }
        for suffix in suffixes() {
            out.extend_from_slice(&suffix.head.to_le_bytes());
        }
        for (i, column) in shape.columns.iter().enumerate() {
            column.put(out, self.children[..count].iter().map(|child| child.columns()[i]));
        }
        if shape.short {
            out.extend(suffixes().map(|suffix| suffix.head_bytes));
        }
        if shape.fixed.is_none() {
            let mut at = 0;
            for tail in std::iter::once(0).chain(suffixes().map(|suffix| suffix.tail.len())) {
                at += tail;
                if shape.wide {
                    out.extend_from_slice(&(at as u32).to_le_bytes());
                } else {
                    out.extend_from_slice(&(at as u16).to_le_bytes());
                }
            }
        }
        if shape.prefix > 0 {
            out.extend_from_slice(&self.separator(1)[..shape.prefix]);
        }
        debug_assert_eq!(out.len(), shape.tails_at(count), "the picture and the code agree");
        for suffix in suffixes() {
            out.extend_from_slice(suffix.tail);
        }

        separator.clear();
        if count < self.children.len() {
            separator.extend_from_slice(self.separator(count));
            let gone = self.ends[count];
            self.keys.drain(..gone);
            self.ends.drain(..count);
            for end in &mut self.ends {
                *end -= gone;
            }
            self.children.drain(..count);
        } else {
            *self = self.emptied();
        }
    }

    /// Removes the only child and returns it. The node must have exactly one child.
    pub fn take_only(&mut self) -> Child {
        assert_eq!(self.children.len(), 1, "a root is alone on its level");
        let child = self.children[0];
        *self = self.emptied();
        child
    }
}

struct NodeShape {
    by_row: bool,
    sampled: bool,
    prefix: usize,
    fixed: Option<usize>,
    short: bool,
    wide: bool,
    tails: usize,
    columns: [Column; COLUMNS],
}

impl NodeShape {
    fn form(&self) -> u8 {
        let bit = |set: bool, bit: u8| if set { bit } else { 0 };
        bit(self.fixed.is_some(), FIXED)
            | bit(self.short, SHORT)
            | bit(self.wide && self.fixed.is_none(), WIDE)
            | bit(self.by_row, BY_ROW)
            | bit(self.sampled, SAMPLED)
    }

    fn tails_at(&self, count: usize) -> usize {
        let widths: usize = self.columns.iter().map(|column| usize::from(column.width)).sum();
        let shorts = if self.short { count - 1 } else { 0 };
        let offsets = match (self.fixed, self.wide) {
            (Some(_), _) => 0,
            (None, false) => count * 2,
            (None, true) => count * 4,
        };
        let heads = if self.by_row { 0 } else { count - 1 };
        let samples = if self.sampled { (count - 1) / key::BLOCK } else { 0 };
        HEAD_END + samples * 4 + count * (4 + widths) + heads * 4 + shorts + offsets + self.prefix
    }
}

#[cfg(test)]
mod tests;
