//! What a session leaves with the cache while its future waits, and gets back unless other sessions took it.

use super::round::Round;
use crate::budget::Turn;
use crate::cache::parked::ParkedSession;
use crate::page_key::PageKey;
use crate::{PageCache, PageRef};
use os::sync::{Arc, Mutex};

/// What a session leaves with the cache. The fields are dropped in this order, so pages beyond the budget are freed
/// before the turn is given back.
pub(super) struct Parcel {
    pub pins: Vec<(PageKey, PageRef)>,
    pub round: Option<Round>,
    pub turn: Option<Arc<Turn>>,
}

/// A parcel that was left, as its session knows it.
pub(super) struct Parked {
    number: u64,
    shared: Arc<SharedParcel>,
}

/// What happened to the [`Parcel`] of a session while it waited.
pub(super) enum Unparked {
    /// Nobody took the parcel, or the session was not parked. Has the round, if one was under way.
    Whole(Option<Round>),
    /// Other sessions took it.
    Stripped,
}

struct SharedParcel(Mutex<Option<Parcel>>);

impl Parked {
    /// Leaves a parcel, unless it is empty. `losses` says how often the step has lost a parcel.
    pub fn new(cache: &PageCache, parcel: Parcel, losses: u32) -> Option<Self> {
        if parcel.pins.is_empty() && parcel.round.is_none() && parcel.turn.is_none() {
            return None;
        }
        let has_turn = parcel.turn.as_ref().is_some_and(|turn| turn.budget_of_tasks().is_some());
        let shared = Arc::new(SharedParcel(Mutex::new(Some(parcel))));
        let number = cache.parking().park(Arc::clone(&shared) as Arc<dyn ParkedSession>, has_turn, losses);
        Some(Self { number, shared })
    }

    /// Gets the parcel back, unless it was taken.
    pub fn take_back(self, cache: &PageCache) -> Option<Parcel> {
        cache.parking().leave(self.number);
        self.shared.0.lock().take()
    }
}

impl ParkedSession for SharedParcel {
    fn has_landed(&self) -> bool {
        let parcel = self.0.lock();
        parcel.as_ref().and_then(|parcel| parcel.round.as_ref()).is_none_or(|round| round.arrivals.are_all_here())
    }

    fn strip(&self) {
        let parcel = self.0.lock().take();
        drop(parcel);
    }
}
