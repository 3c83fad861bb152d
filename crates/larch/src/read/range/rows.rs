//! The rows of a range, taken one by one from either end in any form. They keep their version, but hold no old files
//! and no old memtables. Between two rows a range takes the newest view and finds its place again. While no thread
//! asks the range for a row, a new view takes the old view away from it.
//!
//! All forms of taking a row are one function, `attempt`, which never waits. A bound moves to a row when the row is
//! given, not before: a try that would fault, or a future that is dropped, takes no row along.

use super::limit::RowLimit;
use crate::base::bounds;
use crate::base::error::{Error, Result};
use crate::conflicts::read_set::OpenRead;
use crate::core::handle::TableHandle;
use crate::core::snapshots::PinnedVersion;
use crate::read::Tried;
use crate::read::again::Again;
use crate::read::row::{RowLoader, RowRef};
use crate::read::row_batch::RowBatch;
use crate::sizes::shape;
use crate::view::ahead::{readahead, session};
use crate::view::ends::{End, PAGES_SHARE, PLACES_SHARE, Registered, is_crowded};
use crate::view::follow::{FollowedRow, Following};
use crate::view::found::{FoundRow, Spot};
use crate::view::merge::{Loads, Merge};
use crate::view::own_writes::OwnRows;
use crate::view::part_list::PartList;
use crate::view::precharge::Precharge;
use crate::view::{TableView, View};
use os::sync::Arc;
use pages::gauge::Holding;
use pages::{PageSource, Reason, Session, Stop, Waits};
use sst::precharge::{ReadPlan, is_empty};
use sst::{AtMost, Direction, Readahead, StoredValue};
use std::cell::{Cell, OnceCell};
use std::fmt;
use std::future::poll_fn;
use std::ops::{Bound, ControlFlow};
use std::task::{Context, Poll, ready};

/// The most rows of a batch. A range keeps eight bytes for each row of the batch.
const MOST_BATCH_ROWS: usize = 1024;

/// The rows of a key range.
pub(crate) struct RangeRows {
    loader: RowLoader,
    /// The keys of the rows that are left. Each row that is given moves one of the bounds. While rows are followed,
    /// the bound stays; it moves when following ends.
    low: Bound<Vec<u8>>,
    high: Bound<Vec<u8>>,
    /// `None` until the first row is asked for.
    ends: Option<Registered>,
    /// Rows that come next at one of the ends and need no merging.
    following: Option<Following>,
    /// How many bytes of the cache the followed rows pin.
    followed_pins: Holding,
    limit: RowLimit,
    /// The parts of the row that was found last, if it is in a file: its parts in the wanted groups without the main
    /// group, in the order of the groups.
    beside_main: Vec<StoredValue>,
    /// Where the values lie of rows that were given together.
    values: Vec<(u32, u32)>,
    ended: bool,
    /// Whether a poll is waiting for pages.
    is_fetching: bool,
    /// Where a transaction notes what was read.
    read: Option<OpenRead>,
}

/// A future that waits for a row. When the future is dropped, no future waits any more.
struct AbandonOnDrop<'r>(&'r mut RangeRows);

impl Drop for AbandonOnDrop<'_> {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

/// The place of the row that was given last.
enum Given {
    Found(FoundRow),
    /// The row lies in the page of the rows that are followed.
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
        // A range without keys reads no file, so the table is checked here.
        let failed = if ended { handle.core().views.of_pin(&pin).files_of(&table).err() } else { None };
        let failed = failed.map_or_else(OnceCell::new, OnceCell::from);
        let (followed_pins, limit) = (session.cache().cursors().holding(), RowLimit::none(session.admit()));
        let (loads, offers_outside) = (Cell::new(Loads::Nothing), Cell::new(false));
        Self {
            loader: RowLoader { handle, table, pin, own: None, wanted, session, failed, loads, offers_outside },
            low,
            high,
            ends: None,
            following: None,
            followed_pins,
            limit,
            beside_main: Vec::new(),
            values: Vec::new(),
            ended,
            is_fetching: false,
            read: None,
        }
    }

    /// The same rows with the rows of a transaction over them. The transaction notes what is `read`.
    pub fn within(mut self, own: Option<OwnRows>, read: Option<OpenRead>) -> Self {
        (self.loader.own, self.read) = (own, read);
        self
    }

    /// The session that reads the rows.
    pub fn session(&self) -> &Session {
        &self.loader.session
    }

    /// Which parts of the rows were asked for.
    #[inline]
    pub fn wanted(&self) -> &PartList {
        &self.loader.wanted
    }

    /// At most `rows` of the rows.
    pub fn limit(mut self, rows: u64) -> Self {
        // A range that has come to its end has read everything, so the limit changes nothing.
        if !self.ended {
            self.limit = self.limit.at_most(rows);
            self.ended = self.limit.rows() == 0;
        }
        self
    }

    /// Rows that answer with `error`.
    pub fn failed(mut self, error: Error) -> Self {
        self.loader.failed = OnceCell::from(error);
        self
    }

    /// The first error, if one came.
    ///
    /// # Errors
    ///
    /// This error.
    pub fn check(&self) -> Result<()> {
        self.loader.failed.get().map_or(Ok(()), |error| Err(error.clone()))
    }

    /// From now on gives the rows between these bounds, at the same version and with the same session. The range
    /// must have no limit.
    pub fn restart(&mut self, low: Bound<&[u8]>, high: Bound<&[u8]>) {
        debug_assert!(!self.limit.is_set(), "a limit counts the rows of one range");
        self.abandon();
        if let Some(mut read) = self.read.take() {
            read.restart(self.left(), (low, high));
            self.read = Some(read);
        }
        self.loader.session.release();
        let gone = self.ends.as_ref().map(|ends| ends.lock().take_both());
        drop(gone);
        self.following = None;
        self.followed_pins.set(0);
        self.beside_main.clear();
        self.ended = is_empty(&low, &high);
        replace(&mut self.low, low);
        replace(&mut self.high, high);
    }

    /// Splits the rest into at most `parts` parts.
    pub fn split(mut self, parts: usize) -> Result<Vec<Self>> {
        self.stop_following();
        let RowLoader { handle, table, pin, own, wanted, session: own_session, failed, .. } = &self.loader;
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
            let session = session(&core.env.cache, &*core.env.machine.reads, Reason::Scan, own_session.admit());
            let session = session.with_reads_in_poll(core.env.options.reads_in_poll);
            let read = self.read.as_ref().and_then(|read| read.another(&bounds));
            Self::new(session, &table, *wanted, pin.clone(), bounds).within(own.clone(), read)
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

    /// Called after an error. `Ok` if the range can go on in newer files, where it finds its place again.
    fn recover(&mut self, error: Error) -> Result<()> {
        let RowLoader { handle, pin, session, .. } = &self.loader;
        let outcome = Again::new(handle.core(), Some(pin)).after(error, pin.version());
        session.release();
        self.let_go();
        outcome.map_err(|error| self.loader.fail(error))
    }

    /// The key of the row that a merge found last in `direction`. This row was given.
    pub fn last_key(&self, direction: Direction) -> &[u8] {
        let bound = match direction {
            Direction::Forward => &self.low,
            Direction::Backward => &self.high,
        };
        let Bound::Excluded(key) = bound else { unreachable!("giving a row moves the bound to it") };
        key
    }

    /// Replaces `key` with the key of the row that was given last in `direction`.
    pub fn read_last_key(&self, direction: Direction, key: &mut Vec<u8>) {
        if !self.following.as_ref().is_some_and(|following| following.read_given(key)) {
            key.clear();
            key.extend_from_slice(self.last_key(direction));
        }
    }

    /// The next row, without the parts that lie outside their pages. It waits for pages.
    #[inline]
    pub fn next(&mut self, direction: Direction) -> Result<Option<RowRef<'_>>> {
        if self.reach_followed(direction) {
            self.give_followed();
            return Ok(Some(self.followed()));
        }
        self.next_found(direction)
    }

    /// Hands the rows to `each`, until `each` breaks. A row counts as given before `each` gets it. It waits for
    /// pages.
    #[inline]
    pub fn for_each<B>(
        &mut self,
        direction: Direction,
        mut each: impl FnMut(RowRef<'_>) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>> {
        loop {
            let broken = if self.reach_followed(direction) {
                self.run_followed(&mut each)
            } else {
                let Some(row) = self.next_found(direction)? else { return Ok(ControlFlow::Continue(())) };
                each(row).break_value()
            };
            if let Some(end) = broken {
                return Ok(ControlFlow::Break(end));
            }
        }
    }

    /// Hands the row that was reached without merging to `each`, and then the rows that follow in its page. It stops
    /// at the limit, or when a newer view exists. If `each` broke, it returns what `each` broke with.
    #[inline]
    fn run_followed<B>(&mut self, each: &mut impl FnMut(RowRef<'_>) -> ControlFlow<B>) -> Option<B> {
        let Self { loader, following, limit, ended, .. } = self;
        let (following, views) = (following.as_mut().expect("the row was reached"), &loader.handle.core().views);
        let generation = following.generation();
        let broken = following.run(|FollowedRow { key, beside_main, spot }| {
            limit.count(1);
            *ended = limit.rows() == 0;
            let row = RowRef { loader, beside_main, key, spot };
            if let ControlFlow::Break(end) = each(row) {
                return ControlFlow::Break(Some(end));
            }
            let goes_on = !*ended && loader.failed.get().is_none() && views.generation() == generation;
            if goes_on { ControlFlow::Continue(()) } else { ControlFlow::Break(None) }
        });
        broken.flatten()
    }

    /// The next row, and the rows after it that lie in its page and need no merging. It gives at most `most` rows in
    /// all, and at least one. It waits for pages.
    pub fn next_batch(&mut self, direction: Direction, most: usize) -> Result<Option<RowBatch<'_>>> {
        if !self.reach_followed(direction) {
            return Ok(self.next_found(direction)?.map(RowBatch::one));
        }
        let left = usize::try_from(self.limit.rows()).unwrap_or(usize::MAX);
        let Self { following, values, .. } = self;
        values.clear();
        let following = following.as_mut().expect("the row was reached");
        if !following.gather(most.min(left).min(MOST_BATCH_ROWS), values) {
            self.give_followed();
            return Ok(Some(RowBatch::one(self.followed())));
        }
        let given = values.len();
        self.count_given(given as u64);
        if given == 1 {
            return Ok(Some(RowBatch::one(self.followed())));
        }
        let Self { loader, following, values, .. } = self;
        let streak = following.as_ref().and_then(Following::given_streak).expect("its rows were given");
        Ok(Some(RowBatch::of_page(loader, streak, values)))
    }

    /// As [`RangeRows::next`], for the case that no row can be followed.
    fn next_found(&mut self, direction: Direction) -> Result<Option<RowRef<'_>>> {
        // If the caller has not loaded the last value outside its page, it will probably not load the next one
        // either.
        if self.loader.offers_outside.replace(false) {
            self.loader.loads.set(Loads::Nothing);
        }
        let given = self.wait_for(direction, self.loader.loads.get(), |row| match row.spot {
            Spot::Found(found) => Ok(Given::Found(found)),
            Spot::InPage(..) | Spot::Copied(_) => Ok(Given::Followed),
        })?;
        let Some(given) = given else { return Ok(None) };
        let loader = &self.loader;
        match given {
            Given::Followed => Ok(Some(self.followed())),
            Given::Found(found) => {
                let (beside_main, key) = (&*self.beside_main, self.last_key(direction));
                let row = RowRef { loader, beside_main, key, spot: Spot::Found(found) };
                loader.offers_outside.set(row.has_parts_outside());
                Ok(Some(row))
            }
        }
    }

    /// Passes the next row to `take`, which loads parts, and returns the result. It waits for pages.
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

    /// Passes the next row to `take` and returns the result, if all pages of the row are in memory. Otherwise the
    /// range stays where it is.
    pub fn try_once<T>(
        &mut self,
        direction: Direction,
        take: impl FnMut(RowRef<'_>) -> Result<T, Stop>,
    ) -> Result<Tried<Option<T>>> {
        self.attempt(direction, (Waits::Later, Loads::Parts), take)
    }

    /// Passes the next row to `take` and returns the result. It returns [`Poll::Pending`] while pages for the row
    /// are being loaded.
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

    /// As [`RangeRows::poll`], as a future. It can be dropped at any time: then no row was given, and no future
    /// waits any more.
    pub async fn wait_async<T>(
        &mut self,
        direction: Direction,
        mut take: impl FnMut(RowRef<'_>) -> Result<T, Stop>,
    ) -> Result<Option<T>> {
        let waiting = AbandonOnDrop(self);
        poll_fn(|context| waiting.0.poll(context, direction, &mut take)).await
    }

    /// No future waits for pages any more. Releases the pages that were fetched for the row, and the view if a newer
    /// view exists.
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

    /// The form that tries. It looks for the next row with the pages that are in memory. If a page is missing, a
    /// session that waits notes the page. After a fetch the caller calls this function again, and it goes on where
    /// it was. The row counts as given when `take` succeeds.
    #[inline]
    fn attempt<T>(
        &mut self,
        direction: Direction,
        how: (Waits, Loads),
        mut take: impl FnMut(RowRef<'_>) -> Result<T, Stop>,
    ) -> Result<Tried<Option<T>>> {
        // Most rows are followed. Such a row lies whole in a page that is pinned, so the session is not asked.
        match self.follow(direction, &mut take) {
            Some(Ok(row)) => Ok(Tried::Ready(Some(row))),
            Some(Err(_)) | None => self.attempt_with_session(direction, how, take),
        }
    }

    /// As [`RangeRows::attempt`], for a row that may need pages.
    #[inline(never)]
    fn attempt_with_session<T>(
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
                Some(Ok(row)) => break Ok(Tried::Ready(Some(row))),
                Some(Err(stop)) => Tried::of(Err(stop)),
                None => self.find(direction, (waits, loads), &mut take),
            };
            match found {
                Ok(Tried::Ready(row)) => {
                    if row.is_some() {
                        self.count_given(1);
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

    /// Counts `rows` rows that were given. The range ends when it reaches its limit.
    #[inline]
    fn count_given(&mut self, rows: u64) {
        self.limit.count(rows);
        self.ended = self.limit.rows() == 0;
    }

    /// Releases the pages and the view of a range that has ended.
    fn let_go(&mut self) {
        self.ends = None;
        self.stop_following();
        (self.beside_main, self.values) = (Vec::new(), Vec::new());
    }

    fn stop_following(&mut self) {
        // If the range has come to its end, its bounds mean nothing.
        if let Some(following) = self.following.take().filter(|_| !self.has_come_to_end()) {
            following.close_in(following.direction().near_far((&mut self.low, &mut self.high)).0);
        }
        self.followed_pins.set(0);
    }

    /// Whether no more rows follow. The limit does not count here.
    fn has_come_to_end(&self) -> bool {
        self.ended && self.limit.rows() > 0
    }

    /// The bounds of the keys that were not read yet. `None` if all keys were read.
    fn left(&mut self) -> Option<bounds::Borrowed<'_>> {
        self.stop_following();
        let (low, high) = (self.low.as_ref().map(Vec::as_slice), self.high.as_ref().map(Vec::as_slice));
        (!self.has_come_to_end()).then_some((low, high))
    }

    /// Passes the next row to `take` and returns the result, if the row needs no merging.
    #[inline]
    pub fn follow<T>(
        &mut self,
        direction: Direction,
        mut take: impl FnMut(RowRef<'_>) -> Result<T, Stop>,
    ) -> Option<Result<T, Stop>> {
        if !self.reach_followed(direction) {
            return None;
        }
        let taken = take(self.followed());
        if taken.is_ok() {
            self.give_followed();
        }
        Some(taken)
    }

    /// Goes to the next row, if this row needs no merging. The function is inlined, because each row of a scan goes
    /// through it.
    #[inline(always)]
    fn reach_followed(&mut self, direction: Direction) -> bool {
        let Self { loader, following: Some(following), ended, .. } = self else { return false };
        if *ended || following.direction() != direction || loader.failed.get().is_some() {
            return false;
        }
        let newest = loader.handle.core().views.generation();
        if following.generation() != newest && !self.renew_followed(newest) {
            return false;
        }
        self.following.as_mut().is_some_and(Following::next)
    }

    /// Goes to the next row and gives it, if it needs no merging. The row can be lent until the next row is asked
    /// for.
    #[inline]
    pub fn step_followed(&mut self, direction: Direction) -> bool {
        if !self.reach_followed(direction) {
            return false;
        }
        self.give_followed();
        true
    }

    /// The row that was reached without merging.
    #[inline]
    pub fn followed(&self) -> RowRef<'_> {
        let FollowedRow { key, beside_main, spot } = self.following.as_ref().expect("the row was reached").row();
        RowRef { loader: &self.loader, beside_main, key, spot }
    }

    /// The key of the row that was reached without merging, and where its part in the main group lies.
    #[inline]
    pub fn followed_main(&self) -> (&[u8], Spot<'_>) {
        self.following.as_ref().expect("the row was reached").main()
    }

    /// The key of the row that was reached without merging.
    #[inline]
    pub fn followed_key(&self) -> &[u8] {
        self.following.as_ref().expect("the row was reached").key()
    }

    /// The row that was reached without merging is given.
    #[inline]
    fn give_followed(&mut self) {
        self.following.as_mut().expect("the row was reached").give();
        self.count_given(1);
    }

    /// A view exists that is newer than the view in which rows were followed. Releases the older view. Returns false
    /// if the table was dropped.
    #[cold]
    fn renew_followed(&mut self, newest: u64) -> bool {
        let Self { loader, following: Some(following), ends, .. } = self else { return false };
        following.renew(newest);
        // The thread that made the new view may have found the ends in use.
        drop(ends.as_ref().map(|ends| ends.take_old(newest)));
        let is_there = loader.handle.core().views.newest().files_of(&loader.table).is_ok();
        if !is_there {
            self.stop_following();
        }
        is_there
    }

    /// Finds the next row by merging, passes it to `take` and returns the result. A step.
    #[inline]
    fn find<T>(
        &mut self,
        direction: Direction,
        (waits, loads): (Waits, Loads),
        take: impl FnMut(RowRef<'_>) -> Result<T, Stop>,
    ) -> Result<Tried<Option<T>>> {
        let Self { loader, low, high, ends, following, followed_pins, limit, beside_main, .. } = self;
        let core = loader.handle.core();
        let ends = ends.get_or_insert_with(|| core.views.ranges.enter());
        // Both variables are declared before the lock, so they are dropped after it.
        let (view, gone) = (OnceCell::new(), Cell::new(Vec::new()));
        let mut places = ends.lock();
        gone.set(places.begin(core.views.generation()));
        if let Some(mut following) = following.take() {
            following.pass_done();
            following.close_in(following.direction().near_far((&mut *low, &mut *high)).0);
            places.resume(&following);
            followed_pins.set(0);
        }
        let (place, near, far) = match direction {
            Direction::Forward => (&mut places.front, low, &*high),
            Direction::Backward => (&mut places.back, high, &*low),
        };
        let (near_now, far) = (near.as_ref().map(Vec::as_slice), far.as_ref().map(Vec::as_slice));
        let search = Search { loader, direction, near: near_now, far, view: &view };
        if place.is_none() {
            *place = Some(search.begin(limit)?);
        }
        let end = place.as_mut().expect("it was made above");
        let generation = end.generation;
        let outcome = search.next_row(end, limit, beside_main, (waits, loads), take);
        let mut crowded = false;
        match &outcome {
            Ok(Some(_)) => {
                end.given();
                limit.given();
                crowded = is_crowded(loader.session.cache(), end.pins.bytes() + followed_pins.bytes(), PLACES_SHARE);
                *following = search.following(end, limit, crowded);
                // The followed pages count in addition to the pages that the place keeps, because other ranges may
                // take the place.
                followed_pins.set(following.as_ref().map_or(0, Following::pinned_bytes));
                close_in(near, end.merge.key());
            }
            // The place may be taken away before the range is asked again. Even then the range goes on after the
            // rows that the merge has left.
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
        // The thread that made a newer view may have found the ends in use. The range looks for a newer view after
        // the lock, so either the thread or the range sees the other.
        if !is_asked && generation != core.views.generation() {
            drop(ends.take_old(core.views.generation()));
        }
        if crowded {
            self.make_room();
        }
        Tried::of(outcome)
    }

    /// Called when other ranges pin much of the cache. It takes the unused places of the other ranges away. If that
    /// is not enough, this range gives up its own places, which it finds again by its keys. If necessary, it also
    /// gives up the page that it follows.
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
        let (mut low, mut high) = (self.low.clone(), self.high.clone());
        if let Some(following) = &self.following {
            following.close_in(following.direction().near_far((&mut low, &mut high)).0);
        }
        f.debug_struct(name).field("low", &low).field("high", &high).finish_non_exhaustive()
    }
}

impl Drop for RangeRows {
    fn drop(&mut self) {
        if let Some(read) = self.read.take() {
            read.close(self.left());
        }
    }
}

/// One search for the next row at one end of a range, by merging.
struct Search<'r> {
    loader: &'r RowLoader,
    direction: Direction,
    /// The bound of the end at which the search looks for a row, and the bound of the other end.
    near: Bound<&'r [u8]>,
    far: Bound<&'r [u8]>,
    /// The view from which new sources are taken. It is set when it is first needed.
    view: &'r OnceCell<Arc<View>>,
}

impl Search<'_> {
    /// The table at the version of the range, in the newest view that shows it.
    fn table(&self) -> Result<TableView<'_>> {
        let RowLoader { handle, table, pin, own, .. } = self.loader;
        let view = self.view.get_or_init(|| handle.core().views.of_pin(pin));
        Ok(view.table(table, pin.version())?.under(own.as_ref()))
    }

    /// A new place, at the bound of the end.
    fn begin(&self, limit: &RowLimit) -> Result<End> {
        let session = &self.loader.session;
        // A range that uses a precharge asks for all that it needs; readahead would also read pages beyond the limit.
        let env = &self.loader.handle.core().env;
        let ahead = || readahead(&env.cache, &*env.machine.reads);
        let readahead = if limit.uses_precharge() { Readahead::NONE } else { ahead() };
        // This turns the bounds `near` and `far` into the low and the high bound.
        let bounds = self.direction.near_far((self.near, self.far));
        let table = self.table()?;
        let merge = Merge::new(session, table, self.direction, bounds, readahead);
        Ok(End::new(merge, table.view.generation, session.cache()))
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

    /// Loads what all rows up to the limit need, when `limit` says so. A step.
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
        // Nothing is loaded for a table that was just dropped: the next place reports this.
        if end.precharge.is_none()
            && let Ok(table) = self.table()
        {
            end.precharge = Some(Precharge::new(session, table, &reading));
        }
        end.precharge.as_mut().map_or(Ok(()), |precharge| precharge.pass(session, &reading))?;
        session.release();
        Ok(())
    }

    /// The rows that come next, if these rows need no merging.
    #[inline]
    fn following(&self, end: &mut End, limit: &RowLimit, is_crowded: bool) -> Option<Following> {
        let can_follow = !limit.is_due() && limit.rows() > 1;
        // If the place is given up, the range keeps only the rest of the page.
        if !can_follow || !(end.merge.expects_streaks() || is_crowded) {
            return None;
        }
        let most = usize::try_from(limit.rows()).unwrap_or(usize::MAX);
        let streaks = end.merge.streaks(self.far, self.loader.wanted.set(), (is_crowded, most));
        (!streaks.is_empty()).then(|| Following::new(streaks, end.generation))
    }
}

/// Moves the bound `near` of an end to `key`. The row with this key was given.
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

/// Replaces a bound. The new bound uses the memory of the old one.
fn replace(bound: &mut Bound<Vec<u8>>, with: Bound<&[u8]>) {
    let mut key = match std::mem::replace(bound, Bound::Unbounded) {
        Bound::Included(key) | Bound::Excluded(key) => key,
        Bound::Unbounded => Vec::new(),
    };
    key.clear();
    *bound = with.map(|with| {
        key.extend_from_slice(with);
        key
    });
}
