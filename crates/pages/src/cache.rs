//! Pages in memory within a budget: found by file and offset, admitted, evicted. It does not know who reads, in which
//! order, or what the pages mean (a page's structure is checked by a function the format layer supplies).
//!
//! * The used bytes — resident, pinned and in-flight pages, each with [its cost](PageRef::cost_bytes) — stay within
//!   the budget, but for one step of a thread and one of a task at a time, which may exceed it by their own pages, and
//!   for pages that unpack to more than four times their stored bytes and find no room for the difference. The cache
//!   keeps neither, so it is within its budget when nothing is pinned.
//! * A missing page is read once however many ask for it; all who asked get the page or the error. Only a step that
//!   exceeds the budget reads for itself alone: nobody else can pin its pages, so they are gone when it is done.
//! * A session that has marked a page as in flight waits for nothing but the disk until it has landed. It reserves the
//!   bytes before, and queues for the right to overdraw before. So three pages and 64 threads make progress.
//! * An admission looks at no more than [`LOOK`] pages of each shard for each page it evicts.
//!
//! What stays and what goes is the [policy](crate::policy)'s to say.
//!
//! Thread safe. A page that is here is found without a lock, by one atomic addition: `table` and
//! [frames](crate::frame) say how. Under the lock of a shard no file is read, no memory of pages freed, nobody waited for
//! or woken, and no lock is taken but that of the free frames.

pub(crate) mod budget;
pub(crate) mod flight;
pub(crate) mod parked;
pub(crate) mod shard;
pub(crate) mod table;

use crate::file::open_files::OpenFiles;
use crate::frame::{Frame, Frames};
use crate::gauge::Gauge;
use crate::{Address, Counters, Error, PageKind, PageRef, PagedFile, Trace};
use budget::{Budget, Charge, Turn};
use flight::{Demand, Flight, Landing};
use os::io::CallerReads;
use os::memory::Arena;
use os::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use os::sync::{Arc, Mutex};
use os::{Buffer, Disk, Machine, Reads};
use parked::{Holder, Parking};
pub use shard::Heat;
use shard::{KeptShare, Key, Shard};
use std::fmt;
use std::ops::Deref;
use std::path::PathBuf;
use std::task::Context;
use table::Table;

/// Pages of a shard looked at for one page to evict; over all shards at most 16 x 64.
pub const LOOK: usize = 64;

/// Budget for which one more shard pays: below, a shard would hold too few pages to choose from.
const SHARD_BYTES: u64 = 4 << 20;

const MAX_SHARDS: u64 = 16;

/// What one shard gives up before it is the next one's turn, when the cache shrinks.
const TRIM_BYTES: u64 = 256 << 10;

/// Bytes of budget for which the table has a chain at first.
const CHAIN_BYTES: u64 = 16 << 10;

/// A table is not made for more than this at first: a cache may be given more than it will ever use.
const MAX_TABLE_BUDGET: u64 = 1 << 30;

/// Checks the structure of a page of a kind once it is in memory, after its checksum; `Err` says what is wrong.
pub type Validate = fn(PageKind, &[u8]) -> Result<(), String>;

/// Pages in memory. Shared by any number of sessions and databases.
pub struct PageCache {
    /// Pages by name.
    table: Table,
    frames: Arc<Frames>,
    memory: Arc<Arena>,
    /// A power of two of them, chosen when the cache is made.
    shards: Box<[Mutex<Shard>]>,
    kept: Arc<KeptShare>,
    /// What kept pages may have at most, if that is said; `u64::MAX` for a quarter of the budget.
    kept_limit: AtomicU64,
    /// Where the next eviction starts, so that shards are emptied evenly.
    next_shard: AtomicUsize,
    budget: Arc<Budget>,
    parking: Parking,
    validate: Validate,
    open_files: Arc<OpenFiles>,
    /// Pages that cursors keep from one step to the next.
    cursors: Arc<Gauge>,
    next_slot: AtomicU32,
    next_ticket: AtomicU64,
    counters: Counters,
    trace: Trace,
}

/// Memory of a cache at one moment, in bytes unless said otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheUsage {
    /// What it may use.
    pub budget_bytes: u64,
    /// What it uses: everything below.
    pub used_bytes: u64,
    /// Pages that somebody refers to, in the cache or not.
    pub pinned_bytes: u64,
    /// Pages kept for callers' values, see [`PageCache::hold`]; those kept twice count twice.
    pub held_bytes: u64,
    /// Pages that cursors keep from one row to the next, about: those kept twice count twice.
    pub cursor_bytes: u64,
    /// Reserved for pages being read.
    pub in_flight_bytes: u64,
    /// Number of pages in memory.
    pub frames: u64,
    /// What the system has given for buffers of pages, whether pages are in it or not; buffers of more than 1 MiB and those
    /// beyond the budget come from elsewhere.
    pub backed_bytes: u64,
    /// What stands around pages: frames, the table, the memory's own lists. Paid for by what a page costs beyond its buffer,
    /// while there are as many pages as there were at most.
    pub overhead_bytes: u64,
    /// Pages in memory by kind, in the order of [`PageKind::ALL`].
    pub kind_bytes: [u64; PageKind::ALL.len()],
    /// Number of files open, kept or in use.
    pub open_files: usize,
    /// Number of sessions that queue for the right to exceed the budget.
    pub queued: usize,
}

impl CacheUsage {
    /// Pages of one kind in memory.
    pub fn bytes_of(&self, kind: PageKind) -> u64 {
        self.kind_bytes[kind.index()]
    }
}

/// A page in the cache at one moment, see [`PageCache::resident_of`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResidentPage {
    /// [Slot](PagedFile::slot) of its file.
    pub slot: u32,
    /// Where it lies there.
    pub at: Address,
    /// What it is for.
    pub kind: PageKind,
    /// How much it has been used lately.
    pub heat: Heat,
}

/// Degrees of heat that are told apart: 3 uses and 2 + 3 chances, and none.
const RANKS: usize = 9;

/// Pages of some files in the cache at one moment, see [`PageCache::usage_of`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FilesUsage {
    /// Their bytes by kind, in the order of [`PageKind::ALL`].
    pub kind_bytes: [u64; PageKind::ALL.len()],
    /// Their number by kind, in the same order.
    pub kind_pages: [u64; PageKind::ALL.len()],
}

impl FilesUsage {
    /// Bytes of the pages of one kind.
    pub fn bytes_of(&self, kind: PageKind) -> u64 {
        self.kind_bytes[kind.index()]
    }

    /// Number of the pages of one kind.
    pub fn pages_of(&self, kind: PageKind) -> u64 {
        self.kind_pages[kind.index()]
    }

    /// Bytes of the pages of all kinds.
    pub fn all_bytes(&self) -> u64 {
        self.kind_bytes.iter().sum()
    }

    /// Number of the pages of all kinds.
    pub fn all_pages(&self) -> u64 {
        self.kind_pages.iter().sum()
    }

    fn add(&mut self, page: PageRef) {
        self.kind_bytes[page.kind().index()] += page.cost_bytes();
        self.kind_pages[page.kind().index()] += 1;
    }
}

impl PageCache {
    /// A cache of `budget_bytes` that has at most `open_files` files open at a time, and at least one. `validate` is called once for each page
    /// that is read, never again while it is in memory.
    pub fn new(budget_bytes: u64, open_files: usize, validate: Validate) -> Arc<Self> {
        let shards = (budget_bytes / SHARD_BYTES).clamp(1, MAX_SHARDS).next_power_of_two();
        let kept = Arc::<KeptShare>::default();
        kept.set_most(budget_bytes / 4);
        Arc::new(Self {
            table: Table::new(budget_bytes.min(MAX_TABLE_BUDGET) / CHAIN_BYTES),
            frames: Frames::new(),
            memory: Arena::new(budget_bytes),
            shards: (0..shards).map(|_| Mutex::new(Shard::new(Arc::clone(&kept)))).collect(),
            kept,
            kept_limit: AtomicU64::new(u64::MAX),
            next_shard: AtomicUsize::new(0),
            budget: Arc::new(Budget::new(budget_bytes)),
            parking: Parking::default(),
            validate,
            open_files: Arc::new(OpenFiles::new(open_files)),
            cursors: Arc::default(),
            next_slot: AtomicU32::new(1),
            next_ticket: AtomicU64::new(1),
            counters: Counters::default(),
            trace: Trace::default(),
        })
    }

    /// Makes the pages of a file known to the cache, without opening it; they are read on the thread that asks. `id` seeds
    /// the checksums of its pages. A file registered twice is cached twice.
    pub fn register(self: &Arc<Self>, path: impl Into<PathBuf>, id: u64, disk: Arc<dyn Disk>) -> Arc<PagedFile> {
        self.register_with(path.into(), id, disk, Arc::new(CallerReads))
    }

    /// As [`PageCache::register`], for a file of `machine`, many pages of which may be read at once.
    pub fn register_on(self: &Arc<Self>, path: impl Into<PathBuf>, id: u64, machine: &Machine) -> Arc<PagedFile> {
        self.register_with(path.into(), id, Arc::clone(&machine.disk), Arc::clone(&machine.reads))
    }

    fn register_with(
        self: &Arc<Self>,
        path: PathBuf,
        id: u64,
        disk: Arc<dyn Disk>,
        reads: Arc<dyn Reads>,
    ) -> Arc<PagedFile> {
        let slot = self.next_slot.fetch_add(1, Ordering::Relaxed);
        assert!(slot != 0, "four billion files were registered with one cache");
        Arc::new(PagedFile::new(slot, id, path, disk, reads, Arc::clone(&self.open_files), Arc::downgrade(self)))
    }

    /// Changes the budget. Pages leave at once as far as pins allow, the others as soon as room is wanted.
    pub fn set_budget(&self, bytes: u64) {
        self.budget.set_limit(bytes);
        self.limit_kept();
        self.trim();
        self.memory.set_limit(bytes);
        self.budget.room_appeared();
    }

    /// Says how much pages of files that are [kept](PagedFile::keep) may have of the cache: `bytes`, but at most half of the
    /// budget. Without it they have a quarter. What they have beyond that stays as other pages do.
    pub fn set_kept_bytes(&self, bytes: u64) {
        // A quarter of what there can be is not what anybody asks for.
        self.kept_limit.store(bytes.min(u64::MAX - 1), Ordering::Relaxed);
        self.limit_kept();
    }

    fn limit_kept(&self) {
        let budget_bytes = self.budget.limit();
        self.kept.set_most(match self.kept_limit.load(Ordering::Relaxed) {
            u64::MAX => budget_bytes / 4,
            limit => limit.min(budget_bytes / 2),
        });
        self.shards.iter().for_each(|shard| shard.lock().keep_within_share());
    }

    /// What pages of kept files may have of the cache now, in bytes.
    pub fn most_kept_bytes(&self) -> u64 {
        self.kept.most_bytes()
    }

    /// What kept pages have of the cache now, in bytes.
    pub fn kept_bytes(&self) -> u64 {
        self.kept.bytes()
    }

    /// Keeps a page as one of its file that is kept, if that is within the share of such pages. Nothing happens if the cache
    /// does not have it.
    pub fn keep(&self, page: &PageRef) {
        self.with_resident(page, |shard, frame| shard.keep(frame, page));
    }

    /// What it may use, in bytes.
    #[inline]
    pub fn budget_bytes(&self) -> u64 {
        self.budget.limit()
    }

    /// What it uses, in bytes.
    pub fn used_bytes(&self) -> u64 {
        self.budget.used()
    }

    /// Keeps `page` for a value handed to a caller. `None` when callers keep a quarter of the budget already: then the
    /// value is copied out.
    pub fn hold(&self, page: &PageRef) -> Option<Held> {
        let bytes = page.cost_bytes();
        self.budget.try_hold(bytes).then(|| Held { page: page.clone(), bytes, budget: Arc::clone(&self.budget) })
    }

    /// What callers keep, in bytes, see [`PageCache::hold`].
    pub fn held_bytes(&self) -> u64 {
        self.budget.held()
    }

    /// What cursors keep from one step to the next. Those who have cursors count here what they keep, and see that it is a
    /// part of the budget.
    #[inline]
    pub fn cursors(&self) -> &Arc<Gauge> {
        &self.cursors
    }

    /// What sessions did.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Takes down what is asked for, when it is wanted.
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// Memory now. Looks at every page; for metrics, not for decisions.
    pub fn usage(&self) -> CacheUsage {
        let mut unpinned = 0;
        self.for_each_page(|_, page| unpinned += if page.is_last() { page.cost_bytes() } else { 0 });
        let in_flight_bytes = self.budget.in_flight();
        let used_bytes = self.budget.used();
        CacheUsage {
            budget_bytes: self.budget.limit(),
            used_bytes,
            pinned_bytes: used_bytes.saturating_sub(in_flight_bytes).saturating_sub(unpinned),
            held_bytes: self.budget.held(),
            cursor_bytes: self.cursors.bytes(),
            in_flight_bytes,
            frames: self.budget.frames(),
            backed_bytes: self.memory.backed_bytes(),
            overhead_bytes: self.frames.bytes() + self.table.bytes() + self.memory.overhead_bytes(),
            kind_bytes: PageKind::ALL.map(|kind| self.budget.of_kind(kind)),
            open_files: self.open_files.count(),
            queued: self.budget.queued(),
        }
    }

    /// Pages of `files` in the cache now, each file counted once. Pages that the cache does not keep are not among
    /// them: those of sessions that pass pages through or exceed the budget, and those of dead files.
    ///
    /// For statistics, not for hot paths: the cost grows with the number of pages in the cache, whatever files they are
    /// of, and each shard is locked while its share of them is looked at.
    pub fn usage_of<'f>(&self, files: impl IntoIterator<Item = &'f Arc<PagedFile>>) -> FilesUsage {
        let slot = |file: &Arc<PagedFile>| {
            debug_assert!(file.is_at_home(self), "{file:?} is registered with another cache");
            file.slot()
        };
        let mut slots: Vec<u32> = files.into_iter().map(slot).collect();
        slots.sort_unstable();
        let mut usage = FilesUsage::default();
        self.for_each_page(|key, page| {
            if slots.binary_search(&key.slot).is_ok() {
                usage.add(page);
            }
        });
        usage
    }

    /// How much a page has been used lately; nothing if the cache does not keep it.
    pub fn heat_of(&self, page: &PageRef) -> Heat {
        let mut heat = Heat::default();
        self.with_resident(page, |shard, frame| heat = shard.heat(frame));
        heat
    }

    /// Lets a page stay as one that has proven itself and may be found unused `chances` times before it goes: for what is
    /// known to be wanted though nobody has used it here yet. Nothing happens if the cache does not keep it.
    pub fn prove(&self, page: &PageRef, chances: u8) {
        self.with_resident(page, |shard, frame| shard.prove(frame, chances));
    }

    /// Calls `act` with the shard and the frame of a page that the cache has.
    fn with_resident(&self, page: &PageRef, act: impl FnOnce(&mut Shard, &Frame)) {
        let Some(frame) = self.frames.get(page.number()).filter(|frame| frame.is_of(page)) else { return };
        // The page is pinned, so the frame keeps its name.
        let key = frame.key();
        let mut shard = self.shard(key).lock();
        if self.table.frame(&self.frames, key).is_some_and(|kept| kept.is_of(page)) {
            act(&mut shard, frame);
        }
    }

    /// Pages of `files` in the cache now, at most `most`: first those that [serve many](PageKind::serves_many), then those
    /// that were used most. In no order.
    ///
    /// For care, not for hot paths: each shard is locked while its pages are looked at, twice.
    pub fn resident_of<'f>(
        &self,
        files: impl IntoIterator<Item = &'f Arc<PagedFile>>,
        most: usize,
    ) -> Vec<ResidentPage> {
        let mut slots: Vec<u32> = files.into_iter().map(|file| file.slot()).collect();
        slots.sort_unstable();
        let is_asked = |key: Key| slots.binary_search(&key.slot).is_ok();
        let rank = |kind: PageKind, heat: Heat| {
            usize::from(!kind.serves_many()) * RANKS + RANKS - 1 - usize::from(heat.degrees()).min(RANKS - 1)
        };
        let mut counts = [0usize; 2 * RANKS];
        self.for_each_resident(|key, page, heat| {
            if is_asked(key) {
                counts[rank(page.kind(), heat)] += 1;
            }
        });
        let mut room = [0usize; 2 * RANKS];
        let mut left = most;
        for (room, count) in room.iter_mut().zip(counts) {
            *room = count.min(left);
            left -= *room;
        }
        let mut resident = Vec::with_capacity(most - left);
        self.for_each_resident(|key, page, heat| {
            let room = &mut room[rank(page.kind(), heat)];
            if is_asked(key) && *room > 0 {
                *room -= 1;
                resident.push(ResidentPage { slot: key.slot, at: page.address(), kind: page.kind(), heat });
            }
        });
        resident
    }

    /// As [`Self::for_each_page`], with how much the page has been used.
    fn for_each_resident(&self, mut tell: impl FnMut(Key, PageRef, Heat)) {
        for (i, shard) in self.shards.iter().enumerate() {
            let shard = shard.lock();
            for number in self.table.numbers(&self.frames, i, self.shards.len()) {
                let frame = self.frames.get(number).expect("the table knows frames of the cache");
                tell(frame.key(), frame.pin(), shard.heat(frame));
            }
            drop(shard);
        }
    }

    /// Tells of every page, with a reference to it. Each shard is locked for its part.
    fn for_each_page(&self, mut tell: impl FnMut(Key, PageRef)) {
        for (i, shard) in self.shards.iter().enumerate() {
            let shard = shard.lock();
            for number in self.table.numbers(&self.frames, i, self.shards.len()) {
                let frame = self.frames.get(number).expect("the table knows frames of the cache");
                tell(frame.key(), frame.pin());
            }
            drop(shard);
        }
    }

    /// Memory for `bytes` bytes of a page, which are paid for; its contents are whatever was there last. From the heap is
    /// what is longer than the arena gives, and what exceeds the budget.
    pub(crate) fn buffer(&self, bytes: usize) -> Buffer {
        self.memory.buffer(bytes).unwrap_or_else(|| Buffer::zeroed(bytes))
    }

    /// A name for a read.
    pub(crate) fn new_ticket(&self) -> u64 {
        self.next_ticket.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn budget(&self) -> &Arc<Budget> {
        &self.budget
    }

    /// Sessions whose futures wait.
    pub(crate) fn parking(&self) -> &Parking {
        &self.parking
    }

    fn shard(&self, key: Key) -> &Mutex<Shard> {
        // As the table's chains are divided.
        &self.shards[key.hash() as usize & (self.shards.len() - 1)]
    }

    /// The page if it is in memory. `warm` counts as a use of it. Takes no lock, and may miss a page that is here while
    /// others come or go.
    pub(crate) fn find(&self, key: Key, warm: bool) -> Option<PageRef> {
        let page = self.table.find(&self.frames, key)?;
        if warm {
            page.count_use();
        }
        Some(page)
    }

    /// As [`PageCache::find`], for child `i` of `parent`: where it was last, first.
    pub(crate) fn find_child(&self, parent: &PageRef, i: usize, key: Key, warm: bool) -> Option<PageRef> {
        if let Some(frame) = self.frames.get(parent.hint(i))
            && frame.is_named(key)
            && let Some(page) = frame.find(key)
        {
            if warm {
                page.count_use();
            }
            return Some(page);
        }
        let page = self.find(key, warm)?;
        parent.set_hint(i, page.number());
        Some(page)
    }

    /// What the cache knows of a page. `keep` asks for it to be kept if it is in flight.
    pub(crate) fn look(&self, key: Key, keep: bool) -> Look {
        match self.find(key, keep) {
            Some(page) => Look::Resident(page),
            None => self.look_in(&self.shard(key).lock(), key, keep).unwrap_or(Look::Missing),
        }
    }

    fn look_in(&self, shard: &Shard, key: Key, keep: bool) -> Option<Look> {
        if let Some(frame) = self.table.frame(&self.frames, key) {
            let page = frame.pin();
            if keep {
                page.count_use();
            }
            return Some(Look::Resident(page));
        }
        let flight = shard.flight(key)?;
        if keep {
            flight.ask_to_keep();
        }
        Some(Look::InFlight(Arc::clone(flight)))
    }

    /// Marks a missing page as being read by the caller under the name `ticket`, who has reserved the memory for it.
    pub(crate) fn claim(self: &Arc<Self>, key: Key, ticket: u64, keep: bool, demand: Demand) -> Look {
        let mut shard = self.shard(key).lock();
        if let Some(known) = self.look_in(&shard, key, keep) {
            return known;
        }
        let flight = Arc::new(Flight::new(ticket, keep, demand));
        shard.take_off(key, Arc::clone(&flight));
        drop(shard);
        Look::Claimed(Claim { cache: Arc::clone(self), key, flight: Some(flight), finders: Finders::Everyone })
    }

    /// A page that the caller reads for its own step alone. A `turn`, for a page beyond the budget, is not given back before the
    /// page has landed, even if the caller goes away.
    pub(crate) fn claim_alone(
        self: &Arc<Self>,
        key: Key,
        ticket: u64,
        demand: Demand,
        turn: Option<Arc<Turn>>,
    ) -> Claim {
        let flight = Arc::new(Flight::new(ticket, false, demand));
        Claim { cache: Arc::clone(self), key, flight: Some(flight), finders: Finders::OneStep { _turn: turn } }
    }

    /// Charges `bytes`, evicting as needed. `None` if pins leave no room, or there would be none if nothing was pinned.
    pub(crate) fn try_reserve(&self, bytes: u64) -> Option<Charge> {
        loop {
            match self.budget.try_charge(bytes) {
                Ok(charge) => return Some(charge),
                Err(_) if bytes > self.budget.limit() => return None,
                Err(short) if self.evict(short, LOOK) == 0 => return None,
                Err(_) => {}
            }
        }
    }

    /// Charges `bytes`, evicting as needed; if pins leave no room, takes the turn to overdraw, and keeps it in `turn`
    /// until the end of the step. May wait for those who have it, so the caller has no page in flight.
    pub(crate) fn reserve(&self, bytes: u64, turn: &mut Option<Arc<Turn>>) -> Reserved {
        loop {
            match self.reserve_with(bytes, turn, || self.budget.queue()) {
                Some(reserved) => return reserved,
                None => continue,
            }
        }
    }

    /// As [`PageCache::reserve`], for a task: `None` if it has to wait, and is woken when it is worth asking again. It queues
    /// under the number `waiter` until then.
    pub(crate) fn poll_reserve(
        &self,
        bytes: u64,
        turn: &mut Option<Arc<Turn>>,
        waiter: u64,
        context: &Context<'_>,
    ) -> Option<Reserved> {
        loop {
            let reserved = self.reserve_with(bytes, turn, || self.budget.poll_queue(waiter, context));
            if reserved.is_some() {
                self.budget.leave_queue(waiter);
                return reserved;
            }
            match self.parking.pass_holder(self.budget.queued()) {
                Holder::Busy => return None,
                // Nothing else happens if the holder is not polled: whoever polls comes back here after the others.
                Holder::Due => {
                    context.waker().wake_by_ref();
                    return None;
                }
                Holder::Late(parked) => parked.strip(),
            }
        }
    }

    fn reserve_with(
        &self,
        bytes: u64,
        turn: &mut Option<Arc<Turn>>,
        queue: impl FnOnce() -> Option<Turn>,
    ) -> Option<Reserved> {
        if let Some(charge) = self.try_reserve(bytes) {
            return Some(Reserved::Room(charge));
        }
        if turn.is_none() {
            let taken = queue()?;
            let late = self.parking.pass();
            late.iter().for_each(|parked| parked.strip());
            if !late.is_empty() {
                self.budget.room_appeared();
            }
            // They or the holder before may have left room; then the turn goes on to the next in the queue.
            if let Some(charge) = self.try_reserve(bytes) {
                return Some(Reserved::Room(charge));
            }
            *turn = Some(Arc::new(taken));
        }
        Some(Reserved::Overdrawn(self.budget.overdraw(bytes)))
    }

    /// Evicts what exceeds the budget as far as pins allow, however long that takes.
    fn trim(&self) {
        loop {
            let excess = self.budget.excess().min(TRIM_BYTES);
            if excess == 0 || self.evict(excess, usize::MAX) == 0 {
                break;
            }
        }
    }

    /// Evicts unpinned pages worth `bytes` if it finds them looking at `look` places of each shard for each; goes on to
    /// the next shard when one has no more. Returns what they are worth.
    fn evict(&self, bytes: u64, look: usize) -> u64 {
        let mut freed = 0;
        let mut evicted = Vec::new();
        let first = self.next_shard.fetch_add(1, Ordering::Relaxed);
        for step in 0..self.shards.len() {
            if freed >= bytes {
                break;
            }
            let shard = &self.shards[(first + step) & (self.shards.len() - 1)];
            freed += shard.lock().evict(&self.table, &self.frames, bytes - freed, look, &mut evicted);
        }
        freed
    }

    /// Goes over to a larger table when there are many more pages than chains.
    fn grow(&self, pages: u64) {
        if self.table.is_small_for(pages / 2) {
            let locks: Vec<_> = self.shards.iter().map(|shard| shard.lock()).collect();
            self.table.grow(&self.frames, pages);
            drop(locks);
        }
    }

    /// Lets the pages of a file stay as others do.
    pub(crate) fn keep_no_more(&self, slot: u32) {
        for (i, shard) in self.shards.iter().enumerate() {
            let mut shard = shard.lock();
            for number in self.table.numbers(&self.frames, i, self.shards.len()) {
                let frame = self.frames.get(number).expect("the table knows frames of the cache");
                if frame.key().slot == slot {
                    shard.keep_no_more(frame);
                }
            }
            drop(shard);
        }
    }

    /// Drops all pages of a file that is dead. Pages pinned or in flight go when they are let go.
    pub(crate) fn forget(&self, slot: u32) {
        self.trace.note_dead(slot);
        self.forget_all(|key| key.slot == slot);
    }

    fn forget_all(&self, goes: impl Fn(Key) -> bool) {
        for (i, shard) in self.shards.iter().enumerate() {
            let mut forgotten = Vec::new();
            let mut shard = shard.lock();
            let numbers = self.table.numbers(&self.frames, i, self.shards.len());
            let goes = |number: &u32| self.frames.get(*number).is_some_and(|frame| goes(frame.key()));
            let numbers: Vec<u32> = numbers.filter(goes).collect();
            for number in numbers {
                shard.forget(&self.table, &self.frames, number, &mut forgotten);
            }
            drop(shard);
        }
    }

    /// A decoded page, checked by the format layer and paid for by `charge`; beyond the budget if it unpacked to more
    /// than was guessed and pins leave no room for that, or if it is not needed and other pages would have to go for it.
    pub(crate) fn make_page(
        &self,
        key: Key,
        (buffer, header): (Buffer, crate::PageHeader),
        at: Address,
        mut charge: Charge,
        is_needed: bool,
    ) -> Result<Made, String> {
        (self.validate)(header.kind, &buffer[..header.memory_bytes as usize])?;
        let cost = crate::frame::cost_bytes(&buffer, header.kind);
        let mut fits = true;
        let more = cost.saturating_sub(charge.bytes());
        if more > 0 && !charge.is_of(&self.budget) {
            charge.grow(more);
        } else if more > 0 {
            let room = if is_needed { self.try_reserve(more) } else { self.budget.try_charge(more).ok() };
            fits = room.is_some();
            // It is in memory already and others may be waiting for it.
            charge.join(room.unwrap_or_else(|| self.budget.overdraw(more)));
        }
        let charge = charge.settle(cost, header.kind);
        let page = PageRef::charged(&self.frames, key, buffer, &header, at, charge);
        Ok(if fits { Made::Fits(page) } else { Made::Exceeds(page) })
    }

    /// How many sessions wait for a page in flight.
    #[cfg(test)]
    pub(crate) fn waiting_for(&self, key: Key) -> usize {
        self.shard(key).lock().flight(key).map_or(0, |flight| flight.waiting())
    }
}

impl Drop for PageCache {
    /// Each page keeps the frames, and so itself, until it is taken out.
    fn drop(&mut self) {
        self.forget_all(|_| true);
    }
}

/// Memory for pages that are going to be read.
pub(crate) enum Reserved {
    /// Within the budget: the pages can be shared and kept.
    Room(Charge),
    /// Beyond it: the pages are the step's own.
    Overdrawn(Charge),
}

/// A page that was read.
pub(crate) enum Made {
    /// There was room for all of it.
    Fits(PageRef),
    /// It unpacked to more than there was room for: it stays as long as the steps that need it have it pinned.
    Exceeds(PageRef),
}

/// What the cache knows of a page.
pub(crate) enum Look {
    /// It is in memory.
    Resident(PageRef),
    /// Somebody reads it.
    InFlight(Arc<Flight>),
    /// Nobody does.
    Missing,
    /// The caller does, from now on.
    Claimed(Claim),
}

/// A page in flight, on the side of its reader. Dropped without an outcome, it is abandoned: those who wait are woken
/// and ask again.
pub(crate) struct Claim {
    cache: Arc<PageCache>,
    key: Key,
    /// `None` once landed.
    flight: Option<Arc<Flight>>,
    /// Declared, and so dropped, after the flight.
    finders: Finders,
}

/// Who finds a page that is being read.
enum Finders {
    /// Every session, in the shard; and the cache may keep the page.
    Everyone,
    /// The step that reads it, with the turn if the page is beyond the budget.
    OneStep { _turn: Option<Arc<Turn>> },
}

impl Claim {
    /// The flight.
    pub fn flight(&self) -> &Arc<Flight> {
        self.flight.as_ref().expect("it has not landed")
    }

    /// The cache.
    pub fn cache(&self) -> &Arc<PageCache> {
        &self.cache
    }

    /// The page was read, or could not be. It is kept if somebody asked for that, it fits and the file is alive.
    pub fn land(mut self, file: &PagedFile, outcome: Result<Made, Error>) {
        match outcome {
            Ok(Made::Fits(page)) => self.end(Landing::Arrived(page), Some(file)),
            Ok(Made::Exceeds(page)) if self.flight().is_needed() => self.end(Landing::Arrived(page), None),
            Ok(Made::Exceeds(_)) => self.end(Landing::Abandoned, None),
            Err(error) => self.end(Landing::Failed(error), None),
        }
    }

    fn end(&mut self, landing: Landing, file: Option<&PagedFile>) {
        let Some(flight) = self.flight.take() else { return };
        if matches!(self.finders, Finders::Everyone) {
            let cache = &self.cache;
            let mut shard = cache.shard(self.key).lock();
            shard.end_flight(self.key);
            let mut is_admitted = false;
            if let (Landing::Arrived(page), Some(file)) = (&landing, file)
                // A file dies before its pages are forgotten, shard by shard under this lock: none comes in after.
                && flight.is_to_be_kept()
                && !file.is_dead()
            {
                shard.admit(&cache.table, &cache.frames, self.key, page, flight.is_needed(), file.is_kept());
                is_admitted = true;
            }
            drop(shard);
            if is_admitted {
                cache.grow(cache.budget.frames());
            }
        }
        flight.land(landing);
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.end(Landing::Abandoned, None);
    }
}

/// A page kept for a caller's value; gives back its share of the quarter when dropped.
pub struct Held {
    page: PageRef,
    bytes: u64,
    budget: Arc<Budget>,
}

impl Held {
    /// The page.
    pub fn page(&self) -> &PageRef {
        &self.page
    }
}

impl Deref for Held {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.page
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.budget.let_go(self.bytes);
    }
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Held").field(&self.page).finish()
    }
}

impl fmt::Debug for PageCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PageCache")
            .field("budget_bytes", &self.budget.limit())
            .field("used_bytes", &self.budget.used())
            .field("shards", &self.shards.len())
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
