//! The two places of a range. A range can be read from its front and from its back, and at each end a merge stands at
//! a place from which it goes on when the next row is requested. This module has these places and the registry of all
//! ranges with places. It knows nothing of rows.
//!
//! * A range enters the registry when a merge looks for its next row, and leaves it when it ends or is dropped. So the
//!   registry lists only open ranges.
//! * A place keeps the view in which its merge reads. When a new view is made, places in older views are dropped,
//!   except those of ranges that a thread is using at that moment. The range later makes its place again from the
//!   last key that it gave.
//! * A place that a cursor has *left* for a seek pins no pages. It keeps its merge, which the next search in the same
//!   direction restarts; this memory, some 900 bytes for each level and each file of level 0, is not counted. In all
//!   else it is like other places, so it is dropped with its view.
//! * The bytes that all places together pin are limited. Beyond the limit, places that were not used lately are
//!   dropped.
//!
//! Thread-safe. Places are dropped without holding any lock of this file, because dropping one may free memory and
//! remove files.

use super::follow::Following;
use super::merge::Merge;
use super::precharge::Precharge;
use os::sync::{Arc, Mutex, MutexGuard};
use pages::gauge::Holding;
use pages::{PageCache, PageSource};
use sst::{Direction, Readahead};
use std::collections::BTreeMap;
use std::ops::Bound;

/// The two places of a range.
#[derive(Debug, Default)]
pub struct RangeEnds {
    pub front: Option<End>,
    pub back: Option<End>,
    /// Whether a reader waits for pages of files that the places use. Then the places must not be taken away.
    pub is_asked: bool,
    /// Whether a row was requested since [`Registered::take_unused`] last looked at the range.
    is_used: bool,
}

impl RangeEnds {
    /// Takes the places in views older than `generation`, or none if a reader waits for pages.
    #[inline]
    pub fn take_old(&mut self, generation: u64) -> impl Iterator<Item = End> + use<> {
        let is_free = !self.is_asked;
        let old = |end: &mut End| is_free && end.generation < generation;
        self.front.take_if(old).into_iter().chain(self.back.take_if(old))
    }

    /// Called when the range begins to look for a row. Takes the places in views older than `generation`. After a
    /// wait for pages it takes none: the range goes on in its old view.
    #[inline]
    pub fn begin(&mut self, generation: u64) -> Vec<End> {
        let goes_on = std::mem::take(&mut self.is_asked);
        self.is_used = true;
        // Moving a place costs time, because it is large. So its age is checked first.
        let is_old = |end: &Option<End>| end.as_ref().is_some_and(|end| end.generation < generation);
        if goes_on || !is_old(&self.front) && !is_old(&self.back) {
            return Vec::new();
        }
        self.take_old(generation).collect()
    }

    /// Moves the merge past the rows that were given by `following` without it.
    pub fn resume(&mut self, following: &Following) {
        let end = match following.direction() {
            Direction::Forward => &mut self.front,
            Direction::Backward => &mut self.back,
        };
        // The merge of a place that was left has found none of these rows.
        if let Some(end) = end.as_mut().filter(|end| !end.is_left && end.generation == following.generation()) {
            end.merge.resume(following.streaks(), following.is_key_open());
        }
    }

    /// The bytes of the cache that both places pin.
    pub fn pinned_bytes(&self) -> u64 {
        self.front.iter().chain(&self.back).map(|end| end.pins.bytes()).sum()
    }

    /// Leaves both places, even if a reader waited for their pages. None does after this call. Takes the places that
    /// cannot be restarted.
    pub fn leave(&mut self) -> Vec<End> {
        self.is_asked = false;
        let mut gone = Vec::new();
        for place in [&mut self.front, &mut self.back] {
            if let Some(end) = place
                && !end.leave()
            {
                gone.extend(place.take());
            }
        }
        gone
    }

    /// Takes both places, even if a reader waited for their pages. None does after this call.
    pub fn take_both(&mut self) -> [Option<End>; 2] {
        self.is_asked = false;
        [self.front.take(), self.back.take()]
    }

    /// Takes both places, or none if a reader waits for pages.
    pub fn take_all(&mut self) -> impl Iterator<Item = End> + use<> {
        self.take_old(u64::MAX)
    }
}

/// The place at one end of a range.
#[derive(Debug)]
pub struct End {
    pub merge: Merge,
    pub generation: u64,
    /// The precharge of all rows up to the range's limit, while it is under way.
    pub precharge: Option<Precharge>,
    /// The bytes of the cache that the merge pins.
    pub pins: Holding,
    /// How many more rows are given before the pins are counted again.
    uncounted: u8,
    /// Whether the place was left. Then its merge must be [restarted](Self::restart) before it is used.
    is_left: bool,
}

impl End {
    /// A place for `merge`, which reads in the view with this `generation`.
    pub fn new(merge: Merge, generation: u64, cache: &PageCache) -> Self {
        let pins = cache.cursors().holding();
        Self { merge, generation, precharge: None, pins, uncounted: 0, is_left: false }
    }

    /// Whether the place was left.
    #[inline]
    pub fn is_left(&self) -> bool {
        self.is_left
    }

    /// Leaves the place: nothing is pinned any more. Returns whether the place can be restarted.
    fn leave(&mut self) -> bool {
        if self.merge.is_whole() && !self.is_left {
            self.merge.leave_place();
            self.precharge = None;
            self.pins.set(0);
            self.is_left = true;
        }
        self.is_left
    }

    /// Restarts the merge of a place that was left. After this call, the place is like a new one.
    pub fn restart<S: PageSource + ?Sized>(
        &mut self,
        source: &S,
        bounds: (Bound<&[u8]>, Bound<&[u8]>),
        readahead: Readahead,
    ) {
        self.merge.restart(source, bounds, readahead);
        self.uncounted = 0;
        self.is_left = false;
    }

    /// Called when the row that the merge has found was given.
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

/// How many rows are given between two counts of a merge's pins. They change little from page to page.
const ROWS_A_COUNT: u8 = 16;

/// Whether the other ranges together pin more than 1/`share` of the cache. This range pins `own_bytes`.
#[inline]
pub fn is_crowded(cache: &PageCache, own_bytes: u64, share: u64) -> bool {
    cache.cursors().bytes().saturating_sub(own_bytes) > cache.least_bytes() / share
}

/// If the other ranges together pin more than 1/`PLACES_SHARE` of the cache, places that were not used lately are
/// dropped, and a range keeps its own places only while it looks for a row. A range that is alone keeps its places,
/// however much they pin.
pub const PLACES_SHARE: u64 = 8;

/// If the other ranges together pin more than 1/`PAGES_SHARE` of the cache, a range also gives up the page from which
/// it takes rows, and keeps only its last key.
pub const PAGES_SHARE: u64 = 4;

/// The registry of all ranges that may hold a view.
#[derive(Debug, Default)]
pub struct Ranges(Mutex<Registry>);

#[derive(Debug, Default)]
struct Registry {
    /// The number of the next range.
    next: u64,
    /// The number of the range at which the next search for unused places begins, as the hand of a clock.
    hand: u64,
    open: BTreeMap<u64, Arc<Mutex<RangeEnds>>>,
}

/// The two places of a range, registered until this value is dropped.
pub struct Registered {
    ends: Arc<Mutex<RangeEnds>>,
    number: u64,
    ranges: Arc<Ranges>,
}

/// How many ranges a walk over the registry visits before it releases the registry's lock for a moment.
const WALKED_AT_ONCE: usize = 64;

/// How many ranges are searched for unused places at a time.
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

    /// The number of open ranges whose rows a merge has looked for.
    pub fn count(&self) -> usize {
        self.0.lock().open.len()
    }

    /// Drops the places in views older than `generation`, except those of ranges that a thread is using: such a range
    /// drops its old places itself. The caller must hold no lock, because this frees memory and removes files.
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
    /// Locks the places for their own range.
    #[inline]
    pub fn lock(&self) -> MutexGuard<'_, RangeEnds> {
        self.ends.lock()
    }

    /// Takes the places in views older than `generation`, or none if a reader waits for pages.
    pub fn take_old(&self, generation: u64) -> Vec<End> {
        self.ends.lock().take_old(generation).collect()
    }

    /// Drops the places of some other ranges while `goes_on` returns true. A range loses its places if no row was
    /// requested since it was last looked at here; it can make them again from its keys. The caller must not hold the
    /// lock of its own places.
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
        // Releases the registry's lock before the places are dropped.
        let left = self.ranges.0.lock().open.remove(&self.number);
        drop(left);
    }
}
