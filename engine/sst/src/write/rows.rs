//! Builds the pages of one tree as its rows arrive: a page is closed when the next row does not fit. In most
//! trees, the rows have keys. Rows that are parts of a column group have no keys. This module does not know what
//! the rows mean.

use super::file_writer::FileWriter;
use super::options::BuildOptions;
use super::tree::{ClosingPage, TreeBuilder};
use crate::copied_page::CopiedPage;
use crate::format::data_page::DataPageBuilder;
use crate::format::group_page::GroupPageBuilder;
use crate::format::key;
use crate::format::meta::{Tree, TreeKind};
use crate::row::{RowKind, Until, Version};
use pages::Result;

/// A value, or the reference to a value that lies outside its page.
#[derive(Clone, Copy, Debug)]
pub struct StoredBytes<'v> {
    /// Its bytes.
    pub bytes: &'v [u8],
    /// Whether it is a reference.
    pub outside: bool,
    /// The time until which its row is there, if the row has one.
    pub until: Option<Until>,
}

impl<'v> StoredBytes<'v> {
    /// A value that lies in the page.
    pub fn inline(bytes: &'v [u8]) -> Self {
        Self { bytes, outside: false, until: None }
    }

    /// The reference to a value that lies outside its page.
    pub fn reference(bytes: &'v [u8]) -> Self {
        Self { bytes, outside: true, until: None }
    }
}

/// A tree of rows with keys.
#[derive(Debug)]
pub struct KeyedRows {
    page: DataPageBuilder,
    /// Erased rows in the open page.
    erased: u64,
    /// The key of the last row in the page that was closed last.
    closed_key: Vec<u8>,
    /// Separator before the open page.
    separator: Vec<u8>,
    /// The number of erased rows of a copied page that waits to be written. Its bytes are in `scratch`. It waits
    /// until more rows come or the file ends: the totals of the last page of a file must include the pages outside
    /// this tree that are closed only at the end.
    copied: Option<u64>,
    /// The target length of the open page, if it differs from that of all other pages.
    open_bytes: Option<usize>,
    tree: TreeBuilder,
    /// The stored bytes of everything that belongs to the rows so far but lies outside this tree. The caller sets
    /// it before it adds a row. If that row closes a page, the totals of the page get this number.
    pub elsewhere: u64,
    scratch: Vec<u8>,
}

impl KeyedRows {
    pub fn new(kind: TreeKind, options: &BuildOptions) -> Self {
        Self {
            page: DataPageBuilder::new(0),
            erased: 0,
            closed_key: Vec::new(),
            separator: Vec::new(),
            copied: None,
            open_bytes: None,
            tree: TreeBuilder::new(kind, options),
            elsewhere: 0,
            scratch: Vec::new(),
        }
    }

    /// Rows so far.
    pub fn rows(&self) -> u64 {
        self.page.next_row()
    }

    /// The key of the last row. It is empty if there is no row.
    pub fn last_key(&self) -> &[u8] {
        self.page.last_key().unwrap_or(&self.closed_key)
    }

    /// The index over the closed pages.
    pub fn tree(&self) -> &TreeBuilder {
        &self.tree
    }

    /// The memory that the open page and the index take.
    pub fn memory_bytes(&self) -> usize {
        let keys = self.closed_key.capacity() + self.separator.capacity();
        self.page.memory_bytes() + keys + self.scratch.capacity() + self.tree.memory_bytes()
    }

    /// Adds a row. The key of the row must be greater than the keys of all rows before it.
    #[inline]
    pub fn add(
        &mut self,
        writer: &mut FileWriter,
        options: &BuildOptions,
        key: &[u8],
        version: Version,
        kind: RowKind,
        value: StoredBytes<'_>,
    ) -> Result<()> {
        let value_bytes = value.bytes.len() + if value.until.is_some() { Until::BYTES } else { 0 };
        let most_bytes = self.open_bytes.unwrap_or(options.page_bytes as usize);
        let full = self.page.rows() > 0
            && (!self.page.fits(key, version, value_bytes, most_bytes) || self.page.rows() >= options.max_page_rows);
        if full {
            self.close_page(writer, options)?;
        }
        if self.page.rows() == 0 {
            self.open_page(writer, options, key)?;
        }
        match value.until {
            None => self.page.add(key, version, kind, value.outside, value.bytes),
            Some(until) => self.page.add_until(key, version, until, value.outside, value.bytes),
        }
        self.erased += u64::from(kind == RowKind::Erase);
        Ok(())
    }

    /// Removes the last row. It must be a put without older versions. Returns how many bytes the key and the value
    /// of this row had.
    pub fn take_back(&mut self) -> usize {
        self.page.take_back()
    }

    /// Begins a page whose first key is `key`. If a copied page still waits, it is written before.
    #[cold]
    fn open_page(&mut self, writer: &mut FileWriter, options: &BuildOptions, key: &[u8]) -> Result<()> {
        self.write_copied(writer, options)?;
        self.begin_page(key);
        Ok(())
    }

    /// Marks the last row as a row with older versions.
    pub fn mark_history(&mut self) {
        self.page.mark_history();
    }

    /// Begins a page with `key` as its first key, directly after the page that was closed last.
    fn begin_page(&mut self, key: &[u8]) {
        self.separator.clear();
        if self.rows() > 0 {
            self.separator.extend_from_slice(key::separator(&self.closed_key, key));
        }
    }

    fn close_page(&mut self, writer: &mut FileWriter, options: &BuildOptions) -> Result<()> {
        self.open_bytes = None;
        self.closed_key.clear();
        self.closed_key.extend_from_slice(self.page.last_key().expect("the page has rows"));
        self.page.finish(&mut self.scratch);
        let rows = ClosingPage {
            rows: self.page.next_row(),
            erased: std::mem::take(&mut self.erased),
            elsewhere: self.elsewhere,
        };
        self.tree.add_page(writer, options, &mut self.scratch, &self.separator, rows)
    }

    /// Whether the page `page`, whose first key is `key`, may be copied. Copying it closes the open page, so both
    /// pages must be at least half full. Otherwise pages would become smaller each time a file is copied. The open
    /// page may be less than half full, but still have no room for all rows of `page`. Then the rows are added one
    /// by one, and the open page takes about half of the rows of both pages.
    pub fn takes_page(&mut self, options: &BuildOptions, page: &CopiedPage, key: &[u8]) -> bool {
        let (most, half) = (options.page_bytes as usize, options.page_bytes as usize / 2);
        if page.bytes() > most || page.bytes() < half || page.rows() > options.max_page_rows {
            return false;
        }
        if self.page.rows() == 0 {
            return true;
        }
        let open = self.page.bytes_with(key, page.base_version(), 0);
        if open >= half {
            return true;
        }
        // One byte is added for each row, because a page is closed by an estimate of its length that may be too
        // high.
        let both = open + page.bytes() + page.rows();
        if both > most {
            self.open_bytes = Some(both / 2);
        }
        false
    }

    /// Adds a copied page. `first` is the first key of this page, and `last` is its last key.
    pub fn add_page(
        &mut self,
        writer: &mut FileWriter,
        options: &BuildOptions,
        page: &CopiedPage,
        (first, last): (&[u8], &[u8]),
    ) -> Result<()> {
        self.finish_pages(writer, options)?;
        self.begin_page(first);
        self.closed_key.clear();
        self.closed_key.extend_from_slice(last);
        page.write(self.rows(), &mut self.scratch);
        self.page.skip_rows(page.rows() as u64);
        self.copied = Some(page.erased());
        Ok(())
    }

    fn write_copied(&mut self, writer: &mut FileWriter, options: &BuildOptions) -> Result<()> {
        let Some(erased) = self.copied.take() else { return Ok(()) };
        let rows = ClosingPage { rows: self.rows(), erased, elsewhere: self.elsewhere };
        self.tree.add_page(writer, options, &mut self.scratch, &self.separator, rows)
    }

    /// Writes the pages that are not written yet, but not the index.
    pub fn finish_pages(&mut self, writer: &mut FileWriter, options: &BuildOptions) -> Result<()> {
        self.write_copied(writer, options)?;
        if self.page.rows() > 0 { self.close_page(writer, options) } else { Ok(()) }
    }

    /// Writes all that is left of the index, and describes the tree; `None` if the tree has no rows.
    pub fn finish_index(&mut self, writer: &mut FileWriter, options: &BuildOptions) -> Result<Option<Tree>> {
        self.tree.finish(writer, options)
    }
}

/// A tree of the parts of rows.
#[derive(Debug)]
pub struct PartRows {
    page: GroupPageBuilder,
    tree: TreeBuilder,
    /// The stored bytes of the value pages that belong to the rows so far.
    elsewhere: u64,
    scratch: Vec<u8>,
}

impl PartRows {
    pub fn new(kind: TreeKind, options: &BuildOptions) -> Self {
        let tree = TreeBuilder::new(kind, options);
        Self { page: GroupPageBuilder::default(), tree, elsewhere: 0, scratch: Vec::new() }
    }

    /// The index over the closed pages.
    pub fn tree(&self) -> &TreeBuilder {
        &self.tree
    }

    /// The memory that the open page and the index take.
    pub fn memory_bytes(&self) -> usize {
        self.page.memory_bytes() + self.scratch.capacity() + self.tree.memory_bytes()
    }

    /// Adds this group's part of the next row. If the part lies in value pages of its own, `elsewhere` is the
    /// number of their stored bytes.
    pub fn add(
        &mut self,
        writer: &mut FileWriter,
        options: &BuildOptions,
        part: StoredBytes<'_>,
        elsewhere: u64,
    ) -> Result<()> {
        let full = self.page.rows() > 0
            && (self.page.bytes_with(part.bytes.len(), part.outside) > options.page_bytes as usize
                || self.page.rows() >= options.max_page_rows);
        if full {
            self.close_page(writer, options)?;
        }
        self.page.add(part.bytes, part.outside);
        self.elsewhere += elsewhere;
        Ok(())
    }

    fn close_page(&mut self, writer: &mut FileWriter, options: &BuildOptions) -> Result<()> {
        self.page.finish(&mut self.scratch);
        let rows = ClosingPage { rows: self.page.next_row(), erased: 0, elsewhere: self.elsewhere };
        self.tree.add_page(writer, options, &mut self.scratch, &[], rows)
    }

    /// Writes the open page, but not the index.
    pub fn finish_pages(&mut self, writer: &mut FileWriter, options: &BuildOptions) -> Result<()> {
        if self.page.rows() > 0 { self.close_page(writer, options) } else { Ok(()) }
    }

    /// Writes all that is left of the index, and describes the tree; `None` if the tree has no rows.
    pub fn finish_index(&mut self, writer: &mut FileWriter, options: &BuildOptions) -> Result<Option<Tree>> {
        self.tree.finish(writer, options)
    }
}
