//! The pages that a precharge has asked for, and how much more it may ask for. This module does not know why a page
//! is needed.

use crate::format::meta::{MAX_GROUPS, TreeKind};
use pages::{Address, PACK_BYTES, PageAt, PageSource};
use std::cell::{Cell, RefCell};
use std::collections::HashSet;

/// The most pages that are read ahead in one round. A session remembers twice as many pages. If more pages are
/// asked for, the session forgets the first ones.
pub const PASS_PAGES: usize = 2048;

/// The pages that were read ahead. Each page is read ahead once: if the cache is too small for all of them, the
/// pages do not evict each other again and again. The set belongs to one precharge: `Send`, not `Sync`.
#[derive(Debug, Default)]
pub struct AskedPages {
    /// For each page, the id of its file and its offset.
    pages: RefCell<HashSet<(u64, u64)>>,
    in_this_pass: Cell<usize>,
    is_full: Cell<bool>,
}

impl AskedPages {
    /// Begins another pass.
    pub(super) fn begin_pass(&self) {
        self.in_this_pass.set(0);
        self.is_full.set(false);
    }

    /// Whether this pass has left pages for the next pass.
    pub(super) fn is_full(&self) -> bool {
        self.is_full.get()
    }

    /// Asks for a page ahead. Returns whether the page was noted, for now or for the next pass.
    pub(super) fn ahead<S: PageSource + ?Sized>(&self, source: &S, at: PageAt<'_>) -> bool {
        let place = (at.file.id(), at.address.offset);
        if self.pages.borrow().contains(&place) {
            return false;
        }
        if self.in_this_pass.get() == PASS_PAGES {
            let is_left = source.peek(at).is_none();
            self.is_full.set(self.is_full.get() || is_left);
            return is_left;
        }
        let noted = source.ahead(at);
        if noted {
            self.pages.borrow_mut().insert(place);
            self.in_this_pass.set(self.in_this_pass.get() + 1);
        }
        noted
    }
}

/// How much may still be asked for in one tree of the files that are read one after the other.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    /// The stored bytes of the pages that may still be asked for; see [`AtMost::bytes`](super::AtMost::bytes).
    pub(super) bytes: u64,
    /// The memory that these pages may take.
    pub(super) memory_bytes: u64,
    /// The average length of an unpacked page of the next file.
    unpacked_bytes: u64,
    /// Whether the next page is the first one of the read, whose stored bytes do not count.
    pub(super) is_first: bool,
}

impl Share {
    /// Subtracts the bytes that one or several pages need.
    pub(super) fn take(&mut self, bytes: u64, memory_bytes: u64) {
        self.bytes = self.bytes.saturating_sub(bytes);
        self.memory_bytes = self.memory_bytes.saturating_sub(memory_bytes);
        self.is_first = false;
    }

    /// The memory that the page at address `at` takes. If the page is packed, this is an estimate.
    pub(super) fn memory_of(&self, at: &Address) -> u64 {
        let reserved = at.memory_bytes();
        // For a plain page, the reserved memory is little more than the page's length.
        let is_plain = reserved < u64::from(at.bytes) * 2;
        if is_plain { reserved } else { reserved.max(self.unpacked_bytes + PACK_BYTES) }
    }

    /// Subtracts the bytes that the page at address `at` needs. Returns false if the page does not fit. The first
    /// page always fits.
    pub(super) fn take_page(&mut self, at: &Address) -> bool {
        let (bytes, memory_bytes) = (u64::from(at.bytes), self.memory_of(at));
        if self.is_first {
            self.is_first = false;
            self.memory_bytes = self.memory_bytes.saturating_sub(memory_bytes);
            return true;
        }
        let fits = bytes <= self.bytes && memory_bytes <= self.memory_bytes;
        if fits {
            self.take(bytes, memory_bytes);
        }
        fits
    }
}

/// How much may still be asked for in each tree, and for values that lie outside their pages.
#[derive(Clone, Debug)]
pub struct Shares {
    pub(super) main: Share,
    pub(super) history: Share,
    pub(super) erases: Share,
    pub(super) values: Share,
    groups: [Share; MAX_GROUPS],
    older: [Share; MAX_GROUPS],
}

impl Shares {
    /// The shares for trees, each with `bytes` stored bytes and `memory_bytes` of memory.
    pub fn new(bytes: u64, memory_bytes: u64) -> Self {
        let share = Share { bytes, memory_bytes, unpacked_bytes: 0, is_first: true };
        let (groups, older) = ([share; MAX_GROUPS], [share; MAX_GROUPS]);
        Self { main: share, history: share, erases: share, values: share, groups, older }
    }

    /// Shares that do not limit any tree.
    pub fn unlimited() -> Self {
        Self::new(u64::MAX, u64::MAX)
    }

    /// Notes that an unpacked data page of the next file has `bytes` bytes on average.
    pub(super) fn expect(&mut self, bytes: u64) {
        let keyed = [&mut self.main, &mut self.history, &mut self.erases];
        for share in keyed.into_iter().chain(&mut self.groups).chain(&mut self.older) {
            share.unpacked_bytes = bytes;
        }
    }

    /// The rest of the share of a tree.
    pub(super) fn of(&mut self, kind: TreeKind) -> &mut Share {
        match kind {
            TreeKind::Main => &mut self.main,
            TreeKind::History => &mut self.history,
            TreeKind::RangeErases => &mut self.erases,
            TreeKind::Filter => unreachable!("nothing is read of a filter ahead of rows"),
            TreeKind::Group(group) => &mut self.groups[usize::from(group) - 1],
            TreeKind::GroupHistory(group) => &mut self.older[usize::from(group) - 1],
        }
    }
}
