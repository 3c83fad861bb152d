//! One reader's view of the cache: its pins, hits and misses. A session does not know what is read, or how the
//! cache chooses which pages stay.
//!
//! * A fetched page stays pinned until [`Session::release`](PageLender::release), whether the cache keeps it or
//!   not. So each run of a step gets further than the one before. The exception: while a future waits, other
//!   sessions that find no room may take its session's pins away (see `cache/parked.rs`). Its step then starts anew
//!   when the future is polled.
//! * A page that is found in the cache is not pinned by the session, only by the returned [`PageRef`]. If the page
//!   is evicted before the step runs again, that run faults on it, and then the session pins it.
//! * A hit takes no lock and allocates nothing. What a session needs for misses is made at the first miss. So
//!   opening a session for a read that finds everything in memory costs only a few stores.
//! * A page that is being read lands without the session's help, in the cache or in its flight. A session that is
//!   dropped waits for nothing.
//! * Pages that are asked for ahead are read in one of two ways. If other threads or the system make the reads,
//!   they begin when the step is done, and the session waits for a page only when a step needs it. If the session's
//!   own thread makes them, it makes them together with the reads of the next fault.
//! * A thread with two sessions must release one before it fetches in the other. Otherwise one session might hold
//!   the turn to overdraw while the thread waits for that turn in the other.
//!
//! One reader: `Send`, not `Sync`.

mod admit;
mod ahead;
mod own_memory;
mod parked;
mod request;
mod round;
mod step;

pub use admit::Admit;
pub use own_memory::OwnMemory;
use parked::Unparked;
use request::Request;
use round::{Manner, RoomWaiter, Round};
use step::StepState;

use crate::cache::claim::PageLookup;
use crate::cache::flight::Demand;
use crate::counters::HitTally;
use crate::frame::Part;
use crate::notes::{Notebook, Notes};
use crate::page_key::PageKey;
use crate::trace::How;
use crate::{
    Address, Excerpt, ExcerptName, Page, PageAt, PageCache, PageKind, PageLender, PageRef, PageSource, Reason, Result,
    Stop,
};
use os::sync::Arc;
use std::cell::{Cell, Ref, RefCell, RefMut};
use std::fmt;
use std::task::{Context, Poll};

/// Whether a reader waits for pages that are not in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Waits {
    /// The reader waits: a page that a step misses is noted for the next round. The default.
    #[default]
    Now,
    /// The reader does not wait now, but will later: misses are not noted, but requests for pages ahead are.
    Later,
    /// The reader does not wait, and nothing is noted.
    Never,
}

/// If the cache does not keep a session's pages, the session itself keeps those that it has read ahead. By default,
/// these take at most this many bytes and at most a sixteenth of the budget.
const MAX_AHEAD_BYTES: u64 = 1 << 20;

/// One reader of pages.
pub struct Session {
    cache: Arc<PageCache>,
    reason: Reason,
    admit: Admit,
    ahead_bytes: u64,
    own_memory: Option<OwnMemory>,
    waits: Cell<Waits>,
    /// Whether the polling thread itself reads a page that is the only one missing.
    reads_in_poll: bool,
    /// Notes on the pages that were asked for, if the caller wants them.
    notebook: Option<Box<RefCell<Notebook>>>,
    hits: Cell<HitTally>,
    /// `None` until a page is missing or asked for ahead.
    step: RefCell<Option<Box<StepState>>>,
}

impl Session {
    /// A reader of pages in `cache`.
    #[inline]
    pub fn new(cache: &Arc<PageCache>, reason: Reason, admit: Admit) -> Self {
        Self {
            cache: Arc::clone(cache),
            reason,
            admit,
            ahead_bytes: MAX_AHEAD_BYTES.min(cache.budget().limit() / 16),
            own_memory: None,
            waits: Cell::default(),
            reads_in_poll: false,
            notebook: None,
            hits: Cell::default(),
            step: RefCell::default(),
        }
    }

    /// The state of the step in progress.
    fn step(&self) -> RefMut<'_, StepState> {
        RefMut::map(self.step.borrow_mut(), |step| &mut **step.get_or_insert_default())
    }

    /// Calls `get` with the step in progress, if it has any pages.
    #[inline]
    fn of_step(&self, get: impl FnOnce(&mut StepState) -> Option<PageRef>) -> Option<PageRef> {
        let step = &mut *self.step.borrow_mut();
        step.as_mut().filter(|step| step.has_pages()).and_then(|step| get(step))
    }

    /// Sets how many bytes of read-ahead pages the session itself keeps, if the cache does not keep its pages.
    pub fn with_ahead_bytes(mut self, bytes: u64) -> Self {
        self.ahead_bytes = bytes;
        self
    }

    /// Makes the session read pages into memory of its own, so that it neither waits for room in the cache nor
    /// takes room from other sessions. Its pages are not shared. Only for a session whose pages the cache does not
    /// keep.
    pub fn with_own_memory(mut self, memory: &OwnMemory) -> Self {
        assert!(self.admit == Admit::Pass, "the cache cannot keep what it does not pay for");
        self.own_memory = Some(memory.clone());
        self
    }

    /// Sets whether [`Session::poll_fetch`] may read a page on the calling thread, which then waits for the disk.
    /// It does so only if the step misses a single page and no other future of the cache waits. Otherwise, other
    /// threads or the system make the reads, as without this call.
    pub fn with_reads_in_poll(mut self, in_poll: bool) -> Self {
        self.reads_in_poll = in_poll;
        self
    }

    /// Makes the session take notes on the pages that it is asked for. Call this before asking for the first page.
    pub fn with_notes(mut self) -> Self {
        self.notebook = Some(Box::default());
        self
    }

    /// The notes; `None` if the session takes none.
    pub fn notes(&self) -> Option<Ref<'_, Notes>> {
        self.notebook.as_ref().map(|notebook| Ref::map(notebook.borrow(), Notebook::notes))
    }

    /// Sets whether the reader waits for pages that are not in memory, from the next call on.
    #[inline]
    pub fn set_waits(&self, waits: Waits) {
        self.waits.set(waits);
    }

    /// The cache.
    #[inline]
    pub fn cache(&self) -> &Arc<PageCache> {
        &self.cache
    }

    /// Which of the session's pages the cache keeps.
    #[inline]
    pub fn admit(&self) -> Admit {
        self.admit
    }

    /// How many rounds had to wait for the disk since the session was opened.
    pub fn rounds(&self) -> u64 {
        self.step.borrow().as_ref().map_or(0, |step| step.rounds)
    }

    /// How many pages this session read from disk. Pages that another session read while this one waited do not
    /// count.
    pub fn page_reads(&self) -> u64 {
        self.step.borrow().as_ref().map_or(0, |step| step.reads.iter().sum())
    }

    /// How many of the [`Session::page_reads`] were pages of the given kind.
    pub fn reads_of(&self, kind: PageKind) -> u64 {
        self.step.borrow().as_ref().map_or(0, |step| step.reads[kind.index()])
    }

    /// Like [`PageSource::fetch`], but for a caller that does not wait. While pages are on their way, the result is
    /// [`Poll::Pending`], and the task of `context` is woken when it should ask again. Once the result is ready,
    /// run the step again. It may miss pages that it had before, if other sessions took them away meanwhile. A
    /// session that is dropped before the result is ready leaves nothing behind.
    ///
    /// A step is waited for either by tasks or by threads, not by both.
    ///
    /// # Errors
    ///
    /// As [`PageSource::fetch`].
    pub fn poll_fetch(&mut self, context: &mut Context<'_>) -> Poll<Result<()>> {
        let step = &mut *self.step();
        let round = match step.unpark(&self.cache) {
            Unparked::Stripped => return Poll::Ready(Ok(())),
            Unparked::Whole(Some(round)) => round,
            Unparked::Whole(None) => match self.begin(step, Some(context), self.waits_for_all()) {
                BegunRound::Nothing => return Poll::Ready(Ok(())),
                BegunRound::HeldUp => {
                    step.park(&self.cache, None);
                    return Poll::Pending;
                }
                BegunRound::Round(round) => round,
            },
        };
        let arrivals = Arc::clone(&round.arrivals);
        if arrivals.poll(context).is_ready() {
            return Poll::Ready(self.end(step, round));
        }
        step.park(&self.cache, Some(round));
        // When the last page lands, the tasks in the queue are woken. If that happened before this session parked,
        // they could not take its pages, so check again.
        if !arrivals.are_all_here() {
            return Poll::Pending;
        }
        match step.unpark(&self.cache) {
            Unparked::Whole(Some(round)) => Poll::Ready(self.end(step, round)),
            Unparked::Whole(None) | Unparked::Stripped => Poll::Ready(Ok(())),
        }
    }

    /// Begins a round for the pages that were asked for since the last round, if any. A task, whose context is
    /// given, may have to wait for room first. With `waits_for_all`, the round also waits for pages that no step
    /// needs yet.
    fn begin(&self, step: &mut StepState, context: Option<&Context<'_>>, waits_for_all: bool) -> BegunRound {
        // First take in what has landed, so that it is not asked for again.
        step.read_ahead.gather();
        let requests = step.take_requests();
        if requests.is_empty() {
            return BegunRound::Nothing;
        }
        let ahead_bytes = match self.admit {
            Admit::Keep => u64::MAX,
            Admit::Nodes | Admit::Pass => step.read_ahead.make_room(&requests, self.admit, self.ahead_bytes),
        };
        let manner = Manner {
            cache: &self.cache,
            admit: self.admit,
            own_memory: self.own_memory.as_ref(),
            demand: match self.reason {
                Reason::Compaction | Reason::Check | Reason::Warm => Demand::Background,
                _ => Demand::Reader,
            },
            ahead_bytes,
            waits_for_all,
            reads_here: context.is_none() || self.reads_in_poll && self.cache.parking().is_empty(),
        };
        let read_ahead = &step.read_ahead;
        let in_flight = |key| read_ahead.flight(key);
        let waiter = context.map(|context| {
            let number = *step.waiter.get_or_insert_with(|| self.cache.new_ticket());
            RoomWaiter { number, context }
        });
        let Some(mut round) = Round::begin(&manner, &requests, in_flight, &mut step.turn, waiter) else {
            step.held_up = requests;
            return BegunRound::HeldUp;
        };
        for read in &round.reads {
            self.cache.counters().add_read(self.reason, read.kind, read.at.bytes);
            step.reads[read.kind.index()] += 1;
            if read.needed {
                step.read.insert(read.key);
            }
            let how = if read.needed { How::Needed } else { How::Ahead };
            self.trace(how, read.key, &read.at, read.kind);
            if let Some(notebook) = &self.notebook {
                notebook.borrow_mut().read(read);
            }
        }
        if self.admit == Admit::Keep && round.reads.iter().any(|read| read.needed) {
            self.cache.note_miss();
        }
        if round.waits() {
            self.cache.counters().add_round(self.reason);
            step.rounds += 1;
        }
        self.add_up_hits();
        step.read_ahead.add_flights(round.ahead.drain(..));
        BegunRound::Round(round)
    }

    /// Whether a fetch also waits for the pages that were asked for ahead. A precharge is done only when they are
    /// in memory.
    fn waits_for_all(&self) -> bool {
        self.reason == Reason::Precharge
    }

    /// Begins to read the pages that were asked for ahead, unless this thread would have to make the reads. Waits
    /// for nothing, because no step needs these pages yet.
    fn begin_ahead(&self, step: &mut StepState) {
        if step.read_ahead.first_hint().is_some_and(|request| request.file.reads().overlap()) {
            self.begin(step, None, false);
        }
    }

    /// Ends a round whose awaited pages have all arrived.
    fn end(&self, step: &mut StepState, round: Round) -> Result<()> {
        let was_short = round.was_short;
        let (needed, error) = round.gather();
        // A session with the turn keeps nothing for later, because other sessions may queue for memory.
        let room_bytes = step.turn.is_none().then_some(self.ahead_bytes);
        step.read_ahead.end_round(&needed, was_short, self.admit, room_bytes);
        step.pins.extend(needed);
        step.pins.sort_unstable_by_key(|(key, _)| *key);
        error.map_or(Ok(()), Err)
    }

    fn request(&self, at: &PageAt<'_>, time: u64, needed: bool) -> Request {
        let PageAt { file, address, kind, .. } = *at;
        debug_assert!(file.is_at_home(&self.cache), "{file:?} is registered with another cache");
        Request { key: at.key(), time, needed, file: Arc::clone(file), at: address, kind }
    }

    /// Finds a page in the cache and counts the hit.
    #[inline]
    fn find(&self, at: &PageAt<'_>, key: PageKey) -> Option<PageRef> {
        let warm = self.admit.admits(at.kind);
        let page = match at.parent {
            Some((parent, i)) => self.cache.find_child(parent, i, key, warm, at.prefetched),
            None => self.cache.find(key, warm),
        }?;
        if warm {
            self.cache.trace().note(self.reason, How::Hit, key, &at.address, at.kind);
        }
        let mut hits = self.hits.get();
        let is_full = hits.count(at.kind);
        self.hits.set(hits);
        if is_full {
            self.add_up_hits();
        }
        Some(page)
    }

    /// Notes an access in the cache's trace, if the cache keeps pages of this kind. Other accesses change nothing
    /// in the cache.
    fn trace(&self, how: How, key: PageKey, at: &Address, kind: PageKind) {
        if self.admit.admits(kind) {
            self.cache.trace().note(self.reason, how, key, at, kind);
        }
    }

    fn add_up_hits(&self) {
        let mut hits = self.hits.take();
        self.cache.counters().add_hits(self.reason, &mut hits);
    }
}

impl Session {
    /// Whether excerpts serve the session's reader. They do not serve one that notes which pages it is asked for.
    fn has_excerpts(&self) -> bool {
        self.reason == Reason::Point && self.admit == Admit::Keep && self.notebook.is_none()
    }

    /// The page, if it is pinned or resident. Otherwise it is noted as missing.
    #[inline]
    fn need(&self, at: &PageAt<'_>) -> Result<PageRef, Stop> {
        let key = at.key();
        let page = match self.of_step(|step| step.pinned(key)) {
            Some(page) => page,
            None => match self.find(at, key) {
                Some(page) => page,
                None => return Err(self.miss(at)),
            },
        };
        if self.reason == Reason::Scan
            && self.admit == Admit::Keep
            && at.kind == PageKind::Data
            && self.cache.notes_parts()
        {
            page.live().note_all();
        }
        if !at.is(&page) {
            return Err(at.is_another(&page).into());
        }
        Ok(page)
    }

    /// Notes that the step needs a page that is not in memory.
    #[cold]
    fn miss(&self, at: &PageAt<'_>) -> Stop {
        if let Err(error) = at.verify() {
            return error.into();
        }
        let step = &mut *self.step();
        let time = step.read_ahead.tick();
        step.needed.push(self.request(at, time, true));
        Stop::Fault
    }

    /// The page, if it is in memory. A page that was read ahead stays put for the step that needs it.
    #[inline]
    fn look(&self, at: &PageAt<'_>) -> Option<PageRef> {
        let key = at.key();
        let page = match self.of_step(|step| step.looked_at(key)) {
            Some(page) => page,
            None => self.find(at, key)?,
        };
        at.is(&page).then_some(page)
    }

    #[cold]
    fn note(&self, notebook: &RefCell<Notebook>, at: &PageAt<'_>, page: Option<&PageRef>) {
        let notebook = &mut *notebook.borrow_mut();
        match page {
            Some(page) => notebook.give(*at, page, self.rounds()),
            None => notebook.miss(*at),
        }
    }
}

impl PageLender for Session {
    type Page = PageRef;

    #[inline]
    fn fetches(&self) -> bool {
        true
    }

    #[inline]
    fn page(&self, at: PageAt<'_>) -> Result<PageRef, Stop> {
        if self.waits.get() != Waits::Now {
            return self.peek(at).ok_or(Stop::Fault);
        }
        let answer = self.need(&at);
        if let (Some(notebook), Ok(_) | Err(Stop::Fault)) = (&self.notebook, &answer) {
            self.note(notebook, &at, answer.as_ref().ok());
        }
        answer
    }

    #[inline]
    fn peek(&self, at: PageAt<'_>) -> Option<PageRef> {
        let page = self.look(&at)?;
        if let Some(notebook) = &self.notebook {
            self.note(notebook, &at, Some(&page));
        }
        Some(page)
    }

    fn ahead(&self, at: PageAt<'_>) -> bool {
        if self.waits.get() == Waits::Never || at.verify().is_err() {
            return false;
        }
        let key = at.key();
        if self.step.borrow().as_ref().is_some_and(|step| step.has_or_asked(key)) {
            return false;
        }
        if !matches!(self.cache.look(key, self.admit.admits(at.kind)), PageLookup::Missing) {
            return false;
        }
        let step = &mut *self.step();
        let time = step.read_ahead.tick();
        step.read_ahead.hint(self.request(&at, time, false));
        if let Some(notebook) = &self.notebook {
            notebook.borrow_mut().meet(at.file);
        }
        true
    }

    fn ahead_if_spare(&self, at: PageAt<'_>) -> bool {
        // A read on this thread would make the step wait for the disk, so the page is not asked for in that case.
        self.admit.admits(at.kind)
            && at.file.reads().overlap()
            && self.cache.has_spare(at.address.memory_bytes())
            && self.ahead(at)
    }

    fn take_read(&self, at: PageAt<'_>) -> bool {
        self.step.borrow_mut().as_mut().is_some_and(|step| !step.read.is_empty() && step.read.remove(&at.key()))
    }

    fn excerpt(&self, name: &ExcerptName<'_>, fits: &dyn Fn(&[u8]) -> bool) -> Option<Excerpt<PageRef>> {
        if !self.has_excerpts() {
            return None;
        }
        let found = self.cache.find_excerpt(name, fits, |key| self.cache.find(key, false))?;
        // The missing page was noted last. It is not needed any more.
        if self.waits.get() == Waits::Now
            && let Some(step) = &mut *self.step.borrow_mut()
        {
            let of_page = |request: &mut Request| request.key.slot == name.slot && request.kind == PageKind::Data;
            step.needed.pop_if(of_page);
        }
        Some(found)
    }

    #[inline]
    fn note_part(&self, page: &PageRef, part: Part) {
        if self.admit == Admit::Keep && self.cache.notes_parts() {
            page.live().note_part(part);
        }
    }

    /// Also begins to read the pages that were asked for ahead, unless the reader does not wait now; then a later
    /// release begins these reads.
    #[inline]
    fn release(&self) {
        let step = &mut *self.step.borrow_mut();
        self.end_step(step.as_deref_mut());
        if let Some(step) = step
            && self.waits.get() == Waits::Now
        {
            self.begin_ahead(step);
        }
    }
}

impl PageSource for Session {
    fn glance(&self, at: PageAt<'_>) -> Option<PageRef> {
        let key = at.key();
        let page = self.of_step(|step| step.glanced_at(key)).or_else(|| self.cache.find(key, false))?;
        at.is(&page).then_some(page)
    }

    fn ahead_bytes(&self) -> u64 {
        match self.admit {
            Admit::Keep => self.cache.budget().limit() / 16,
            Admit::Nodes | Admit::Pass => self.ahead_bytes,
        }
    }

    fn fetch(&self) -> Result<()> {
        self.wait_for_round(&mut self.step())?;
        if let Some(notebook) = &self.notebook {
            notebook.borrow_mut().end_round();
        }
        Ok(())
    }
}

impl Session {
    fn wait_for_round(&self, step: &mut StepState) -> Result<()> {
        let round = match step.unpark(&self.cache) {
            Unparked::Stripped => return Ok(()),
            Unparked::Whole(Some(round)) => round,
            Unparked::Whole(None) => match self.begin(step, None, self.waits_for_all()) {
                BegunRound::Nothing => return Ok(()),
                BegunRound::HeldUp => unreachable!("a thread that may wait for room gets it"),
                BegunRound::Round(round) => round,
            },
        };
        round.wait();
        self.end(step, round)
    }

    #[inline]
    fn end_step(&self, step: Option<&mut StepState>) {
        if let Some(notebook) = &self.notebook {
            notebook.borrow_mut().end_step();
        }
        if let Some(step) = step.filter(|step| step.has_leftovers()) {
            self.clear_step(step);
        }
    }

    /// Forgets the step's requests, and gives back its pins, its place in the queue and its turn.
    #[inline(never)]
    fn clear_step(&self, step: &mut StepState) {
        step.needed.clear();
        step.held_up.clear();
        step.read.clear();
        // A round that was begun but not waited for lands without the session.
        let had_round = matches!(step.unpark(&self.cache), Unparked::Whole(Some(_)));
        if let Some(waiter) = step.waiter.take() {
            self.cache.budget().leave_queue(waiter);
        }
        step.losses = 0;
        let had_pins = !step.pins.is_empty() || had_round;
        step.pins.clear();
        // Dropping the pins has dropped the pages beyond the budget, so they are gone before another step may
        // exceed it.
        let had_turn = step.turn.take().is_some();
        if had_pins && !had_turn {
            self.cache.budget().room_appeared();
        }
    }
}

/// Whether a round was begun.
enum BegunRound {
    /// Nothing was asked for.
    Nothing,
    /// No room is left. The task will be woken.
    HeldUp,
    /// Pages are on their way.
    Round(Round),
}

impl Drop for Session {
    #[inline]
    fn drop(&mut self) {
        self.end_step(self.step.borrow_mut().as_deref_mut());
        self.add_up_hits();
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("reason", &self.reason)
            .field("admit", &self.admit)
            .field("rounds", &self.rounds())
            .field("page_reads", &self.page_reads())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
