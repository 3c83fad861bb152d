//! The range erases of a file: how they lie in their pages, and which one covers a key. This module knows no rows.

use super::descent::Descent;
use super::sst::Sst;
use crate::KeyRange;
use crate::format::data_page::{Layout, RowRecord};
use crate::format::meta::TreeKind;
use crate::format::{PageRows, varint};
use crate::row::{MAX_KEY_BYTES, Version};
use pages::{Page, PageKind, PageLender, PageRef, PageSource, Stop};
use std::ops::Bound;

/// A range of keys that was erased as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeErase<K = Vec<u8>> {
    /// The keys.
    pub keys: KeyRange<K>,
    /// The versions at which it was erased, newest first.
    pub versions: Vec<Version>,
}

impl<K> RangeErase<K> {
    /// The newest version not newer than `at`.
    pub fn newest(&self, at: Version) -> Option<Version> {
        self.versions.iter().copied().find(|&version| version <= at)
    }
}

impl Sst {
    /// The range erase that covers `key`; at most one does. `None` if no erase covers it. A step.
    ///
    /// # Errors
    ///
    /// [`Stop::Fault`] if a page is not in memory; [`Stop::Failed`] if a page cannot be read or is corrupt.
    pub fn range_erase<S: PageSource + ?Sized>(&self, source: &S, key: &[u8]) -> Result<Option<RangeErase>, Stop> {
        let Some(descent) = self.descent(TreeKind::RangeErases) else { return Ok(None) };
        let Some((page, layout, i)) = range_erase_before(&descent, source, key)? else { return Ok(None) };
        let erase = self.decode_range_erase(&page, &layout, i)?;
        Ok(Some(erase).filter(|erase| erase.keys.contains(key)))
    }

    /// Whether some key from `low` to `high` may be covered by a range erase that the table sees. This call reads
    /// no page: unless the keys are known to be free of range erases, the answer is yes.
    pub fn may_erase_between(&self, low: Bound<&[u8]>, high: Bound<&[u8]>) -> bool {
        self.known_gap.as_ref().is_some_and(|known| !known.holds(low, high))
    }

    /// Notes that a read looked for range erases and found none in `gap`.
    pub(super) fn note_gap(&self, gap: impl FnOnce() -> KeyRange) {
        if let Some(known) = &self.known_gap {
            known.missed(gap);
        }
    }

    /// The newest version, not newer than `at`, at which a range erase hid `key`. A step. It allocates memory only
    /// if it keeps a gap around `key`.
    ///
    /// # Errors
    ///
    /// [`Stop::Fault`] if a page is not in memory; [`Stop::Failed`] if a page cannot be read or is corrupt.
    #[inline]
    pub fn cover<S: PageLender + ?Sized>(&self, source: &S, key: &[u8], at: Version) -> Result<Option<Version>, Stop> {
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
        // The erase begins at or before the key.
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

    /// The range of keys in which the table sees range erases. At a side where a slice cuts the file off, this
    /// range ends at the cut.
    fn seen_erases(&self) -> KeyRange<&[u8]> {
        let (seen, all) = (self.bounds(), &self.meta.bounds);
        let start = if seen.low == all.low { &[] } else { seen.low.as_slice() };
        KeyRange { start, end: seen.high.as_deref().filter(|_| seen.high != all.high) }
    }

    /// Range erase number `i` of the file as a whole. The table may see only a part of it, which [`Sst::seen_of`]
    /// gives. A step.
    ///
    /// # Errors
    ///
    /// [`Stop::Fault`] if a page is not in memory; [`Stop::Failed`] if a page cannot be read or is corrupt.
    pub fn nth_range_erase<S: PageSource + ?Sized>(&self, source: &S, i: u64) -> Result<Option<RangeErase>, Stop> {
        let Some(tree) = self.meta.range_erases.get().filter(|tree| i < tree.totals.rows) else { return Ok(None) };
        let descent = Descent::new(&self.file, TreeKind::RangeErases, &tree, self.prefer_flat);
        let (page, layout): (PageRef, Layout) = descent.page_of_row(source, i)?;
        self.decode_range_erase(&page, &layout, (i - layout.first_row()) as usize).map(Some)
    }

    /// The part of `erase` that the table sees. If a slice cuts off a side of the file, the table does not see
    /// what lies beyond the cut.
    pub fn seen_of(&self, erase: RangeErase) -> Option<RangeErase> {
        let RangeErase { keys, versions } = erase;
        let keys = match &self.slice {
            None => Some(keys).filter(|keys| !keys.is_empty()),
            Some(_) => keys.meet(&self.seen_erases()),
        };
        keys.map(|keys| RangeErase { keys, versions })
    }

    #[cold]
    fn bad_range_erase(&self, page: &impl Page, i: usize) -> Stop {
        let why = format!("range erase {i} of the page does not decode");
        self.file.corrupt(PageKind::RangeErase, page.address().offset, why).into()
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

/// The last range erase that begins at or before `key`. A step.
fn range_erase_before<S: PageLender + ?Sized>(
    descent: &Descent<'_>,
    source: &S,
    key: &[u8],
) -> Result<Option<(S::Page, Layout, usize)>, Stop> {
    let (page, layout) = descent.page_of_key(source, key)?;
    // Separators are shortened starts of erases, so the search may arrive one page too late. The last erase that
    // starts at or before `key` is in this page or in the page before it.
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
    /// Older versions as varints, one for each.
    older: &'p [u8],
}

impl<'p> StoredErase<'p> {
    /// The erase in `record` of `page`; `None` if it is malformed.
    fn new(page: &'p [u8], record: &RowRecord) -> Option<Self> {
        let value = &page[record.value_at..record.value_at + record.value_bytes];
        let (&has_end, mut rest) = value.split_first()?;
        let end = varint::take_bytes(&mut rest)?;
        let end = match has_end {
            0 if end.is_empty() => None,
            // The end is a key, as the start is.
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

    /// The versions as the file has them, newest first.
    fn versions(&self) -> impl Iterator<Item = Version> + use<'p> {
        let mut older = self.older;
        std::iter::once(self.newest).chain(std::iter::from_fn(move || varint::take(&mut older).map(Version)))
    }
}

/// The range erase in row `i` of a page, with versions as the file has them; `None` if it is malformed.
pub(crate) fn decode_range_erase(page: &[u8], layout: &Layout, i: usize) -> Option<RangeErase> {
    let mut start = Vec::new();
    let record = layout.read_row(page, i, &mut start);
    let stored = StoredErase::new(page, &record)?;
    let keys = KeyRange { start, end: stored.end.map(<[u8]>::to_vec) };
    Some(RangeErase { keys, versions: stored.versions().collect() })
}
