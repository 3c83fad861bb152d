//! Checks a whole file: it reads every byte. If the format says something in two places, the check compares the
//! two. This module knows no other files, and does not know which rows a reader may see.
//!
//! * Every page is reached from its parent, so its checksum, its structure and its place are checked. The footer
//!   has its own checksum. All other bytes of the file must be the zeros between pages.
//! * Memory: the check holds the pages that were asked for ahead, and the nodes above them. It also holds one node
//!   for each level, the flat index, a data page, and a partition of the filter. In addition, the check takes 16
//!   bytes for each page of the file, or 32 bytes for each page of a column group. In a file with groups, it also
//!   takes one bit for each row and for each older version.

mod check;
mod filter;
mod groups;
mod history;
mod report;
mod tree_walk;
mod values;

pub use report::{FileReport, PageTotals};

use crate::KeyRange;
use crate::format::PageRows;
use crate::format::data_page::{Layout, RowRecord};
use crate::format::expiry::Expiry;
use crate::format::meta::{Meta, TreeKind};
use crate::read::{RowPlace, Sst, Whole};
use crate::row::{RowKind, Version};
use check::{Check, RowFacts};
use filter::FilterWalk;
use groups::Beside;
use history::History;
use os::{BLOCK_BYTES, Buffer, File};
use pages::{Address, Error, PageKind, PageSource, Result, retry};
use tree_walk::DataPage;
use values::{Values, chunks_of};

/// Reads all of `sst` through `source`, and returns what the file holds, or the first mistake as an error.
///
/// `raw` is the same file, opened for plain reads: the check reads the bytes between pages through it. `progress`
/// is called now and then with the number of bytes checked so far. `source` may be a session that keeps no pages
/// in the cache, because nothing is read twice. The check asks ahead for as many pages as the source has room for.
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

impl<S: PageSource + ?Sized> Check<'_, S> {
    /// Checks the footer, and the length of the file, which the footer states.
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

    /// Checks the main tree. For each row, it also checks the filter over the row's key, and the row's older
    /// versions in the history. An older version must belong to a row that says that it has older versions.
    fn rows(&mut self, mut groups: Beside) -> Result<()> {
        let meta = &self.sst.meta;
        let value_bytes_of_groups = self.found.value_bytes;
        let filter_tree = meta.filter.map(|filter| filter.tree);
        let trees = [meta.main, meta.history.get(), filter_tree].into_iter().flatten();
        let all_bytes = trees.map(|tree| tree.totals.bytes).fold(0, u64::saturating_add);
        let mut history = History::new(meta.history.get().map(|tree| self.walk(TreeKind::History, tree, all_bytes)));
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

    /// Checks the older versions of `row`, whose newest version is `newest`.
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
        if let Some(until) = record.until(&data.page) {
            self.found.expiry.get_or_insert_default().add(until, 0);
        }
        if record.kind == RowKind::Erase && (record.outside || record.value_bytes > 0) {
            return Err(self.corrupt(data.page.kind(), data.at.offset, "an erase has a value"));
        }
        Ok(())
    }

    /// The addresses of all chunks of the values of a page.
    fn value_chunks(&mut self, data: &DataPage) -> Result<Vec<Address>> {
        let records = (0..data.layout.rows()).map(|i| data.layout.record(&data.page, i));
        let stored = |record: &RowRecord| &data.page[record.value_at..record.value_at + record.value_bytes];
        Ok(records.flat_map(|record| chunks_of(stored(&record), record.outside)).collect())
    }

    fn range_erases(&mut self) -> Result<()> {
        let Some(tree) = self.sst.meta.range_erases.get() else { return Ok(()) };
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

    /// Checks what the meta says about the file apart from its trees.
    fn facts(&self) -> Result<()> {
        let meta = &self.sst.meta;
        let (oldest, newest) = self.found.versions.unwrap_or((Version::MAX, Version(0)));
        let until =
            |until: fn(&Expiry) -> u64| [&meta.expiry, &self.found.expiry].map(|e| e.as_deref().map_or(0, until));
        let [timed, first, last] =
            [until(Expiry::rows), until(|e| e.earliest().millis()), until(|e| e.latest().millis())];
        let facts = [
            ("oldest version", meta.oldest.0, oldest.0),
            ("newest version", meta.newest.0, newest.0),
            ("bytes of value pages", meta.value_bytes, self.found.value_bytes),
            ("bytes of keys and values", meta.user_bytes, self.found.user_bytes),
            ("rows with a time", timed[0], timed[1]),
            ("time at which the first row expires", first[0], first[1]),
            ("time at which the last row expires", last[0], last[1]),
            ("pages compressed by zstd", u64::from(meta.has_zstd), u64::from(self.found.has_zstd)),
        ];
        for (what, said, found) in facts {
            if said != found {
                let why = format!("{what}: the footer says {said}, the pages {found}");
                return Err(self.corrupt(PageKind::Footer, self.footer_offset(), why));
            }
        }
        Ok(())
    }

    /// Checks that pages do not overlap, and that only zeros for alignment lie between them.
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

    /// Checks the bytes between two pages. `kind` is the kind of the second of the two pages.
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

/// Reads `bytes` bytes at `offset`. The read covers whole blocks, because direct I/O allows no other reads.
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
