//! The page cache: pages in memory, within a budget. It finds pages by file and offset, admits them and evicts
//! them. It does not know which sessions read, in which order they read, or what the pages mean. The format layer
//! supplies a function that checks the structure of a page.
//!
//! * The used bytes are the [cost](PageRef::cost_bytes) of all resident, pinned and in-flight pages, plus the hints
//!   of nodes and what [excerpts](Excerpt) set aside. They stay within the budget, with two exceptions. First, one step of a thread and one step of a task
//!   may exceed it at the same time, each with its own pages. Second, four times its stored bytes are reserved for
//!   a compressed page, and a page that unpacks to more may exceed the budget. The cache keeps none of the excess
//!   pages, so it is back within its budget when nothing is pinned.
//! * A missing page is read once, however many sessions ask for it, and all of them get the page or the error. The
//!   exceptions are a step that exceeds the budget and a session with [memory of its own](crate::OwnMemory): their
//!   pages are private. No other step can pin them, so they are freed once the session lets go of them.
//! * Once a session has marked a page as in flight, it waits for nothing but the disk until the page has landed. It
//!   reserves the bytes and, if needed, queues for the turn to overdraw before that. So 64 threads make progress in
//!   a cache of three pages.
//! * zstd contexts are not part of the budget; see [`Unpacker`]. Each thread that unpacks a page uses one. Idle
//!   contexts take at most a sixteenth of the budget, except that one is always kept.
//! * To evict one page, an admission looks at no more than [`LOOK`] pages of each stripe.
//!
//! The [policy](crate::policy) decides which pages stay and which are evicted.
//!
//! Thread safe. A resident page is found without a lock, by one atomic addition or under a hazard; the modules `table` and
//! [`frame`](crate::frame) explain how. While a stripe's lock is held, no file is read, no page memory is freed,
//! and no thread waits or is woken. The only lock that may be taken under it is the lock of the free frames.

pub(crate) mod claim;
mod excerpts;
mod file_state;
pub(crate) mod flight;
mod governing;
mod governor;
mod look;
pub(crate) mod parked;
pub(crate) mod reserve;
pub(crate) mod stripe;
pub(crate) mod table;
mod usage;

use crate::budget::Budget;
use crate::frame::{Frame, Frames};
use crate::gauge::Gauge;
use crate::open_files::OpenFiles;
use crate::page::Unpacker;
use crate::page_key::PageKey;
use crate::{Counters, LentPage, LivePage, Page, PageKind, PageRef, Trace};
use excerpts::Excerpts;
pub use excerpts::{CutPart, Cutter, Excerpt, ExcerptName};
pub(crate) use file_state::FileState;
use governor::Governor;
pub use look::LOOK;
use os::Buffer;
use os::memory::Arena;
use os::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use os::sync::hazard::{Hazards, Lease};
use os::sync::{Arc, Mutex};
use parked::Parking;
use std::fmt;
use std::ops::Deref;
pub use stripe::PageHeat;
use stripe::{KeptShare, Stripe};
use table::FrameTable;
pub use usage::{CacheUsage, FilesUsage, ResidentPage};

/// One stripe per this many bytes of the budget, roughly. In a smaller stripe, the policy would have too few pages
/// to choose from.
const STRIPE_BYTES: u64 = 4 << 20;

const MAX_STRIPES: u64 = 16;

/// The first table has roughly one chain per this many bytes of the budget.
const CHAIN_BYTES: u64 = 16 << 10;

/// If callers ask for spare memory this many times in a row and no read misses a page in between, readers need no
/// more memory. A cache that is still filling also has memory to spare, but about one in a few hundred reads
/// misses, so 1,024 reads in a row without a miss are very unlikely.
const QUIET_ASKS: u32 = 1024;

/// Idle unpacking contexts may take the budget divided by this number. They are not charged to the budget.
const UNPACKER_SHARE: u64 = 16;

/// The first table is sized for at most this budget, because a cache may be given more bytes than it will ever use.
const MAX_TABLE_BUDGET: u64 = 1 << 30;

/// Checks the structure of a page of the given kind, once the page is in memory and its checksum was verified.
/// `Err` says what is wrong.
pub type Validate = fn(PageKind, &[u8]) -> Result<(), String>;

/// Pages in memory. Any number of sessions and databases share them.
pub struct PageCache {
    /// Pages by name.
    table: FrameTable,
    frames: Arc<Frames>,
    memory: Arc<Arena>,
    unpacker: Unpacker,
    /// A power of two, chosen when the cache is made.
    stripes: Box<[Mutex<Stripe>]>,
    kept: Arc<KeptShare>,
    /// The limit for kept pages that a caller has set, in bytes; `u64::MAX` stands for the default, a quarter of
    /// the budget.
    kept_limit: AtomicU64,
    /// The stripe at which the next eviction starts. It advances with each eviction, so that all stripes give up
    /// about the same number of bytes.
    next_stripe: AtomicUsize,
    budget: Arc<Budget>,
    /// What makes the budget elastic, if it is. Whoever changes the budget has the lock.
    governor: Mutex<Option<Governor>>,
    parking: Parking,
    validate: Validate,
    cutter: Option<Cutter>,
    open_files: Arc<OpenFiles>,
    /// Pages that cursors keep from one step to the next.
    cursors: Arc<Gauge>,
    excerpts: Excerpts,
    next_slot: AtomicU32,
    next_ticket: AtomicU64,
    /// How often spare memory was asked for since a reader last missed a page, up to [`QUIET_ASKS`].
    quiet_asks: AtomicU32,
    counters: Counters,
    trace: Trace,
}

impl PageCache {
    /// A cache of `budget_bytes` that has at most `open_files` files open at a time (at most one if `open_files` is
    /// 0). `validate` is called once for each page that is read, and never again while the page is in memory.
    pub fn new(budget_bytes: u64, open_files: usize, validate: Validate) -> Arc<Self> {
        Self::growing(budget_bytes, budget_bytes, open_files, validate)
    }

    /// Like [`PageCache::new`], but the budget may later grow to `most_bytes`.
    pub fn growing(budget_bytes: u64, most_bytes: u64, open_files: usize, validate: Validate) -> Arc<Self> {
        let stripes = (most_bytes / STRIPE_BYTES).clamp(1, MAX_STRIPES).next_power_of_two();
        let kept = Arc::<KeptShare>::default();
        kept.set_most(budget_bytes / 4);
        Arc::new(Self {
            table: FrameTable::new(budget_bytes.min(MAX_TABLE_BUDGET) / CHAIN_BYTES),
            frames: Frames::new(Hazards::shared()),
            memory: Arena::new(budget_bytes),
            unpacker: Unpacker::new(budget_bytes / UNPACKER_SHARE),
            stripes: (0..stripes).map(|_| Mutex::new(Stripe::new(Arc::clone(&kept)))).collect(),
            kept,
            kept_limit: AtomicU64::new(u64::MAX),
            next_stripe: AtomicUsize::new(0),
            budget: Arc::new(Budget::new(budget_bytes)),
            governor: Mutex::default(),
            parking: Parking::default(),
            validate,
            cutter: None,
            open_files: Arc::new(OpenFiles::new(open_files)),
            cursors: Arc::default(),
            excerpts: Excerpts::default(),
            next_slot: AtomicU32::new(1),
            next_ticket: AtomicU64::new(1),
            quiet_asks: AtomicU32::new(0),
            counters: Counters::default(),
            trace: Trace::default(),
        })
    }

    /// The same cache, which keeps [excerpts](Excerpt) of data pages that `cutter` cuts out. Only for a cache that was
    /// just made.
    pub fn cutting(mut self: Arc<Self>, cutter: Cutter) -> Arc<Self> {
        Arc::get_mut(&mut self).expect("nobody else has a cache that was just made").cutter = Some(cutter);
        self
    }

    /// Changes the budget. Unpinned pages that no longer fit are evicted at once, pinned ones when memory is
    /// needed. An elastic budget becomes a fixed one.
    pub fn set_budget(&self, bytes: u64) {
        let mut governor = self.governor.lock();
        *governor = None;
        self.change_budget(bytes);
        self.budget.set_least(bytes);
        drop(governor);
        self.budget.room_appeared();
    }

    /// Changes the budget. The caller has the lock of the governor, and wakes sessions when it has released the lock.
    fn change_budget(&self, bytes: u64) {
        self.budget.set_limit(bytes);
        self.limit_kept();
        self.excerpts.limit(bytes);
        self.trim();
        self.memory.set_limit(bytes);
        self.unpacker.set_most_idle_bytes(bytes / UNPACKER_SHARE);
    }

    /// Sets how many bytes of the cache may hold pages of files that are [kept](crate::PagedFile::keep): the
    /// smaller of `bytes` and half of the budget. The default is a quarter of the budget. Kept pages beyond this
    /// share are evicted like pages of other files.
    pub fn set_kept_bytes(&self, bytes: u64) {
        // `u64::MAX` stands for the default.
        self.kept_limit.store(bytes.min(u64::MAX - 1), Ordering::Relaxed);
        self.limit_kept();
    }

    fn limit_kept(&self) {
        let budget_bytes = self.budget.limit();
        self.kept.set_most(match self.kept_limit.load(Ordering::Relaxed) {
            u64::MAX => budget_bytes / 4,
            limit => limit.min(budget_bytes / 2),
        });
        self.stripes.iter().for_each(|stripe| stripe.lock().keep_within_share());
    }

    /// How many bytes of the cache the pages of kept files may take now.
    pub fn most_kept_bytes(&self) -> u64 {
        self.kept.most_bytes()
    }

    /// How many bytes of the cache the kept pages take now.
    pub fn kept_bytes(&self) -> u64 {
        self.kept.bytes()
    }

    /// Keeps `page` as if its file were [kept](crate::PagedFile::keep), provided that the share for kept pages has
    /// room. Does nothing if the page is not resident.
    pub fn keep(&self, page: &PageRef) {
        self.with_resident(page, |stripe, frame| stripe.keep(frame, page));
    }

    /// How many bytes the cache may use.
    #[inline]
    pub fn budget_bytes(&self) -> u64 {
        self.budget.limit()
    }

    /// The unused bytes of the budget, minus a sixteenth of the budget. That margin is subtracted because even a
    /// full cache has a few spare bytes, for example after a page made room for a shorter one.
    pub fn free_bytes(&self) -> u64 {
        let limit = self.budget.limit();
        (limit - limit / 16).saturating_sub(self.budget.used())
    }

    /// Whether `bytes` more fit into memory that is unused and that no reader will need soon. Readers still need
    /// memory if any of them missed a page during the last [`QUIET_ASKS`] calls.
    pub(crate) fn has_spare(&self, bytes: u64) -> bool {
        if bytes > self.free_bytes() {
            return false;
        }
        let asks = self.quiet_asks.load(Ordering::Relaxed);
        if asks < QUIET_ASKS {
            // The count is an estimate: two concurrent calls may count as one, and a call may undo a concurrent
            // reset by a miss.
            self.quiet_asks.store(asks + 1, Ordering::Relaxed);
        }
        asks >= QUIET_ASKS
    }

    /// Notes that a reader missed a page.
    pub(crate) fn note_miss(&self) {
        if self.quiet_asks.load(Ordering::Relaxed) > 0 {
            self.quiet_asks.store(0, Ordering::Relaxed);
        }
    }

    /// How many bytes the cache may use for certain: the budget, or the least size of an elastic budget. What callers
    /// and cursors keep for long is a part of this, because they do not give it back when others want memory.
    #[inline]
    pub fn least_bytes(&self) -> u64 {
        self.budget.least()
    }

    /// How many bytes the cache uses.
    pub fn used_bytes(&self) -> u64 {
        self.budget.used()
    }

    /// Keeps `page` in memory for a value that is handed to a caller. `None` if callers already hold a quarter of
    /// [`PageCache::least_bytes`]; the value must then be copied out of the page.
    pub fn hold(&self, page: PageRef) -> Option<HeldPage> {
        let bytes = page.cost_bytes();
        self.budget.try_hold(bytes).then(|| HeldPage { page, bytes, budget: Arc::clone(&self.budget) })
    }

    /// How many bytes callers hold through [`PageCache::hold`].
    pub fn held_bytes(&self) -> u64 {
        self.budget.held()
    }

    /// How many bytes cursors keep pinned from one step to the next. The owners of cursors count these bytes here,
    /// and keep the sum within a part of the budget.
    #[inline]
    pub fn cursors(&self) -> &Arc<Gauge> {
        &self.cursors
    }

    /// Counts of what sessions did.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The trace of accesses; it is off unless it was started.
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// How much a page has been used lately; zero if the page is not resident.
    pub fn heat_of(&self, page: &PageRef) -> PageHeat {
        let mut heat = PageHeat::default();
        self.with_resident(page, |stripe, frame| heat = stripe.heat(frame));
        heat
    }

    /// Makes the page proven: the policy may find it unused `chances` times before it evicts it. For a page that is
    /// known to be wanted although nobody has used it here yet. Does nothing if the page is not resident.
    pub fn prove(&self, page: &PageRef, chances: u8) {
        self.with_resident(page, |stripe, frame| stripe.prove(frame, chances));
    }

    /// Calls `act` with the stripe and the frame of `page`, if the page is resident.
    fn with_resident(&self, page: &PageRef, act: impl FnOnce(&mut Stripe, &Frame)) {
        let Some(frame) = self.frames.get(page.number()).filter(|frame| frame.is_of(page)) else { return };
        // The page is pinned, so the frame keeps its name.
        let key = frame.key();
        let mut stripe = self.stripe(key).lock();
        if self.table.frame(&self.frames, key).is_some_and(|kept| kept.is_of(page)) {
            act(&mut stripe, frame);
        }
    }

    /// A buffer of `bytes` bytes for a page. The caller has already charged these bytes. The contents are stale.
    /// The buffer comes from the heap, not from the arena, if it is longer than the arena's longest run or beyond
    /// the budget.
    pub(crate) fn buffer(&self, bytes: usize) -> Buffer {
        self.memory.buffer(bytes).unwrap_or_else(|| Buffer::zeroed(bytes))
    }

    /// The unpacker for pages of this cache, and for other pages of the files in this cache.
    pub fn unpacker(&self) -> &Unpacker {
        &self.unpacker
    }

    /// A number for a file, which the cache gives to no other file.
    pub(crate) fn new_slot(&self) -> u32 {
        let slot = self.next_slot.fetch_add(1, Ordering::Relaxed);
        assert!(slot != 0, "four billion files were registered with one cache");
        slot
    }

    /// The files of the cache that are open.
    pub(crate) fn open_files(&self) -> &Arc<OpenFiles> {
        &self.open_files
    }

    /// A number that names one read.
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

    fn stripe(&self, key: PageKey) -> &Mutex<Stripe> {
        // The same low bits of the hash choose the stripe and the chain of the table.
        &self.stripes[key.hash() as usize & (self.stripes.len() - 1)]
    }

    /// The page, if it is in memory. With `warm`, this counts as a use of the page. The lookup takes no lock, and
    /// may miss a resident page while other pages come or go.
    #[inline]
    pub(crate) fn find(&self, key: PageKey, warm: bool) -> Option<PageRef> {
        let page = self.table.find(&self.frames, key)?;
        if warm {
            page.count_use();
        }
        Some(page)
    }

    /// Finds child `i` of `parent` as [`PageCache::find`] does, but first tries the frame where the child was last
    /// seen. Unless the caller has `prefetched` the child, its bytes are prefetched before its frame is looked at.
    #[inline]
    pub(crate) fn find_child(
        &self,
        parent: LivePage<'_>,
        i: usize,
        key: PageKey,
        warm: bool,
        prefetched: bool,
    ) -> Option<PageRef> {
        let hint = parent.hint(i);
        if let Some(frame) = self.frames.get(hint.number()) {
            if !prefetched {
                hint.prefetch();
            }
            if frame.is_named(key)
                && let Some(page) = frame.find(key)
            {
                if warm {
                    page.count_use();
                }
                return Some(page);
            }
        }
        let page = self.find(key, warm)?;
        parent.set_hint(i, page.live());
        Some(page)
    }

    /// Lends child `i` of `parent`, or, without a parent, the page with the given name, to the thread of `lease`. As
    /// [`PageCache::find_child`] and [`PageCache::find`], but the page is not pinned.
    #[inline]
    pub(crate) fn lend<'g>(
        &'g self,
        parent: Option<(LivePage<'_>, usize)>,
        key: PageKey,
        lease: &'g Lease,
    ) -> Option<LentPage<'g>> {
        let Some((parent, i)) = parent else { return self.table.lend(&self.frames, key, lease) };
        let hint = parent.hint(i);
        if let Some(frame) = self.frames.get(hint.number()) {
            hint.prefetch();
            if frame.is_named(key)
                && let Some(page) = frame.lend(key, lease)
            {
                return Some(page);
            }
        }
        let page = self.table.lend(&self.frames, key, lease)?;
        parent.set_hint(i, page.live());
        Some(page)
    }

    /// The excerpt with this name, lent to the thread of `lease`.
    pub(crate) fn lend_excerpt<'g>(
        &'g self,
        name: &ExcerptName<'_>,
        fits: &dyn Fn(&[u8]) -> bool,
        lease: &'g Lease,
    ) -> Option<Excerpt<LentPage<'g>>> {
        self.find_excerpt(name, fits, |key| self.table.lend(&self.frames, key, lease))
    }

    /// Whether readers should note which parts of a page they use.
    #[inline]
    pub(crate) fn notes_parts(&self) -> bool {
        self.excerpts.are_wanted()
    }

    /// Switches to a larger table when the cache has more than twice as many pages as the table has chains.
    fn grow(&self, pages: u64) {
        if self.table.is_small_for(pages / 2) {
            let locks: Vec<_> = self.stripes.iter().map(|stripe| stripe.lock()).collect();
            self.table.grow(&self.frames, pages);
            drop(locks);
        }
    }

    /// Demotes the file's kept pages: from now on they are evicted like pages of other files.
    pub(crate) fn keep_no_more(&self, slot: u32) {
        for (i, stripe) in self.stripes.iter().enumerate() {
            let mut stripe = stripe.lock();
            for number in self.table.numbers(&self.frames, i, self.stripes.len()) {
                let frame = self.frames.get(number).expect("the table knows frames of the cache");
                if frame.key().slot == slot {
                    stripe.keep_no_more(frame);
                }
            }
            drop(stripe);
        }
    }

    /// Drops all pages of a dead file. Pages that are pinned or in flight leave when they are no longer used.
    pub(crate) fn forget(&self, slot: u32) {
        self.trace.note_dead(slot);
        self.forget_all(|key| key.slot == slot);
    }

    /// The hazards of readers to whom pages are lent.
    #[inline]
    pub(crate) fn hazards(&self) -> &Arc<Hazards> {
        self.frames.hazards()
    }

    /// Whether pages are to be freed that were lent when they should have left. The answer may be late.
    #[inline]
    pub(crate) fn has_retired(&self) -> bool {
        self.frames.has_retired()
    }

    /// Frees the pages in retired frames that no reader has any more.
    pub(crate) fn free_retired(&self) {
        let freed = self.frames.take_retired();
        if !freed.is_empty() {
            drop(freed);
            self.budget.room_appeared();
        }
    }

    fn forget_all(&self, goes: impl Fn(PageKey) -> bool) {
        self.free_retired();
        for (i, stripe) in self.stripes.iter().enumerate() {
            let mut forgotten = Vec::new();
            let mut stripe = stripe.lock();
            let numbers = self.table.numbers(&self.frames, i, self.stripes.len());
            let goes = |number: &u32| self.frames.get(*number).is_some_and(|frame| goes(frame.key()));
            let numbers: Vec<u32> = numbers.filter(goes).collect();
            for number in numbers {
                stripe.forget(&self.table, &self.frames, number, &mut forgotten);
            }
            drop(stripe);
        }
    }

    /// How many sessions wait for the given page, if it is in flight.
    #[cfg(test)]
    pub(crate) fn waiting_for(&self, key: PageKey) -> usize {
        self.stripe(key).lock().flight(key).map_or(0, |flight| flight.waiting())
    }
}

impl Drop for PageCache {
    /// Takes all pages out of their frames. Until then, frames and pages keep each other alive. No page is lent,
    /// because readers to whom pages are lent borrow the cache.
    fn drop(&mut self) {
        self.forget_all(|_| true);
        self.free_retired();
    }
}

/// A page that stays in memory for a caller's value. Dropping it returns its bytes to the part of the budget that
/// callers may hold.
pub struct HeldPage {
    page: PageRef,
    bytes: u64,
    budget: Arc<Budget>,
}

impl HeldPage {
    /// The page.
    pub fn page(&self) -> &PageRef {
        &self.page
    }

    /// Holds the same page once more, for another value. `None` if callers already hold as much of the cache as
    /// they may.
    pub fn again(&self) -> Option<Self> {
        let Self { page, bytes, budget } = self;
        budget.try_hold(*bytes).then(|| Self { page: page.clone(), bytes: *bytes, budget: Arc::clone(budget) })
    }
}

impl Deref for HeldPage {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.page
    }
}

impl Drop for HeldPage {
    fn drop(&mut self) {
        self.budget.let_go(self.bytes);
    }
}

impl fmt::Debug for HeldPage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Held").field(&self.page).finish()
    }
}

impl fmt::Debug for PageCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PageCache")
            .field("budget_bytes", &self.budget.limit())
            .field("used_bytes", &self.budget.used())
            .field("stripes", &self.stripes.len())
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
