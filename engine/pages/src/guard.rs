//! A reader that uses only pages in memory, and for a moment. It takes no lock of the cache, pins no page and changes no
//! count that threads share, but for the uses of a page that the policy distinguishes. It does not fetch what is
//! missing: the reader starts over with a [`Session`](crate::Session). If an [excerpt](crate::Excerpt) can take the
//! place of the missing page, it is looked up under a lock.
//!
//! * Each page is [lent](LentPage), which protects it until the reader lets go of it. A reader that sleeps
//!   meanwhile keeps only the pages that it has at that moment: a few for each thread.
//! * A guard stays on its thread, and ends before the thread waits for anything.

use crate::counters::HitTally;
use crate::frame::{FramePlace, Part};
use crate::{Excerpt, ExcerptName, LentPage, Page, PageAt, PageCache, PageLender, Reason, Stop};
use os::sync::hazard::Lease;
use std::cell::Cell;
use std::fmt;

/// One reader of pages in memory. Not `Send`.
pub struct Guard<'g> {
    cache: &'g PageCache,
    lease: &'g Lease,
    hits: Cell<HitTally>,
    /// The first pages that were lent, whose uses are counted once the read is answered.
    used: [Cell<Option<FramePlace<'g>>>; NOTED],
    lent: Cell<usize>,
    /// Whether only a session can do what was asked for. Then the guard gives no further page.
    is_over: Cell<bool>,
}

/// How many pages a guard notes. Uses of further pages are counted at once.
const NOTED: usize = 8;

impl<'g> Guard<'g> {
    /// A reader of the pages in `cache`. `lease` belongs to this thread, and has to be one on the
    /// [shared hazards](os::sync::hazard::Hazards::shared). `None` if the cache's trace is on, because the trace
    /// notes the order of all accesses.
    #[inline]
    pub fn new(cache: &'g PageCache, lease: &'g Lease) -> Option<Self> {
        assert!(lease.is_on(cache.hazards()), "a lease on other hazards protects no page of this cache");
        let used = [const { Cell::new(None) }; NOTED];
        (!cache.trace().is_on()).then(|| Self {
            cache,
            lease,
            hits: Cell::default(),
            used,
            lent: Cell::default(),
            is_over: Cell::default(),
        })
    }

    /// The cache.
    pub fn cache(&self) -> &'g PageCache {
        self.cache
    }

    #[inline]
    fn find(&self, at: &PageAt<'_>) -> Option<LentPage<'g>> {
        if self.is_over.get() {
            return None;
        }
        let page = self.cache.lend(at.parent, at.key(), self.lease)?;
        if !at.is(&page) {
            return None;
        }
        let lent = self.lent.replace(self.lent.get() + 1);
        match self.used.get(lent) {
            Some(noted) => noted.set(Some(page.place())),
            None => page.place().count_use(),
        }
        let mut hits = self.hits.get();
        let is_full = hits.count(at.kind);
        self.hits.set(hits);
        if is_full {
            self.count_hits();
        }
        Some(page)
    }

    /// Counts the hits, and the uses of the pages: the read was answered. If it was not, a session starts over and
    /// counts its own, so the guard just goes.
    #[inline]
    pub fn count_hits(&self) {
        self.count_uses();
        self.cache.counters().add_lent(self.lease.number(), self.hits.take());
    }

    /// As [`Guard::count_hits`], for a read of keys in order.
    pub fn count_hits_of_scan(&self) {
        self.count_uses();
        self.cache.counters().add_hits(Reason::Scan, &mut self.hits.take());
    }

    #[inline]
    fn count_uses(&self) {
        self.used.iter().take(self.lent.replace(0)).filter_map(Cell::take).for_each(FramePlace::count_use);
    }

    /// Notes that the reader may use any part of `page`.
    #[inline]
    pub fn note_all(&self, page: &impl Page) {
        if self.cache.notes_parts() {
            page.live().note_all();
        }
    }
}

impl<'g> PageLender for Guard<'g> {
    type Page = LentPage<'g>;

    #[inline]
    fn fetches(&self) -> bool {
        false
    }

    /// A fault also if another page lies at the address: the session that starts over reports it.
    #[inline]
    fn page(&self, at: PageAt<'_>) -> Result<LentPage<'g>, Stop> {
        self.find(&at).ok_or(Stop::Fault)
    }

    #[inline]
    fn peek(&self, at: PageAt<'_>) -> Option<LentPage<'g>> {
        self.find(&at)
    }

    fn ahead(&self, _: PageAt<'_>) -> bool {
        false
    }

    /// If the cache has unused memory for the page, the guard gives no further page, and the session that starts over
    /// brings it.
    fn ahead_if_spare(&self, at: PageAt<'_>) -> bool {
        if at.file.reads().overlap() && self.cache.has_spare(at.address.memory_bytes()) {
            self.is_over.set(true);
        }
        false
    }

    fn take_read(&self, _: PageAt<'_>) -> bool {
        false
    }

    fn excerpt(&self, name: &ExcerptName<'_>, fits: &dyn Fn(&[u8]) -> bool) -> Option<Excerpt<LentPage<'g>>> {
        if self.is_over.get() { None } else { self.cache.lend_excerpt(name, fits, self.lease) }
    }

    #[inline]
    fn note_part(&self, page: &LentPage<'g>, part: Part) {
        if self.cache.notes_parts() {
            page.live().note_part(part);
        }
    }

    /// The step was answered, so its hits count.
    #[inline]
    fn release(&self) {
        self.count_hits();
    }
}

impl Drop for Guard<'_> {
    #[inline]
    fn drop(&mut self) {
        // Usually the reader to whom a page was lent last frees it. If not, an eviction does.
        if self.cache.has_retired() {
            self.cache.free_retired();
        }
    }
}

impl fmt::Debug for Guard<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard").field("cache", &self.cache).finish_non_exhaustive()
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
