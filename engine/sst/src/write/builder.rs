//! Makes one file from rows in order. Newest versions go to the main tree, older versions to the history, and
//! range erases to their own tree. The parts in other column groups go to trees beside these two, large values go
//! outside their pages, and a filter covers the keys. This module does not know which versions are still needed.

use super::file_writer::FileWriter;
use super::filter::FilterRows;
use super::options::BuildOptions;
use super::rows::{KeyedRows, PartRows, StoredBytes};
use super::tree::TreeBuilder;
use crate::KeyRange;
use crate::copied_page::CopiedPage;
use crate::format::expiry::Expiry;
use crate::format::meta::{
    GroupTrees, KeyBounds, MAX_GROUPS, MAX_ORIGIN_BYTES, MERGES, Meta, ORIGIN, TreeKind, Unknown,
};
use crate::format::{MAX_CHUNK_BYTES, MAX_NODE_BYTES, OutsideValue, history_key, varint};
use crate::row::{MAX_KEY_BYTES, RowKind, Until, Version};
use os::sync::Arc;
use os::{BLOCK_BYTES, File, Threads};
use pages::page::Packing;
use pages::{HEADER_BYTES, PageKind, Result};
use std::cmp::Ordering;
use std::path::PathBuf;

/// Writes one file. Rows are added in ascending order of keys, and the versions of a key in descending order. Range
/// erases are added in ascending order of their starts. Rows and range erases may be mixed in any way. Nothing can
/// be read before [`SstBuilder::finish`].
#[derive(Debug)]
pub struct SstBuilder {
    options: BuildOptions,
    /// Values longer than this lie outside their pages. The build options decide this limit.
    inline_bytes: usize,
    writer: FileWriter,
    file_id: u64,
    main: KeyedRows,
    history: KeyedRows,
    range_erases: KeyedRows,
    filter: Option<FilterRows>,
    groups: Vec<Group>,
    first_key: Vec<u8>,
    /// The version that was added last.
    last_version: Version,
    /// The keys from the start of the first range erase to the end of the last one.
    erased: Option<KeyRange>,
    oldest: Version,
    newest: Version,
    value_bytes: u64,
    user_bytes: u64,
    /// Whether some row is a merge.
    has_merges: bool,
    chunk: Vec<u8>,
    /// Two keys of a page that is being copied. They are fields only to reuse their memory.
    page_keys: (Vec<u8>, Vec<u8>),
    origin: Vec<u8>,
    /// When rows expire, once a row with a time was added.
    expiry: Option<Box<Expiry>>,
}

/// The parts of a column group.
#[derive(Debug)]
struct Group {
    newest: PartRows,
    older: PartRows,
}

impl SstBuilder {
    /// A builder that writes to `file`. The file must be new and empty. The checksums of its pages are seeded with
    /// `file_id`.
    pub fn new(file: Arc<dyn File>, path: PathBuf, file_id: u64, options: BuildOptions) -> Self {
        assert!(options.max_node_children >= 3, "a node needs room to split");
        assert!(options.node_bytes as usize <= MAX_NODE_BYTES, "a reader takes no larger nodes");
        assert!(options.groups <= MAX_GROUPS, "the footer has room for so many groups");
        let group = |number: usize| Group {
            newest: PartRows::new(TreeKind::Group(number as u8), &options),
            older: PartRows::new(TreeKind::GroupHistory(number as u8), &options),
        };
        Self {
            options,
            inline_bytes: options.inline_bytes(),
            writer: FileWriter::new(file, path, file_id),
            file_id,
            main: KeyedRows::new(TreeKind::Main, &options),
            history: KeyedRows::new(TreeKind::History, &options),
            range_erases: KeyedRows::new(TreeKind::RangeErases, &options),
            filter: FilterRows::new(&options),
            groups: (1..=options.groups).map(group).collect(),
            first_key: Vec::new(),
            last_version: Version::MAX,
            erased: None,
            oldest: Version::MAX,
            newest: Version(0),
            value_bytes: 0,
            user_bytes: 0,
            has_merges: false,
            chunk: Vec::new(),
            page_keys: Default::default(),
            origin: Vec::new(),
            expiry: None,
        }
    }

    /// Lets `threads` write to the disk while the caller adds rows. This takes 128 KiB more memory.
    pub fn with_writes_behind(mut self, threads: Arc<dyn Threads>) -> Self {
        self.writer.write_behind(threads);
        self
    }

    /// Makes the builder write a part of a larger file. This part begins at `offset`, which must be a multiple of
    /// a block. The meta of the part says how long it is. All parts of one file must have the same `file_id`. The
    /// caller syncs the file.
    pub fn at_offset(mut self, offset: u64) -> Self {
        self.writer.begin_at(offset);
        self
    }

    /// Makes the footer say where the file comes from. `origin` has at most [`MAX_ORIGIN_BYTES`] bytes, and only
    /// the caller reads them. If [`BuildOptions::features`] do not allow this, the footer leaves it out.
    pub fn with_origin(mut self, origin: Vec<u8>) -> Self {
        assert!(origin.len() <= MAX_ORIGIN_BYTES, "the footer has room for so much");
        if self.options.features & ORIGIN != 0 {
            self.origin = origin;
        }
        self
    }

    /// Makes the footer say that the file has merges, so that a release which does not know them refuses it. If
    /// [`BuildOptions::features`] do not allow this, the footer leaves it out.
    pub fn note_merges(&mut self) {
        self.has_merges = self.options.features & MERGES != 0;
    }

    /// Main rows so far.
    pub fn rows(&self) -> u64 {
        self.main.rows()
    }

    /// Whether nothing was added.
    pub fn is_empty(&self) -> bool {
        self.main.rows() == 0 && self.range_erases.rows() == 0
    }

    /// The approximate length that the file would have if it were finished now. It may be wrong by about a page.
    pub fn file_bytes(&self) -> u64 {
        // This code runs for each row. It uses plain sums: with chained iterators, it took a tenth of the time
        // that adding a row takes.
        let mut bytes = self.writer.offset() + self.filter.as_ref().map_or(0, FilterRows::waiting_bytes);
        for rows in [&self.main, &self.history, &self.range_erases] {
            bytes += rows.tree().waiting_bytes();
        }
        for Group { newest, older } in &self.groups {
            bytes += newest.tree().waiting_bytes() + older.tree().waiting_bytes();
        }
        bytes + BLOCK_BYTES as u64
    }

    /// The memory that the builder takes: the writer's buffer, the memory for compressing pages, the open pages,
    /// and the closed nodes and partitions that wait for their extents.
    pub fn memory_bytes(&self) -> u64 {
        let trees = [&self.main, &self.history, &self.range_erases].map(KeyedRows::memory_bytes);
        let groups = self.groups.iter().flat_map(|group| [group.newest.memory_bytes(), group.older.memory_bytes()]);
        let filter = self.filter.as_ref().map_or(0, FilterRows::memory_bytes);
        let (key, last) = &self.page_keys;
        let scratch = [&self.first_key, &self.chunk, key, last].map(Vec::capacity);
        let all = trees.into_iter().chain(groups).chain(scratch).sum::<usize>() + filter + self.writer.memory_bytes();
        (size_of::<Self>() + self.groups.capacity() * size_of::<Group>() + all) as u64
    }

    /// The key of the last row. It is empty if there is no row.
    pub fn last_key(&self) -> &[u8] {
        self.main.last_key()
    }

    /// Adds a version of a row. `parts` has one part for each column group, the main group first. For an erase,
    /// the parts are empty or absent. The version of a key that is added first must be its newest version. All
    /// other versions go to the history.
    ///
    /// # Errors
    ///
    /// [`Error::Io`](pages::Error::Io) if the file cannot be written; then the caller must remove it.
    pub fn add(&mut self, key: &[u8], version: Version, kind: RowKind, parts: &[&[u8]]) -> Result<()> {
        debug_assert!(kind != RowKind::PutUntil, "such a row has a time");
        self.add_row(key, version, (kind, None), parts)
    }

    /// Adds a put that is there until `until`, as [`SstBuilder::add`] does.
    ///
    /// # Errors
    ///
    /// [`Error::Io`](pages::Error::Io) if the file cannot be written; then the caller must remove it.
    pub fn add_until(&mut self, key: &[u8], version: Version, until: Until, parts: &[&[u8]]) -> Result<()> {
        let bytes = key.len() + parts.iter().map(|part| part.len()).sum::<usize>();
        self.expiry.get_or_insert_default().add(until, bytes as u64);
        self.add_row(key, version, (RowKind::PutUntil, Some(until)), parts)
    }

    #[inline]
    fn add_row(
        &mut self,
        key: &[u8],
        version: Version,
        (kind, until): (RowKind, Option<Until>),
        parts: &[&[u8]],
    ) -> Result<()> {
        assert!(key.len() <= MAX_KEY_BYTES, "the caller checked the key's length");
        let is_whole = parts.len() == 1 + self.groups.len() || parts.is_empty() && kind == RowKind::Erase;
        assert!(is_whole, "a row has a part for each group");
        let part_bytes = match parts {
            [value] => value.len(),
            parts => parts.iter().map(|part| part.len()).sum(),
        };
        assert!(kind != RowKind::Erase || part_bytes == 0, "an erase has no value");
        self.oldest = self.oldest.min(version);
        self.newest = self.newest.max(version);
        self.user_bytes += (key.len() + part_bytes) as u64;
        let order = if self.main.rows() > 0 { self.last_key().cmp(key) } else { Ordering::Less };
        assert!(order != Ordering::Greater, "keys arrive in order");
        let is_older = order == Ordering::Equal;
        let before = self.value_bytes;
        if !is_older {
            // This row may close the open page, and then the totals of that page cover only the rows before this
            // row. So the sum is computed before the value of this row is written.
            self.main.elsewhere = self.bytes_beside_main();
        }
        let main = parts.first().copied().unwrap_or_default();
        let reference = self.store(main)?;
        let stored = reference.as_deref().map_or(StoredBytes::inline(main), StoredBytes::reference);
        let stored = StoredBytes { until, ..stored };
        if is_older {
            assert!(version < self.last_version, "versions of a key arrive newest first");
            self.main.mark_history();
            let key = history_key(self.main.rows() - 1, version);
            self.history.add(&mut self.writer, &self.options, &key, version, kind, stored)?;
            self.history.elsewhere += self.value_bytes - before;
        } else {
            if let Some(filter) = &mut self.filter {
                filter.add(&mut self.writer, &self.options, || self.main.last_key(), key)?;
            }
            self.main.add(&mut self.writer, &self.options, key, version, kind, stored)?;
            if self.main.rows() == 1 {
                self.first_key.extend_from_slice(key);
            }
        }
        self.last_version = version;
        for group in 0..self.groups.len() {
            let before = self.value_bytes;
            let part = parts.get(group + 1).copied().unwrap_or_default();
            let reference = self.store(part)?;
            let stored = reference.as_deref().map_or(StoredBytes::inline(part), StoredBytes::reference);
            let elsewhere = self.value_bytes - before;
            let group = &mut self.groups[group];
            let rows = if is_older { &mut group.older } else { &mut group.newest };
            rows.add(&mut self.writer, &self.options, stored, elsewhere)?;
        }
        Ok(())
    }

    /// Adds all rows of a page of another file by copying its bytes. The keys of the page must come after all keys
    /// that were added before. Copying closes the open page. If this page or the open page would be too short or
    /// too long for this file, nothing is added, and the function returns false. The caller must then add the rows
    /// one by one.
    ///
    /// # Errors
    ///
    /// [`Error::Io`](pages::Error::Io) if the file cannot be written; then the caller must remove it.
    pub fn add_page(&mut self, page: &CopiedPage) -> Result<bool> {
        let (mut key, mut last) = std::mem::take(&mut self.page_keys);
        page.read_row(0, &mut key);
        let takes = self.groups.is_empty() && self.main.takes_page(&self.options, page, &key);
        if takes {
            assert!(self.main.rows() == 0 || self.last_key() < key.as_slice(), "keys arrive in order");
            if self.main.rows() == 0 {
                self.first_key.extend_from_slice(&key);
            }
            last.clear();
            last.extend_from_slice(self.main.last_key());
            let first = key.clone();
            for i in 0..page.rows() {
                let (version, value_bytes) = page.read_row(i, &mut key);
                self.oldest = self.oldest.min(version);
                self.newest = self.newest.max(version);
                self.user_bytes += (key.len() + value_bytes) as u64;
                if let Some(filter) = &mut self.filter {
                    filter.add(&mut self.writer, &self.options, || &last, &key)?;
                }
                std::mem::swap(&mut key, &mut last);
            }
            self.main.elsewhere = self.bytes_beside_main();
            self.main.add_page(&mut self.writer, &self.options, page, (&first, &last))?;
            self.last_version = Version(0);
        }
        self.page_keys = (key, last);
        Ok(takes)
    }

    /// Whether [`SstBuilder::take_back`] could remove a put with these parts: it can if the whole value lies in the
    /// row's page.
    #[inline]
    pub fn can_take_back(&self, parts: &[&[u8]]) -> bool {
        self.groups.is_empty() && matches!(parts, [value] if value.len() <= self.inline_bytes)
    }

    /// Removes the row that was added last, so that its key can be added again with another value. The row must
    /// have no older version, and [`can_take_back`](SstBuilder::can_take_back) must be true for its parts.
    pub fn take_back(&mut self) {
        let row_bytes = self.main.take_back();
        self.user_bytes -= row_bytes as u64;
        if let Some(filter) = &mut self.filter {
            filter.take_back();
        }
        if self.main.rows() == 0 {
            self.first_key.clear();
        }
    }

    /// The stored bytes of closed pages that belong to main rows but are not in the main tree.
    #[inline]
    fn bytes_beside_main(&self) -> u64 {
        let mut bytes = self.value_bytes + self.history.tree().page_bytes();
        for Group { newest, older } in &self.groups {
            bytes += newest.tree().page_bytes() + older.tree().page_bytes();
        }
        bytes
    }

    /// If a value is too long for a page of rows, writes it to pages of its own and returns the reference to them.
    #[inline]
    fn store(&mut self, value: &[u8]) -> Result<Option<Vec<u8>>> {
        if value.len() > self.inline_bytes { self.write_outside(value).map(Some) } else { Ok(None) }
    }

    /// Adds a range erase over `keys` at each of `versions`, the newest version first. The ranges of different
    /// calls must not overlap, and must come in order.
    ///
    /// ```text
    /// row: key = start, version = newest; value = end present u8 | end, length-prefixed | older versions: count, each varint
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Io`](pages::Error::Io) if the file cannot be written; then the caller must remove it.
    pub fn add_range_erase<K: AsRef<[u8]>>(&mut self, keys: &KeyRange<K>, versions: &[Version]) -> Result<()> {
        let (start, end) = (keys.start.as_ref(), keys.end.as_ref().map(AsRef::as_ref));
        let (newest, older) = versions.split_first().expect("a range erase has a version");
        assert!(start.len() <= MAX_KEY_BYTES, "the caller checked the length of the start");
        assert!(versions.is_sorted_by(|a, b| a > b), "versions of a range arrive newest first");
        assert!(!keys.is_empty(), "a range has room for a key");
        let last_end = self.erased.as_ref().map(|keys| keys.end.as_deref());
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
        let stored = StoredBytes::inline(&value);
        self.range_erases.add(&mut self.writer, &self.options, start, *newest, RowKind::Erase, stored)?;
        self.chunk = value;
        let erased = self.erased.get_or_insert_with(|| KeyRange { start: start.to_vec(), end: Some(Vec::new()) });
        // Range erases arrive in order.
        erased.end = end.map(<[u8]>::to_vec);
        Ok(())
    }

    #[cold]
    fn write_outside(&mut self, value: &[u8]) -> Result<Vec<u8>> {
        let mut chunks = Vec::new();
        for chunk in value.chunks(MAX_CHUNK_BYTES) {
            self.chunk.clear();
            self.chunk.resize(HEADER_BYTES, 0);
            self.chunk.extend_from_slice(chunk);
            let (kind, compression) = (PageKind::Value, self.options.compression);
            let address = self.writer.write_page(&mut self.chunk, kind, 0, compression, Packing::Tight)?;
            self.value_bytes += u64::from(address.bytes);
            chunks.push(address);
        }
        let mut reference = Vec::new();
        OutsideValue::encode(&mut reference, value.len() as u64, &chunks);
        Ok(reference)
    }

    /// Writes everything that is not yet written, makes the file durable and returns its description. The caller
    /// must make the name of the file durable.
    ///
    /// # Errors
    ///
    /// [`Error::Io`](pages::Error::Io) if the file cannot be written or synced; then the caller must remove it.
    pub fn finish(mut self) -> Result<Meta> {
        for Group { newest, older } in &mut self.groups {
            newest.finish_pages(&mut self.writer, &self.options)?;
            older.finish_pages(&mut self.writer, &self.options)?;
        }
        self.history.finish_pages(&mut self.writer, &self.options)?;
        self.range_erases.finish_pages(&mut self.writer, &self.options)?;
        // All trees beside the main tree are closed now, so the last totals of the main tree are exact.
        self.main.elsewhere = self.bytes_beside_main();
        let (writer, options) = (&mut self.writer, &self.options);
        self.main.finish_pages(writer, options)?;
        // The rest of all indexes goes to one place in the file. The root of the main tree comes last.
        let mut groups = Vec::with_capacity(self.groups.len());
        for Group { newest, older } in &mut self.groups {
            let older = older.finish_index(writer, options)?;
            groups.push(GroupTrees { newest: newest.finish_index(writer, options)?, older });
        }
        let history = self.history.finish_index(writer, options)?;
        let range_erases = self.range_erases.finish_index(writer, options)?;
        let is_one_page = self.main.tree().data_pages() == 1;
        let filter = match &mut self.filter {
            Some(filter) if !(is_one_page && filter.is_open()) => filter.finish(writer, options)?,
            _ => None,
        };
        let main = self.main.finish_index(writer, options)?;
        let keyed = [&self.main, &self.history, &self.range_erases].map(KeyedRows::tree);
        let has_samples =
            keyed.into_iter().chain(self.filter.iter().map(FilterRows::tree)).any(TreeBuilder::has_samples);
        writer.align(BLOCK_BYTES as u64)?;

        let rows = main.is_some().then(|| KeyBounds::cut(&self.first_key, self.main.last_key()));
        let erased = self.erased.map(|KeyRange { start, end }| match end {
            Some(end) => KeyBounds::cut(&start, &end),
            None => KeyBounds { high: None, ..KeyBounds::cut(&start, &start) },
        });
        let bounds = match (rows, erased) {
            (Some(a), Some(b)) => a.union(&b),
            (a, b) => a.or(b).unwrap_or_default(),
        };
        let meta = Meta {
            file_id: self.file_id,
            file_bytes: writer.offset() + BLOCK_BYTES as u64,
            main,
            history: history.into(),
            range_erases: range_erases.into(),
            filter,
            groups,
            expiry: self.expiry,
            bounds,
            oldest: self.oldest,
            newest: self.newest,
            value_bytes: self.value_bytes,
            user_bytes: self.user_bytes,
            has_origin: !self.origin.is_empty(),
            has_samples,
            has_zstd: writer.has_zstd(),
            has_merges: self.has_merges,
            unknown: Unknown::default(),
        };
        assert!(meta.features() & !options.features == 0, "the caller chose nothing that these features lack");
        writer.append(&meta.footer(&self.origin))?;
        writer.finish()?;
        Ok(meta)
    }
}
