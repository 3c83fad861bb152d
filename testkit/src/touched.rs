//! Counts the pages that a read touched, by kind: those found in memory and those read from disk.

use larch::Database;
use larch::stats::PageKind;
use std::fmt;
use std::ops::{AddAssign, Sub};

const KINDS: usize = PageKind::ALL.len();

/// Pages of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Pages found in memory. A step that misses a page runs again, and then counts the pages that it finds again
    /// twice.
    pub hits: u64,
    /// Pages read from disk.
    pub reads: u64,
    /// Stored bytes of those.
    pub bytes: u64,
}

impl Count {
    /// Pages found in memory or read.
    pub fn all(&self) -> u64 {
        self.hits + self.reads
    }
}

/// Pages of every kind.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Touched([Count; KINDS]);

impl Touched {
    /// The pages that were touched through the cache of `db` so far.
    pub fn so_far(db: &Database) -> Self {
        let pages = db.metrics().pages;
        Self(PageKind::ALL.map(|kind| {
            let of_kind = pages.of_kind(kind);
            Count { hits: of_kind.hits, reads: of_kind.faults, bytes: of_kind.read_bytes }
        }))
    }

    /// Pages that `read` touches.
    pub fn by(db: &Database, read: impl FnOnce()) -> Self {
        let before = Self::so_far(db);
        read();
        Self::so_far(db) - before
    }

    /// The count of a kind.
    pub fn of(&self, kind: PageKind) -> Count {
        self.0[kind.index()]
    }
}

impl Sub for Touched {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self(std::array::from_fn(|i| {
            let (now, before) = (self.0[i], before.0[i]);
            Count { hits: now.hits - before.hits, reads: now.reads - before.reads, bytes: now.bytes - before.bytes }
        }))
    }
}

impl AddAssign for Touched {
    fn add_assign(&mut self, more: Self) {
        for (count, more) in self.0.iter_mut().zip(more.0) {
            count.hits += more.hits;
            count.reads += more.reads;
            count.bytes += more.bytes;
        }
    }
}

impl fmt::Debug for Touched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let touched = PageKind::ALL.into_iter().map(|kind| (kind.name(), self.of(kind)));
        f.debug_map().entries(touched.filter(|(_, count)| *count != Count::default())).finish()
    }
}
