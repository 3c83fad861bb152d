//! The two places of a range where merges go on, and the registry of all ranges that have places. This module does
//! not know rows.
//!
//! * A range enters the registry when it is first asked for a row, and leaves it when it ends or is dropped. So the
//!   registry has only ranges that are open.
//! * If no thread asks a range for a row at that moment, a new view takes the range's places in older views away.
//!   The range finds its place again by the last key that it gave.
//! * The pins of all places together are limited. If they are too many, places that were not used lately are taken
//!   away.
//!
//! Thread safe. Places are dropped outside of the locks in this file, because dropping one may free memory and remove
//! files.

use super::follow::Following;
use super::merge::Merge;
use super::precharge::Precharge;
use os::sync::{Arc, Mutex, MutexGuard};
use pages::PageCache;
use pages::gauge::Holding;
use sst::Direction;
use std::collections::BTreeMap;

/// The two places.
#[derive(Debug, Default)]
pub struct RangeEnds {
    pub front: Option<End>,
    pub back: Option<End>,
    /// Whether a reader waits for pages of the places' files, so that the files must be kept.
    pub is_asked: bool,
    /// Whether the range was asked for a row after the hand of the registry last passed it.
    is_used: bool,
}

impl RangeEnds {
    /// Takes the places in views before `generation`, unless a reader waits.
    #[inline]
    pub fn take_old(&mut self, generation: u64) -> impl Iterator<Item = End> + use<> {
        let is_free = !self.is_asked;
        let old = |end: &mut End| is_free && end.generation < generation;
        self.front.take_if(old).into_iter().chain(self.back.take_if(old))
    }

    /// The range begins to look for a row. Takes the places in views before `generation`. If the range waited for
    /// pages, it takes none, and the range goes on in its old view.
    #[inline]
    pub fn begin(&mut self, generation: u64) -> Vec<End> {
        let goes_on = std::mem::take(&mut self.is_asked);
        self.is_used = true;
        // A place is large, so no place is moved before it is known that a place is old.
        let is_old = |end: &Option<End>| end.as_ref().is_some_and(|end| end.generation < generation);
        if goes_on || !is_old(&self.front) && !is_old(&self.back) {
            return Vec::new();
        }
        self.take_old(generation).collect()
    }

    /// Lets the merge go on after rows that were taken from a page without the merge.
    pub fn resume(&mut self, following: &Following) {
        let end = match following.direction() {
            Direction::Forward => &mut self.front,
            Direction::Backward => &mut self.back,
        };
        if let Some(end) = end.as_mut().filter(|end| end.generation == following.generation()) {
            end.merge.resume(following.streaks(), following.is_key_open());
        }
    }

    /// The bytes of the cache that both places pin.
    pub fn pinned_bytes(&self) -> u64 {
        self.front.iter().chain(&self.back).map(|end| end.pins.bytes()).sum()
    }

    /// Takes both places. No reader waits for either of them any more.
    pub fn take_both(&mut self) -> [Option<End>; 2] {
        self.is_asked = false;
        [self.front.take(), self.back.take()]
    }

    /// Takes both places, unless a reader waits.
    pub fn take_all(&mut self) -> impl Iterator<Item = End> + use<> {
        self.take_old(u64::MAX)
    }
}

/// One of the two places.
#[derive(Debug)]
pub struct End {
    pub merge: Merge,
    pub generation: u64,
    /// The precharge of the rows up to a limit, while it is under way.
    pub precharge: Option<Precharge>,
    /// The bytes of the cache that the merge pins.
    pub pins: Holding,
    /// How many rows are left until the pins are counted again.
    uncounted: u8,
}

impl End {
    /// The place of a merge in the view with the number `generation`.
    pub fn new(merge: Merge, generation: u64, cache: &PageCache) -> Self {
        Self { merge, generation, precharge: None, pins: cache.cursors().holding(), uncounted: 0 }
    }

    /// The row that was found has now been given.
    #[inline]
    pub fn given(&mut self) {
        self.merge.leave();
        self.precharge = None;
        if self.uncounted == 0 {
            self.pins.set(self.merge.pinned_bytes());
            self.uncounted = ROWS_A_COUNT;
        }
        self.uncounted -= 1;
    }
}

/// The pins of a merge are counted again after this many rows: they change little from page to page.
const ROWS_A_COUNT: u8 = 16;

/// Whether the other ranges pin more than one `share`th of the cache. This range pins `own_bytes`.
#[inline]
pub fn is_crowded(cache: &PageCache, own_bytes: u64, share: u64) -> bool {
    cache.cursors().bytes().saturating_sub(own_bytes) > cache.budget_bytes() / share
}

/// All other ranges together may pin the cache divided by this number. If they pin more, places that were not used
/// lately are taken away, and a range keeps its own places only while it looks for a row. If a range is the only
/// one, it keeps its places, whatever they pin.
pub const PLACES_SHARE: u64 = 8;

/// If the other ranges pin more than this share, a range also gives up the page that it follows, and keeps only its
/// key.
pub const PAGES_SHARE: u64 = 4;

/// The registry of the ranges that may hold a view.
#[derive(Debug, Default)]
pub struct Ranges(Mutex<Registry>);

#[derive(Debug, Default)]
struct Registry {
    /// The number for the range that enters next.
    next: u64,
    /// The number from which the search for unused places goes on.
    hand: u64,
    open: BTreeMap<u64, Arc<Mutex<RangeEnds>>>,
}

/// The two places of a range, and its entry in the registry. The entry ends when this is dropped.
pub struct Registered {
    ends: Arc<Mutex<RangeEnds>>,
    number: u64,
    ranges: Arc<Ranges>,
}

/// How many ranges are taken from the registry under one lock.
const WALKED_AT_ONCE: usize = 64;

/// From how many other ranges a range tries to take places each time that it finds the cache crowded.
const LOOKED_AT: usize = 32;

impl Ranges {
    pub fn enter(self: &Arc<Self>) -> Registered {
        let ends = Arc::default();
        let mut registry = self.0.lock();
        let number = registry.next;
        registry.next += 1;
        registry.open.insert(number, Arc::clone(&ends));
        drop(registry);
        Registered { ends, number, ranges: Arc::clone(self) }
    }

    /// The number of ranges that were asked for a row and have neither ended nor been dropped.
    pub fn count(&self) -> usize {
        self.0.lock().open.len()
    }

    /// Takes views before `generation` away from ranges that no thread asks for a row at this moment. A range in use
    /// releases its old view by itself. The caller must hold no lock: memory is freed here, and files are removed.
    pub fn let_go(&self, generation: u64) {
        let (mut next, end) = (0, self.0.lock().next);
        while next < end {
            let some: Vec<(u64, Arc<Mutex<RangeEnds>>)> =
                self.0.lock().open.range(next..end).take(WALKED_AT_ONCE).map(|(n, ends)| (*n, ends.clone())).collect();
            next = some.last().map_or(end, |(number, _)| number + 1);
            for (_, ends) in some {
                let gone = ends.try_lock().map(|mut ends| ends.take_old(generation).collect::<Vec<_>>());
                drop(gone);
            }
        }
    }
}

impl Registered {
    /// The places, for their own range.
    #[inline]
    pub fn lock(&self) -> MutexGuard<'_, RangeEnds> {
        self.ends.lock()
    }

    /// Takes the places in views before `generation`, unless a reader waits.
    pub fn take_old(&self, generation: u64) -> Vec<End> {
        self.ends.lock().take_old(generation).collect()
    }

    /// Takes the places of some other ranges, while `goes_on` returns true. It takes them from ranges that were not
    /// asked for a row after the hand last passed them. These ranges find their places again by their keys. The
    /// caller must not have locked its own places.
    pub fn take_unused(&self, goes_on: impl Fn() -> bool) {
        let some: Vec<(u64, Arc<Mutex<RangeEnds>>)> = {
            let mut registry = self.ranges.0.lock();
            let hand = registry.hand;
            let round = registry.open.range(hand..).chain(registry.open.range(..hand));
            let some: Vec<_> = round.take(LOOKED_AT).map(|(number, ends)| (*number, ends.clone())).collect();
            registry.hand = some.last().map_or(0, |(number, _)| number + 1);
            some
        };
        for (_, ends) in some.into_iter().filter(|(number, _)| *number != self.number) {
            if !goes_on() {
                break;
            }
            let gone = ends.try_lock().map(|mut ends| {
                let is_used = std::mem::take(&mut ends.is_used);
                (!is_used).then(|| ends.take_all().collect::<Vec<_>>())
            });
            drop(gone);
        }
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        // The lock is released before the places are dropped.
        let left = self.ranges.0.lock().open.remove(&self.number);
        drop(left);
    }
}
