//! Checking a whole file: every byte of it is read, and everything the format says twice is compared. It does not know
//! other files, nor which rows a reader may see.
//!
//! * Every page is reached from its parent, so its checksum, its structure and its place are checked; the footer has a
//!   checksum of its own; what is left of the file must be the zeros between pages.
//! * Memory: what the source keeps ahead and the nodes above that, a node for each level, the flat list, a data page, a
//!   partition of the filter, and 16 bytes for each page of the file, 32 for those of column groups; where there are
//!   groups, a bit for each row and each older version too.

mod filter;
mod groups;
mod tree_walk;

use crate::KeyRange;
use crate::format::data_page::{Layout, RowRecord};
use crate::format::meta::{Meta, Tree, TreeKind};
use crate::format::{OutsideValue, PageRows};
use crate::read::{RowPlace, Sst, Whole};
use crate::row::{RowKind, Version};
use filter::FilterWalk;
use groups::Beside;
use os::{BLOCK_BYTES, Buffer, File};
use pages::{Address, Error, HEADER_BYTES, PageKind, PageRef, PageSource, Result, retry};
use tree_walk::{DataPage, TreeWalk, check_level};

/// What a file holds, as [`verify`] counted it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileReport {
    pages: [PageTotals; PageKind::ALL.len()],
    /// Rows of the main tree.
    pub rows: u64,
    /// Rows of the main tree that are erases.
    pub erased: u64,
    /// Older versions.
    pub older_versions: u64,
    /// Range erases.
    pub range_erases: u64,
    /// Zeros between pages.
    pub padding_bytes: u64,
    /// Length of the file, footer included.
    pub file_bytes: u64,
}

/// Pages of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageTotals {
    /// How many.
    pub pages: u64,
    /// Their stored bytes.
    pub bytes: u64,
}

impl FileReport {
    /// Pages of one kind.
    pub fn pages_of(&self, kind: PageKind) -> PageTotals {
        self.pages[kind.index()]
    }

    /// Pages of all kinds, the footer not among them.
    pub fn all_pages(&self) -> PageTotals {
        self.pages.iter().fold(PageTotals::default(), |sum, kind| PageTotals {
            pages: sum.pages + kind.pages,
            bytes: sum.bytes + kind.bytes,
        })
    }
}

/// Reads all of `sst` through `source` and says what it holds, or what is wrong with it first.
///
/// `raw` is the same file for what lies outside pages. `progress` is called now and then with the bytes checked so far.
/// A session that does not keep pages in the cache is enough: nothing is read twice. As much is asked for ahead as the
/// source keeps.
///
/// # Errors
///
/// [`Error::Corrupt`] for the first thing that is wrong; [`Error::Io`] if the file cannot be read.
pub fn verify<S: PageSource + ?Sized>(
    sst: &Sst,
    source: &S,
    raw: &dyn File,
    progress: &mut dyn FnMut(u64),
) -> Result<FileReport> {
    let mut check = Check {
        sst,
        whole: Whole::new(sst, source),
        progress,
        extents: Vec::new(),
        report: FileReport::default(),
        found: RowFacts::default(),
    };
    check.footer(raw)?;
    let groups = check.groups()?;
    check.rows(groups)?;
    check.range_erases()?;
    check.facts()?;
    check.gaps(raw)?;
    Ok(check.report)
}

/// A check in progress.
struct Check<'a, S: ?Sized> {
    sst: &'a Sst,
    whole: Whole<'a, S>,
    progress: &'a mut dyn FnMut(u64),
    /// Offset, length and kind of every page.
    extents: Vec<(u64, u32, PageKind)>,
    report: FileReport,
    found: RowFacts,
}

/// What the rows add up to, to be compared with the meta.
#[derive(Default)]
struct RowFacts {
    versions: Option<(Version, Version)>,
    value_bytes: u64,
    user_bytes: u64,
}

impl<S: PageSource + ?Sized> Check<'_, S> {
    fn corrupt(&self, kind: PageKind, offset: u64, why: impl Into<String>) -> Error {
        self.sst.file.corrupt(kind, offset, why)
    }

    fn footer_offset(&self) -> u64 {
        self.sst.meta.file_bytes.saturating_sub(BLOCK_BYTES as u64)
    }

    /// The footer, and with it the length of the file.
    fn footer(&mut self, raw: &dyn File) -> Result<()> {
        let expected = &self.sst.meta;
        let at = self.footer_offset();
        let path = self.sst.file.path();
        let len = raw.len().map_err(|error| Error::io("measure", path, error))?;
        if len != expected.file_bytes {
            let why = format!("the file has {len} bytes instead of {}", expected.file_bytes);
            return Err(self.corrupt(PageKind::Footer, at, why));
        }
        let footer = read_raw(self.sst, raw, at, BLOCK_BYTES)?;
        let found = Meta::from_footer(&footer).map_err(|why| self.corrupt(PageKind::Footer, at, why.to_string()))?;
        if found != *expected {
            return Err(self.corrupt(PageKind::Footer, at, "it describes the file otherwise than the database does"));
        }
        self.report.file_bytes = len;
        Ok(())
    }

    /// A page of no tree, verified by being read.
    fn page(&mut self, at: &Address, kind: PageKind) -> Result<PageRef> {
        let page = self.whole.page_at(at, kind)?;
        self.count(at, kind);
        Ok(page)
    }

    /// Counts a page as a part of the file.
    fn count(&mut self, at: &Address, kind: PageKind) {
        self.extents.push((at.offset, at.bytes, kind));
        let totals = &mut self.report.pages[kind.index()];
        totals.pages += 1;
        totals.bytes += u64::from(at.bytes);
        (self.progress)(self.report.all_pages().bytes);
    }

    /// A walk over a tree that is read beside others, which have `all_bytes` of data pages with it.
    fn walk(&self, kind: TreeKind, tree: Tree, all_bytes: u64) -> TreeWalk {
        TreeWalk::new(kind, tree, self.whole.readahead().share(tree.totals.bytes, all_bytes))
    }

    /// The main tree and, in step with it, the filter over its keys and the history: an older version belongs to a row
    /// that says it has some.
    fn rows(&mut self, mut groups: Beside) -> Result<()> {
        let meta = &self.sst.meta;
        let value_bytes_of_groups = self.found.value_bytes;
        let filter_tree = meta.filter.map(|filter| filter.tree);
        let trees = [meta.main, meta.history, filter_tree].into_iter().flatten();
        let all_bytes = trees.map(|tree| tree.totals.bytes).fold(0, u64::saturating_add);
        let mut history = History::new(meta.history.map(|tree| self.walk(TreeKind::History, tree, all_bytes)));
        let mut filter = FilterWalk::new(meta.filter, |filter| self.walk(TreeKind::Filter, filter.tree, all_bytes));
        if let Some(tree) = meta.main {
            let mut walk = self.walk(TreeKind::Main, tree, all_bytes);
            let mut key = Vec::new();
            while let Some(data) = walk.next(self)? {
                let DataPage { page, layout, at } = &data;
                let chunks = self.value_chunks(&data)?;
                let mut values = Values::new(&chunks);
                for i in 0..layout.rows() {
                    let record = layout.read_row(page, i, &mut key);
                    if !meta.bounds.contains(&key) {
                        let why = format!("key {i} is outside the bounds of the file");
                        return Err(self.corrupt(PageKind::Data, at.offset, why));
                    }
                    let row = layout.first_row() + i as u64;
                    filter.key(self, row, &key)?;
                    self.version(&data, &record)?;
                    if record.kind == RowKind::Erase {
                        self.no_parts(&groups, RowPlace::Newest(row))?;
                    }
                    self.found.user_bytes += key.len() as u64;
                    let stored = &page[record.value_at..record.value_at + record.value_bytes];
                    self.value(page, stored, record.outside, &mut values)?;
                    self.older_versions(&mut history, &groups, row, &record, key.len())?;
                    self.report.rows += 1;
                    self.report.erased += u64::from(record.kind == RowKind::Erase);
                    walk.totals.erased += u64::from(record.kind == RowKind::Erase);
                }
                if walk.is_at_last_page() {
                    history.end(self)?;
                    groups.end();
                }
                let value_bytes = self.found.value_bytes - value_bytes_of_groups;
                let beside = groups.through(self.report.rows, self.report.older_versions);
                walk.totals.group_bytes = value_bytes + history.closed_bytes + beside;
            }
        }
        filter.end(self)?;
        if let Some((row, at)) = history.next_row(self)? {
            let why = format!("it has a version of row {row}, which is not one of {}", self.report.rows);
            return Err(self.corrupt(PageKind::History, at.offset, why));
        }
        history.end(self)
    }

    /// The older versions of `row`, whose newest is `newest`.
    fn older_versions(
        &mut self,
        history: &mut History,
        groups: &Beside,
        row: u64,
        newest: &RowRecord,
        key_bytes: usize,
    ) -> Result<()> {
        let mut found = 0;
        while let Some((_, at)) = history.next_row(self)?.filter(|(of, _)| *of <= row) {
            let (data, i, key) = history.take();
            let (of, version) = (u64::from_be_bytes(key[0]), Version(!u64::from_be_bytes(key[1])));
            let record = data.layout.record(&data.page, i);
            let why = if of < row || !newest.has_history {
                format!("it has a version of row {of}, which has no older versions")
            } else if record.version != version {
                format!("version {} has the key of version {}", record.version.0, version.0)
            } else if version >= newest.version {
                format!("row {of} has version {} as an older one of {}", version.0, newest.version.0)
            } else if record.has_history {
                format!("version {} of row {of} has older versions of its own", version.0)
            } else {
                String::new()
            };
            if !why.is_empty() {
                return Err(self.corrupt(PageKind::History, at.offset, why));
            }
            let data = data.clone();
            self.version(&data, &record)?;
            if record.kind == RowKind::Erase {
                self.no_parts(groups, RowPlace::Older(data.layout.first_row() + i as u64))?;
            }
            let stored = &data.page[record.value_at..record.value_at + record.value_bytes];
            let chunks = chunks_of(stored, record.outside);
            self.found.user_bytes += key_bytes as u64;
            let elsewhere = self.value(&data.page, stored, record.outside, &mut Values::new(&chunks))?;
            history.counted(record.kind == RowKind::Erase, elsewhere);
            self.report.older_versions += 1;
            found += 1;
        }
        if newest.has_history && found == 0 {
            let why = format!("row {row} has no older version, but its page says so");
            return Err(self.corrupt(PageKind::History, history.offset(), why));
        }
        Ok(())
    }

    fn version(&mut self, data: &DataPage, record: &RowRecord) -> Result<()> {
        let (oldest, newest) = self.found.versions.unwrap_or((record.version, record.version));
        self.found.versions = Some((oldest.min(record.version), newest.max(record.version)));
        if record.kind == RowKind::Erase && (record.outside || record.value_bytes > 0) {
            return Err(self.corrupt(data.page.kind(), data.at.offset, "an erase has a value"));
        }
        Ok(())
    }

    /// Addresses of all chunks of the values of a page.
    fn value_chunks(&mut self, data: &DataPage) -> Result<Vec<Address>> {
        let records = (0..data.layout.rows()).map(|i| data.layout.record(&data.page, i));
        let stored = |record: &RowRecord| &data.page[record.value_at..record.value_at + record.value_bytes];
        Ok(records.flat_map(|record| chunks_of(stored(&record), record.outside)).collect())
    }

    /// Reads the chunks of the value that `page` has `stored`, if it lies outside; says how many bytes they take.
    fn value(&mut self, page: &PageRef, stored: &[u8], outside: bool, values: &mut Values<'_>) -> Result<u64> {
        if !outside {
            self.found.user_bytes += stored.len() as u64;
            return Ok(0);
        }
        let reference = OutsideValue::new(stored).expect("a validated page's references decode");
        let (mut bytes, mut stored_bytes) = (0, 0);
        for at in reference.chunks() {
            if values.next >= values.asked {
                // The first is read in this round anyway.
                let next = values.chunks.get(values.next + 1..).unwrap_or_default();
                values.asked = values.next + 1 + self.whole.ask_next(PageKind::Value, next);
            }
            values.next += 1;
            let chunk = self.page(&at, PageKind::Value)?;
            check_level(self, &chunk, &at, 0)?;
            bytes += (chunk.len() - HEADER_BYTES) as u64;
            stored_bytes += u64::from(at.bytes);
        }
        if bytes != reference.bytes {
            let why = format!("a value of {} bytes has chunks of {bytes}", reference.bytes);
            return Err(self.corrupt(page.kind(), page.address().offset, why));
        }
        self.found.value_bytes += stored_bytes;
        self.found.user_bytes += bytes;
        Ok(stored_bytes)
    }

    fn range_erases(&mut self) -> Result<()> {
        let Some(tree) = self.sst.meta.range_erases else { return Ok(()) };
        let mut walk = self.walk(TreeKind::RangeErases, tree, tree.totals.bytes);
        let mut last_end = Some(Vec::new());
        while let Some(data) = walk.next::<_, Layout>(self)? {
            for i in 0..data.layout.rows() {
                let record = data.layout.record(&data.page, i);
                let plain = record.kind == RowKind::Erase && !record.outside && !record.has_history;
                let erase = retry(&self.whole, || self.sst.decode_range_erase(&data.page, &data.layout, i))?;
                let bounds = &self.sst.meta.bounds;
                let KeyRange { start, end } = &erase.keys;
                let is_bounded = match end {
                    Some(end) => bounds.contains(end),
                    None => bounds.high.is_none(),
                };
                let why = if !plain || erase.keys.is_empty() {
                    "is not one"
                } else if last_end.as_ref().is_none_or(|last| last > start) {
                    "overlaps the one before it"
                } else if !erase.versions.is_sorted_by(|a, b| a > b) {
                    "has versions out of order"
                } else if !bounds.contains(start) || !is_bounded {
                    "leaves the bounds of the file"
                } else {
                    ""
                };
                if !why.is_empty() {
                    let why = format!("range erase {i} of the page {why}");
                    return Err(self.corrupt(PageKind::RangeErase, data.at.offset, why));
                }
                for version in &erase.versions {
                    let version = Version(version.0 - self.sst.version_offset);
                    self.version(&data, &RowRecord { version, kind: RowKind::Put, ..record })?;
                }
                last_end = erase.keys.end;
                self.report.range_erases += 1;
                walk.totals.erased += 1;
            }
        }
        Ok(())
    }

    /// What the meta says beyond its trees.
    fn facts(&self) -> Result<()> {
        let meta = &self.sst.meta;
        let (oldest, newest) = self.found.versions.unwrap_or((Version::MAX, Version(0)));
        let facts = [
            ("oldest version", meta.oldest.0, oldest.0),
            ("newest version", meta.newest.0, newest.0),
            ("bytes of value pages", meta.value_bytes, self.found.value_bytes),
            ("bytes of keys and values", meta.user_bytes, self.found.user_bytes),
        ];
        for (what, said, found) in facts {
            if said != found {
                let why = format!("{what}: the footer says {said}, the pages {found}");
                return Err(self.corrupt(PageKind::Footer, self.footer_offset(), why));
            }
        }
        Ok(())
    }

    /// Pages do not overlap, and nothing but the zeros of an alignment lies between them.
    fn gaps(&mut self, raw: &dyn File) -> Result<()> {
        let mut extents = std::mem::take(&mut self.extents);
        extents.sort_unstable();
        let mut end = 0;
        for (offset, bytes, kind) in extents {
            self.gap(raw, end, offset, kind)?;
            end = offset + u64::from(bytes);
        }
        self.gap(raw, end, self.footer_offset(), PageKind::Footer)?;
        (self.progress)(self.report.file_bytes);
        Ok(())
    }

    /// The bytes between two pages; `kind` is that of the page after them.
    fn gap(&mut self, raw: &dyn File, start: u64, end: u64, kind: PageKind) -> Result<()> {
        if start == end {
            return Ok(());
        }
        if start > end {
            return Err(self.corrupt(kind, end, format!("the page before it ends at {start}")));
        }
        if end - start >= BLOCK_BYTES as u64 {
            let why = format!("no page claims the {} bytes at {start} before it", end - start);
            return Err(self.corrupt(kind, end, why));
        }
        let gap = read_raw(self.sst, raw, start, (end - start) as usize)?;
        if let Some(at) = gap.iter().position(|&byte| byte != 0) {
            let why = format!("the padding before it is not zero at {}", start + at as u64);
            return Err(self.corrupt(kind, end, why));
        }
        self.report.padding_bytes += end - start;
        Ok(())
    }
}

/// Addresses of the chunks of a value that a page has `stored`; none if it lies in the page.
fn chunks_of(stored: &[u8], outside: bool) -> Vec<Address> {
    if !outside {
        return Vec::new();
    }
    OutsideValue::new(stored).expect("a validated page's references decode").chunks().collect()
}

/// Chunks to be read one after the other.
struct Values<'c> {
    chunks: &'c [Address],
    next: usize,
    /// The first not asked for ahead.
    asked: usize,
}

impl<'c> Values<'c> {
    fn new(chunks: &'c [Address]) -> Self {
        Self { chunks, next: 0, asked: 0 }
    }
}

/// The rows of the history, one after the other.
struct History {
    walk: Option<TreeWalk>,
    here: Option<DataPage>,
    next: usize,
    /// Stored bytes of the pages before the one whose row was taken last: what the main rows so far had closed when
    /// they were written.
    closed_bytes: u64,
}

impl History {
    fn new(walk: Option<TreeWalk>) -> Self {
        Self { walk, here: None, next: 0, closed_bytes: 0 }
    }

    /// Main row of the next older version and the page it is in; loads that page.
    fn next_row<S: PageSource + ?Sized>(&mut self, check: &mut Check<'_, S>) -> Result<Option<(u64, Address)>> {
        let Some(walk) = &mut self.walk else { return Ok(None) };
        if self.here.as_ref().is_none_or(|data| self.next == data.layout.rows()) {
            self.here = walk.next(check)?;
            self.next = 0;
        }
        let Some(data) = &self.here else { return Ok(None) };
        if self.next == 0 {
            for i in 0..data.layout.rows() {
                let suffix = data.layout.suffix(&data.page, i);
                let bytes = data.layout.prefix(&data.page).len() + usize::from(suffix.head_bytes) + suffix.tail.len();
                if bytes != 16 {
                    let why = format!("key {i} has {bytes} bytes, a row and a version have 16");
                    return Err(check.corrupt(PageKind::History, data.at.offset, why));
                }
            }
        }
        Ok(Some((u64::from_be_bytes(key_of(data, self.next)[0]), data.at)))
    }

    /// Takes the row that [`History::next_row`] found: its page, its place there, and the halves of its key.
    fn take(&mut self) -> (&DataPage, usize, [[u8; 8]; 2]) {
        let data = self.here.as_ref().expect("the caller has seen that there is a row");
        let i = self.next;
        self.next += 1;
        let through = self.walk.as_ref().expect("a row comes from a tree").totals.bytes;
        self.closed_bytes = through - u64::from(data.at.bytes);
        (data, i, key_of(data, i))
    }

    /// Counts the row taken last, whose value takes `elsewhere` bytes of value pages.
    fn counted(&mut self, is_erase: bool, elsewhere: u64) {
        let walk = self.walk.as_mut().expect("a row comes from a tree");
        walk.totals.erased += u64::from(is_erase);
        walk.totals.group_bytes += elsewhere;
    }

    /// After the last main row: every page is closed. The next call that asks for a row checks that there is none.
    fn end<S: PageSource + ?Sized>(&mut self, check: &mut Check<'_, S>) -> Result<()> {
        if self.next_row(check)?.is_none()
            && let Some(walk) = &self.walk
        {
            self.closed_bytes = walk.totals.bytes;
        }
        Ok(())
    }

    /// Where it was looked for last.
    fn offset(&self) -> u64 {
        self.here.as_ref().map_or(0, |data| data.at.offset)
    }
}

fn key_of(data: &DataPage, i: usize) -> [[u8; 8]; 2] {
    let mut key = [[0; 8]; 2];
    data.layout.copy_key(&data.page, i, key.as_flattened_mut());
    key
}

/// `bytes` bytes at `offset`, read in whole blocks as direct I/O wants them.
fn read_raw(sst: &Sst, raw: &dyn File, offset: u64, bytes: usize) -> Result<Vec<u8>> {
    let start = (offset % BLOCK_BYTES as u64) as usize;
    let mut buffer = Buffer::zeroed((start + bytes).next_multiple_of(BLOCK_BYTES));
    let read =
        raw.read_at(&mut buffer, offset - start as u64).map_err(|error| Error::io("read", sst.file.path(), error))?;
    if read < start + bytes {
        let why = format!("the file ends at {}", offset - start as u64 + read as u64);
        return Err(sst.file.corrupt(PageKind::Footer, offset, why));
    }
    Ok(buffer[start..start + bytes].to_vec())
}

#[cfg(test)]
mod tests;
