//! A source that gives only pages that are in memory, for callers that just look at what is there and for reads
//! that may not wait. It knows no disk and leaves no trace: it notes and counts nothing, pins only the [`PageRef`]s
//! that it gives out, and does not count a find as a use of the page.
//!
//! Thread safe.

use crate::{PageAt, PageCache, PageLender, PageRef, PageSource, Result, Stop};
use os::sync::Arc;

/// Gives only resident pages. A step over this source runs once, not in [`retry`](crate::retry()): the source never
/// reads a page, so a step that faults would fault each time.
pub struct Loaded {
    cache: Arc<PageCache>,
}

impl Loaded {
    /// The resident pages of `cache`.
    pub fn new(cache: &Arc<PageCache>) -> Self {
        Self { cache: Arc::clone(cache) }
    }

    fn find(&self, at: PageAt<'_>) -> Option<PageRef> {
        debug_assert!(at.file.is_at_home(&self.cache), "{:?} is registered with another cache", at.file);
        self.cache.find(at.key(), false)
    }
}

impl PageLender for Loaded {
    type Page = PageRef;

    fn fetches(&self) -> bool {
        true
    }

    fn page(&self, at: PageAt<'_>) -> Result<PageRef, Stop> {
        match self.find(at) {
            Some(page) if at.is(&page) => Ok(page),
            Some(page) => Err(at.is_another(&page).into()),
            None => Err(Stop::Fault),
        }
    }

    fn peek(&self, at: PageAt<'_>) -> Option<PageRef> {
        self.find(at).filter(|page| at.is(page))
    }

    fn ahead(&self, _: PageAt<'_>) -> bool {
        false
    }

    fn ahead_if_spare(&self, _: PageAt<'_>) -> bool {
        false
    }

    fn take_read(&self, _: PageAt<'_>) -> bool {
        false
    }

    fn release(&self) {}
}

impl PageSource for Loaded {
    fn glance(&self, at: PageAt<'_>) -> Option<PageRef> {
        self.peek(at)
    }

    fn ahead_bytes(&self) -> u64 {
        0
    }

    fn fetch(&self) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
