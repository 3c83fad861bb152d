//! Finds the next row at one end of a range by merging. This module knows whether the reader waits for pages, but not
//! in which form it takes rows.

use super::followed::{Followed, Second};
use super::limit::RowLimit;
use super::rest::{Rest, close_in};
use crate::base::error::Result;
use crate::read::Tried;
use crate::read::row::{RowLoader, RowRef};
use crate::view::ahead::readahead;
use crate::view::ends::{End, PAGES_SHARE, PLACES_SHARE, RangeEnds, Registered, is_crowded};
use crate::view::follow::Following;
use crate::view::found::Spot;
use crate::view::merge::{Loads, Merge};
use crate::view::precharge::Precharge;
use crate::view::{TableView, View};
use os::sync::Arc;
use pages::{PageLender, Stop, Waits};
use sst::precharge::ReadPlan;
use sst::{AtMost, Direction, Readahead, StoredValue};
use std::cell::OnceCell;
use std::ops::Bound;

/// The parts of a range that a merge uses.
pub(super) struct Merging<'r> {
    pub loader: &'r RowLoader,
    pub rest: &'r mut Rest,
    pub followed: &'r mut Followed,
    pub beside_main: &'r mut Vec<StoredValue>,
}

impl Merging<'_> {
    /// Finds the next row by merging, passes it to `take` and returns the result. If the rows after it need no
    /// merging, they are [followed](Followed) from now on, or from the [second row](Followed::second) on. A step.
    #[inline]
    pub fn find<T>(
        mut self,
        ends: &Registered,
        direction: Direction,
        how: (Waits, Loads),
        take: impl FnMut(RowRef<'_>) -> Result<T, Stop>,
    ) -> Result<Tried<Option<T>>> {
        let views = &self.loader.handle.core().views;
        // Old places and the view behind a new place must be dropped after the lock of the places is released, even
        // if `take` panics. So they are declared before it.
        let view = OnceCell::new();
        let old_places;
        let (found, is_asked) = {
            let mut places = ends.lock();
            old_places = places.begin(views.generation());
            let found = self.find_at(&mut places, &view, direction, how, take);
            (found, places.is_asked)
        };
        drop(old_places);
        let Found { outcome, generation, is_crowded } = found?;
        // The thread that made a newer view may have found these ends locked and skipped them. This check comes after
        // the lock is released, so either that thread or this range drops the old places.
        if !is_asked && generation != views.generation() {
            drop(ends.take_old(views.generation()));
        }
        if is_crowded {
            self.make_room(ends);
        }
        Tried::of(outcome)
    }

    /// Called when the row after the range's first one is asked for. Follows the rows after the first one, if they need
    /// no merging. While a reader waits for pages of the places, nothing is followed: the places have to be
    /// [begun](RangeEnds::begin) first.
    #[cold]
    pub fn follow_second(self, ends: &Registered, direction: Direction) {
        let Self { loader, rest, followed, .. } = self;
        let mut places = ends.lock();
        if places.is_asked {
            return;
        }
        followed.second = Second::Passed;
        let place = match direction {
            Direction::Forward => &mut places.front,
            Direction::Backward => &mut places.back,
        };
        if let Some(end) = place {
            let (near, far) = direction.near_far(rest.bounds());
            let search = Search { loader, direction, near, far, view: &OnceCell::new() };
            followed.set(search.following(end, &rest.limit, false));
        }
    }

    /// As [`Merging::find`], with the places locked.
    #[inline]
    fn find_at<T>(
        &mut self,
        places: &mut RangeEnds,
        view: &OnceCell<Arc<View>>,
        direction: Direction,
        (waits, loads): (Waits, Loads),
        take: impl FnMut(RowRef<'_>) -> Result<T, Stop>,
    ) -> Result<Found<T>> {
        let Self { loader, rest, followed, beside_main } = self;
        if let Some(mut following) = followed.rows.take() {
            following.pass_done();
            following.close_in(rest.near(following.direction()));
            places.resume(&following);
            followed.pins.set(0);
        }
        let Rest { low, high, limit, restarts, .. } = rest;
        let (place, near, far) = match direction {
            Direction::Forward => (&mut places.front, low, &*high),
            Direction::Backward => (&mut places.back, high, &*low),
        };
        let (near_now, far) = (near.as_ref().map(Vec::as_slice), far.as_ref().map(Vec::as_slice));
        let search = Search { loader, direction, near: near_now, far, view };
        match place {
            Some(end) if !end.is_left() => {}
            Some(end) => search.restart(end, limit),
            None => *place = Some(search.begin(limit, *restarts)?),
        }
        let end = place.as_mut().expect("it was made above");
        let generation = end.generation;
        let outcome = search.next_row(end, limit, beside_main, (waits, loads), take);
        let mut crowded = false;
        match &outcome {
            Ok(Some(_)) => {
                end.given();
                limit.given();
                crowded = is_crowded(loader.session.cache(), end.pins.bytes() + followed.pins.bytes(), PLACES_SHARE);
                // The followed pages are counted in addition to those of the place, because other ranges may take the
                // place away. If the cache is crowded, the place itself is about to be given up.
                let may_be_all = followed.second == Second::Unknown && !crowded && !limit.is_set();
                if may_be_all {
                    followed.second = Second::Due(direction);
                } else {
                    followed.second = Second::Passed;
                    followed.set(search.following(end, limit, crowded));
                }
                close_in(near, end.merge.key());
            }
            // The place may be taken away before the range goes on. Even then it must not return to rows that the
            // merge has left.
            Err(Stop::Fault) => {
                if let Some(place) = end.merge.place() {
                    *near = place.map(<[u8]>::to_vec);
                }
                places.is_asked = waits == Waits::Now;
            }
            Ok(None) | Err(Stop::Failed(_)) => {}
        }
        Ok(Found { outcome, generation, is_crowded: crowded })
    }

    /// Called when other ranges pin much of the cache. Takes unused places away from other ranges. If that is not
    /// enough, this range gives up its own places, which it can find again from its keys, and if necessary also the
    /// page that it follows.
    #[cold]
    fn make_room(&mut self, ends: &Registered) {
        let (cache, followed) = (self.loader.session.cache(), &mut *self.followed);
        let own_bytes = ends.lock().pinned_bytes() + followed.pins.bytes();
        ends.take_unused(|| is_crowded(cache, own_bytes, PLACES_SHARE));
        if !is_crowded(cache, own_bytes, PLACES_SHARE) {
            return;
        }
        let gone = ends.lock().take_all().collect::<Vec<_>>();
        drop(gone);
        if is_crowded(cache, followed.pins.bytes(), PAGES_SHARE) {
            followed.stop(self.rest);
        }
    }
}

/// The outcome of a merge.
struct Found<T> {
    outcome: Result<Option<T>, Stop>,
    /// The generation of the view in which the merge reads.
    generation: u64,
    /// Whether other ranges pin much of the cache.
    is_crowded: bool,
}

/// One search for the next row at one end of a range, by merging.
struct Search<'r> {
    loader: &'r RowLoader,
    direction: Direction,
    /// The bound at the end where the search looks for a row, and the bound at the other end.
    near: Bound<&'r [u8]>,
    far: Bound<&'r [u8]>,
    /// The view for new sources. Set on first use.
    view: &'r OnceCell<Arc<View>>,
}

impl Search<'_> {
    /// The table at the version of the range, in the newest view that shows it.
    fn table(&self) -> Result<TableView<'_>> {
        let RowLoader { handle, table, pin, own, .. } = self.loader;
        let view = self.view.get_or_init(|| handle.core().views.of_pin(pin));
        Ok(view.table(table, pin.version())?.under(own.as_ref()))
    }

    /// Makes a place at the bound `near`. A range with two `restarts` will probably be restarted again, so its place
    /// can be. Such a place costs more, because it has a cursor for each level, even where there is nothing to find.
    fn begin(&self, limit: &RowLimit, restarts: u8) -> Result<End> {
        let (session, readahead, bounds) = (&self.loader.session, self.readahead(limit), self.bounds());
        let table = self.table()?;
        let merge = if restarts > 1 { Merge::whole } else { Merge::new };
        let merge = merge(session, table, self.direction, bounds, readahead);
        Ok(End::new(merge, table.view.generation, session.cache()))
    }

    /// Restarts a place at the bound `near`. It is in the newest view, because older places were taken.
    fn restart(&self, end: &mut End, limit: &RowLimit) {
        end.restart(&self.loader.session, self.bounds(), self.readahead(limit));
    }

    fn readahead(&self, limit: &RowLimit) -> Readahead {
        let env = &self.loader.handle.core().env;
        // A precharge asks for all that the range needs, while readahead would also read pages beyond the limit.
        if limit.uses_precharge() { Readahead::NONE } else { readahead(&env.cache, &*env.machine.reads) }
    }

    /// The bounds, as low and high.
    fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        self.direction.near_far((self.near, self.far))
    }

    /// Passes the next row of `end` to `take`, and returns the result. A step.
    #[inline]
    fn next_row<T>(
        &self,
        end: &mut End,
        limit: &mut RowLimit,
        beside_main: &mut Vec<StoredValue>,
        (waits, loads): (Waits, Loads),
        mut take: impl FnMut(RowRef<'_>) -> Result<T, Stop>,
    ) -> Result<Option<T>, Stop> {
        let Self { loader, near, far, .. } = *self;
        if waits == Waits::Now {
            self.precharge_once(end, limit)?;
        }
        let found = end.merge.find(&loader.session, (near, far), (loader.wanted.set(), loads), beside_main);
        if found.is_err() && waits == Waits::Now {
            limit.missed();
        }
        let Some(found) = found? else { return Ok(None) };
        take(RowRef { loader, beside_main, key: end.merge.key(), spot: Spot::Found(found) }).map(Some)
    }

    /// Makes the precharge for all rows up to the limit, if it is due. A step.
    #[inline]
    fn precharge_once(&self, end: &mut End, limit: &mut RowLimit) -> Result<(), Stop> {
        if limit.watches_first_miss() {
            match end.merge.arrive(&self.loader.session, (self.near, self.far)) {
                Err(Stop::Fault) => limit.missed_first(),
                other => other?,
            }
        }
        if limit.is_due() {
            self.precharge(end, limit.rows())?;
            limit.precharged();
        }
        Ok(())
    }

    /// Loads what the next `rows` rows need. A step.
    #[cold]
    fn precharge(&self, end: &mut End, rows: u64) -> Result<(), Stop> {
        let RowLoader { session, wanted, pin, .. } = self.loader;
        let (low, high) = self.direction.near_far((self.near, self.far));
        let (direction, at, groups) = (self.direction, pin.version(), wanted.set());
        let reading = ReadPlan { low, high, direction, limits: AtMost::rows(rows), groups, at, ..ReadPlan::ALL };
        // A table that was just dropped is reported when the next place is made, so nothing is loaded here.
        if end.precharge.is_none()
            && let Ok(table) = self.table()
        {
            end.precharge = Some(Precharge::new(session, table, &reading));
        }
        end.precharge.as_mut().map_or(Ok(()), |precharge| precharge.pass(session, &reading))?;
        session.release();
        Ok(())
    }

    /// The rows that come next, as far as they need no merging.
    #[inline]
    fn following(&self, end: &mut End, limit: &RowLimit, is_crowded: bool) -> Option<Following> {
        let can_follow = !limit.is_due() && limit.rows() > 1;
        // If the cache is crowded, the place is given up and the range keeps only the rest of its page.
        if !can_follow || !(end.merge.expects_streaks() || is_crowded) {
            return None;
        }
        let most = usize::try_from(limit.rows()).unwrap_or(usize::MAX);
        let streaks = end.merge.streaks(self.far, self.loader.wanted.set(), (is_crowded, most));
        (!streaks.is_empty()).then(|| Following::new(streaks, end.generation))
    }
}
