//! The rows of a range, taken one by one from either end in any form. They own their snapshot and hold neither old files nor
//! old memtables: between two rows a range takes the newest view and finds its place again, and while no thread asks it for
//! a row, a new view takes the old one away from it.
//!
//! All forms of taking a row are one function, `attempt`, which never waits. A bound closes in on a row when the row is given,
//! not before: a try that would fault, or a future that is dropped, takes no row along.

use super::super::again::Again;
use super::super::ahead::{readahead, session};
use super::super::found::FoundRow;
use super::super::merge::{Loads, Merge};
use super::super::precharge::Precharge;
use super::super::row::{RowLoader, RowRef, Spot};
use super::super::{PartList, Tried};
use super::ends::{End, PAGES_SHARE, PLACES_SHARE, Registered, is_crowded};
use super::follow::Following;
use super::limit::RowLimit;
use crate::bounds;
use crate::core::handle::TableHandle;
use crate::core::snapshots::PinnedVersion;
use crate::error::{Error, Result};
use crate::stats::shape;
use os::sync::Arc;
use pages::gauge::Holding;
use pages::{PageSource, Reason, Session, Stop, Waits};
use sst::precharge::{ReadPlan, is_empty};
use sst::{Direction, Limits, Readahead, StoredValue};
use std::cell::{Cell, OnceCell};
use std::fmt;
use std::ops::Bound;
use std::task::{Context, Poll, ready};

/// The rows of a key range.
pub(crate) struct RangeRows {
    loader: RowLoader,
    /// What is left: both bounds close in on each other.
    low: Bound<Vec<u8>>,
    high: Bound<Vec<u8>>,
    /// `None` until the first row is asked for.
    ends: Option<Registered>,
    /// Rows that come next at one of the ends and need no merging.
    following: Option<Following>,
    /// What is kept of the cache with them.
    followed_pins: Holding,
    limit: RowLimit,
    /// Of the row found last, if it is in a file: its parts in the groups wanted beside the main one, in their order.
    beside_main: Vec<StoredValue>,
    ended: bool,
    /// A poll is waiting for pages.
    is_fetching: bool,
}

/// Where the row given last is.
enum Given {
    Found(FoundRow),
    /// In the page of the rows that are followed.
    Followed,
}

impl RangeRows {
    /// The rows of `table` with keys in `bounds` that `pin` shows, read with `session`.
    pub fn new(
        session: Session,
        table: &TableHandle,
        wanted: PartList,
        pin: Arc<PinnedVersion>,
        (low, high): bounds::Owned,
    ) -> Self {
        let (handle, table) = (table.handle.clone(), table.identity.clone());
        let ended = is_empty(&low.as_ref().map(Vec::as_slice), &high.as_ref().map(Vec::as_slice));
        // A range without keys asks no file.
        let failed = if ended { handle.core().views.of_pin(&pin).files_of(&table).err() } else { None };
        let failed = failed.map_or_else(OnceCell::new, OnceCell::from);
        let (followed_pins, limit) = (session.cache().cursors().holding(), RowLimit::none(session.admit()));
        let (loads, offers_outside) = (Cell::new(Loads::Nothing), Cell::new(false));
        Self {
            loader: RowLoader { handle, table, pin, wanted, session, failed, loads, offers_outside },
            low,
            high,
            ends: None,
            following: None,
            followed_pins,
            limit,
            beside_main: Vec::new(),
            ended,
            is_fetching: false,
        }
    }

    /// What reads them.
    pub fn session(&self) -> &Session {
        &self.loader.session
    }

    /// At most `rows` of them.
    pub fn limit(self, rows: u64) -> Self {
        let limit = self.limit.at_most(rows);
        Self { limit, ended: self.ended || limit.rows() == 0, ..self }
    }

    /// Rows that answer with `error`.
    pub fn failed(self, error: Error) -> Self {
        Self { loader: RowLoader { failed: OnceCell::from(error), ..self.loader }, ..self }
    }

    /// The rest in at most `parts` parts.
    pub fn split(self, parts: usize) -> Result<Vec<Self>> {
        let RowLoader { handle, table, pin, wanted, session: own, failed, .. } = &self.loader;
        if let Some(error) = failed.get() {
            return Err(error.clone());
        }
        if parts < 2 || self.ended || self.limit.is_set() {
            return Ok(vec![self]);
        }
        let (core, at) = (handle.core(), pin.version());
        let view = core.views.of_pin(pin);
        let range = (self.low.clone(), self.high.clone());
        let points = shape::split_points_between(&core.env.cache, view.table(table, at)?, &range, parts as u64);
        let points = points.map_err(|error| core.outdated(error, at))?;
        let table = TableHandle::new(handle.clone(), table.clone());
        let part = |bounds| {
            let session = session(&core.env.cache, Reason::Scan, own.admit());
            Self::new(session, &table, *wanted, pin.clone(), bounds)
        };
        let mut split = Vec::with_capacity(points.len() + 1);
        let mut low = self.low.clone();
        for point in points {
            let next = Bound::Included(point.at.clone());
            split.push(part((std::mem::replace(&mut low, next), Bound::Excluded(point.at))));
        }
        split.push(part((low, self.high.clone())));
        Ok(split)
    }

    /// After an error: `Ok` if the range can go on in newer files, where it finds its place again.
    fn recover(&mut self, error: Error) -> Result<()> {
        let RowLoader { handle, pin, session, .. } = &self.loader;
        let outcome = Again::new(handle.core(), Some(pin)).after(error, pin.version());
        session.release();
        self.let_go();
        outcome.map_err(|error| self.loader.fail(error))
    }

    /// Key of the row given last in a direction.
    fn last_key(&self, direction: Direction) -> &[u8] {
        let bound = match direction {
            Direction::Forward => &self.low,
            Direction::Backward => &self.high,
        };
        let Bound::Excluded(key) = bound else { unreachable!("finding a row closes in on it") };
        key
    }

    /// The next row, nothing of it loaded that lies outside its pages; waits for it.
    pub fn next(&mut self, direction: Direction) -> Result<Option<RowRef<'_>>> {
        // A caller that did not load the last value that lay outside will hardly load the next.
        if self.loader.offers_outside.replace(false) {
            self.loader.loads.set(Loads::Nothing);
        }
        let given = self.wait_for(direction, self.loader.loads.get(), |row| match row.spot {
            Spot::Found(found) => Ok(Given::Found(found)),
            Spot::InPage(..) => Ok(Given::Followed),
        })?;
        let Some(given) = given else { return Ok(None) };
        let spot = match given {
            Given::Found(found) => Spot::Found(found),
            Given::Followed => {
                let following = self.following.as_ref().expect("no row was taken since");
                Spot::InPage(following.page(), following.value())
            }
        };
        let (loader, beside_main) = (&self.loader, &*self.beside_main);
        let row = RowRef { loader, beside_main, key: self.last_key(direction), spot };
        loader.offers_outside.set(row.has_parts_outside());
        Ok(Some(row))
    }

    /// What `take`, which loads the parts wanted, makes of the next row; waits for it.
    pub fn wait<T>(
        &mut self,
        direction: Direction,
        take: impl FnMut(RowRef<'_>) -> Result<T, Stop>,
    ) -> Result<Option<T>> {
        self.wait_for(direction, Loads::Parts, take)
    }

    #[inline]
    fn wait_for<T>(
        &mut self,
        direction: Direction,
        loads: Loads,
        mut take: impl FnMut(RowRef<'_>) -> Result<T, Stop>,
    ) -> Result<Option<T>> {
        loop {
            match self.attempt(direction, (Waits::Now, loads), &mut take)? {
                Tried::Ready(row) => return Ok(row),
                Tried::WouldFault => {
                    if let Err(error) = self.loader.session.fetch() {
                        self.recover(error.into())?;
                    }
                }
            }
        }
    }

    /// What `take` makes of the next row, if all that it needs is in memory; the range stays where it is otherwise.
    pub fn try_once<T>(
        &mut self,
        direction: Direction,
        take: impl FnMut(RowRef<'_>) -> Result<T, Stop>,
    ) -> Result<Tried<Option<T>>> {
        self.attempt(direction, (Waits::Later, Loads::Parts), take)
    }

    /// What `take` makes of the next row; [`Poll::Pending`] while pages for it are on their way.
    pub fn poll<T>(
        &mut self,
        context: &mut Context<'_>,
        direction: Direction,
        mut take: impl FnMut(RowRef<'_>) -> Result<T, Stop>,
    ) -> Poll<Result<Option<T>>> {
        loop {
            if self.is_fetching {
                let fetched = ready!(self.loader.session.poll_fetch(context));
                self.is_fetching = false;
                if let Err(error) = fetched {
                    self.recover(error.into())?;
                }
            }
            match self.attempt(direction, (Waits::Now, Loads::Parts), &mut take)? {
                Tried::Ready(row) => return Poll::Ready(Ok(row)),
                Tried::WouldFault => self.is_fetching = true,
            }
        }
    }

    /// No future waits for pages any more: gives back the pages fetched for the row that was looked for, and the view if there
    /// is a newer one.
    pub fn abandon(&mut self) {
        if !std::mem::take(&mut self.is_fetching) {
            return;
        }
        self.loader.session.release();
        if let Some(ends) = &self.ends {
            ends.lock().is_asked = false;
            drop(ends.take_old(self.loader.handle.core().views.generation()));
        }
    }

    /// The try form: it looks for the next row with the pages that are in memory. If a page is missing, a session that waits
    /// notes it, and the caller calls this again after a fetch: it continues where it was. The row counts as given once `take`
    /// has loaded what it needs.
    #[inline]
    fn attempt<T>(
        &mut self,
        direction: Direction,
        (waits, loads): (Waits, Loads),
        mut take: impl FnMut(RowRef<'_>) -> Result<T, Stop>,
    ) -> Result<Tried<Option<T>>> {
        if let Some(error) = self.loader.failed.get() {
            return Err(error.clone());
        }
        if self.ended {
            self.let_go();
            return Ok(Tried::Ready(None));
        }
        self.loader.session.set_waits(waits);
        let outcome = loop {
            let found = match self.follow(direction, &mut take) {
                Some(Ok(row)) => {
                    self.count_given();
                    break Ok(Tried::Ready(Some(row)));
                }
                Some(Err(stop)) => Tried::of(Err(stop)),
                None => self.find(direction, (waits, loads), &mut take),
            };
            match found {
                Ok(Tried::Ready(row)) => {
                    if row.is_some() {
                        self.count_given();
                    } else {
                        self.ended = true;
                        self.let_go();
                    }
                    self.loader.session.release();
                    break Ok(Tried::Ready(row));
                }
                Ok(Tried::WouldFault) => break Ok(Tried::WouldFault),
                Err(error) => {
                    if let Err(error) = self.recover(error) {
                        break Err(error);
                    }
                }
            }
        };
        self.loader.session.set_waits(Waits::Now);
        outcome
    }

    /// One of the rows up to the limit was given.
    #[inline]
    fn count_given(&mut self) {
        self.limit.count();
        self.ended = self.limit.rows() == 0;
    }

    /// Gives back the pages and the view of a walk that is over.
    fn let_go(&mut self) {
        self.ends = None;
        self.stop_following();
        self.beside_main = Vec::new();
    }

    fn stop_following(&mut self) {
        self.following = None;
        self.followed_pins.set(0);
    }

    /// What `take` makes of the next row, if it needs no merging. A step.
    #[inline]
    fn follow<T>(
        &mut self,
        direction: Direction,
        mut take: impl FnMut(RowRef<'_>) -> Result<T, Stop>,
    ) -> Option<Result<T, Stop>> {
        let Self { loader, following: Some(following), low, high, ends, .. } = self else { return None };
        if following.direction() != direction {
            return None;
        }
        let newest = loader.handle.core().views.generation();
        if following.renew(newest) {
            // The thread that made the new view may have found the ends in use.
            drop(ends.as_ref().map(|ends| ends.take_old(newest)));
            if loader.handle.core().views.newest().files_of(&loader.table).is_err() {
                self.following = None;
                return None;
            }
        }
        let (key, page, place) = following.next()?;
        let taken = take(RowRef { loader, beside_main: &[], key, spot: Spot::InPage(page, place.clone()) });
        if taken.is_ok() {
            following.pass(place, direction.near_far((low, high)).0);
        }
        Some(taken)
    }

    /// What `take` makes of the next row, found by merging. A step.
    #[inline]
    fn find<T>(
        &mut self,
        direction: Direction,
        (waits, loads): (Waits, Loads),
        mut take: impl FnMut(RowRef<'_>) -> Result<T, Stop>,
    ) -> Result<Tried<Option<T>>> {
        let Self { loader, low, high, ends, following, followed_pins, limit, beside_main, .. } = self;
        let (core, at, session) = (loader.handle.core(), loader.pin.version(), &loader.session);
        let ends = ends.get_or_insert_with(|| core.views.ranges.enter());
        // Both are dropped after the lock, as they are declared before it.
        let (view, gone) = (OnceCell::new(), Cell::new(Vec::new()));
        let mut places = ends.lock();
        gone.set(places.begin(core.views.generation()));
        if let Some(following) = following.take() {
            places.resume(&following);
        }
        let view = || view.get_or_init(|| core.views.of_pin(&loader.pin));
        let (place, near, far) = match direction {
            Direction::Forward => (&mut places.front, low, &*high),
            Direction::Backward => (&mut places.back, high, &*low),
        };
        let far = far.as_ref().map(Vec::as_slice);
        if place.is_none() {
            // What a limited range needs it asks for itself, once something is missing; what lies after it is not wanted.
            let readahead = if limit.is_charged() { Readahead::NONE } else { readahead(session.cache()) };
            // Of the near and the far end this makes the low and the high one.
            let bounds = direction.near_far((near.as_ref().map(Vec::as_slice), far));
            let merge = Merge::new(session, view().table(&loader.table, at)?, direction, bounds, readahead);
            *place = Some(End::new(merge, view().generation, session.cache()));
        }
        let end = place.as_mut().expect("it was made above");
        let generation = end.generation;
        let End { merge, charge, .. } = end;
        let start = near.as_ref().map(Vec::as_slice);
        let outcome = (|| {
            if waits == Waits::Now {
                limit.before_row(
                    || merge.arrive(session, (start, far)),
                    |rows| {
                        let (low, high) = direction.near_far((start, far));
                        let (limits, groups) = (Limits::rows(rows), loader.wanted.set());
                        let reading = ReadPlan { low, high, direction, limits, groups, at, ..ReadPlan::ALL };
                        // Of a table that was just dropped nothing is read: the next place says that it is gone.
                        if charge.is_none()
                            && let Ok(table) = view().table(&loader.table, at)
                        {
                            *charge = Some(Precharge::new(session, table, &reading));
                        }
                        charge.as_mut().map_or(Ok(()), |charge| charge.pass(session, &reading))?;
                        session.release();
                        Ok(())
                    },
                )?;
            }
            let found = merge.find(session, (start, far), (loader.wanted.set(), loads), beside_main);
            if found.is_err() && waits == Waits::Now {
                limit.missed();
            }
            let Some(found) = found? else { return Ok(None) };
            take(RowRef { loader, beside_main, key: merge.key(), spot: Spot::Found(found) }).map(Some)
        })();
        let mut crowded = false;
        match &outcome {
            Ok(Some(_)) => {
                end.passed();
                limit.passed();
                close_in(near, end.merge.key());
                crowded = is_crowded(session.cache(), end.pins.bytes() + followed_pins.bytes(), PLACES_SHARE);
                let can_follow = !loader.wanted.set().any_beside_main() && !limit.is_due();
                // The place may be given up: then the rest of its page is all that is left of it.
                if can_follow && (end.merge.is_steady() || crowded) {
                    *following = end.merge.streak(far).map(|streak| Following::new(streak, generation));
                }
                // The page counts beside what the place keeps, which others may take.
                followed_pins.set(following.as_ref().map_or(0, |following| following.page().cost_bytes()));
            }
            // The place may be gone when it is asked again: what was passed stays so.
            Err(Stop::Fault) => {
                if let Some(place) = end.merge.place() {
                    *near = place.map(<[u8]>::to_vec);
                }
                places.is_asked = waits == Waits::Now;
            }
            Ok(None) | Err(Stop::Failed(_)) => {}
        }
        let is_asked = places.is_asked;
        drop(places);
        drop(gone);
        // The thread that made a newer view may have found the ends in use: asked after the lock, so that one of both sees the
        // other.
        if !is_asked && generation != core.views.generation() {
            drop(ends.take_old(core.views.generation()));
        }
        if crowded {
            self.make_room();
        }
        Tried::of(outcome)
    }

    /// Other ranges keep much of the cache: takes what is not used from them; where that is not enough gives up the places of
    /// this one, which finds them again by its key, and if need be the page that it follows.
    #[cold]
    fn make_room(&mut self) {
        let Some(ends) = &self.ends else { return };
        let cache = self.loader.session.cache();
        let own_bytes = ends.lock().pinned_bytes() + self.followed_pins.bytes();
        ends.take_unused(|| is_crowded(cache, own_bytes, PLACES_SHARE));
        if !is_crowded(cache, own_bytes, PLACES_SHARE) {
            return;
        }
        let gone = ends.lock().take_all().collect::<Vec<_>>();
        drop(gone);
        if is_crowded(cache, self.followed_pins.bytes(), PAGES_SHARE) {
            self.stop_following();
        }
    }

    /// For debugging.
    pub fn describe(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(name).field("low", &self.low).field("high", &self.high).finish_non_exhaustive()
    }
}

/// The row `key` was given at the end with the bound `near`.
#[inline]
fn close_in(near: &mut Bound<Vec<u8>>, key: &[u8]) {
    match near {
        Bound::Excluded(last) => {
            last.clear();
            last.extend_from_slice(key);
        }
        Bound::Included(_) | Bound::Unbounded => *near = Bound::Excluded(key.to_vec()),
    }
}
