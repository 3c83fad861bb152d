//! A file as text for people: footer, trees by level, rows if asked. It opens the file alone, by its footer, and keeps
//! one page of each level in memory. It does not check what a walk does not meet; that is [`crate::verify()`].

use crate::format::data_page::{Layout, OutsideValue, Record};
use crate::format::meta::{Meta, Root, TreeKind};
use crate::format::node::{Child, Node, Totals};
use crate::format::validate;
use crate::read::decode_range_erase;
use crate::row::RowKind;
use os::sync::Arc;
use os::{BLOCK_BYTES, Buffer, File};
use pages::page::{MAX_PAGE_BYTES, decode_page};
use pages::{Address, Error, PageHeader, PageKind, Result};
use std::fmt;
use std::io::{self, Write};
use std::path::Path;

/// Bytes of a key or value that are printed.
const SHOWN_BYTES: usize = 64;

/// What [`dump`] prints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DumpOptions {
    /// Every row, not only the pages they are in.
    pub rows: bool,
}

/// Prints `file`, whose name in messages is `path`, to `out`.
pub fn dump(file: Arc<dyn File>, path: &Path, options: DumpOptions, out: &mut dyn io::Write) -> Result<()> {
    let meta = read_footer(&*file, path)?;
    let mut out = Printer { file, path, options, file_id: meta.file_id, out };
    out.footer(&meta)?;
    for (kind, tree) in meta.trees() {
        out.line(0, format_args!(""))?;
        let pages = tree.data_pages;
        out.line(0, format_args!("{}: {} in {pages} data pages", kind.name(), Printed(&tree.totals)))?;
        if let Some(root) = tree.btree {
            out.line(1, format_args!("btree: {}", Printed(&root)))?;
            out.page(kind, PageKind::Index, &root.address, root.height, 2, Show::Pages)?;
        }
        if let Some(root) = tree.flat {
            out.line(1, format_args!("flat: {}", Printed(&root)))?;
            // Under a list beside a tree everything has been printed already.
            let show = if tree.btree.is_some() { Show::Addresses } else { Show::Pages };
            out.page(kind, PageKind::Flat, &root.address, root.height, 2, show)?;
        }
    }
    out.out.flush().map_err(|error| Error::io("write", "output", error))
}

/// What is known of a file that lies alone.
pub fn read_footer(file: &dyn File, path: &Path) -> Result<Meta> {
    let len = file.len().map_err(|error| Error::io("measure", path, error))?;
    let at = len.saturating_sub(BLOCK_BYTES as u64);
    let corrupt = |why: String| Error::Corrupt { file: path.to_owned(), page: "footer", offset: at, why };
    let mut footer = Buffer::zeroed(BLOCK_BYTES);
    let read = file.read_at(&mut footer, at).map_err(|error| Error::io("read", path, error))?;
    let meta = Meta::from_footer(&footer[..read]).map_err(corrupt)?;
    if meta.file_bytes != len {
        return Err(corrupt(format!("the file has {len} bytes, its footer says {}", meta.file_bytes)));
    }
    Ok(meta)
}

/// How far down a walk goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Show {
    Pages,
    Addresses,
}

struct Printer<'a> {
    file: Arc<dyn File>,
    path: &'a Path,
    options: DumpOptions,
    file_id: u64,
    out: &'a mut dyn Write,
}

impl Printer<'_> {
    fn line(&mut self, depth: usize, text: fmt::Arguments<'_>) -> Result<()> {
        writeln!(self.out, "{:1$}{text}", "", depth * 2).map_err(|error| Error::io("write", "output", error))
    }

    fn read(&self, at: &Address, kind: PageKind) -> Result<(Buffer, PageHeader)> {
        let corrupt = |why| Error::Corrupt { file: self.path.to_owned(), page: kind.name(), offset: at.offset, why };
        if at.bytes as usize > MAX_PAGE_BYTES {
            return Err(corrupt(format!("its parent gives it {} bytes", at.bytes)));
        }
        let start = (at.offset % BLOCK_BYTES as u64) as usize;
        let end = start + at.bytes as usize;
        let mut blocks = Buffer::zeroed(end.next_multiple_of(BLOCK_BYTES));
        let read = self
            .file
            .read_at(&mut blocks, at.offset - start as u64)
            .map_err(|error| Error::io("read", self.path, error))?;
        let stored = &blocks[start.min(read)..end.min(read)];
        let (page, header) = decode_page(stored, kind, at, self.file_id).map_err(corrupt)?;
        validate(kind, &page).map_err(corrupt)?;
        Ok((page, header))
    }

    fn footer(&mut self, meta: &Meta) -> Result<()> {
        let Meta { file_id, file_bytes, oldest, newest, value_bytes, user_bytes, bounds, .. } = meta;
        self.line(0, format_args!("file {file_id:#018x}: {file_bytes} bytes, {user_bytes} of keys and values"))?;
        self.line(0, format_args!("format {}, features 0x0", crate::FORMAT_VERSION))?;
        if oldest <= newest {
            self.line(0, format_args!("versions {} to {}", oldest.0, newest.0))?;
        }
        match &bounds.high {
            _ if meta.trees().next().is_none() => self.line(0, format_args!("no keys"))?,
            Some(high) => self.line(0, format_args!("keys {} to {}", Escaped(&bounds.low), Escaped(high)))?,
            None => self.line(0, format_args!("keys {} and above", Escaped(&bounds.low)))?,
        }
        self.line(0, format_args!("value pages: {value_bytes} bytes, indexes: {} bytes", meta.index_bytes()))
    }

    /// A page `height` levels above the data pages, and everything under it.
    fn page(
        &mut self,
        tree: TreeKind,
        kind: PageKind,
        at: &Address,
        height: u8,
        depth: usize,
        show: Show,
    ) -> Result<()> {
        if height == 0 {
            return if show == Show::Pages { self.data(tree, at, depth) } else { Ok(()) };
        }
        let (page, header) = self.read(at, kind)?;
        let node = Node::new(&page);
        let children = node.children();
        let form = if node.is_fixed() { "fixed" } else { "variable" };
        let level = header.level;
        self.line(depth, format_args!("node at {}: level {level}, {children} children, {form}", Printed(at)))?;
        let mut separator = Vec::new();
        for i in 0..children {
            let Child { address, totals } = node.child(i);
            separator.clear();
            if i > 0 {
                node.separator(i - 1, &mut separator);
            }
            let from: &dyn fmt::Display = if i > 0 { &Escaped(&separator) } else { &"the start" };
            let (to, totals) = (Printed(&address), Printed(&totals));
            self.line(depth + 1, format_args!("child {i} from {from}: at {to}, through it {totals}"))?;
            self.page(tree, kind, &address, height - 1, depth + 2, show)?;
        }
        Ok(())
    }

    fn data(&mut self, tree: TreeKind, at: &Address, depth: usize) -> Result<()> {
        let kind = tree.page_kind();
        let (page, header) = self.read(at, kind)?;
        let layout = Layout::of(&page);
        let mut key = Vec::new();
        layout.read_row(&page, 0, &mut key);
        let (first, last) = (layout.first_row(), layout.first_row() + layout.rows() as u64 - 1);
        let (name, bytes) = (kind.name(), header.memory_bytes);
        let codec = if header.stored_bytes < bytes { format!(", unpacked {bytes}") } else { String::new() };
        let first_key = Key { tree, key: &key };
        let at_bytes = Printed(at);
        self.line(depth, format_args!("{name} page at {at_bytes}: rows {first} to {last}, first {first_key}{codec}"))?;
        if self.options.rows {
            for i in 0..layout.rows() {
                let record = layout.read_row(&page, i, &mut key);
                let key = Key { tree, key: &key };
                let row = first + i as u64;
                let value = if tree == TreeKind::RangeErases {
                    self.range(&page, &layout, i, at)?
                } else {
                    value_text(&page[record.value_at..record.value_at + record.value_bytes], &record)
                };
                self.line(depth + 1, format_args!("row {row} {key}: version {}, {value}", record.version.0))?;
            }
        }
        Ok(())
    }

    fn range(&self, page: &[u8], layout: &Layout, i: usize, at: &Address) -> Result<String> {
        let erase = decode_range_erase(page, layout, i).ok_or_else(|| {
            let why = format!("range erase {i} of the page does not decode");
            Error::Corrupt { file: self.path.to_owned(), page: "range erase", offset: at.offset, why }
        })?;
        let end = match &erase.end {
            Some(end) => format!("erase up to {}", Escaped(end)),
            None => "erase without end".to_owned(),
        };
        let older: Vec<String> = erase.versions[1..].iter().map(|version| version.0.to_string()).collect();
        Ok(if older.is_empty() { end } else { format!("{end}, also at {}", older.join(" ")) })
    }
}

fn value_text(stored: &[u8], record: &Record) -> String {
    let kind = match record.kind {
        RowKind::Put => "put",
        RowKind::Erase => "erase",
        RowKind::Merge => "merge",
    };
    let history = if record.has_history { ", has older" } else { "" };
    if record.kind == RowKind::Erase {
        return format!("{kind}{history}");
    }
    if !record.outside {
        return format!("{kind} {}{history}", Escaped(stored));
    }
    let reference = OutsideValue::new(stored).expect("a validated page's references decode");
    let chunks: Vec<String> = reference.chunks().map(|chunk| Printed(&chunk).to_string()).collect();
    format!("{kind} {} bytes outside at {}{history}", reference.bytes, chunks.join(", "))
}

/// Text of a part of the format.
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

/// A key of a tree: in the history a main row and a version, which stands with the row anyway, elsewhere bytes.
struct Key<'a> {
    tree: TreeKind,
    key: &'a [u8],
}

impl fmt::Display for Key<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.tree, self.key.split_first_chunk::<8>()) {
            (TreeKind::History, Some((row, _))) => write!(f, "of main row {}", u64::from_be_bytes(*row)),
            _ => Escaped(self.key).fmt(f),
        }
    }
}

/// Bytes in quotes: printable ASCII as it is, the rest as `\xNN`, long strings cut with their length.
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
