//! A range can be read from its front and from its back. At each end, a merge stands at a place and goes on from
//! there when the range is asked for the next row. This module has these two places, and the registry of all
//! ranges with places. This module does not know rows.
//!
//! * A range is added to the registry when it is first asked for a row. It is removed when it ends or is dropped.
//!   So the registry contains only open ranges.
//! * A place keeps the view in which its merge reads. When a new view is made, places in older views are dropped,
//!   unless a thread is asking their range for a row at that moment. Later, the range makes its place again from
//!   the last key that it gave.
//! * The number of bytes that all places together pin is limited. If they pin more, places that were not used
//!   lately are dropped.
//!
//! Thread safe. Places are dropped while no lock of this file is held, because dropping a place may free memory and
//! remove files.

use super::follow::Following;
use super::merge::Merge;
use super::precharge::Precharge;
use os::sync::{Arc, Mutex, MutexGuard};
use pages::PageCache;
use pages::gauge::Holding;
use sst::Direction;
use std::collections::BTreeMap;

/// The two places of a range.
#[derive(Debug, Default)]
pub struct RangeEnds {
    pub front: Option<End>,
    pub back: Option<End>,
    /// Whether a reader waits for pages of files that the places use. If so, the files must be kept.
    pub is_asked: bool,
    /// Whether the range was asked for a row since the registry last looked at it.
    is_used: bool,
}

impl RangeEnds {
    /// Takes the places in views that are older than `generation`. If a reader waits for pages, takes none.
    #[inline]
    pub fn take_old(&mut self, generation: u64) -> impl Iterator<Item = End> + use<> {
        let is_free = !self.is_asked;
        let old = |end: &mut End| is_free && end.generation < generation;
        self.front.take_if(old).into_iter().chain(self.back.take_if(old))
    }

    /// Called when the range begins to look for a row. Takes the places in views that are older than `generation`.
    /// But if the range waited for pages, no place is taken, and the range continues in its old view.
    #[inline]
    pub fn begin(&mut self, generation: u64) -> Vec<End> {
        let goes_on = std::mem::take(&mut self.is_asked);
        self.is_used = true;
        // A place is large, so moving it costs time. Therefore the age of a place is checked before the place is
        // moved.
        let is_old = |end: &Option<End>| end.as_ref().is_some_and(|end| end.generation < generation);
        if goes_on || !is_old(&self.front) && !is_old(&self.back) {
            return Vec::new();
        }
        self.take_old(generation).collect()
    }

    /// Moves the merge past the rows that `following` has given without the merge.
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

    /// Takes both places, even if a reader waits for their pages. After this call, no reader waits.
    pub fn take_both(&mut self) -> [Option<End>; 2] {
        self.is_asked = false;
        [self.front.take(), self.back.take()]
    }

    /// Takes both places. If a reader waits for pages, takes none.
    pub fn take_all(&mut self) -> impl Iterator<Item = End> + use<> {
        self.take_old(u64::MAX)
    }
}

/// The place at one end of a range.
#[derive(Debug)]
pub struct End {
    pub merge: Merge,
    pub generation: u64,
    /// The loading of all pages up to a limit of rows, if it is under way.
    pub precharge: Option<Precharge>,
    /// The bytes of the cache that the merge pins.
    pub pins: Holding,
    /// After this many more rows, the pins are counted again.
    uncounted: u8,
}

impl End {
    /// The place of a merge in the view with the number `generation`.
    pub fn new(merge: Merge, generation: u64, cache: &PageCache) -> Self {
        Self { merge, generation, precharge: None, pins: cache.cursors().holding(), uncounted: 0 }
    }

    /// Called when the row that the merge has found was given to the reader.
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

/// After this many rows, the pins of a merge are counted again. Their number changes little from page to page.
const ROWS_A_COUNT: u8 = 16;

/// Whether all ranges except one together pin more than a part of the cache: its size divided by `share`. The one
/// range pins `own_bytes`.
#[inline]
pub fn is_crowded(cache: &PageCache, own_bytes: u64, share: u64) -> bool {
    cache.cursors().bytes().saturating_sub(own_bytes) > cache.budget_bytes() / share
}

/// For each range, the limit for all other ranges together is the size of the cache divided by this number. If the
/// others pin more, places that were not used lately are dropped, and the range keeps its own places only while it
/// looks for a row. If there is only one range, it keeps its places, however many bytes they pin.
pub const PLACES_SHARE: u64 = 8;

/// If the other ranges pin more than the size of the cache divided by this number, a range also gives up the page
/// from which it takes rows, and keeps only its last key.
pub const PAGES_SHARE: u64 = 4;

/// The registry of all ranges that may hold a view.
#[derive(Debug, Default)]
pub struct Ranges(Mutex<Registry>);

#[derive(Debug, Default)]
struct Registry {
    /// The number that the next range gets.
    next: u64,
    /// The next search for unused places begins at the range with this number.
    hand: u64,
    open: BTreeMap<u64, Arc<Mutex<RangeEnds>>>,
}

/// The two places of a range, together with its entry in the registry. The entry is removed when this value is
/// dropped.
pub struct Registered {
    ends: Arc<Mutex<RangeEnds>>,
    number: u64,
    ranges: Arc<Ranges>,
}

/// A walk over the registry releases its lock after this many ranges.
const WALKED_AT_ONCE: usize = 64;

/// When a range finds that the others pin too much, it looks for unused places in this many other ranges.
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

    /// Drops the places in views that are older than `generation`. Places of a range that a thread is asking for a
    /// row are left out: such a range drops its old places itself. The caller must hold no lock, because this
    /// frees memory and removes files.
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
    /// Locks the places, for use by their own range.
    #[inline]
    pub fn lock(&self) -> MutexGuard<'_, RangeEnds> {
        self.ends.lock()
    }

    /// Takes the places in views that are older than `generation`. If a reader waits for pages, takes none.
    pub fn take_old(&self, generation: u64) -> Vec<End> {
        self.ends.lock().take_old(generation).collect()
    }

    /// Drops the places of some other ranges, as long as `goes_on` returns true. A range loses its places if it
    /// was not asked for a row since the last look at it. Later, it makes its places again from its keys. The
    /// caller must not hold the lock of its own range.
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
        // The lock of the registry is released before the places are dropped.
        let left = self.ranges.0.lock().open.remove(&self.number);
        drop(left);
    }
}
