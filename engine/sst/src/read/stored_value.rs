//! The value of a row in two forms: as its page stores it, and as it is in memory. This module does not know its
//! row.

use crate::format::OutsideValue;
use crate::format::data_page::RowRecord;
use crate::format::group_page::StoredPart;
use crate::row::Until;
use os::sync::Arc;
use pages::{Error, HEADER_BYTES, Page, PageKind, PageLender, PageRef, PagedFile, Stop};
use std::io;
use std::ops::Range;

/// A value as its page stores it.
#[derive(Clone, Debug)]
pub struct StoredValue<P = PageRef> {
    page: P,
    at: u32,
    bytes: u32,
    outside: bool,
}

/// A value in memory.
#[derive(Clone, Debug)]
pub enum LoadedValue {
    /// A part of a page, which stays pinned.
    InPage(PageRef, Range<usize>),
    /// A value that was put together from several pages.
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

impl<P: Page> StoredValue<P> {
    #[inline]
    pub(super) fn new(page: P, record: &RowRecord) -> Self {
        let (at, bytes) = (record.value_at as u32, record.value_bytes as u32);
        Self { page, at, bytes, outside: record.outside }
    }

    /// The bytes at `place` of a page that is in memory.
    pub(super) fn inside(page: P, place: Range<usize>) -> Self {
        Self { page, at: place.start as u32, bytes: place.len() as u32, outside: false }
    }

    /// The time that lies before the value in its page. The row must be of the kind
    /// [`PutUntil`](crate::RowKind::PutUntil).
    pub(super) fn until(&self) -> Option<Until> {
        Until::before(&self.page, self.at as usize)
    }

    #[inline]
    fn stored(&self) -> &[u8] {
        &self.page[self.at as usize..(self.at + self.bytes) as usize]
    }

    /// The bytes, if they lie in the row's own page.
    #[inline]
    pub fn inline(&self) -> Option<&[u8]> {
        (!self.outside).then(|| self.stored())
    }

    /// The page of the row and the place of the value in it; `None` if the value lies outside.
    #[inline]
    pub fn in_page(&self) -> Option<(&P, Range<usize>)> {
        (!self.outside).then(|| (&self.page, self.at as usize..(self.at + self.bytes) as usize))
    }
}

impl StoredValue {
    #[inline]
    pub(super) fn of_part(page: &PageRef, part: StoredPart) -> Self {
        Self { page: page.clone(), at: part.at as u32, bytes: part.bytes as u32, outside: part.outside }
    }

    /// An empty part of `page`, until [`StoredValue::move_to`] moves it.
    pub(super) fn none_of(page: &PageRef) -> Self {
        Self { page: page.clone(), at: 0, bytes: 0, outside: false }
    }

    /// Moves to another part of the same page.
    #[inline]
    pub(super) fn move_to(&mut self, part: StoredPart) {
        (self.at, self.bytes, self.outside) = (part.at as u32, part.bytes as u32, part.outside);
    }

    /// The page of the row.
    #[inline]
    pub(super) fn page(&self) -> &PageRef {
        &self.page
    }

    /// Length of the value in bytes, without loading it.
    pub fn len(&self) -> u64 {
        if self.outside { self.reference().bytes } else { u64::from(self.bytes) }
    }

    /// Whether the value has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn reference(&self) -> OutsideValue<'_> {
        OutsideValue::new(self.stored()).expect("a validated page's references decode")
    }

    /// Loads the value. If the value lies outside its page, all its chunks are loaded together. A step.
    ///
    /// # Errors
    ///
    /// [`Stop::Fault`] if a chunk is not in memory; [`Stop::Failed`] if a chunk cannot be read, or is not what was
    /// written, or if there is no memory for the value.
    pub fn load<S: PageLender<Page = PageRef> + ?Sized>(
        &self,
        source: &S,
        file: &Arc<PagedFile>,
    ) -> Result<LoadedValue, Stop> {
        if let Some((page, place)) = self.in_page() {
            return Ok(LoadedValue::InPage(page.clone(), place));
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
            return Err(file.corrupt(PageKind::Value, first, why).into());
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
