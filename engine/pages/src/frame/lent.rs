//! Pages that are lent: a reader uses them under a hazard, without pinning them. This module does not know how pages
//! are found.

use super::{CACHED, Frame, LIVE, LivePage, MAX_PINS, PINS, Page, PageRef};
use crate::page_key::PageKey;
use os::sync::atomic::Ordering;
use os::sync::hazard::{Hazard, Lease};
use std::ops::Deref;
use std::ptr::NonNull;

/// A page of the cache that is lent to a reader for a moment. It is protected, so its memory stays as it is, although
/// the cache may give the page up meanwhile. Lending it changes no memory that other threads write to.
#[derive(Debug)]
pub struct LentPage<'g> {
    page: LivePage<'g>,
    _hazard: Hazard<'g>,
}

impl<'g> LentPage<'g> {
    /// Where the page is.
    #[inline]
    pub(crate) fn place(&self) -> FramePlace<'g> {
        FramePlace(self.page.0)
    }
}

/// Where a page was found. By now another page may be there.
#[derive(Clone, Copy)]
pub(crate) struct FramePlace<'g>(&'g Frame);

impl FramePlace<'_> {
    /// Counts a use of the page that is there now. The count is only a hint.
    #[inline]
    pub fn count_use(self) {
        self.0.count_use();
    }
}

impl Page for LentPage<'_> {
    #[inline]
    fn live(&self) -> LivePage<'_> {
        self.page
    }

    fn keep(&self) -> Option<PageRef> {
        let word = self.page.0.word.fetch_add(1, Ordering::Acquire);
        // Dropping the reference removes the pin, whether it is refused or not.
        let page = PageRef(NonNull::from(self.page.0));
        (word & LIVE != 0 && word & PINS < MAX_PINS).then_some(page)
    }
}

impl Deref for LentPage<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        self.page.bytes()
    }
}

impl Frame {
    /// Lends the page with the given name to the thread of `lease`, if that page is in the frame and resident in the
    /// cache, and if the thread has a free slot.
    #[inline]
    pub(crate) fn lend<'g>(&'g self, key: PageKey, lease: &'g Lease) -> Option<LentPage<'g>> {
        let hazard = lease.protect(self)?;
        let word = self.word.load(Ordering::Acquire);
        let is_it = word & (LIVE | CACHED) == LIVE | CACHED && self.is_named(key);
        // SAFETY: the frame is protected, and after that it was live and the cache had its page.
        is_it.then(|| LentPage { page: unsafe { LivePage::new(self) }, _hazard: hazard })
    }
}
