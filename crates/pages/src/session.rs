//! One reader of pages over the cache: its pins, hits and misses. A session does not know what is read, or how the
//! cache chooses which pages stay.
//!
//! * A page that was fetched is found in the pins until [`Session::release`](PageSource::release), whether the
//!   cache keeps the page or not. So each run of a step gets further than the run before. There is one exception:
//!   while a future waits, other sessions that find no room may take the pins of its session away; see
//!   `cache/parked.rs`. Then its step begins anew when the future is polled.
//! * The session does not pin a page that it finds in the cache. Only the returned [`PageRef`] pins the page. If the
//!   page is evicted before the next run of the step, that run faults on it, and then the page is pinned.
//! * A hit takes no lock and allocates nothing. A session makes what it needs for misses at the first miss. So
//!   opening a session for a read that finds everything in memory costs only a few stores.
//! * Pages that are being read land without the session, in the cache or in their flights. A session that goes away
//!   waits for nothing.
//! * Pages that are asked for ahead are read in one of two ways. If other threads or the system make the reads,
//!   the reads begin when the step is done, and the session waits for a page only when a step needs the page. If
//!   the session's own thread makes the reads, it makes them together with the reads of the next fault.
//! * A thread that has two sessions releases one session before it fetches in the other. If it did not, one
//!   session might hold the only right to overdraw while the thread waits for that right in the other session.
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
use crate::notes::{Notebook, Notes};
use crate::page_key::PageKey;
use crate::trace::How;
use crate::{Address, PageAt, PageCache, PageKind, PageRef, PageSource, Reason, Result, Stop};
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
    /// The reader does not wait, but will later: a miss is not noted, but what is asked for ahead is noted.
    Later,
    /// The reader does not wait, and nothing is noted.
    Never,
}

/// If the cache does not keep a session's pages, the session itself keeps the pages that it has read ahead for
/// later steps. Unless the caller sets another limit, these pages take at most this many bytes and at most a
/// sixteenth of the budget.
const MAX_AHEAD_BYTES: u64 = 1 << 20;

/// One reader of pages.
pub struct Session {
    cache: Arc<PageCache>,
    reason: Reason,
    admit: Admit,
    ahead_bytes: u64,
    own_memory: Option<OwnMemory>,
    waits: Cell<Waits>,
    /// Whether the polling thread itself reads a page if only this page is missing.
    reads_in_poll: bool,
    /// Notes of what the session was asked for, if the caller wants notes.
    notebook: Option<Box<RefCell<Notebook>>>,
    hits: Cell<HitTally>,
    /// `None` until the first page is missing or asked for ahead.
    step: RefCell<Option<Box<StepState>>>,
}

impl Session {
    /// A reader of pages in `cache`.
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

    /// The state of the step in progress: what it asked for and got.
    fn step(&self) -> RefMut<'_, StepState> {
        RefMut::map(self.step.borrow_mut(), |step| &mut **step.get_or_insert_default())
    }

    /// Calls `get` with the step in progress, if the step has any pages.
    #[inline]
    fn of_step(&self, get: impl FnOnce(&mut StepState) -> Option<PageRef>) -> Option<PageRef> {
        let step = &mut *self.step.borrow_mut();
        step.as_mut().filter(|step| step.has_pages()).and_then(|step| get(step))
    }

    /// Sets a limit for a session whose pages the cache does not keep: how many bytes of pages that were read
    /// ahead the session keeps itself.
    pub fn with_ahead_bytes(mut self, bytes: u64) -> Self {
        self.ahead_bytes = bytes;
        self
    }

    /// Gives memory of its own to a session whose pages the cache does not keep. The session reads pages into this
    /// memory. So the session never waits for room in the cache, and takes no room from other sessions. It does
    /// not share the pages that it reads.
    pub fn with_own_memory(mut self, memory: &OwnMemory) -> Self {
        assert!(self.admit == Admit::Pass, "the cache cannot keep what it does not pay for");
        self.own_memory = Some(memory.clone());
        self
    }

    /// Sets whether [`Session::poll_fetch`] reads a page on the calling thread, which then waits for the disk. It
    /// does so only if the step misses a single page and no other future of the cache waits. In all other cases
    /// the reads go to other threads or to the system, as without this call.
    pub fn with_reads_in_poll(mut self, in_poll: bool) -> Self {
        self.reads_in_poll = in_poll;
        self
    }

    /// Makes a session take notes of what it is asked for. The session must not have been asked for any page yet.
    pub fn with_notes(mut self) -> Self {
        self.notebook = Some(Box::default());
        self
    }

    /// Its notes; empty if it takes none.
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

    /// Whether the cache keeps what it reads.
    #[inline]
    pub fn admit(&self) -> Admit {
        self.admit
    }

    /// Rounds that had to wait for the disk, since the session was opened.
    pub fn rounds(&self) -> u64 {
        self.step.borrow().as_ref().map_or(0, |step| step.rounds)
    }

    /// Pages that this session read from disk. Pages that another session read while this session waited do not
    /// count.
    pub fn page_reads(&self) -> u64 {
        self.step.borrow().as_ref().map_or(0, |step| step.reads.iter().sum())
    }

    /// How many of the [`Session::page_reads`] were reads of pages of the given kind.
    pub fn reads_of(&self, kind: PageKind) -> u64 {
        self.step.borrow().as_ref().map_or(0, |step| step.reads[kind.index()])
    }

    /// Does the same as [`PageSource::fetch`], for a caller that does not wait. While pages are on their way the
    /// answer is [`Poll::Pending`], and the task of `context` is woken when it is worth asking again. Once the
    /// answer is ready, the step is to be run again. The step may miss pages that it had before, if other sessions
    /// took these pages away meanwhile. If the session is dropped before the answer is ready, it leaves nothing
    /// behind.
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
        // The tasks in the queue are woken when the last page lands. If that was before the session parked, these
        // tasks could not take the session's pages yet. So this is checked again now.
        if !arrivals.are_all_here() {
            return Poll::Pending;
        }
        match step.unpark(&self.cache) {
            Unparked::Whole(Some(round)) => Poll::Ready(self.end(step, round)),
            Unparked::Whole(None) | Unparked::Stripped => Poll::Ready(Ok(())),
        }
    }

    /// Begins a round for the pages that were asked for since the last round, if there are such pages. A task,
    /// whose context is given, may have to wait for room first. If the task `waits_for_all`, it also waits for
    /// pages that are not needed.
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

    /// Whether a fetch also waits for the pages that were asked for ahead. A precharge wants these pages in memory
    /// when it is done.
    fn waits_for_all(&self) -> bool {
        self.reason == Reason::Precharge
    }

    /// Begins to read the pages that were asked for ahead, if the reads do not keep this thread busy. No step
    /// needs these pages yet, so the call waits for nothing.
    fn begin_ahead(&self, step: &mut StepState) {
        if step.read_ahead.first_hint().is_some_and(|request| request.file.reads().overlap()) {
            self.begin(step, None, false);
        }
    }

    /// Ends a round whose needed pages have all arrived.
    fn end(&self, step: &mut StepState, round: Round) -> Result<()> {
        let was_short = round.was_short;
        let (needed, error) = round.gather();
        // A session that has the turn keeps nothing for later, because other sessions may queue for memory.
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

    /// A page in the cache; counts the hit.
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

    /// Notes an access in the trace of the cache, if the cache keeps pages of the given kind. Accesses of other
    /// pages change nothing in the cache.
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
    /// The page, if it is pinned or in memory; otherwise it is noted as missing.
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

    /// The page, if it is in memory. A page that was read ahead stays where it is, for the step that needs it.
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

impl PageSource for Session {
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

    fn peek(&self, at: PageAt<'_>) -> Option<PageRef> {
        let page = self.look(&at)?;
        if let Some(notebook) = &self.notebook {
            self.note(notebook, &at, Some(&page));
        }
        Some(page)
    }

    fn glance(&self, at: PageAt<'_>) -> Option<PageRef> {
        let key = at.key();
        let page = self.of_step(|step| step.glanced_at(key)).or_else(|| self.cache.find(key, false))?;
        at.is(&page).then_some(page)
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
        // The page is not asked for if this thread itself would have to read it, because then the step would wait
        // for the disk.
        self.admit.admits(at.kind)
            && at.file.reads().overlap()
            && self.cache.has_spare(at.address.memory_bytes())
            && self.ahead(at)
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

    fn take_read(&self, at: PageAt<'_>) -> bool {
        self.step.borrow_mut().as_mut().is_some_and(|step| !step.read.is_empty() && step.read.remove(&at.key()))
    }

    /// Begins to read what was asked for ahead. If the reader does not wait now, a later release begins these reads.
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

    /// Forgets what the step asked for. Gives back the pages that were fetched for the step, its place in the
    /// queue and its turn.
    #[inline(never)]
    fn clear_step(&self, step: &mut StepState) {
        step.needed.clear();
        step.held_up.clear();
        step.read.clear();
        // If the session did not wait for a round, the pages of this round arrive without the session.
        let had_round = matches!(step.unpark(&self.cache), Unparked::Whole(Some(_)));
        if let Some(waiter) = step.waiter.take() {
            self.cache.budget().leave_queue(waiter);
        }
        step.losses = 0;
        let had_pins = !step.pins.is_empty() || had_round;
        step.pins.clear();
        // The pages beyond the budget were dropped with the pins. So they are gone before the next step may exceed
        // the budget.
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
    /// No room is left; the task will be woken.
    HeldUp,
    /// Pages are on their way.
    Round(Round),
}

impl Drop for Session {
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
