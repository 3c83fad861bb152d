//! The pages that are in memory and nothing else: for those who want to see what is there, and for reads that may not
//! wait. It knows no disk, and leaves no trace: nothing is noted, counted, pinned beyond the [`PageRef`] given, or any
//! warmer for having been found.
//!
//! Thread safe.

use crate::cache::shard::Key;
use crate::{Address, PageCache, PageKind, PageRef, PageSource, PagedFile, Result, Stop};
use os::sync::Arc;

/// Never reads. A fault stays one however often the step is run again: its steps are run once, not by
/// [`retry`](crate::retry()).
pub struct Loaded {
    cache: Arc<PageCache>,
}

impl Loaded {
    /// What is in the memory of `cache`.
    pub fn new(cache: &Arc<PageCache>) -> Self {
        Self { cache: Arc::clone(cache) }
    }

    fn find(&self, file: &PagedFile, at: &Address) -> Option<PageRef> {
        debug_assert!(file.is_at_home(&self.cache), "{file:?} is registered with another cache");
        self.cache.find(Key::new(file, at), false)
    }
}

impl PageSource for Loaded {
    fn page(&self, file: &Arc<PagedFile>, at: &Address, kind: PageKind) -> Result<PageRef, Stop> {
        match self.find(file, at) {
            Some(page) if page.is(at, kind) => Ok(page),
            Some(page) => Err(file.found_another(&page, at, kind).into()),
            None => Err(Stop::Fault),
        }
    }

    fn peek(&self, file: &Arc<PagedFile>, at: &Address, kind: PageKind) -> Option<PageRef> {
        self.find(file, at).filter(|page| page.is(at, kind))
    }

    fn ahead(&self, _: &Arc<PagedFile>, _: &Address, _: PageKind) -> bool {
        false
    }

    fn fetch(&self) -> Result<()> {
        Ok(())
    }

    fn release(&self) {}
}

#[cfg(test)]
mod tests;
