//! One file from rows in order: newest versions in the main tree, older ones in the history, range erases in a tree of
//! their own, large values outside their pages.

use super::file_writer::FileWriter;
use super::tree::TreeBuilder;
use crate::format::data_page::OutsideValue;
use crate::format::meta::{IndexKind, KeyBounds, Meta, TreeKind};
use crate::format::varint;
use crate::row::{MAX_KEY_BYTES, RowKind, Version};
use os::sync::Arc;
use os::{BLOCK_BYTES, File};
use pages::page::Packing;
use pages::{Codec, HEADER_BYTES, PageKind, Result};
use std::path::PathBuf;

/// Chunk of a large value.
const MAX_CHUNK_BYTES: usize = 1 << 20;

/// Whether pages are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Compression {
    /// Pages are used as they lie.
    #[default]
    None,
    /// LZ4, kept for the pages it makes an eighth smaller.
    Lz4,
}

/// How files of a table are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BuildOptions {
    /// Target length of a data page in bytes, its header included. Larger rows get a page of their own.
    pub page_bytes: u32,
    /// Target length of an index node in bytes.
    pub node_bytes: u32,
    /// Which indexes to write.
    pub index: IndexKind,
    /// Of data and value pages; nodes are never compressed.
    pub compression: Compression,
    /// Most children of a node, at least 3. For tests that want tall trees.
    pub max_node_children: usize,
    /// Most rows of a page. For tests that want many pages.
    pub max_page_rows: usize,
}

impl Default for BuildOptions {
    fn default() -> Self {
        Self {
            page_bytes: 16 << 10,
            node_bytes: 16 << 10,
            index: IndexKind::Btree,
            compression: Compression::None,
            max_node_children: usize::MAX / 4,
            max_page_rows: usize::MAX,
        }
    }
}

impl BuildOptions {
    pub(super) fn codec(&self) -> Codec {
        match self.compression {
            Compression::None => Codec::None,
            Compression::Lz4 => Codec::Lz4,
        }
    }

    /// Values longer than this lie outside their page: four rows to a page at least.
    pub fn inline_bytes(&self) -> usize {
        self.page_bytes as usize / 4
    }
}

/// Writes one file. Rows are added by key ascending and version descending, range erases by start ascending, in any
/// mixture; nothing is readable before [`Builder::finish`].
#[derive(Debug)]
pub struct Builder {
    options: BuildOptions,
    writer: FileWriter,
    file_id: u64,
    main: TreeBuilder,
    history: TreeBuilder,
    range_erases: TreeBuilder,
    first_key: Vec<u8>,
    last_key: Vec<u8>,
    /// Of the last version added.
    last_version: Version,
    erased: Option<ErasedSpan>,
    history_pages_end: u64,
    oldest: Version,
    newest: Version,
    value_bytes: u64,
    user_bytes: u64,
    reference: Vec<u8>,
    chunk: Vec<u8>,
}

/// First start and greatest end of the range erases.
#[derive(Debug)]
struct ErasedSpan {
    start: Vec<u8>,
    /// `None` without bound.
    end: Option<Vec<u8>>,
}

impl Builder {
    /// Writes to `file`, new and empty, whose checksums are seeded with `file_id`.
    pub fn new(file: Arc<dyn File>, path: PathBuf, file_id: u64, options: BuildOptions) -> Self {
        assert!(options.max_node_children >= 3, "a node needs room to split");
        Self {
            options,
            writer: FileWriter::new(file, path, file_id),
            file_id,
            main: TreeBuilder::new(TreeKind::Main, &options),
            history: TreeBuilder::new(TreeKind::History, &options),
            range_erases: TreeBuilder::new(TreeKind::RangeErases, &options),
            first_key: Vec::new(),
            last_key: Vec::new(),
            last_version: Version::MAX,
            erased: None,
            history_pages_end: 0,
            oldest: Version::MAX,
            newest: Version(0),
            value_bytes: 0,
            user_bytes: 0,
            reference: Vec::new(),
            chunk: Vec::new(),
        }
    }

    /// Main rows so far.
    pub fn rows(&self) -> u64 {
        self.main.rows()
    }

    /// Whether nothing was added.
    pub fn is_empty(&self) -> bool {
        self.main.rows() == 0 && self.range_erases.rows() == 0
    }

    /// Length of the file if it were finished now, to a page or so.
    pub fn file_bytes(&self) -> u64 {
        self.writer.offset() + self.main.waiting_bytes() + self.history.waiting_bytes() + BLOCK_BYTES as u64
    }

    /// Key of the last row.
    pub fn last_key(&self) -> &[u8] {
        &self.last_key
    }

    /// Adds a version of a row. The first one of a key is its newest; the others go to the history.
    pub fn add(&mut self, key: &[u8], version: Version, kind: RowKind, value: &[u8]) -> Result<()> {
        assert!(key.len() <= MAX_KEY_BYTES, "the caller checked the key's length");
        self.oldest = self.oldest.min(version);
        self.newest = self.newest.max(version);
        self.user_bytes += (key.len() + value.len()) as u64;
        // If this row closes a page, the page's total covers the rows before it, not this one's value.
        let group_bytes = self.value_bytes + self.history_pages_end;
        let outside = value.len() > self.options.inline_bytes();
        if outside {
            self.write_outside(value)?;
        }
        let stored = if outside { self.reference.as_slice() } else { value };
        if self.main.rows() > 0 && key == self.last_key {
            assert!(version < self.last_version, "versions of a key arrive newest first");
            self.last_version = version;
            self.main.mark_history();
            let key = history_key(self.main.rows() - 1, version);
            self.history.add(&mut self.writer, &self.options, &key, version, kind, outside, stored, 0)?;
            self.history_pages_end = self.history.page_bytes();
            return Ok(());
        }
        assert!(self.main.rows() == 0 || self.last_key.as_slice() < key, "keys arrive in order");
        self.main.add(&mut self.writer, &self.options, key, version, kind, outside, stored, group_bytes)?;
        if self.main.rows() == 1 {
            self.first_key.extend_from_slice(key);
        }
        self.last_key.clear();
        self.last_key.extend_from_slice(key);
        self.last_version = version;
        Ok(())
    }

    /// Adds a range erase over `[start, end)`, without end if `None`, at each of `versions`, newest first. Ranges do not
    /// overlap and arrive in order.
    ///
    /// ```text
    /// row: key = start, version = newest; value = end present u8 | end, length-prefixed | older versions: count, each varint
    /// ```
    pub fn add_range_erase(&mut self, start: &[u8], end: Option<&[u8]>, versions: &[Version]) -> Result<()> {
        let (newest, older) = versions.split_first().expect("a range erase has a version");
        assert!(start.len() <= MAX_KEY_BYTES, "the caller checked the length of the start");
        assert!(versions.is_sorted_by(|a, b| a > b), "versions of a range arrive newest first");
        assert!(end.is_none_or(|end| start < end), "a range has room for a key");
        let last_end = self.erased.as_ref().map(|span| span.end.as_deref());
        assert!(last_end.is_none_or(|end| end.is_some_and(|end| end <= start)), "ranges arrive in order, apart");
        self.newest = self.newest.max(*newest);
        self.oldest = self.oldest.min(*older.last().unwrap_or(newest));
        let mut value = std::mem::take(&mut self.chunk);
        value.clear();
        value.push(u8::from(end.is_some()));
        varint::put_bytes(&mut value, end.unwrap_or_default());
        varint::put(&mut value, older.len() as u64);
        for version in older {
            varint::put(&mut value, version.0);
        }
        let kind = RowKind::Erase;
        self.range_erases.add(&mut self.writer, &self.options, start, *newest, kind, false, &value, 0)?;
        self.chunk = value;
        let span = self.erased.get_or_insert_with(|| ErasedSpan { start: start.to_vec(), end: Some(Vec::new()) });
        span.end = span.end.take().zip(end).map(|(old, new)| if old.as_slice() < new { new.to_vec() } else { old });
        Ok(())
    }

    fn write_outside(&mut self, value: &[u8]) -> Result<()> {
        let mut chunks = Vec::new();
        for chunk in value.chunks(MAX_CHUNK_BYTES) {
            self.chunk.clear();
            self.chunk.resize(HEADER_BYTES, 0);
            self.chunk.extend_from_slice(chunk);
            let (kind, codec) = (PageKind::Value, self.options.codec());
            let address = self.writer.write_page(&mut self.chunk, kind, 0, codec, Packing::Tight)?;
            self.value_bytes += u64::from(address.bytes);
            chunks.push(address);
        }
        self.reference.clear();
        OutsideValue::encode(&mut self.reference, value.len() as u64, &chunks);
        Ok(())
    }

    /// Writes the rest, makes the file durable and describes it. The caller makes the file's name durable.
    pub fn finish(mut self) -> Result<Meta> {
        let (writer, options) = (&mut self.writer, &self.options);
        self.history.finish_pages(writer, options, 0)?;
        self.range_erases.finish_pages(writer, options, 0)?;
        let group_bytes = self.value_bytes + self.history.page_bytes();
        self.main.finish_pages(writer, options, group_bytes)?;
        // The index region: everything but the data pages, together, the main tree's root last.
        let history = self.history.finish_index(writer, options)?;
        let range_erases = self.range_erases.finish_index(writer, options)?;
        let main = self.main.finish_index(writer, options)?;
        writer.align(BLOCK_BYTES as u64)?;

        let rows = main.is_some().then(|| KeyBounds::cut(&self.first_key, &self.last_key));
        let erased = self.erased.map(|span| match span.end {
            Some(end) => KeyBounds::cut(&span.start, &end),
            None => KeyBounds { high: None, ..KeyBounds::cut(&span.start, &span.start) },
        });
        let bounds = match (rows, erased) {
            (Some(a), Some(b)) => a.union(&b),
            (a, b) => a.or(b).unwrap_or_default(),
        };
        let meta = Meta {
            file_id: self.file_id,
            file_bytes: writer.offset() + BLOCK_BYTES as u64,
            main,
            history,
            range_erases,
            bounds,
            oldest: self.oldest,
            newest: self.newest,
            value_bytes: self.value_bytes,
            user_bytes: self.user_bytes,
        };
        writer.append(&meta.footer())?;
        writer.finish()?;
        Ok(meta)
    }
}

/// Key of an older version in the history: row id ascending, version descending.
///
/// ```text
/// row id u64 big-endian | !version u64 big-endian
/// ```
pub fn history_key(row: u64, version: Version) -> [u8; 16] {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&row.to_be_bytes());
    key[8..].copy_from_slice(&(!version.0).to_be_bytes());
    key
}
