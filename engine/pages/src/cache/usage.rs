//! What is in a cache at one moment: bytes by owner and kind, and the pages of given files. This module does not
//! know how pages come and go.

use super::PageCache;
use super::stripe::PageHeat;
use crate::page_key::PageKey;
use crate::{Address, PageKind, PageRef};

/// The memory of a cache at one moment, in bytes unless a field says otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheUsage {
    /// The budget.
    pub budget_bytes: u64,
    /// The bytes in use: `in_flight_bytes` plus the sum of `kind_bytes`.
    pub used_bytes: u64,
    /// Pages that are pinned, whether the cache keeps them or not.
    pub pinned_bytes: u64,
    /// Pages held for callers' values; see [`PageCache::hold`]. A page that is held twice counts twice.
    pub held_bytes: u64,
    /// Pages that cursors keep from one row to the next, roughly. A page that is kept twice counts twice.
    pub cursor_bytes: u64,
    /// Reserved for pages being read.
    pub in_flight_bytes: u64,
    /// Number of pages in memory, with those whose memory [excerpts](super::Excerpt) set aside.
    pub frames: u64,
    /// Memory that the system has given for page buffers, whether they hold pages or not. Buffers of more than 1
    /// MiB and buffers beyond the budget are not included, because they do not come from the arena.
    pub backed_bytes: u64,
    /// Memory needed beside the pages: the frames, the table, and the lists of the arena. Each page's cost includes
    /// a part for it, in addition to the page's buffer. These parts cover the overhead as long as the cache has as
    /// many pages as it ever had; with fewer pages, the overhead stays the same.
    pub overhead_bytes: u64,
    /// zstd contexts for unpacking pages. They are not part of the budget.
    pub unpacker_bytes: u64,
    /// Pages in memory by kind, in the order of [`PageKind::ALL`].
    pub kind_bytes: [u64; PageKind::ALL.len()],
    /// Number of files open, kept or in use.
    pub open_files: usize,
    /// How many [excerpts](crate::Excerpt) of pages that were not in memory readers have found, since the cache was
    /// made.
    pub excerpts_found: u64,
    /// How many excerpts the cache has kept, since it was made.
    pub excerpts_kept: u64,
    /// Number of sessions that queue for the right to exceed the budget.
    pub queued: usize,
}

impl CacheUsage {
    /// Pages of one kind in memory.
    pub fn bytes_of(&self, kind: PageKind) -> u64 {
        self.kind_bytes[kind.index()]
    }
}

/// A page in the cache at one moment; see [`PageCache::resident_of`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResidentPage {
    /// The [slot](crate::PagedFile::slot) of the page's file.
    pub slot: u32,
    /// Where the page lies in the file.
    pub at: Address,
    /// What the page is for.
    pub kind: PageKind,
    /// How much the page has been used lately.
    pub heat: PageHeat,
}

/// The number of different degrees of heat, from 0 to 8. Uses give up to 3 degrees. A proven page gets 2 degrees,
/// and up to 3 more for its chances.
const RANKS: usize = 9;

/// Pages of some files in the cache at one moment; see [`PageCache::usage_of`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FilesUsage {
    /// The bytes of these pages by kind, in the order of [`PageKind::ALL`].
    pub kind_bytes: [u64; PageKind::ALL.len()],
    /// The number of these pages by kind, in the same order.
    pub kind_pages: [u64; PageKind::ALL.len()],
}

impl FilesUsage {
    /// Bytes of the pages of one kind.
    pub fn bytes_of(&self, kind: PageKind) -> u64 {
        self.kind_bytes[kind.index()]
    }

    /// Number of the pages of one kind.
    pub fn pages_of(&self, kind: PageKind) -> u64 {
        self.kind_pages[kind.index()]
    }

    /// Bytes of the pages of all kinds.
    pub fn all_bytes(&self) -> u64 {
        self.kind_bytes.iter().sum()
    }

    /// Number of the pages of all kinds.
    pub fn all_pages(&self) -> u64 {
        self.kind_pages.iter().sum()
    }

    fn add(&mut self, page: PageRef) {
        self.kind_bytes[page.kind().index()] += page.memory_bytes();
        self.kind_pages[page.kind().index()] += 1;
    }
}

impl PageCache {
    /// The memory now. The call looks at every page, so it is meant for metrics, not for decisions.
    pub fn usage(&self) -> CacheUsage {
        let mut unpinned = 0;
        self.for_each_page(|_, page| unpinned += if page.is_last() { page.memory_bytes() } else { 0 });
        unpinned += self.excerpts.set_aside_bytes();
        let in_flight_bytes = self.budget.in_flight();
        let used_bytes = self.budget.used();
        CacheUsage {
            budget_bytes: self.budget.limit(),
            used_bytes,
            pinned_bytes: used_bytes.saturating_sub(in_flight_bytes).saturating_sub(unpinned),
            held_bytes: self.budget.held(),
            cursor_bytes: self.cursors.bytes(),
            in_flight_bytes,
            frames: self.budget.frames(),
            backed_bytes: self.memory.backed_bytes(),
            overhead_bytes: self.frames.bytes() + self.table.bytes() + self.memory.overhead_bytes(),
            unpacker_bytes: self.unpacker.memory_bytes(),
            kind_bytes: PageKind::ALL.map(|kind| self.budget.of_kind(kind)),
            open_files: self.open_files.count(),
            excerpts_found: self.excerpts.found(),
            excerpts_kept: self.excerpts.kept(),
            queued: self.budget.queued(),
        }
    }

    /// See [`PageCache::usage_of`]. `slots` are the files' slots, sorted.
    pub(crate) fn usage_in_slots(&self, slots: &[u32]) -> FilesUsage {
        let mut usage = FilesUsage::default();
        self.for_each_page(|key, page| {
            if slots.binary_search(&key.slot).is_ok() {
                usage.add(page);
            }
        });
        usage
    }

    /// See [`PageCache::resident_of`]. `slots` are the files' slots, sorted.
    pub(crate) fn resident_in_slots(&self, slots: &[u32], most: usize) -> Vec<ResidentPage> {
        let is_asked = |key: PageKey| slots.binary_search(&key.slot).is_ok();
        let rank = |kind: PageKind, heat: PageHeat| {
            usize::from(!kind.serves_many()) * RANKS + RANKS - 1 - usize::from(heat.degrees()).min(RANKS - 1)
        };
        let mut counts = [0usize; 2 * RANKS];
        self.for_each_resident(|key, page, heat| {
            if is_asked(key) {
                counts[rank(page.kind(), heat)] += 1;
            }
        });
        let mut room = [0usize; 2 * RANKS];
        let mut left = most;
        for (room, count) in room.iter_mut().zip(counts) {
            *room = count.min(left);
            left -= *room;
        }
        let mut resident = Vec::with_capacity(most - left);
        self.for_each_resident(|key, page, heat| {
            let room = &mut room[rank(page.kind(), heat)];
            if is_asked(key) && *room > 0 {
                *room -= 1;
                resident.push(ResidentPage { slot: key.slot, at: page.address(), kind: page.kind(), heat });
            }
        });
        resident
    }

    /// Like [`Self::for_each_page`], but with the heat of each page.
    fn for_each_resident(&self, mut tell: impl FnMut(PageKey, PageRef, PageHeat)) {
        for (i, stripe) in self.stripes.iter().enumerate() {
            let stripe = stripe.lock();
            for number in self.table.numbers(&self.frames, i, self.stripes.len()) {
                let frame = self.frames.get(number).expect("the table knows frames of the cache");
                tell(frame.key(), frame.pin(), stripe.heat(frame));
            }
            drop(stripe);
        }
    }

    /// Calls `tell` for every page, with a reference to it. Each stripe is locked while its pages are visited.
    pub(super) fn for_each_page(&self, mut tell: impl FnMut(PageKey, PageRef)) {
        for (i, stripe) in self.stripes.iter().enumerate() {
            let stripe = stripe.lock();
            for number in self.table.numbers(&self.frames, i, self.stripes.len()) {
                let frame = self.frames.get(number).expect("the table knows frames of the cache");
                tell(frame.key(), frame.pin());
            }
            drop(stripe);
        }
    }
}
