//! One reader's pins, hits and misses over the cache. It does not know what is read, nor how the cache chooses what
//! stays.
//!
//! * A page that was fetched is found in the pins until [`Session::release`](PageSource::release), whether the cache
//!   keeps it or not: so each run of a step gets further than the one before. But while a future waits, others who find
//!   no room may take its pins away, see `cache/parked.rs`; then its step begins anew when it is polled.
//! * A hit in the cache is not pinned by the session, only by the [`PageRef`] it returns. Should it be evicted before
//!   the next run of the step, it faults there and is pinned then.
//! * What was asked for first is needed first: where there is no room for all that is asked ahead, what was asked for
//!   last is not read. What waits goes only when nobody takes any of it while others are turned away.
//! * A hit takes no lock and allocates nothing.
//! * What is being read lands by itself, in the cache or in its flight. A session that goes away waits for nothing.
//! * Where reads are made by others, what is asked for ahead is begun when the step is done, and waited for only when it is
//!   needed; where they are made on this thread, with the next fault.
//! * A thread that has two sessions releases one before it fetches in the other: the first may have the only right to
//!   overdraw, for which the second would wait.
//!
//! One reader: `Send`, not `Sync`.

mod own_memory;
mod parked;
mod round;

pub use own_memory::OwnMemory;
use parked::{Parcel, Parked, Unparked};
pub use round::PageRead;
use round::{Ahead, Manner, Round, Waiter};

use crate::cache::Look;
use crate::cache::budget::Turn;
use crate::cache::flight::Landing;
use crate::cache::shard::{Key, KeyHash};
use crate::counters::Tally;
use crate::page::verify_address;
use crate::trace::How;
use crate::{Address, PageCache, PageKind, PageRef, PageSource, PagedFile, Reason, Result, Stop};
use os::sync::Arc;
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::task::{Context, Poll};

/// Whether the cache keeps the pages a session reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Admit {
    /// It does, and a hit makes a page stay longer. The default.
    #[default]
    Keep,
    /// Those that lead to rows: index nodes, filters and range erases. The others pass through as with [`Admit::Pass`].
    Nodes,
    /// It does not: pages pass through the session's pins. Pages that are in memory are used, and no warmer for it.
    Pass,
}

impl Admit {
    /// Whether the cache keeps pages of this kind.
    fn keeps(self, kind: PageKind) -> bool {
        match self {
            Self::Keep => true,
            Self::Nodes => is_node(kind) || matches!(kind, PageKind::Filter | PageKind::RangeErase),
            Self::Pass => false,
        }
    }
}

/// Hints kept until the next round, each for a page of its own: twice as many as the pages of the longest readahead,
/// 128 MiB of pages of 4 KiB. When there are more the oldest are forgotten: by then the reader is past them.
const MAX_HINTS: usize = 1 << 16;

/// A session that passes pages through keeps those it read ahead for later steps itself, this many bytes at most and at
/// most a sixteenth of the budget, unless told otherwise.
const MAX_AHEAD_BYTES: u64 = 1 << 20;

/// Rounds that turn hints away, and between which no page that waits was taken, after which the reader is held
/// to have gone elsewhere: the trees of a step that fault one by one are fewer as a rule.
const GIVEN_UP_ROUNDS: u32 = 4;

/// Hits counted before they are added to the cache's counters.
const TALLY_HITS: u32 = 256;

/// One reader of pages.
pub struct Session {
    cache: Arc<PageCache>,
    reason: Reason,
    admit: Admit,
    ahead_bytes: u64,
    own_memory: Option<OwnMemory>,
    step: RefCell<Step>,
    rounds: Cell<u64>,
    /// Pages read from disk, by kind.
    reads: [Cell<u64>; PageKind::ALL.len()],
}

/// A source that is a session, or stands around one: what readers take who look at its budget, reads and rounds too.
pub trait Reader: PageSource {
    /// The session.
    fn session(&self) -> &Session;
}

impl Reader for Session {
    fn session(&self) -> &Session {
        self
    }
}

/// What the step in progress asked for and got.
#[derive(Default)]
struct Step {
    /// Misses since the last round.
    needed: Vec<Request>,
    /// Hints since the last round, oldest first, some pages more than once; they outlive the step.
    ahead: Vec<Request>,
    /// Pages fetched for this step, sorted by key.
    pins: Vec<(Key, PageRef)>,
    /// Of these, those read from disk for it of which [`PageSource::take_read`] was not told yet.
    read: HashSet<Key, KeyHash>,
    /// What was asked for in a fetch that could not begin yet, see [`Session::poll_fetch`].
    held_up: Vec<Request>,
    /// Pins, round and turn are here while the future waits.
    parked: Option<Parked>,
    /// How often the step lost them.
    losses: u32,
    /// What the session queues under for room, once it had to.
    waiter: Option<u64>,
    /// Pages on their way that the cache will not keep.
    flying: HashMap<Key, Ahead, KeyHash>,
    /// Pages read ahead that the cache does not keep, and nodes, which serve many steps. They outlive the step.
    waiting: HashMap<Key, Waiting, KeyHash>,
    /// Pages asked for and nodes looked at so far.
    clock: u64,
    /// The clock at the end of the last round.
    round_ended: u64,
    /// Rounds that turned hints away since a page that waits was taken.
    in_vain: u32,
    /// The right to exceed the budget, from the round that needed it until the end of the step and of its reads.
    turn: Option<Arc<Turn>>,
    tally: Tally,
}

/// A page kept for later steps.
struct Waiting {
    /// When it was asked for or, once it was looked at, when that was last.
    time: u64,
    /// It is a node, and somebody has had it.
    was_looked_at: bool,
    page: PageRef,
}

/// A page asked for.
#[derive(Clone)]
struct Request {
    key: Key,
    /// When, by the clock of the step.
    time: u64,
    /// The step needs it; otherwise it is read ahead.
    needed: bool,
    file: Arc<PagedFile>,
    at: Address,
    kind: PageKind,
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
            step: RefCell::default(),
            rounds: Cell::new(0),
            reads: Default::default(),
        }
    }

    /// Lets a session that passes pages through keep `bytes` of those it read ahead.
    pub fn with_ahead_bytes(mut self, bytes: u64) -> Self {
        self.ahead_bytes = bytes;
        self
    }

    /// Lets a session that passes pages through read them into memory of its own. It never waits for room in the cache
    /// then, and takes none from other sessions; what it reads it shares with none.
    pub fn with_own_memory(mut self, memory: &OwnMemory) -> Self {
        assert!(self.admit == Admit::Pass, "the cache cannot keep what it does not pay for");
        self.own_memory = Some(memory.clone());
        self
    }

    /// The cache.
    pub fn cache(&self) -> &Arc<PageCache> {
        &self.cache
    }

    /// Whether the cache keeps what it reads.
    pub fn admit(&self) -> Admit {
        self.admit
    }

    /// Rounds that had to wait for the disk, since the session was opened.
    pub fn rounds(&self) -> u64 {
        self.rounds.get()
    }

    /// Pages this session read from disk; not those it waited for while another session read them.
    pub fn page_reads(&self) -> u64 {
        self.reads.iter().map(Cell::get).sum()
    }

    /// Of [`Session::page_reads`], those of one kind.
    pub fn reads_of(&self, kind: PageKind) -> u64 {
        self.reads[kind.index()].get()
    }

    /// As [`PageSource::fetch`], for a caller that does not wait: while pages are on their way the answer is
    /// [`Poll::Pending`], and the task of `context` is woken when it is worth asking again. Once it is ready the step is to
    /// be run again; it may miss what it had before, if others took that away meanwhile. A session dropped meanwhile leaves
    /// nothing behind.
    ///
    /// A step is waited for by tasks or by threads, not by both.
    pub fn poll_fetch(&mut self, context: &mut Context<'_>) -> Poll<Result<()>> {
        let step = &mut *self.step.borrow_mut();
        let round = match step.unpark(&self.cache) {
            Unparked::Stripped => return Poll::Ready(Ok(())),
            Unparked::Whole(Some(round)) => round,
            Unparked::Whole(None) => match self.begin(step, Some(context), |_| {}) {
                Begun::Nothing => return Poll::Ready(Ok(())),
                Begun::HeldUp => {
                    step.park(&self.cache, None);
                    return Poll::Pending;
                }
                Begun::Round(round) => round,
            },
        };
        let arrivals = Arc::clone(&round.arrivals);
        if arrivals.poll(context).is_ready() {
            return Poll::Ready(self.end(step, round));
        }
        step.park(&self.cache, Some(round));
        // What landed just before that woke those who queue when they could not see it.
        if !arrivals.are_all_here() {
            return Poll::Pending;
        }
        match step.unpark(&self.cache) {
            Unparked::Whole(Some(round)) => Poll::Ready(self.end(step, round)),
            Unparked::Whole(None) | Unparked::Stripped => Poll::Ready(Ok(())),
        }
    }

    /// As [`PageSource::fetch`]; `tell` is told of each page that is read from disk for it, whatever comes of it.
    pub fn fetch_telling(&self, tell: impl FnMut(&PageRead)) -> Result<()> {
        let step = &mut *self.step.borrow_mut();
        let round = match step.unpark(&self.cache) {
            Unparked::Stripped => return Ok(()),
            Unparked::Whole(Some(round)) => round,
            Unparked::Whole(None) => match self.begin(step, None, tell) {
                Begun::Nothing => return Ok(()),
                Begun::HeldUp => unreachable!("who may wait for room gets it"),
                Begun::Round(round) => round,
            },
        };
        round.wait();
        self.end(step, round)
    }

    /// Begins the round for what was asked for since the last one, if anything was. A task, whose context is given, may have
    /// to wait for room first.
    fn begin(&self, step: &mut Step, context: Option<&Context<'_>>, mut tell: impl FnMut(&PageRead)) -> Begun {
        // First: what has landed since it was asked for is asked for no more.
        step.gather_flying();
        let requests = step.take_requests();
        if requests.is_empty() {
            return Begun::Nothing;
        }
        let ahead_bytes = match self.admit {
            Admit::Keep => u64::MAX,
            Admit::Nodes | Admit::Pass => step.make_room(&requests, self.admit, self.ahead_bytes),
        };
        let manner = Manner {
            cache: &self.cache,
            admit: self.admit,
            own_memory: self.own_memory.as_ref(),
            is_background: matches!(self.reason, Reason::Compaction | Reason::Check | Reason::Warm),
            ahead_bytes,
        };
        let flying = &mut step.flying;
        let fly = |key| flying.get(&key).map(|ahead| Arc::clone(&ahead.flight));
        let waiter = context.map(|context| {
            let number = *step.waiter.get_or_insert_with(|| self.cache.new_ticket());
            Waiter { number, context }
        });
        let Some(mut round) = Round::begin(&manner, &requests, fly, &mut step.turn, waiter) else {
            step.held_up = requests;
            return Begun::HeldUp;
        };
        for read in &round.reads {
            let pages = &mut step.tally.pages[read.kind.index()];
            pages.faults += 1;
            pages.read_bytes += u64::from(read.at.bytes);
            let reads = &self.reads[read.kind.index()];
            reads.set(reads.get() + 1);
            if read.needed {
                step.read.insert(read.key);
            }
            let how = if read.needed { How::Needed } else { How::Ahead };
            self.trace(how, read.key, &read.at, read.kind);
            tell(read);
        }
        if round.waits() {
            self.rounds.set(self.rounds.get() + 1);
            step.tally.rounds += 1;
        }
        self.add_up(&mut step.tally);
        step.flying.extend(round.ahead.drain(..));
        Begun::Round(round)
    }

    /// Begins to read what is wanted soon, where others do it: nothing is needed, so there is nothing to wait for.
    fn begin_ahead(&self, step: &mut Step, tell: impl FnMut(&PageRead)) {
        if step.ahead.first().is_some_and(|request| request.file.reads().overlap()) {
            self.begin(step, None, tell);
        }
    }

    /// As [`PageSource::release`]; `tell` is told of each page that is read ahead from here on.
    pub fn release_telling(&self, tell: impl FnMut(&PageRead)) {
        let step = &mut *self.step.borrow_mut();
        step.needed.clear();
        step.held_up.clear();
        step.read.clear();
        // A round that was not waited for lands without us.
        let had_round = matches!(step.unpark(&self.cache), Unparked::Whole(Some(_)));
        if let Some(waiter) = step.waiter.take() {
            self.cache.budget().leave_queue(waiter);
        }
        step.losses = 0;
        let had_pins = !step.pins.is_empty() || had_round;
        step.pins.clear();
        // The pages beyond the budget are gone with the pins, before the next step may exceed it.
        let had_turn = step.turn.take().is_some();
        if had_pins && !had_turn {
            self.cache.budget().room_appeared();
        }
        self.begin_ahead(step, tell);
    }

    /// Ends a round, all needed pages of which have arrived.
    fn end(&self, step: &mut Step, round: Round) -> Result<()> {
        step.in_vain = step.in_vain.saturating_add(round.turned_away.into());
        let (needed, error) = round.gather();
        for (key, _) in &needed {
            step.flying.remove(key);
        }
        let passes = |kind: PageKind| is_node(kind) && !self.admit.keeps(kind);
        let nodes: Vec<(Key, PageRef)> = needed.iter().filter(|(_, page)| passes(page.kind())).cloned().collect();
        step.pins.extend(needed);
        step.pins.sort_unstable_by_key(|(key, _)| *key);
        step.gather_flying();
        if step.turn.is_some() {
            // Others queue for memory: nothing is kept for later.
            step.waiting.clear();
        } else if self.admit != Admit::Keep {
            step.keep_nodes(nodes);
            step.drop_surplus(self.ahead_bytes);
        }
        step.round_ended = step.clock;
        error.map_or(Ok(()), Err)
    }

    fn request(&self, file: &Arc<PagedFile>, at: &Address, kind: PageKind, time: u64, needed: bool) -> Request {
        debug_assert!(file.is_at_home(&self.cache), "{file:?} is registered with another cache");
        Request { key: Key::new(file, at), time, needed, file: Arc::clone(file), at: *at, kind }
    }

    /// A page in the cache, perhaps a child of another; counts the hit.
    fn find(&self, parent: Parent<'_>, key: Key, kind: PageKind, tally: &mut Tally) -> Option<PageRef> {
        let warm = self.admit.keeps(kind);
        let page = match parent {
            Some((parent, i)) => self.cache.find_child(parent, i, key, warm),
            None => self.cache.find(key, warm),
        }?;
        self.trace(How::Hit, key, &page.address(), kind);
        tally.pages[kind.index()].hits += 1;
        tally.hits += 1;
        if tally.hits == TALLY_HITS {
            self.add_up(tally);
        }
        Some(page)
    }

    /// An access, for those that the cache is to learn from.
    fn trace(&self, how: How, key: Key, at: &Address, kind: PageKind) {
        if self.admit.keeps(kind) {
            self.cache.trace().note(self.reason, how, key, at, kind);
        }
    }

    fn add_up(&self, tally: &mut Tally) {
        self.cache.counters().add(self.reason, tally);
    }
}

/// The page whose child is asked for, and which child it is.
type Parent<'p> = Option<(&'p PageRef, usize)>;

impl Session {
    fn give(&self, parent: Parent<'_>, file: &Arc<PagedFile>, at: &Address, kind: PageKind) -> Result<PageRef, Stop> {
        let key = Key::new(file, at);
        let step = &mut *self.step.borrow_mut();
        let page = match step.pinned(key) {
            Some(page) => page,
            None => match self.find(parent, key, kind, &mut step.tally) {
                Some(page) => page,
                None => {
                    verify_address(at).map_err(|why| file.corrupt(kind, at.offset, why))?;
                    let time = step.tick();
                    step.needed.push(self.request(file, at, kind, time, true));
                    return Err(Stop::Fault);
                }
            },
        };
        if !page.is(at, kind) {
            return Err(file.found_another(&page, at, kind).into());
        }
        Ok(page)
    }

    fn peek_under(&self, parent: Parent<'_>, file: &Arc<PagedFile>, at: &Address, kind: PageKind) -> Option<PageRef> {
        let key = Key::new(file, at);
        let step = &mut *self.step.borrow_mut();
        step.gather_flight(key);
        let known = step.waiting_node(key).or_else(|| step.pinned_or_waiting(key).cloned());
        let page = match known {
            Some(page) => page,
            None => self.find(parent, key, kind, &mut step.tally)?,
        };
        page.is(at, kind).then_some(page)
    }
}

impl PageSource for Session {
    fn page(&self, file: &Arc<PagedFile>, at: &Address, kind: PageKind) -> Result<PageRef, Stop> {
        self.give(None, file, at, kind)
    }

    fn child(
        &self,
        (parent, i): (&PageRef, usize),
        file: &Arc<PagedFile>,
        at: &Address,
        kind: PageKind,
    ) -> Result<PageRef, Stop> {
        self.give(Some((parent, i)), file, at, kind)
    }

    /// A page read ahead stays where it is, for the step that needs it.
    fn peek(&self, file: &Arc<PagedFile>, at: &Address, kind: PageKind) -> Option<PageRef> {
        self.peek_under(None, file, at, kind)
    }

    fn glance(&self, file: &Arc<PagedFile>, at: &Address, kind: PageKind) -> Option<PageRef> {
        let key = Key::new(file, at);
        let step = &mut *self.step.borrow_mut();
        step.gather_flight(key);
        let page = step.pinned_or_waiting(key).cloned().or_else(|| self.cache.find(key, false))?;
        page.is(at, kind).then_some(page)
    }

    fn peek_child(
        &self,
        (parent, i): (&PageRef, usize),
        file: &Arc<PagedFile>,
        at: &Address,
        kind: PageKind,
    ) -> Option<PageRef> {
        self.peek_under(Some((parent, i)), file, at, kind)
    }

    fn ahead(&self, file: &Arc<PagedFile>, at: &Address, kind: PageKind) -> bool {
        if verify_address(at).is_err() {
            return false;
        }
        let key = Key::new(file, at);
        let step = &mut *self.step.borrow_mut();
        if step.pinned_or_waiting(key).is_some() || step.flying.contains_key(&key) {
            return false;
        }
        if !matches!(self.cache.look(key, self.admit.keeps(kind)), Look::Missing) {
            return false;
        }
        if step.ahead.len() == 2 * MAX_HINTS {
            step.forget_old_hints();
        }
        let time = step.tick();
        step.ahead.push(self.request(file, at, kind, time, false));
        true
    }

    fn ahead_bytes(&self) -> u64 {
        match self.admit {
            Admit::Keep => self.cache.budget().limit() / 16,
            Admit::Nodes | Admit::Pass => self.ahead_bytes,
        }
    }

    fn fetch(&self) -> Result<()> {
        self.fetch_telling(|_| {})
    }

    fn take_read(&self, file: &Arc<PagedFile>, at: &Address) -> bool {
        let read = &mut self.step.borrow_mut().read;
        !read.is_empty() && read.remove(&Key::new(file, at))
    }

    fn release(&self) {
        self.release_telling(|_| {});
    }
}

/// What came of beginning a round.
enum Begun {
    /// Nothing was asked for.
    Nothing,
    /// There is no room; the task will be woken.
    HeldUp,
    /// Pages are on their way.
    Round(Round),
}

impl Step {
    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    /// The future waits: others may take what it has.
    fn park(&mut self, cache: &PageCache, round: Option<Round>) {
        let parcel = Parcel { pins: std::mem::take(&mut self.pins), round, turn: self.turn.take() };
        self.parked = Parked::new(cache, parcel, self.losses);
    }

    /// The future goes on with what it had; or its step begins anew.
    fn unpark(&mut self, cache: &PageCache) -> Unparked {
        let Some(parked) = self.parked.take() else { return Unparked::Whole(None) };
        match parked.take_back(cache) {
            Some(Parcel { pins, round, turn }) => {
                self.pins.extend(pins);
                self.pins.sort_unstable_by_key(|(key, _)| *key);
                self.turn = turn;
                Unparked::Whole(round)
            }
            None => {
                self.losses += 1;
                Unparked::Stripped
            }
        }
    }

    /// A page fetched for this step. One read ahead for it becomes one; a node stays for later steps, too.
    fn pinned(&mut self, key: Key) -> Option<PageRef> {
        self.gather_flight(key);
        match self.pins.binary_search_by_key(&key, |(key, _)| *key) {
            Ok(place) => Some(self.pins[place].1.clone()),
            Err(place) => {
                let page = match self.waiting_node(key) {
                    Some(node) => node,
                    None => {
                        let Waiting { page, .. } = self.waiting.remove(&key)?;
                        self.in_vain = 0;
                        page
                    }
                };
                self.pins.insert(place, (key, page.clone()));
                Some(page)
            }
        }
    }

    /// A node that is kept, which is looked at now.
    fn waiting_node(&mut self, key: Key) -> Option<PageRef> {
        let waiting = self.waiting.get_mut(&key).filter(|waiting| is_node(waiting.page.kind()))?;
        self.clock += 1;
        (waiting.time, waiting.was_looked_at) = (self.clock, true);
        Some(waiting.page.clone())
    }

    /// A page fetched for this step or read ahead, left where it is.
    fn pinned_or_waiting(&self, key: Key) -> Option<&PageRef> {
        match self.pins.binary_search_by_key(&key, |(key, _)| *key) {
            Ok(place) => Some(&self.pins[place].1),
            Err(_) => self.waiting.get(&key).map(|waiting| &waiting.page),
        }
    }

    /// Leaves the newest [`MAX_HINTS`] pages hinted at, each once. The list has room for twice as many, so this comes
    /// after as many hints as it keeps, and a hint takes constant time on the whole.
    fn forget_old_hints(&mut self) {
        let mut met = HashSet::with_hasher(KeyHash::default());
        let newest_first = self.ahead.drain(..).rev().filter(|hint| met.insert(hint.key));
        let newest: Vec<Request> = newest_first.take(MAX_HINTS).collect();
        self.ahead.extend(newest.into_iter().rev());
    }

    /// Everything asked for since the last round, each page once, in the order of files and offsets.
    fn take_requests(&mut self) -> Vec<Request> {
        if self.ahead.len() > MAX_HINTS {
            self.forget_old_hints();
        }
        let mut requests = std::mem::take(&mut self.needed);
        requests.append(&mut self.held_up);
        requests.append(&mut self.ahead);
        // Of two requests for a page the needed one comes first and stays.
        requests.sort_by_key(|request| (request.key, !request.needed));
        requests.dedup_by_key(|request| request.key);
        requests.retain(|request| self.pinned_or_waiting(request.key).is_none());
        requests
    }

    /// Bytes for those of `requests` that are not needed and wait here, of the `most_bytes` for all that does. Nodes that were not looked
    /// at for a whole round make room for them; other pages only when the reader has given them up.
    fn make_room(&mut self, requests: &[Request], admit: Admit, most_bytes: u64) -> u64 {
        let waits = |request: &&Request| !admit.keeps(request.kind);
        let stays = |request: &&Request| waits(request) && (!request.needed || is_node(request.kind));
        let nodes = |request: &&Request| waits(request) && request.needed && is_node(request.kind);
        let bytes_of = |request: &Request| request.memory_bytes();
        let wanted_bytes: u64 = requests.iter().filter(stays).map(bytes_of).sum();
        let is_given_up = self.in_vain >= GIVEN_UP_ROUNDS;
        let round_ended = self.round_ended;
        self.drop_waiting(most_bytes.saturating_sub(wanted_bytes), |waiting| {
            let is_old = waiting.was_looked_at && waiting.time <= round_ended;
            (is_old || is_given_up).then_some((!is_old, waiting.time))
        });
        let node_bytes: u64 = requests.iter().filter(nodes).map(bytes_of).sum();
        most_bytes.saturating_sub(self.waiting_bytes()).saturating_sub(node_bytes)
    }

    /// What has landed of the pages that were on their way waits from here on.
    fn gather_flying(&mut self) {
        if self.flying.is_empty() {
            return;
        }
        let waiting = &mut self.waiting;
        self.flying.retain(|key, ahead| match ahead.flight.landing() {
            None => true,
            Some(landing) => {
                if let Landing::Arrived(page) = landing {
                    waiting.insert(*key, Waiting { time: ahead.time, was_looked_at: false, page });
                }
                // Of an error who needs the page will be told.
                false
            }
        });
    }

    /// The same for one page.
    fn gather_flight(&mut self, key: Key) {
        if self.flying.is_empty() {
            return;
        }
        let Some(landing) = self.flying.get(&key).and_then(|ahead| ahead.flight.landing()) else { return };
        let time = self.flying.remove(&key).map_or(0, |ahead| ahead.time);
        if let Landing::Arrived(page) = landing {
            self.waiting.insert(key, Waiting { time, was_looked_at: false, page });
        }
    }

    /// Keeps nodes for later steps.
    fn keep_nodes(&mut self, nodes: Vec<(Key, PageRef)>) {
        for (key, page) in nodes {
            let time = self.tick();
            self.waiting.insert(key, Waiting { time, was_looked_at: true, page });
        }
    }

    /// When the pages that wait turn out to be too many, nodes that were looked at go first, then what was asked for last.
    fn drop_surplus(&mut self, most_bytes: u64) {
        self.drop_waiting(most_bytes, |waiting| {
            Some(if waiting.was_looked_at { (false, waiting.time) } else { (true, u64::MAX - waiting.time) })
        });
    }

    fn waiting_bytes(&self) -> u64 {
        let flying: u64 = self.flying.values().map(|ahead| ahead.bytes).sum();
        flying + self.waiting.values().map(|waiting| waiting.page.cost_bytes()).sum::<u64>()
    }

    /// Drops pages that wait, in the order that `rank` says, until they take `most_bytes` at most; those without a rank
    /// stay.
    fn drop_waiting<R: Ord>(&mut self, most_bytes: u64, rank: impl Fn(&Waiting) -> Option<R>) {
        let mut bytes = self.waiting_bytes();
        if bytes <= most_bytes {
            return;
        }
        let ranked = self.waiting.iter().filter_map(|(key, waiting)| Some((rank(waiting)?, *key)));
        let mut ranked: Vec<(R, Key)> = ranked.collect();
        ranked.sort_unstable();
        for (_, key) in ranked {
            if bytes <= most_bytes {
                break;
            }
            let Waiting { page, .. } = self.waiting.remove(&key).expect("the list was made of what waits");
            bytes -= page.cost_bytes();
        }
    }
}

impl Request {
    /// Memory to reserve for the page.
    fn memory_bytes(&self) -> u64 {
        self.at.memory_bytes() + crate::frame::hint_bytes(u64::from(self.at.bytes), self.kind)
    }
}

/// Whether a page leads to many others.
fn is_node(kind: PageKind) -> bool {
    matches!(kind, PageKind::Index | PageKind::Flat)
}

impl Drop for Session {
    fn drop(&mut self) {
        // Nobody will want what was asked for ahead.
        self.step.get_mut().ahead.clear();
        self.release();
        self.cache.counters().add(self.reason, &mut self.step.get_mut().tally);
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("reason", &self.reason)
            .field("admit", &self.admit)
            .field("rounds", &self.rounds)
            .field("page_reads", &self.page_reads())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
