//! The rows of a range, taken one by one from either end, in any form. They pin their version, but hold on to no old
//! files or memtables: between two rows a range moves to the newest view and finds its place again there. When a new
//! view is made, idle ranges lose their places in older views.
//!
//! All forms of taking a row come down to one function, `attempt`, which never blocks. A row is *given* when it is
//! returned to the caller. Only then does a bound move to it, so a try that would fault or a dropped future loses no
//! row.

use super::followed::{Followed, Second};
use super::lent::Looked;
use super::rest::Rest;
use super::search::Merging;
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
use crate::view::ahead::session;
use crate::view::ends::Registered;
use crate::view::found::{FoundRow, Spot};
use crate::view::merge::Loads;
use crate::view::own_writes::OwnRows;
use crate::view::part_list::PartList;
use os::sync::Arc;
use pages::{PageLender, PageSource, Reason, Session, Stop, Waits};
use sst::{Direction, StoredValue};
use std::cell::{Cell, OnceCell};
use std::fmt;
use std::future::poll_fn;
use std::ops::{Bound, ControlFlow};
use std::task::{Context, Poll, ready};

/// The rows of a key range.
pub(crate) struct RangeRows {
    loader: RowLoader,
    rest: Rest,
    /// `None` until the first row is requested.
    ends: Option<Registered>,
    /// The next rows at one of the ends, if they need no merging.
    followed: Followed,
    /// If the row that was found last is in a file: its wanted parts except the one in the main group, in group
    /// order.
    beside_main: Vec<StoredValue>,
    /// Whether the last poll left a fetch under way.
    is_fetching: bool,
    /// The record of this read in the transaction's read set.
    read: Option<OpenRead>,
}

/// Cleans up when a future that waits for a row is dropped.
struct AbandonOnDrop<'r>(&'r mut RangeRows);

impl Drop for AbandonOnDrop<'_> {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

/// Where the row that was given last lies.
enum Given {
    Found(FoundRow),
    /// In the page or copy of the rows that are followed.
    Followed,
}

impl RangeRows {
    /// The rows of `table` with keys in `bounds` that are visible at the version of `pin`, read with `session`.
    pub fn new(
        session: Session,
        table: &TableHandle,
        wanted: PartList,
        pin: Arc<PinnedVersion>,
        bounds: bounds::Owned,
    ) -> Self {
        let (handle, table) = (table.handle.clone(), table.identity.clone());
        let rest = Rest::new(bounds, session.admit());
        // No row will be read that would notice a dropped table, so it is checked here.
        let failed = if rest.is_over { handle.core().views.of_pin(&pin).files_of(&table).err() } else { None };
        let failed = failed.map_or_else(OnceCell::new, OnceCell::from);
        let followed = Followed::none(session.cache().cursors().holding());
        let (loads, offers_outside) = (Cell::new(Loads::Nothing), Cell::new(false));
        let loader = RowLoader { handle, table, pin, own: None, wanted, session, failed, loads, offers_outside };
        Self { loader, rest, ends: None, followed, beside_main: Vec::new(), is_fetching: false, read: None }
    }

    /// The same rows inside a transaction: `own` lies over them, and `read` records how far they are read.
    pub fn within(mut self, own: Option<OwnRows>, read: Option<OpenRead>) -> Self {
        (self.loader.own, self.read) = (own, read);
        self
    }

    /// The session that reads the rows.
    pub fn session(&self) -> &Session {
        &self.loader.session
    }

    /// The wanted parts of the rows.
    #[inline]
    pub fn wanted(&self) -> &PartList {
        &self.loader.wanted
    }

    /// At most `rows` of the rows.
    pub fn limit(mut self, rows: u64) -> Self {
        self.rest.set_limit(rows);
        self
    }

    /// Rows that always fail with `error`.
    pub fn failed(mut self, error: Error) -> Self {
        self.loader.failed = OnceCell::from(error);
        self
    }

    /// Fails if the range has failed.
    ///
    /// # Errors
    ///
    /// The range's first error.
    pub fn check(&self) -> Result<()> {
        self.loader.failed.get().map_or(Ok(()), |error| Err(error.clone()))
    }

    /// Continues with the rows between these bounds, at the same version and with the same session. The range must
    /// have no limit.
    pub fn restart(&mut self, low: Bound<&[u8]>, high: Bound<&[u8]>) {
        self.abandon();
        if let Some(mut read) = self.read.take() {
            read.restart(self.left(), (low, high));
            self.read = Some(read);
        }
        self.loader.session.release();
        // Without generations, a place would not notice that there is a newer view, and would go on in older files. A
        // range that has failed needs no place.
        let may_go_on = self.loader.failed.get().is_none() && self.loader.handle.core().views.has_generations();
        if may_go_on {
            self.followed.forget();
            let gone = self.ends.as_ref().map(|ends| ends.lock().leave());
            drop(gone);
        } else {
            self.leave_places();
        }
        self.followed.second = Second::Unknown;
        self.followed.looks.begin();
        self.beside_main.clear();
        self.rest.restart(low, high);
    }

    /// Leaves both places and the rows that are followed. From now on, only the bounds say where the range goes on.
    fn leave_places(&mut self) {
        self.followed.stop(&mut self.rest);
        let gone = self.ends.as_ref().map(|ends| ends.lock().take_both());
        drop(gone);
    }

    /// Splits the rest into at most `parts` ranges of about equal stored bytes.
    pub fn split(mut self, parts: usize) -> Result<Vec<Self>> {
        self.leave_places();
        let RowLoader { handle, table, pin, own, wanted, session: own_session, failed, .. } = &self.loader;
        if let Some(error) = failed.get() {
            return Err(error.clone());
        }
        if parts < 2 || self.rest.is_over || self.rest.limit.is_set() {
            return Ok(vec![self]);
        }
        let (core, at) = (handle.core(), pin.version());
        let view = core.views.of_pin(pin);
        let Rest { low, high, .. } = &self.rest;
        let range = (low.clone(), high.clone());
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
        let (mut low, high) = (low.clone(), high.clone());
        for point in points {
            let next = Bound::Included(point.at.clone());
            split.push(part((std::mem::replace(&mut low, next), Bound::Excluded(point.at))));
        }
        split.push(part((low, high)));
        Ok(split)
    }

    /// Called after an error. Returns `Ok` if the range can go on in newer files, where it finds its place again.
    fn recover(&mut self, error: Error) -> Result<()> {
        let RowLoader { handle, pin, session, .. } = &self.loader;
        let outcome = Again::new(handle.core(), Some(pin)).after(error, pin.version());
        session.release();
        self.let_go();
        outcome.map_err(|error| self.loader.fail(error))
    }

    /// The key of the last row that a merge found in `direction`. This row was given.
    pub fn last_key(&self, direction: Direction) -> &[u8] {
        self.rest.last_key(direction)
    }

    /// Replaces `key` with the key of the row that was given last, in `direction`.
    pub fn read_last_key(&self, direction: Direction, key: &mut Vec<u8>) {
        if !self.followed.rows.as_ref().is_some_and(|following| following.read_given(key)) {
            key.clear();
            key.extend_from_slice(self.rest.last_key(direction));
        }
    }

    /// The next row, without parts that lie outside their pages. Blocks for pages.
    #[inline]
    pub fn next(&mut self, direction: Direction) -> Result<Option<RowRef<'_>>> {
        if self.reach_followed(direction) {
            self.give_followed();
            return Ok(Some(self.followed()));
        }
        self.next_found(direction)
    }

    /// Calls `each` with the rows until it breaks. A row counts as given before `each` gets it. Blocks for pages.
    #[inline]
    pub fn for_each<B>(
        &mut self,
        direction: Direction,
        mut each: impl FnMut(RowRef<'_>) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>> {
        loop {
            let broken = if self.reach_followed(direction) {
                self.followed.run(&self.loader, &mut self.rest, &mut each)
            } else {
                let Some(row) = self.next_found(direction)? else { return Ok(ControlFlow::Continue(())) };
                each(row).break_value()
            };
            if let Some(end) = broken {
                return Ok(ControlFlow::Break(end));
            }
        }
    }

    /// The next row, with the rows after it that lie in its page and need no merging: at least one row and at most
    /// `most`. Blocks for pages.
    pub fn next_batch(&mut self, direction: Direction, most: usize) -> Result<Option<RowBatch<'_>>> {
        if self.reach_followed(direction) {
            return Ok(Some(self.followed.batch(&self.loader, &mut self.rest, most)));
        }
        Ok(self.next_found(direction)?.map(RowBatch::one))
    }

    /// If the next row needs no merging, passes it to `take` and returns the result.
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

    /// Steps to the next row if it needs no merging.
    #[inline(always)]
    pub fn reach_followed(&mut self, direction: Direction) -> bool {
        self.followed.reach(&self.loader, &mut self.rest, self.ends.as_ref(), direction)
    }

    /// Steps to the next row and gives it, if it needs no merging. It can be lent until the next row is requested.
    #[inline]
    pub fn step_followed(&mut self, direction: Direction) -> bool {
        let is_reached = self.reach_followed(direction);
        if is_reached {
            self.give_followed();
        }
        is_reached
    }

    /// Marks the row that was reached without merging as given.
    #[inline]
    pub fn give_followed(&mut self) {
        self.followed.give(&mut self.rest);
    }

    /// The row that was reached without merging.
    #[inline(always)]
    pub fn followed(&self) -> RowRef<'_> {
        self.followed.row(&self.loader)
    }

    /// The key of the row that was reached without merging, and where its main-group part lies.
    #[inline]
    pub fn followed_main(&self) -> (&[u8], Spot<'_>) {
        self.followed.reached().main()
    }

    /// The key of the row that was reached without merging.
    #[inline]
    pub fn followed_key(&self) -> &[u8] {
        self.followed.reached().key()
    }

    /// As [`RangeRows::next`], when no row can be followed.
    fn next_found(&mut self, direction: Direction) -> Result<Option<RowRef<'_>>> {
        // A caller that has not loaded the last value outside its page will probably not load the next one either.
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
                let (beside_main, key) = (&*self.beside_main, self.rest.last_key(direction));
                let row = RowRef { loader, beside_main, key, spot: Spot::Found(found) };
                loader.offers_outside.set(row.has_parts_outside());
                Ok(Some(row))
            }
        }
    }

    /// Passes the next row to `take`, which also loads parts, and returns the result. Blocks for pages.
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

    /// If all pages of the next row are in memory, passes the row to `take` and returns the result. Otherwise the
    /// range stays where it is.
    pub fn try_once<T>(
        &mut self,
        direction: Direction,
        take: impl FnMut(RowRef<'_>) -> Result<T, Stop>,
    ) -> Result<Tried<Option<T>>> {
        self.attempt(direction, (Waits::Later, Loads::Parts), take)
    }

    /// Passes the next row to `take` and returns the result, or [`Poll::Pending`] while pages for it are being
    /// loaded.
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

    /// As [`RangeRows::poll`], as a future. It can be dropped at any time: then no row was given.
    pub async fn wait_async<T>(
        &mut self,
        direction: Direction,
        mut take: impl FnMut(RowRef<'_>) -> Result<T, Stop>,
    ) -> Result<Option<T>> {
        let waiting = AbandonOnDrop(self);
        poll_fn(|context| waiting.0.poll(context, direction, &mut take)).await
    }

    /// Gives up a fetch that a dropped future has left behind. Releases the pages that were fetched for the row, and
    /// the view if there is a newer one.
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

    /// The try form behind all others: looks for the next row with the pages that are in memory. If a page is missing
    /// and `Waits` says that the caller will wait, the session notes the page; after the fetch the caller calls this
    /// again, and it goes on where it was. The row counts as given when `take` succeeds.
    #[inline]
    fn attempt<T>(
        &mut self,
        direction: Direction,
        how: (Waits, Loads),
        mut take: impl FnMut(RowRef<'_>) -> Result<T, Stop>,
    ) -> Result<Tried<Option<T>>> {
        // Most rows are followed. They lie in a pinned page as a whole, so they need no session.
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
        if self.rest.is_over {
            self.let_go();
            return Ok(Tried::Ready(None));
        }
        let Self { loader, rest, followed, .. } = self;
        match followed.look(loader, rest, direction) {
            Looked::Row => {
                if let Some(Ok(row)) = self.follow(direction, &mut take) {
                    return Ok(Tried::Ready(Some(row)));
                }
            }
            Looked::Nothing => {
                rest.is_over = true;
                self.let_go();
                return Ok(Tried::Ready(None));
            }
            Looked::Unknown => {}
        }
        self.loader.session.set_waits(waits);
        let Self { loader, rest, ends, followed, beside_main, .. } = self;
        if followed.second == Second::Due(direction)
            && let Some(ends) = ends
        {
            Merging { loader, rest, followed, beside_main }.follow_second(ends, direction);
        }
        let outcome = loop {
            let found = match self.follow(direction, &mut take) {
                Some(Ok(row)) => break Ok(Tried::Ready(Some(row))),
                Some(Err(stop)) => Tried::of(Err(stop)),
                None => self.find(direction, (waits, loads), &mut take),
            };
            match found {
                Ok(Tried::Ready(row)) => {
                    if row.is_some() {
                        self.rest.count(1);
                    } else {
                        self.rest.is_over = true;
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

    /// Finds the next row by merging, passes it to `take` and returns the result. A step.
    #[inline]
    fn find<T>(
        &mut self,
        direction: Direction,
        how: (Waits, Loads),
        take: impl FnMut(RowRef<'_>) -> Result<T, Stop>,
    ) -> Result<Tried<Option<T>>> {
        let Self { loader, rest, ends, followed, beside_main, .. } = self;
        followed.looks.end();
        let ends = ends.get_or_insert_with(|| loader.handle.core().views.ranges.enter());
        Merging { loader, rest, followed, beside_main }.find(ends, direction, how, take)
    }

    /// Releases the pages and the view, when the range has ended or must find its place again.
    fn let_go(&mut self) {
        self.ends = None;
        self.followed.stop(&mut self.rest);
        (self.beside_main, self.followed.values, self.followed.spare) = (Vec::new(), Vec::new(), None);
    }

    /// The bounds of the keys that were not read. `None` if all keys were read.
    fn left(&mut self) -> Option<bounds::Borrowed<'_>> {
        self.followed.stop(&mut self.rest);
        (!self.rest.has_come_to_end()).then(|| self.rest.bounds())
    }

    /// For debugging.
    pub fn describe(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Rest { low, high, .. } = &self.rest;
        let (mut low, mut high) = (low.clone(), high.clone());
        if let Some(following) = &self.followed.rows {
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
