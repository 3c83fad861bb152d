//! Reading a file through a [`pages::PageSource`]: point look-ups and cursors. It knows no other file.
//!
//! Every call that may answer [`Stop`] is a *step*: it has no effect before its last page is in hand. After a fault its
//! caller fetches what is missing and makes the same call again.

mod branch;
mod cursor;
mod descent;
mod erases;
mod filter;
mod gap;
mod parts;
mod readahead;
mod streak;
mod tree;
mod values;
mod whole;

pub use branch::Branch;
pub use cursor::SstCursor;
pub(crate) use descent::Descent;
pub use descent::Subtree;
use descent::Under;
pub use erases::{CoverAround, EraseCursor};
pub use filter::FilterUse;
pub use gap::KnownGap;
pub use parts::{GroupCursor, Groups};
pub use readahead::Readahead;
pub use streak::Streak;
pub use tree::{PartCursor, Seek, TreeCursor};
pub(crate) use whole::{Whole, WholeTree};

use crate::KeyRange;
use crate::format::data_page::{Layout, RowRecord};
use crate::format::group_page::StoredPart;
use crate::format::meta::{KeyBounds, Meta, TreeKind};
use crate::format::varint;
use crate::format::{OutsideValue, PageRows};
use crate::row::{MAX_KEY_BYTES, RowKind, Version};
use crate::slice::{RowRanges, Slice};
use crate::write::history_key;
use os::sync::Arc;
use pages::{Error, HEADER_BYTES, PageKind, PageRef, PageSource, PagedFile, Stop};
use std::io;
use std::ops::{Bound, Range};

/// An immutable file, open or not: its bytes are first touched by the first read that needs them.
#[derive(Debug)]
pub struct Sst {
    /// Where its pages come from.
    pub file: Arc<PagedFile>,
    /// What is known without reading it.
    pub meta: Meta,
    /// Added to every version in the file: a file built outside gets its place in the commit order when it is taken in.
    pub version_offset: u64,
    /// Whether the flat index is read where the file has both.
    pub prefer_flat: bool,
    /// What is seen of it; `None`: all.
    pub slice: Option<Box<Slice>>,
    /// Where its filter is of use; default at first.
    pub filter_use: FilterUse,
    /// A range of keys without range erases that reads have found; `None` if the file has no range erases at all.
    pub known_gap: Option<Box<KnownGap>>,
}

/// Where a version of a row stands in its file. Its parts in other column groups have the same row id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowPlace {
    /// Row id in the main tree, for newest versions.
    Newest(u64),
    /// Row id in the history.
    Older(u64),
}

/// A version of a row.
#[derive(Clone, Debug)]
pub struct Row {
    /// Commit that wrote it.
    pub version: Version,
    /// What it says.
    pub kind: RowKind,
    /// Its value, or the part of it that is in the main column group; perhaps still outside.
    pub value: StoredValue,
    /// Where it stands.
    pub place: RowPlace,
}

/// What a look-up of a key met in a page of the main tree.
enum LookUp<'p> {
    /// The row with this id has the key.
    Found(u64),
    /// This page, whose first row is given, would have the key, and has not.
    Absent(u64, &'p PageRef),
}

/// A value as the data page has it.
#[derive(Clone, Debug)]
pub struct StoredValue {
    page: PageRef,
    at: u32,
    bytes: u32,
    outside: bool,
}

/// A value in memory.
#[derive(Clone, Debug)]
pub enum LoadedValue {
    /// A part of a page, which stays pinned.
    InPage(PageRef, Range<usize>),
    /// Put together from several pages.
    Owned(Arc<[u8]>),
}

impl LoadedValue {
    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Self::InPage(page, range) => &page[range.clone()],
            Self::Owned(bytes) => bytes,
        }
    }
}

impl StoredValue {
    fn new(page: &PageRef, record: &RowRecord) -> Self {
        let (at, bytes) = (record.value_at as u32, record.value_bytes as u32);
        Self { page: page.clone(), at, bytes, outside: record.outside }
    }

    fn of_part(page: &PageRef, part: StoredPart) -> Self {
        Self { page: page.clone(), at: part.at as u32, bytes: part.bytes as u32, outside: part.outside }
    }

    fn stored(&self) -> &[u8] {
        &self.page[self.at as usize..(self.at + self.bytes) as usize]
    }

    /// Length of the value in bytes, without loading it.
    pub fn len(&self) -> u64 {
        if self.outside { self.reference().bytes } else { u64::from(self.bytes) }
    }

    /// Whether the value has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes, if they lie in the row's own page.
    pub fn inline(&self) -> Option<&[u8]> {
        (!self.outside).then(|| self.stored())
    }

    fn reference(&self) -> OutsideValue<'_> {
        OutsideValue::new(self.stored()).expect("a validated page's references decode")
    }

    /// The value, loading its chunks together if it lies outside. A step.
    ///
    /// # Errors
    ///
    /// [`Stop::Fault`] if a chunk is not in memory; [`Stop::Failed`] if one cannot be read, or is not what was written,
    /// and if there is no memory for the value.
    pub fn load<S: PageSource + ?Sized>(&self, source: &S, file: &Arc<PagedFile>) -> Result<LoadedValue, Stop> {
        if !self.outside {
            return Ok(LoadedValue::InPage(self.page.clone(), self.at as usize..(self.at + self.bytes) as usize));
        }
        let reference = self.reference();
        let mut chunks = Vec::new();
        let mut missing = false;
        for address in reference.chunks() {
            match source.page(file.at(&address, PageKind::Value)) {
                Ok(page) => chunks.push(page),
                Err(Stop::Fault) => missing = true,
                Err(stop) => return Err(stop),
            }
        }
        if missing {
            return Err(Stop::Fault);
        }
        let bytes: usize = chunks.iter().map(|chunk| chunk.len() - HEADER_BYTES).sum();
        if bytes as u64 != reference.bytes {
            let why = format!("a value of {} bytes has chunks of {bytes}", reference.bytes);
            let first = reference.chunks().next().map_or(0, |address| address.offset);
            return Err(corrupt(file, PageKind::Value, first, why));
        }
        if let [only] = chunks.as_slice() {
            return Ok(LoadedValue::InPage(only.clone(), HEADER_BYTES..only.len()));
        }
        let mut value = Vec::new();
        if value.try_reserve_exact(bytes).is_err() {
            let why = io::Error::new(io::ErrorKind::OutOfMemory, format!("no memory for a value of {bytes} bytes"));
            return Err(Error::io("read", file.path(), why).into());
        }
        for chunk in chunks {
            value.extend_from_slice(&chunk[HEADER_BYTES..]);
        }
        Ok(LoadedValue::Owned(value.into()))
    }
}

/// A range of keys that was erased as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeErase<K = Vec<u8>> {
    /// The keys.
    pub keys: KeyRange<K>,
    /// Versions at which it was done, newest first.
    pub versions: Vec<Version>,
}

impl<K> RangeErase<K> {
    /// The newest version not newer than `at`.
    pub fn newest(&self, at: Version) -> Option<Version> {
        self.versions.iter().copied().find(|&version| version <= at)
    }
}

impl Sst {
    /// All of `file`.
    pub fn new(file: Arc<PagedFile>, meta: Meta, version_offset: u64, prefer_flat: bool) -> Self {
        let known_gap = meta.range_erases.map(|_| Box::default());
        Self { file, meta, version_offset, prefer_flat, slice: None, filter_use: FilterUse::default(), known_gap }
    }

    /// The same file, of which `slice` is seen; `None`: all.
    #[must_use]
    pub fn sliced(&self, slice: Option<Slice>) -> Self {
        Self {
            slice: slice.map(Box::new),
            ..Self::new(self.file.clone(), self.meta.clone(), self.version_offset, self.prefer_flat)
        }
    }

    /// The main rows that are seen.
    pub fn rows(&self) -> RowRanges {
        match &self.slice {
            None => (0..self.meta.rows()).into(),
            Some(slice) => slice.rows.clone(),
        }
    }

    /// Bounds of the keys of what is seen, cut outward.
    #[inline]
    pub fn bounds(&self) -> &KeyBounds {
        self.slice.as_ref().map_or(&self.meta.bounds, |slice| &slice.bounds)
    }

    /// Stored bytes of what is seen, about.
    pub fn visible_bytes(&self) -> u64 {
        self.slice.as_ref().map_or(self.meta.file_bytes, |slice| slice.bytes)
    }

    #[inline]
    pub(crate) fn descent(&self, kind: TreeKind) -> Option<Descent<'_>> {
        let tree = self.meta.tree(kind)?;
        Some(Descent::new(&self.file, kind, tree, self.prefer_flat))
    }

    pub(crate) fn version(&self, record: &RowRecord) -> Version {
        Version(record.version.0.saturating_add(self.version_offset))
    }

    fn row(&self, page: &PageRef, record: &RowRecord, place: RowPlace) -> Row {
        Row { version: self.version(record), kind: record.kind, value: StoredValue::new(page, record), place }
    }

    /// The newest version of `key` that is not newer than `at`. A step; allocates nothing.
    ///
    /// # Errors
    ///
    /// [`Stop::Fault`] if a page is not in memory; [`Stop::Failed`] if one cannot be read, or is not what was written.
    pub fn get<S: PageSource + ?Sized>(&self, source: &S, key: &[u8], at: Version) -> Result<Option<Row>, Stop> {
        self.find(source, key, at, |_| {})
    }

    /// As [`Sst::get`]. `note` is called when the step has its answer from a page of rows.
    #[inline]
    fn find<S: PageSource + ?Sized>(
        &self,
        source: &S,
        key: &[u8],
        at: Version,
        note: impl FnOnce(LookUp<'_>),
    ) -> Result<Option<Row>, Stop> {
        let Some(descent) = self.descent(TreeKind::Main) else { return Ok(None) };
        let Some((page, layout)) = self.page_of_key(&descent, source, key)? else { return Ok(None) };
        let Ok(i) = layout.search(&page, key) else {
            note(LookUp::Absent(layout.first_row(), &page));
            return Ok(None);
        };
        let row = layout.first_row() + i as u64;
        if self.hides(row) {
            return Ok(None);
        }
        let found = self.visible(&page, &layout, i, at, |version| {
            let Some(history) = self.descent(TreeKind::History) else { return Ok(None) };
            let older = history.lower(source, &history_key(row, version))?;
            Ok(older.and_then(|(page, layout, i)| self.older_version(row, (&page, &layout, i))))
        })?;
        note(LookUp::Found(row));
        Ok(found)
    }

    /// The main page under which `key` lies if it exists; `None` if none of its rows is seen.
    #[inline]
    fn page_of_key<S: PageSource + ?Sized>(
        &self,
        main: &Descent<'_>,
        source: &S,
        key: &[u8],
    ) -> Result<Option<(PageRef, Layout)>, Stop> {
        match &self.slice {
            None => main.page_of_key(source, key).map(Some),
            // What is seen goes by row ids, so the page must have those that its parent says.
            Some(slice) => Ok(match main.page_among(source, key, &slice.rows)? {
                Under::Page(page, layout) => Some((page, layout)),
                Under::Hidden(_) => None,
            }),
        }
    }

    /// Whether main row `row` is not seen.
    #[inline]
    fn hides(&self, row: u64) -> bool {
        self.slice.as_ref().is_some_and(|slice| !slice.rows.contains(row))
    }

    /// The newest version of row `i` of a main page that is not newer than `at`. If that is not the newest of all,
    /// `older` looks in the history for the newest one that is not newer than a version of the file.
    #[inline]
    fn visible(
        &self,
        page: &PageRef,
        layout: &Layout,
        i: usize,
        at: Version,
        older: impl FnOnce(Version) -> Result<Option<Row>, Stop>,
    ) -> Result<Option<Row>, Stop> {
        let record = layout.record(page, i);
        if self.version(&record) <= at {
            let place = RowPlace::Newest(layout.first_row() + i as u64);
            return Ok(Some(self.row(page, &record, place)));
        }
        match at.0.checked_sub(self.version_offset) {
            Some(version) if record.has_history => older(Version(version)),
            _ => Ok(None),
        }
    }

    /// The version at a place in the history, if it is one of main row `row`.
    fn older_version(&self, row: u64, (page, layout, i): (&PageRef, &Layout, usize)) -> Option<Row> {
        let place = RowPlace::Older(layout.first_row() + i as u64);
        (main_row(page, layout, i) == row).then(|| self.row(page, &layout.record(page, i), place))
    }

    /// The range erase that covers `key`, if any: at most one does. A step.
    ///
    /// # Errors
    ///
    /// [`Stop::Fault`] if a page is not in memory; [`Stop::Failed`] if one cannot be read, or is not what was written.
    pub fn range_erase<S: PageSource + ?Sized>(&self, source: &S, key: &[u8]) -> Result<Option<RangeErase>, Stop> {
        let Some(descent) = self.descent(TreeKind::RangeErases) else { return Ok(None) };
        let Some((page, layout, i)) = range_erase_before(&descent, source, key)? else { return Ok(None) };
        let erase = self.decode_range_erase(&page, &layout, i)?;
        Ok(Some(erase).filter(|erase| erase.keys.contains(key)))
    }

    /// Whether a range erase that is seen may cover a key from `low` to `high`. Reads nothing: where nothing is known
    /// it may.
    pub fn may_erase_between(&self, low: Bound<&[u8]>, high: Bound<&[u8]>) -> bool {
        self.known_gap.as_ref().is_some_and(|known| !known.holds(low, high))
    }

    /// Notes that a read looked for range erases, and found none in `gap`.
    fn note_gap(&self, gap: impl FnOnce() -> KeyRange) {
        if let Some(known) = &self.known_gap {
            known.missed(gap);
        }
    }

    /// The newest version not newer than `at` at which a range erase hid `key`. A step. It allocates only where it
    /// keeps a gap around `key`.
    ///
    /// # Errors
    ///
    /// [`Stop::Fault`] if a page is not in memory; [`Stop::Failed`] if one cannot be read, or is not what was written.
    pub fn cover<S: PageSource + ?Sized>(&self, source: &S, key: &[u8], at: Version) -> Result<Option<Version>, Stop> {
        if !self.may_erase_between(Bound::Included(key), Bound::Included(key)) {
            return Ok(None);
        }
        let Some(descent) = self.descent(TreeKind::RangeErases) else { return Ok(None) };
        let Some((page, layout, i)) = range_erase_before(&descent, source, key)? else {
            self.note_gap(|| KeyRange { start: Vec::new(), end: Some(key.to_vec()) });
            return Ok(None);
        };
        let stored = StoredErase::new(&page, &layout.record(&page, i));
        let stored = stored.ok_or_else(|| self.bad_range_erase(&page, i))?;
        // It begins at or before the key.
        if let Some(end) = stored.end.filter(|end| *end <= key) {
            self.note_gap(|| {
                let mut next = Vec::new();
                if i + 1 < layout.rows() {
                    layout.read_row(&page, i + 1, &mut next);
                } else {
                    next.extend_from_slice(key);
                }
                KeyRange { start: end.to_vec(), end: Some(next) }
            });
            return Ok(None);
        }
        if self.slice.is_some() && !self.seen_erases().contains(key) {
            return Ok(None);
        }
        let mut versions = stored.versions().map(|version| Version(version.0.saturating_add(self.version_offset)));
        Ok(versions.find(|&version| version <= at))
    }

    /// Keys whose range erases are seen: those on this side of where the file was cut off.
    fn seen_erases(&self) -> KeyRange<&[u8]> {
        let (seen, all) = (self.bounds(), &self.meta.bounds);
        let start = if seen.low == all.low { &[] } else { seen.low.as_slice() };
        KeyRange { start, end: seen.high.as_deref().filter(|_| seen.high != all.high) }
    }

    /// Range erase number `i` in the file, all of it: see [`Sst::seen_of`]. A step.
    ///
    /// # Errors
    ///
    /// [`Stop::Fault`] if a page is not in memory; [`Stop::Failed`] if one cannot be read, or is not what was written.
    pub fn nth_range_erase<S: PageSource + ?Sized>(&self, source: &S, i: u64) -> Result<Option<RangeErase>, Stop> {
        let Some(tree) = self.meta.range_erases.filter(|tree| i < tree.totals.rows) else { return Ok(None) };
        let descent = Descent::new(&self.file, TreeKind::RangeErases, &tree, self.prefer_flat);
        let (page, layout): (PageRef, Layout) = descent.page_of_row(source, i)?;
        self.decode_range_erase(&page, &layout, (i - layout.first_row()) as usize).map(Some)
    }

    /// What is seen of a range erase of the file: the part on this side of where the file was cut off.
    pub fn seen_of(&self, erase: RangeErase) -> Option<RangeErase> {
        let RangeErase { keys, versions } = erase;
        let keys = match &self.slice {
            None => Some(keys).filter(|keys| !keys.is_empty()),
            Some(_) => keys.meet(&self.seen_erases()),
        };
        keys.map(|keys| RangeErase { keys, versions })
    }

    #[cold]
    fn bad_range_erase(&self, page: &PageRef, i: usize) -> Stop {
        let why = format!("range erase {i} of the page does not decode");
        corrupt(&self.file, PageKind::RangeErase, page.address().offset, why)
    }

    pub(crate) fn decode_range_erase(&self, page: &PageRef, layout: &Layout, i: usize) -> Result<RangeErase, Stop> {
        let erase = decode_range_erase(page, layout, i);
        let mut erase = erase.ok_or_else(|| self.bad_range_erase(page, i))?;
        for version in &mut erase.versions {
            version.0 = version.0.saturating_add(self.version_offset);
        }
        Ok(erase)
    }
}

/// Id of the main row to which row `i` of a page of the history belongs.
fn main_row(page: &PageRef, layout: &Layout, i: usize) -> u64 {
    let mut key = [0; 16];
    layout.copy_key(page, i, &mut key);
    u64::from_be_bytes(*key.first_chunk().expect("eight bytes"))
}

/// The last range erase that begins at or before `key`. A step.
fn range_erase_before<S: PageSource + ?Sized>(
    descent: &Descent<'_>,
    source: &S,
    key: &[u8],
) -> Result<Option<(PageRef, Layout, usize)>, Stop> {
    let (page, layout) = descent.page_of_key(source, key)?;
    // Separators are cut from starts, so the last start not after `key` is in this page, or in the one before.
    match layout.search(&page, key) {
        Ok(i) => Ok(Some((page, layout, i))),
        Err(0) => descent.before(source, layout.first_row()),
        Err(i) => Ok(Some((page, layout, i - 1))),
    }
}

/// A range erase in its page, without its start.
struct StoredErase<'p> {
    end: Option<&'p [u8]>,
    newest: Version,
    /// Varints, as many as there are versions.
    older: &'p [u8],
}

impl<'p> StoredErase<'p> {
    /// What `record` of `page` says; `None` if it is malformed.
    fn new(page: &'p [u8], record: &RowRecord) -> Option<Self> {
        let value = &page[record.value_at..record.value_at + record.value_bytes];
        let (&has_end, mut rest) = value.split_first()?;
        let end = varint::take_bytes(&mut rest)?;
        let end = match has_end {
            0 if end.is_empty() => None,
            // It is a key as the start is.
            1 if end.len() <= MAX_KEY_BYTES => Some(end),
            _ => return None,
        };
        let count = varint::take(&mut rest)?;
        let older = rest;
        for _ in 0..count {
            varint::take(&mut rest)?;
        }
        rest.is_empty().then_some(Self { end, newest: record.version, older })
    }

    /// As the file has them, newest first.
    fn versions(&self) -> impl Iterator<Item = Version> + use<'p> {
        let mut older = self.older;
        std::iter::once(self.newest).chain(std::iter::from_fn(move || varint::take(&mut older).map(Version)))
    }
}

/// Row `i` of a page of range erases, with versions as the file has them; `None` if it is malformed.
pub(crate) fn decode_range_erase(page: &[u8], layout: &Layout, i: usize) -> Option<RangeErase> {
    let mut start = Vec::new();
    let record = layout.read_row(page, i, &mut start);
    let stored = StoredErase::new(page, &record)?;
    let keys = KeyRange { start, end: stored.end.map(<[u8]>::to_vec) };
    Some(RangeErase { keys, versions: stored.versions().collect() })
}

/// An error about a page of `file`.
fn corrupt(file: &PagedFile, kind: PageKind, offset: u64, why: String) -> Stop {
    Error::Corrupt { file: file.path().to_owned(), page: kind.name(), offset, why }.into()
}

#[cfg(test)]
mod tests;
