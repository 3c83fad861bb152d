//! An immutable file, the part of it that a table sees, and the look-up of a key in its rows. It knows no other
//! file.

use super::descent::{Descent, Subtree, Under, Way};
use super::filter_use::FilterUse;
use super::gap::KnownGap;
use super::row::{Row, RowPlace};
use super::sought_key::SoughtKey;
use super::stored_value::StoredValue;
use super::ways::{Reached, Ways};
use crate::format::data_page::{HeadMatch, Layout, RowRecord};
use crate::format::meta::{KeyBounds, Meta, TreeKind};
use crate::format::{PageRows, history_key};
use crate::row::{RowKind, Version};
use crate::slice::{RowRanges, Slice};
use os::sync::Arc;
use pages::{Page, PageLender, PageRef, PageSource, PagedFile, Part, Stop};
use std::ops::Range;

/// An immutable file. It may not be open yet: the first read that needs its bytes opens it.
#[derive(Debug)]
pub struct Sst {
    /// Where its pages come from.
    pub file: Arc<PagedFile>,
    /// What is known about the file without reading it.
    pub meta: Meta,
    /// Added to every version in the file: a file that was built outside the database gets its place in the commit
    /// order when it is ingested.
    pub version_offset: u64,
    /// Whether reads use the flat index if the file has both indexes.
    pub prefer_flat: bool,
    /// The part of the file that the table sees; `None` if it sees all of it.
    pub slice: Option<Box<Slice>>,
    /// Counts that tell where its filter is of use. They start at zero.
    pub filter_use: FilterUse,
    /// A range of keys in which reads have found no range erase; `None` if the file has no range erases at all.
    pub known_gap: Option<Box<KnownGap>>,
}

/// What a look-up of a key met in a page of the main tree.
pub(super) enum LookUp<'p, P> {
    /// The key is in the row with this id.
    Found(u64),
    /// The key is not in this page, the only one that could have it. The number is the first row of the page.
    Absent(u64, &'p P),
}

/// The outcome of a step that goes to the page of a key: the page, and what its heads say about the key.
pub(super) type MatchStep<'k, P> = Result<Option<(P, Layout, HeadMatch<'k>)>, Stop>;

impl Sst {
    /// All of `file`.
    pub fn new(file: Arc<PagedFile>, meta: Meta, version_offset: u64, prefer_flat: bool) -> Self {
        let known_gap = meta.range_erases.tree().map(|_| Box::default());
        Self { file, meta, version_offset, prefer_flat, slice: None, filter_use: FilterUse::default(), known_gap }
    }

    /// The same file, seen only through `slice`, or as a whole if `slice` is `None`.
    #[must_use]
    pub fn sliced(&self, slice: Option<Slice>) -> Self {
        Self {
            slice: slice.map(Box::new),
            ..Self::new(self.file.clone(), self.meta.clone(), self.version_offset, self.prefer_flat)
        }
    }

    /// Ids of the main rows that the table sees.
    pub fn rows(&self) -> RowRanges {
        match &self.slice {
            None => (0..self.meta.rows()).into(),
            Some(slice) => slice.rows.clone(),
        }
    }

    /// Bounds of the keys that the table sees. They may be wider than the keys.
    #[inline]
    pub fn bounds(&self) -> &KeyBounds {
        self.slice.as_ref().map_or(&self.meta.bounds, |slice| &slice.bounds)
    }

    /// Approximate stored size, in bytes, of the part that the table sees.
    pub fn visible_bytes(&self) -> u64 {
        self.slice.as_ref().map_or(self.meta.file_bytes, |slice| slice.bytes)
    }

    #[inline]
    pub(crate) fn descent(&self, kind: TreeKind) -> Option<Descent<'_>> {
        let tree = self.meta.tree(kind)?;
        Some(Descent::new(&self.file, kind, tree, self.prefer_flat))
    }

    #[inline]
    pub(crate) fn version(&self, record: &RowRecord) -> Version {
        Version(record.version.0.saturating_add(self.version_offset))
    }

    #[inline]
    pub(super) fn row<P: Page>(&self, page: P, record: &RowRecord, place: RowPlace) -> Row<P> {
        Row { version: self.version(record), kind: record.kind, value: StoredValue::new(page, record), place }
    }

    /// The newest version of `key` that is not newer than `at`. A step; allocates nothing.
    ///
    /// # Errors
    ///
    /// [`Stop::Fault`] if a page is not in memory; [`Stop::Failed`] if a page cannot be read or is corrupt.
    pub fn get<S: PageLender + ?Sized>(
        &self,
        source: &S,
        key: &[u8],
        at: Version,
    ) -> Result<Option<Row<S::Page>>, Stop> {
        let key = SoughtKey::new(key);
        self.find(source, at, || self.match_key(source, &key), |_| {})
    }

    /// The newest version, not newer than `at`, of the key for which `page` returns the page and what the page's
    /// heads say about the key. Calls `note` when the step has found its answer in a page of rows.
    #[inline]
    pub(super) fn find<'k, S: PageLender + ?Sized>(
        &self,
        source: &S,
        at: Version,
        page: impl FnOnce() -> MatchStep<'k, S::Page>,
        note: impl FnOnce(LookUp<'_, S::Page>),
    ) -> Result<Option<Row<S::Page>>, Stop> {
        let Some((page, layout, heads)) = page()? else { return Ok(None) };
        let Ok(i) = layout.search_among(&page, &heads) else {
            note(LookUp::Absent(layout.first_row(), &page));
            return Ok(None);
        };
        source.note_part(&page, Part { number: i as u32, of: layout.rows() as u32 });
        let row = layout.first_row() + i as u64;
        if self.hides(row) {
            return Ok(None);
        }
        let record = layout.record(&page, i);
        if record.outside && !source.fetches() {
            // The value is in other pages, which a source that fetches brings together with the row's.
            return Err(Stop::Fault);
        }
        let found = if self.version(&record) <= at {
            Some(self.row(page, &record, RowPlace::Newest(row)))
        } else {
            self.find_older(source, row, &record, at)?
        };
        note(LookUp::Found(row));
        Ok(found)
    }

    /// The newest version of main row `row` that is not newer than `at`. `record` is the row's newest version, and it
    /// is too new.
    fn find_older<S: PageLender + ?Sized>(
        &self,
        source: &S,
        row: u64,
        record: &RowRecord,
        at: Version,
    ) -> Result<Option<Row<S::Page>>, Stop> {
        let Some(version) = self.older_than(record, at) else { return Ok(None) };
        let Some(history) = self.descent(TreeKind::History) else { return Ok(None) };
        let older = history.lower(source, &history_key(row, version))?;
        Ok(older.and_then(|place| self.older_version(row, place)))
    }

    /// The page of the main tree that has `key` if the file does, and what its heads say about `key`. `None` if the
    /// file has no rows, or if the slice hides all rows there.
    #[inline]
    pub(super) fn match_key<'k, S: PageLender + ?Sized>(
        &self,
        source: &S,
        key: &SoughtKey<'k>,
    ) -> MatchStep<'k, S::Page> {
        let Some(main) = self.descent(TreeKind::Main) else { return Ok(None) };
        let Some((page, layout)) = self.page_of_key(&main, source, key)? else { return Ok(None) };
        let heads = layout.match_heads(&page, key.bytes());
        Ok(Some((page, layout, heads)))
    }

    /// Like [`Sst::match_key`], but goes on from where a way to `key` has ended.
    #[inline]
    pub(super) fn match_reached<'k, S: PageSource + ?Sized>(
        &self,
        source: &S,
        key: &SoughtKey<'k>,
        reached: Reached<'_, 'k>,
    ) -> MatchStep<'k, PageRef> {
        if let Some((page, layout, heads)) = reached.row() {
            return Ok(Some((page.clone(), *layout, *heads)));
        }
        match self.descent(TreeKind::Main).and_then(|main| reached.page(&main, source)) {
            Some(found) => {
                let (page, layout) = found?;
                let heads = layout.match_heads(&page, key.bytes());
                Ok(Some((page, layout, heads)))
            }
            None => self.match_key(source, key),
        }
    }

    /// The page of the main tree that has `key` if the file does; `None` if the slice hides all rows there.
    #[inline]
    fn page_of_key<S: PageLender + ?Sized>(
        &self,
        main: &Descent<'_>,
        source: &S,
        key: &SoughtKey<'_>,
    ) -> Result<Option<(S::Page, Layout)>, Stop> {
        match &self.slice {
            None => {
                // The file is immutable, and the run that faulted has already checked the nodes on the way.
                if let Some(address) = key.missing_in(&self.file) {
                    return main.page_under(source, &Way::to_page(address)).map(Some);
                }
                let way = main.way_of_key(source, key.bytes())?;
                let page = main.page_under(source, &way);
                if let Err(Stop::Fault) = page {
                    key.set_missing(&self.file, way.address);
                }
                page.map(Some)
            }
            // A slice is a set of row ids, so the page must hold exactly the rows that its parent states.
            Some(slice) => Ok(match main.page_among(source, key.bytes(), &slice.rows)? {
                Under::Page(page, layout) => Some((page, layout)),
                Under::Hidden(_) => None,
            }),
        }
    }

    /// Adds a way to `key` in this file to `ways`. The way does not begin if a slice or the filter may make it
    /// unnecessary, or if the root is not a node in memory.
    #[inline]
    pub fn begin_way<'f, 'k, S: PageSource + ?Sized>(&'f self, ways: &mut Ways<'f, 'k>, source: &S, key: &'k [u8]) {
        ways.begin(&self.file, key, || {
            let asks_filter = || self.meta.filter.is_some() && self.filter_use.summary().asks_first();
            let main = self.descent(TreeKind::Main).filter(|_| self.slice.is_none() && !asks_filter())?;
            let Subtree { address, level, .. } = main.whole();
            let root = if level > 0 { main.peek_node(source, &address)? } else { return None };
            Some((main, root))
        });
    }

    /// Takes the page that way `i` of `ways` has reached, with the place of the key's value in it. The way must
    /// have begun in this file. Returns `None` unless the value is all that the file says about the key as of `at`:
    /// no look-up has to be counted for the filter, and no other page can add anything.
    #[inline]
    pub fn take_value<S: PageSource + ?Sized>(
        &self,
        source: &S,
        ways: &mut Ways<'_, '_>,
        i: usize,
        at: Version,
    ) -> Option<(PageRef, Range<usize>)> {
        let is_counted = || self.meta.filter.is_some() && !self.filter_use.summary().is_all_found();
        if self.slice.is_some() || self.meta.range_erases.tree().is_some() || is_counted() {
            return None;
        }
        let is_all = |record: &RowRecord| record.kind == RowKind::Put && !record.outside && self.version(record) <= at;
        ways.take_value(source, i, is_all)
    }

    /// Whether main row `row` is not seen.
    #[inline]
    fn hides(&self, row: u64) -> bool {
        self.slice.as_ref().is_some_and(|slice| !slice.rows.contains(row))
    }

    /// The newest version of row `i` of a main page that is not newer than `at`. If the row's newest version is too
    /// new, `older` searches the history; it gets `at` without the file's version offset.
    #[inline]
    pub(super) fn visible(
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
            return Ok(Some(self.row(page.clone(), &record, place)));
        }
        self.older_than(&record, at).map_or(Ok(None), older)
    }

    /// The version, as the file has it, at which a read at `at` searches the history of a row whose newest version
    /// `record` is too new. `None` if the row has no older version.
    fn older_than(&self, record: &RowRecord, at: Version) -> Option<Version> {
        at.0.checked_sub(self.version_offset).filter(|_| record.has_history).map(Version)
    }

    /// The version at a place in the history, if it is a version of main row `row`.
    pub(super) fn older_version<P: Page>(&self, row: u64, (page, layout, i): (P, Layout, usize)) -> Option<Row<P>> {
        let place = RowPlace::Older(layout.first_row() + i as u64);
        if main_row(&page, &layout, i) != row {
            return None;
        }
        let record = layout.record(&page, i);
        Some(self.row(page, &record, place))
    }
}

/// Reads the id of the main row that row `i` of a history page is a version of.
pub(super) fn main_row(page: &impl Page, layout: &Layout, i: usize) -> u64 {
    let mut key = [0; 16];
    layout.copy_key(page, i, &mut key);
    u64::from_be_bytes(*key.first_chunk().expect("eight bytes"))
}
