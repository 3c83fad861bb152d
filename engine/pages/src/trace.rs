//! A recording of the pages that sessions ask a cache for, in order, so that other policies can be tried on the
//! same accesses. The trace does not know why the accesses are made.
//!
//! * The trace is off unless it was started. While it is off, an access costs the load of one flag; while it is on,
//!   a lock.
//! * Only accesses to pages that the cache keeps are noted, because others change nothing in the cache.
//! * A step that runs again after a fault asks again for the nodes above the missing page. These accesses are noted
//!   each time.
//!
//! Thread safe.

use crate::page_key::PageKey;
use crate::{Address, PageKind, Reason};
use os::sync::Mutex;
use os::sync::atomic::{AtomicBool, Ordering};

/// How a page was found when a session asked for it; or the note that a file is dead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum How {
    /// In memory.
    Hit = 0,
    /// Missing, and read because a step needs it.
    Needed = 1,
    /// Missing, and read ahead: no step needs it yet.
    Ahead = 2,
    /// Not an access: the file is dead, and all its pages are gone.
    Dead = 3,
}

impl How {
    /// All values, in the order of their numbers.
    pub const ALL: [Self; 4] = [Self::Hit, Self::Needed, Self::Ahead, Self::Dead];
}

/// An access to a page. 16 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TracedAccess {
    /// The slot of the file, which the cache gives to no other file.
    pub file: u32,
    /// The page's offset in units of [`PACK_BYTES`](crate::PACK_BYTES), modulo 2^32, which is unique within 256 GiB
    /// of a file.
    pub unit: u32,
    /// Stored length.
    pub bytes: u32,
    /// What the page is for.
    pub kind: PageKind,
    /// How it was found.
    pub how: How,
    /// Why it was asked for.
    pub reason: Reason,
}

/// Records accesses while it is on.
#[derive(Default)]
pub struct Trace {
    is_on: AtomicBool,
    taken: Mutex<TakenAccesses>,
}

#[derive(Default)]
struct TakenAccesses {
    accesses: Vec<TracedAccess>,
    most: usize,
}

impl Trace {
    /// Starts recording, up to `most` accesses. Earlier records are dropped.
    pub fn start(&self, most: usize) {
        *self.taken.lock() = TakenAccesses { accesses: Vec::new(), most };
        self.is_on.store(true, Ordering::Relaxed);
    }

    /// Stops recording. Returns the accesses since [`Trace::start`], in the order in which threads noted them.
    pub fn finish(&self) -> Vec<TracedAccess> {
        self.is_on.store(false, Ordering::Relaxed);
        std::mem::take(&mut *self.taken.lock()).accesses
    }

    /// Whether it records accesses.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    /// Notes an access by a session whose pages the cache keeps.
    #[inline]
    pub(crate) fn note(&self, reason: Reason, how: How, key: PageKey, at: &Address, kind: PageKind) {
        if self.is_on() {
            self.take_down(TracedAccess { file: key.slot, unit: key.unit as u32, bytes: at.bytes, kind, how, reason });
        }
    }

    /// Notes that a file is dead.
    pub(crate) fn note_dead(&self, slot: u32) {
        if self.is_on() {
            let (kind, how, reason) = (PageKind::Footer, How::Dead, Reason::Check);
            self.take_down(TracedAccess { file: slot, unit: 0, bytes: 0, kind, how, reason });
        }
    }

    #[cold]
    fn take_down(&self, access: TracedAccess) {
        let mut taken = self.taken.lock();
        // A thread may have seen the flag just before the recording ended, and get here after that. Then `most` is
        // 0.
        if taken.accesses.len() < taken.most {
            taken.accesses.push(access);
        }
    }
}

#[cfg(test)]
mod tests;
