//! Prints a file as text for people: the footer, the trees by level, and the rows if the caller asks for them. It
//! checks only what its own walk needs; [`crate::verify()`] checks everything.
//!
//! Each page must have the level and the rows that its parent says. So even in a damaged file, no walk down an
//! index meets a page twice.

use crate::format::data_page::{Layout, RowRecord};
use crate::format::features::Unreadable;
use crate::format::filter::FilterLayout;
use crate::format::group_page::GroupLayout;
use crate::format::meta::{FilterTree, Meta, Root, Tree, TreeKind};
use crate::format::node::{IndexNode, Totals};
use crate::format::{OutsideValue, PageRows};
use crate::read::{Sst, Subtree, Whole, WholeTree, decode_range_erase};
use crate::row::RowKind;
use os::{BLOCK_BYTES, Buffer, File};
use pages::{Address, Error, PageHeader, PageKind, PageRef, PageSource, Result};
use std::fmt;
use std::io::{self, Write};
use std::ops::Range;
use std::path::Path;

/// The most bytes of a key or a value that are printed.
const SHOWN_BYTES: usize = 64;

/// How much [`dump`] prints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DumpDetail {
    /// The pages that are in memory, and only the addresses of the other pages.
    Loaded,
    /// Every page.
    #[default]
    Pages,
    /// Every row.
    Rows,
}

/// Prints `sst` to `out`. The pages are read through `source`. The call holds at most one page of each level at a
/// time. In addition, it asks for as many pages ahead as the source keeps, and for the nodes above them. So
/// `source` may be a session whose pages the cache does not keep.
///
/// # Errors
///
/// [`Error::Io`] if a page cannot be read or `out` cannot be written; [`Error::Corrupt`] if a page does not have
/// the level or the rows that its parent says, because the walk cannot go on then.
pub fn dump<S: PageSource + ?Sized>(sst: &Sst, source: &S, detail: DumpDetail, out: &mut dyn io::Write) -> Result<()> {
    let mut out = Printer { sst, source, whole: Whole::new(sst, source), walk: None, detail, out };
    let meta = &sst.meta;
    out.footer(meta)?;
    for (kind, tree) in meta.trees() {
        out.line(0, format_args!(""))?;
        let pages = tree.data_pages;
        match meta.filter.filter(|_| kind == TreeKind::Filter) {
            None => out.line(0, format_args!("{kind}: {} in {pages} data pages", Printed(&tree.totals)))?,
            Some(filter) => out.filter(&filter)?,
        }
        let whole = |root: &Root| Subtree {
            address: root.address,
            before: Totals::default(),
            through: tree.totals,
            level: root.height,
        };
        if let Some(root) = tree.btree {
            out.line(1, format_args!("btree: {}", Printed(&root)))?;
            let index = Index { tree: kind, nodes: PageKind::Index, show: Show::Pages };
            out.walk = out.walk_of(kind, tree);
            out.page(index, &whole(&root), 2)?;
        }
        if let Some(root) = tree.flat {
            out.line(1, format_args!("flat: {}", Printed(&root)))?;
            // If this tree has a B-tree in addition to the list, the pages under the list have been printed
            // already.
            let show = if tree.btree.is_some() { Show::Addresses } else { Show::Pages };
            out.walk = if tree.btree.is_some() { None } else { out.walk_of(kind, tree) };
            let index = Index { tree: kind, nodes: PageKind::Flat, show };
            out.page(index, &whole(&root), 2)?;
        }
    }
    out.out.flush().map_err(|error| Error::io("write", "output", error))
}

/// The meta of a file, from its footer.
///
/// # Errors
///
/// [`Error::Io`] if the file cannot be read; [`Error::Corrupt`] if the file does not end with a footer;
/// [`Error::Newer`] if a newer release is needed.
pub fn read_footer(file: &dyn File, path: &Path) -> Result<Meta> {
    Ok(read_origin(file, path)?.0)
}

/// Like [`read_footer`], but also returns the file's [origin](crate::SstBuilder::with_origin), which is empty if
/// the file does not state one.
///
/// # Errors
///
/// The same as for [`read_footer`].
pub fn read_origin(file: &dyn File, path: &Path) -> Result<(Meta, Vec<u8>)> {
    let len = file.len().map_err(|error| Error::io("measure", path, error))?;
    let at = len.saturating_sub(BLOCK_BYTES as u64);
    let corrupt = |why: String| Error::Corrupt { file: path.to_owned(), page: "footer", offset: at, why };
    let mut footer = Buffer::zeroed(BLOCK_BYTES);
    let read = file.read_at(&mut footer, at).map_err(|error| Error::io("read", path, error))?;
    let (meta, origin) = Meta::with_origin(&footer[..read]).map_err(|unreadable| match unreadable {
        Unreadable::Corrupt(why) => corrupt(why),
        Unreadable::Newer(what) => Error::Newer { file: path.to_owned(), what },
    })?;
    if meta.file_bytes != len {
        return Err(corrupt(format!("the file has {len} bytes, its footer says {}", meta.file_bytes)));
    }
    Ok((meta, origin.to_vec()))
}

/// How far down a walk goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Show {
    Pages,
    Addresses,
}

/// The index that a walk goes down, and the tree of this index.
#[derive(Clone, Copy)]
struct Index {
    tree: TreeKind,
    nodes: PageKind,
    show: Show,
}

struct Printer<'a, S: ?Sized> {
    sst: &'a Sst,
    source: &'a S,
    whole: Whole<'a, S>,
    /// The walk over the tree whose data pages are printed. `None` if only pages in memory are printed, or if the
    /// index is a list beside a tree.
    walk: Option<WholeTree>,
    detail: DumpDetail,
    out: &'a mut dyn Write,
}

impl<S: PageSource + ?Sized> Printer<'_, S> {
    fn line(&mut self, depth: usize, text: fmt::Arguments<'_>) -> Result<()> {
        writeln!(self.out, "{:1$}{text}", "", depth * 2).map_err(|error| Error::io("write", "output", error))
    }

    /// The walk over a tree, if its pages are read.
    fn walk_of(&self, kind: TreeKind, tree: Tree) -> Option<WholeTree> {
        (self.detail != DumpDetail::Loaded).then(|| WholeTree::new(kind, tree, self.whole.readahead()))
    }

    /// The page that is `height` levels above the data pages and has rows from `row` on. If only pages in memory
    /// are printed and this page is not in memory, the call prints that the page is missing, and returns `None`.
    fn read(
        &mut self,
        at: &Address,
        kind: PageKind,
        height: u8,
        row: u64,
        depth: usize,
    ) -> Result<Option<(PageRef, PageHeader)>> {
        let file = &self.sst.file;
        let page = match (self.detail, &mut self.walk) {
            (DumpDetail::Loaded, _) => self.source.peek(file.at(at, kind)),
            (_, None) => Some(self.whole.page_at(at, kind)?),
            (_, Some(walk)) if height == 0 => Some(walk.data(&self.whole, at, row)?),
            (_, Some(walk)) => Some(walk.node(&self.whole, at, kind, row)?),
        };
        let Some(page) = page else {
            self.line(depth, format_args!("{} page at {}: not in memory", kind.name(), Printed(at)))?;
            return Ok(None);
        };
        let header = PageHeader::decode(&page).map_err(|why| file.corrupt(kind, at.offset, why))?;
        if header.level != height {
            let why = format!("it is of level {} where {height} belongs", header.level);
            return Err(file.corrupt(kind, at.offset, why));
        }
        Ok(Some((page, header)))
    }

    fn footer(&mut self, meta: &Meta) -> Result<()> {
        let Meta { file_id, file_bytes, oldest, newest, value_bytes, user_bytes, bounds, .. } = meta;
        self.line(0, format_args!("file {file_id:#018x}: {file_bytes} bytes, {user_bytes} of keys and values"))?;
        self.line(0, format_args!("format {}, features {:#x}", crate::FORMAT_VERSION, meta.features()))?;
        if oldest <= newest {
            self.line(0, format_args!("versions {} to {}", oldest.0, newest.0))?;
        }
        match &bounds.high {
            _ if meta.trees().next().is_none() => self.line(0, format_args!("no keys"))?,
            Some(high) => self.line(0, format_args!("keys {} to {}", Escaped(&bounds.low), Escaped(high)))?,
            None => self.line(0, format_args!("keys {} and above", Escaped(&bounds.low)))?,
        }
        if let Some(expiry) = &meta.expiry {
            let (rows, from, to) = (expiry.rows(), expiry.earliest().millis(), expiry.latest().millis());
            self.line(0, format_args!("{rows} versions expire, from {from} to {to}"))?;
            for (until, bytes) in expiry.buckets() {
                self.line(1, format_args!("{bytes} bytes by {}", until.millis()))?;
            }
        }
        self.line(0, format_args!("value pages: {value_bytes} bytes, indexes: {} bytes", meta.index_bytes()))
    }

    /// Prints the page at the top of `subtree`, and everything under it.
    fn page(&mut self, index: Index, subtree: &Subtree, depth: usize) -> Result<()> {
        let (at, rows) = (&subtree.address, subtree.rows());
        if subtree.level == 0 {
            return match index.show {
                Show::Addresses => Ok(()),
                Show::Pages if index.tree == TreeKind::Filter => self.partition(at, rows, depth),
                Show::Pages if index.tree.is_by_row() => self.parts(index.tree, at, rows, depth),
                Show::Pages => self.data(index.tree, at, rows, depth),
            };
        }
        let read = self.read(at, index.nodes, subtree.level, rows.start, depth)?;
        let Some((page, header)) = read else { return Ok(()) };
        let node = IndexNode::new(&page);
        let children = node.children();
        let (first, last) = (node.rows_through(0), node.rows_through(children - 1));
        if first <= rows.start || last != rows.end {
            let why = format!("its children end at rows {first} to {last}, its parent says {rows:?}");
            return Err(self.sst.file.corrupt(index.nodes, at.offset, why));
        }
        let form = match node.is_by_row() {
            true => "by row",
            false if node.is_fixed() => "fixed",
            false => "variable",
        };
        let level = header.level;
        self.line(depth, format_args!("node at {}: level {level}, {children} children, {form}", Printed(at)))?;
        let mut separator = Vec::new();
        for i in 0..children {
            let child = subtree.child(&node, i);
            let from = match node.rows_before(i) {
                None => "the start".to_owned(),
                Some(row) if node.is_by_row() => format!("row {row}"),
                Some(_) => {
                    separator.clear();
                    node.separator(i - 1, &mut separator);
                    Escaped(&separator).to_string()
                }
            };
            let (to, totals) = (Printed(&child.address), Printed(&child.through));
            self.line(depth + 1, format_args!("child {i} from {from}: at {to}, through it {totals}"))?;
            self.page(index, &child, depth + 2)?;
        }
        self.whole.leave(at);
        Ok(())
    }

    fn data(&mut self, tree: TreeKind, at: &Address, rows: Range<u64>, depth: usize) -> Result<()> {
        let kind = tree.page_kind();
        let Some((page, header)) = self.read(at, kind, 0, rows.start, depth)? else { return Ok(()) };
        let layout = Layout::of(&page);
        self.check_rows(&layout, rows, kind, at)?;
        let mut key = Vec::new();
        layout.read_row(&page, 0, &mut key);
        let (name, rows) = (kind.name(), RowSpan(&layout));
        let first_key = PrintedKey { tree, key: &key };
        let (at_bytes, codec) = (Printed(at), Unpacked(&header));
        self.line(depth, format_args!("{name} page at {at_bytes}: {rows}, first {first_key}{codec}"))?;
        if self.detail != DumpDetail::Rows {
            return Ok(());
        }
        for (i, row) in (0..layout.rows()).zip(layout.first_row()..) {
            let record = layout.read_row(&page, i, &mut key);
            let key = PrintedKey { tree, key: &key };
            let value = if tree == TreeKind::RangeErases {
                self.range(&page, &layout, i, at)?
            } else {
                value_text(&page, &record)
            };
            self.line(depth + 1, format_args!("row {row} {key}: version {}, {value}", record.version.0))?;
        }
        Ok(())
    }

    fn filter(&mut self, filter: &FilterTree) -> Result<()> {
        let FilterTree { tree, partition_rows, prefix_bytes, .. } = filter;
        let (totals, pages) = (Printed(&tree.totals), tree.data_pages);
        let prefixes = match prefix_bytes {
            0 => String::new(),
            bytes => format!(", prefixes of {bytes} bytes"),
        };
        self.line(0, format_args!("filter: {totals} in {pages} partitions of {partition_rows}{prefixes}"))
    }

    /// A partition of the filter.
    fn partition(&mut self, at: &Address, rows: Range<u64>, depth: usize) -> Result<()> {
        let kind = PageKind::Filter;
        let Some((page, _)) = self.read(at, kind, 0, rows.start, depth)? else { return Ok(()) };
        let layout = FilterLayout::of(&page);
        self.check_rows(&layout, rows, kind, at)?;
        let (rows, shape) = (RowSpan(&layout), layout.shape(&page));
        self.line(depth, format_args!("filter page at {}: {rows}, {shape}", Printed(at)))
    }

    /// A page of a column group.
    fn parts(&mut self, tree: TreeKind, at: &Address, rows: Range<u64>, depth: usize) -> Result<()> {
        let kind = tree.page_kind();
        let Some((page, header)) = self.read(at, kind, 0, rows.start, depth)? else { return Ok(()) };
        let layout = GroupLayout::of(&page);
        self.check_rows(&layout, rows, kind, at)?;
        let (name, rows, codec) = (kind.name(), RowSpan(&layout), Unpacked(&header));
        self.line(depth, format_args!("{name} page at {}: {rows}{codec}", Printed(at)))?;
        if self.detail != DumpDetail::Rows {
            return Ok(());
        }
        for (i, row) in (0..layout.rows()).zip(layout.first_row()..) {
            let part = layout.part(&page, i);
            let stored = &page[part.at..part.at + part.bytes];
            let text = if part.outside { outside_text(stored) } else { Escaped(stored).to_string() };
            self.line(depth + 1, format_args!("row {row}: {text}"))?;
        }
        Ok(())
    }

    /// Checks that the data page at `at` has the `rows` that its parent says, and counts it as one more page of the
    /// walk.
    fn check_rows(&mut self, layout: &impl PageRows, rows: Range<u64>, kind: PageKind, at: &Address) -> Result<()> {
        let found = layout.first_row()..layout.first_row() + layout.rows() as u64;
        if found == rows {
            if let Some(walk) = &mut self.walk {
                walk.arrived(&self.whole, at, &rows);
            }
            return Ok(());
        }
        let why = format!("it holds rows {found:?}, its parent says {rows:?}");
        Err(self.sst.file.corrupt(kind, at.offset, why))
    }

    fn range(&self, page: &[u8], layout: &Layout, i: usize, at: &Address) -> Result<String> {
        let erase = decode_range_erase(page, layout, i).ok_or_else(|| {
            let why = format!("range erase {i} of the page does not decode");
            self.sst.file.corrupt(PageKind::RangeErase, at.offset, why)
        })?;
        let end = match &erase.keys.end {
            Some(end) => format!("erase up to {}", Escaped(end)),
            None => "erase without end".to_owned(),
        };
        let older: Vec<String> = erase.versions[1..].iter().map(|version| version.0.to_string()).collect();
        Ok(if older.is_empty() { end } else { format!("{end}, also at {}", older.join(" ")) })
    }
}

fn value_text(page: &[u8], record: &RowRecord) -> String {
    let stored = &page[record.value_at..record.value_at + record.value_bytes];
    let kind = match record.kind {
        RowKind::Put => "put",
        RowKind::Erase => "erase",
        RowKind::Merge => "merge",
        RowKind::PutUntil => "put until",
    };
    let kind = match record.until(page) {
        Some(until) => format!("{kind} {}:", until.millis()),
        None => kind.to_owned(),
    };
    let history = if record.has_history { ", has older" } else { "" };
    if record.kind == RowKind::Erase {
        return format!("{kind}{history}");
    }
    if !record.outside {
        return format!("{kind} {}{history}", Escaped(stored));
    }
    format!("{kind} {}{history}", outside_text(stored))
}

/// Where a value lies.
fn outside_text(stored: &[u8]) -> String {
    let reference = OutsideValue::new(stored).expect("a validated page's references decode");
    let chunks: Vec<String> = reference.chunks().map(|chunk| Printed(&chunk).to_string()).collect();
    format!("{} bytes outside at {}", reference.bytes, chunks.join(", "))
}

/// The rows of a page.
struct RowSpan<'a, L>(&'a L);

impl<L: PageRows> fmt::Display for RowSpan<'_, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, last) = (self.0.first_row(), self.0.first_row() + self.0.rows() as u64 - 1);
        write!(f, "rows {first} to {last}")
    }
}

/// How many bytes a page has when it is unpacked, if it was packed.
struct Unpacked<'a>(&'a PageHeader);

impl fmt::Display for Unpacked<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PageHeader { memory_bytes, stored_bytes, .. } = *self.0;
        if stored_bytes < memory_bytes { write!(f, ", unpacked {memory_bytes}") } else { Ok(()) }
    }
}

/// A part of the format as text.
struct Printed<'a, T>(&'a T);

impl fmt::Display for Printed<'_, Address> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}+{}", self.0.offset, self.0.bytes)
    }
}

impl fmt::Display for Printed<'_, Root> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Root { height, index_bytes, address } = self.0;
        write!(f, "height {height}, {index_bytes} bytes, root at {}", Printed(address))
    }
}

impl fmt::Display for Printed<'_, Totals> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Totals { rows, bytes, group_bytes, erased } = self.0;
        write!(f, "{rows} rows, {bytes} bytes")?;
        if *group_bytes > 0 {
            write!(f, ", {group_bytes} elsewhere")?;
        }
        if *erased > 0 {
            write!(f, ", {erased} erased")?;
        }
        Ok(())
    }
}

/// A key of a tree. A key of the history is printed as the number of its main row, because its version is printed
/// with the row anyway. A key of any other tree is printed as bytes.
struct PrintedKey<'a> {
    tree: TreeKind,
    key: &'a [u8],
}

impl fmt::Display for PrintedKey<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.tree, self.key.split_first_chunk::<8>()) {
            (TreeKind::History, Some((row, _))) => write!(f, "of main row {}", u64::from_be_bytes(*row)),
            _ => Escaped(self.key).fmt(f),
        }
    }
}

/// Bytes in quotes. Printable ASCII is printed as it is, and other bytes as `\xNN`. Long strings are cut, and their
/// length is printed.
pub(crate) struct Escaped<'a>(pub &'a [u8]);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"")?;
        for &byte in self.0.iter().take(SHOWN_BYTES) {
            match byte {
                b'"' | b'\\' => write!(f, "\\{}", char::from(byte))?,
                b' '..=b'~' => write!(f, "{}", char::from(byte))?,
                _ => write!(f, "\\x{byte:02x}")?,
            }
        }
        f.write_str("\"")?;
        if self.0.len() > SHOWN_BYTES { write!(f, "… ({} bytes)", self.0.len()) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests;
