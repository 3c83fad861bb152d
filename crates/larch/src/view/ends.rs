//! The two places at which the merges of a range go on, and the registry of all ranges that have places. This
//! module does not know rows.
//!
//! * A range enters the registry when it is first asked for a row. It leaves the registry when it ends or is
//!   dropped. So the registry contains only open ranges.
//! * When a new view comes, the range's places in older views are taken away, unless a thread is asking the range
//!   for a row at that moment. Later the range finds its place again by the last key that it gave.
//! * The number of bytes that all places pin together is limited. If they pin more, places that were not used
//!   lately are taken away.
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
    /// Whether a reader waits for pages of files to which the places refer. If so, the files must be kept.
    pub is_asked: bool,
    /// Whether the range was asked for a row since the hand of the registry last passed it.
    is_used: bool,
}

impl RangeEnds {
    /// Takes the places in views before `generation`. If a reader waits, it takes none.
    #[inline]
    pub fn take_old(&mut self, generation: u64) -> impl Iterator<Item = End> + use<> {
        let is_free = !self.is_asked;
        let old = |end: &mut End| is_free && end.generation < generation;
        self.front.take_if(old).into_iter().chain(self.back.take_if(old))
    }

    /// Called when the range begins to look for a row. Takes the places in views before `generation`. If the range
    /// waited for pages, it takes none, and the range continues in its old view.
    #[inline]
    pub fn begin(&mut self, generation: u64) -> Vec<End> {
        let goes_on = std::mem::take(&mut self.is_asked);
        self.is_used = true;
        // Moving a place costs time, because it is large. So no place is moved until it is known to be old.
        let is_old = |end: &Option<End>| end.as_ref().is_some_and(|end| end.generation < generation);
        if goes_on || !is_old(&self.front) && !is_old(&self.back) {
            return Vec::new();
        }
        self.take_old(generation).collect()
    }

    /// Lets the merge continue after rows that were taken from a page without the merge.
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

    /// Takes both places. After this call, no reader waits for pages of these places.
    pub fn take_both(&mut self) -> [Option<End>; 2] {
        self.is_asked = false;
        [self.front.take(), self.back.take()]
    }

    /// Takes both places. If a reader waits, it takes none.
    pub fn take_all(&mut self) -> impl Iterator<Item = End> + use<> {
        self.take_old(u64::MAX)
    }
}

/// One of the two places.
#[derive(Debug)]
pub struct End {
    pub merge: Merge,
    pub generation: u64,
    /// The precharge of the rows up to a limit, while the precharge is under way.
    pub precharge: Option<Precharge>,
    /// The bytes of the cache that the merge pins.
    pub pins: Holding,
    /// How many more rows may be given until the pins are counted again.
    uncounted: u8,
}

impl End {
    /// The place of a merge in the view with the number `generation`.
    pub fn new(merge: Merge, generation: u64, cache: &PageCache) -> Self {
        Self { merge, generation, precharge: None, pins: cache.cursors().holding(), uncounted: 0 }
    }

    /// Notes that the row that was found was given to the reader.
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

/// The pins of a merge are counted again after this many rows. They change little from page to page.
const ROWS_A_COUNT: u8 = 16;

/// Whether the other ranges together pin more than the cache divided by `share`. This range pins `own_bytes`.
#[inline]
pub fn is_crowded(cache: &PageCache, own_bytes: u64, share: u64) -> bool {
    cache.cursors().bytes().saturating_sub(own_bytes) > cache.budget_bytes() / share
}

/// The cache divided by this number is the limit for what all other ranges together may pin. If they pin more,
/// places that were not used lately are taken away. Then a range keeps its own places only while it looks for a
/// row. If there is only one range, it keeps its places, whatever they pin.
pub const PLACES_SHARE: u64 = 8;

/// If the other ranges pin more than the cache divided by this number, a range also gives up the page that it
/// follows, and keeps only its key.
pub const PAGES_SHARE: u64 = 4;

/// The registry of all ranges that may hold a view.
#[derive(Debug, Default)]
pub struct Ranges(Mutex<Registry>);

#[derive(Debug, Default)]
struct Registry {
    /// The number that the next range gets.
    next: u64,
    /// The number at which the search for unused places goes on.
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

/// How many ranges are taken from the registry before its lock is released.
const WALKED_AT_ONCE: usize = 64;

/// When a range finds the cache crowded, it tries to take places from this many other ranges.
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

    /// Takes views before `generation` away from those ranges that no thread asks for a row at this moment. A range
    /// in use releases its old view by itself. The caller must hold no lock, because this frees memory and removes
    /// files.
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

    /// Takes the places in views before `generation`. If a reader waits, it takes none.
    pub fn take_old(&self, generation: u64) -> Vec<End> {
        self.ends.lock().take_old(generation).collect()
    }

    /// Takes the places of some other ranges, while `goes_on` returns true. It takes them from ranges that were not
    /// asked for a row since the hand last passed them. Later, these ranges find their places again by their keys.
    /// The caller must not hold the lock of its own places.
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
