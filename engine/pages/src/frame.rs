//! A page in memory and its pins. A frame does not know how the page is found, or what its payload means.
//!
//! The bytes are verified before the page is put into its frame, and they never change. While a [`PageRef`] lives,
//! its page is pinned: it cannot be evicted and counts against the budget. A `PageRef` is `Send + Sync`.
//!
//! Frames are numbered, and are not freed before their `Frames` are dropped. So a lock-free reader may look at a
//! frame that is just being emptied, or that holds another page by now. Everything about a frame goes through one
//! word:
//!
//! ```text
//! bit 31    LIVE       it holds a page
//! bit 30    CACHED     the cache has the page, so that it can be found
//! bit 29    FORGOTTEN  the cache had the page, and gave it up while it was pinned
//! 0..29     pins       references to it, and readers that are just comparing its name
//! ```
//!
//! * A reader that looks for a page adds a pin and then reads the name. If LIVE and CACHED are set and the name is
//!   the wanted one, the pin becomes a reference. Otherwise the reader takes the pin away again, just as a dropped
//!   reference does. While the pin is there, the contents of a live frame do not change.
//! * A page leaves its frame when a thread atomically changes the frame's word to 0, in which only one thread can
//!   succeed. The cache, when it evicts a page or gives it up, does so from a word with LIVE and CACHED but no
//!   pins. The holder of the last pin does so from a word with LIVE and only this pin. So no page is left without
//!   an owner. A thread that has given up its pin does not touch the frame again, because the frames may be gone
//!   with the page.
//! * A reader that uses a page only for a moment does not pin it. It [protects](os::sync::hazard) the frame, and then
//!   reads the word and the name. If LIVE and CACHED are set and the name is the wanted one, the page is
//!   [lent](LentPage) to the reader. A thread that sets the word of such a page to 0 first checks whether the page is lent, and only then takes the
//!   contents out. If the page is lent, an eviction sets LIVE and CACHED again. Any other thread *retires* the frame: it
//!   leaves the contents there, and a later call of `Frames::take_retired` takes them out when no reader has the page
//!   any more. The contents of retired frames count against the budget.
//! * A reader that looks at an empty frame adds a pin to its word, too. So a page is put into a frame by adding
//!   LIVE and the first pin to the word, not by storing it.
//! * The contents of a live frame are written before LIVE is added (release), and read after LIVE was seen
//!   (acquire). The thread that set the word to 0 takes the contents out, after all holders of the page have
//!   released it (release, acquire).
//!
//! A frame is one cache line. It has all that a reader needs to recognize a page and to reach its bytes. A page's
//! other data is stored separately, because it is needed only for nodes and when a page comes or goes. A node
//! remembers for each child where the child's frame and bytes were last seen, so that a reader can prefetch both at
//! the same time.

use crate::budget::Charge;
use crate::cost::{cost_bytes, hint_bytes};
use crate::page_key::PageKey;
use crate::{Address, PACK_BYTES, PageHeader, PageKind};
use os::memory::prefetch;
use os::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use os::sync::hazard::Hazards;
use os::sync::{Arc, Mutex, OnceLock};
use os::{BLOCK_BYTES, Buffer};
use std::cell::UnsafeCell;
use std::fmt;
use std::ops::{Deref, RangeInclusive};
use std::ptr::NonNull;

mod lent;
mod uses;

pub(crate) use lent::FramePlace;
pub use lent::LentPage;
pub use uses::Part;
pub(crate) use uses::{Used, Uses};

const LIVE: u32 = 1 << 31;
const CACHED: u32 = 1 << 30;
const FORGOTTEN: u32 = 1 << 29;
const PINS: u32 = FORGOTTEN - 1;
/// The most references that are given out, so that leaked references can never add up to LIVE or CACHED. The
/// remaining pins are for readers that look at a frame and are refused.
const MAX_PINS: u32 = PINS / 2;

/// How many bytes of a page a reader needs before it knows where in the page to look: the header, the heads of the
/// keys, the offsets of the rows, and the keys' common prefix behind them. For 148 rows in 16 KiB, these take 946
/// bytes.
const FIRST_BYTES: usize = 960;

/// A page in memory, with its header and its payload. Cloning costs one atomic addition, and panics if the page has
/// a quarter of a billion references, which can happen only if references were leaked.
pub struct PageRef(NonNull<Frame>);

// SAFETY: a frame is shared by references only; its word is atomic, and what it holds is Send + Sync and not changed
// while a reference lives.
unsafe impl Send for PageRef {}
// SAFETY: as above.
unsafe impl Sync for PageRef {}

/// A place for a page.
#[repr(C, align(64))]
pub(crate) struct Frame {
    word: AtomicU32,
    /// The next frame in the table's chain; 0 for none. Written under the lock of the chain's stripe.
    next: AtomicU32,
    /// The page's name: slot and unit. A reader reads it before it knows whether this is the page that it looks
    /// for.
    slot: AtomicU32,
    /// This frame's number; 0 for a frame outside every cache.
    number: u32,
    unit: AtomicU64,
    uses: Uses,
    /// What readers need of the page in a live frame. It lacks the offset of the page's address, which is in the
    /// name.
    face: UnsafeCell<Face>,
    /// The rest of a live frame's contents. It lives as long as the frame does.
    rest: NonNull<RestCell>,
}

#[cfg(not(any(loom, shuttle)))]
const _: () = assert!(size_of::<Frame>() == 64, "a reader takes one line of memory to reach a page");

// SAFETY: `face` and the contents of `rest` are reached in three ways only: by readers through a pin of a live frame;
// by readers to whom the page is lent; and exclusively, by the thread that set the word to 0 and then found no hazard
// on the page, or that got the frame from `Frames::take`. See the top of the file.
unsafe impl Sync for Frame {}
// SAFETY: as for Sync above; and everything in a frame is Send.
unsafe impl Send for Frame {}

/// What readers need of a page: its bytes, and the values that they compare with the address in the parent.
#[derive(Clone, Copy)]
struct Face {
    start: NonNull<u8>,
    /// Bytes of the page in memory.
    len: u32,
    /// Stored length and checksum, as in the page's address.
    stored_bytes: u32,
    crc: u32,
    /// Length of the buffer in blocks.
    blocks: u16,
    kind: PageKind,
}

impl Face {
    /// The face of a frame without a page.
    const NONE: Self =
        Self { start: NonNull::dangling(), len: 0, stored_bytes: 0, crc: 0, blocks: 0, kind: PageKind::Data };
}

/// What belongs to a frame and is not in its line.
#[derive(Default)]
struct RestCell {
    /// The page's place in the policy. Read and written under the stripe's lock.
    place: AtomicU32,
    contents: UnsafeCell<Option<Rest>>,
}

impl RestCell {
    fn get(&self) -> *mut Option<Rest> {
        self.contents.get()
    }
}

/// A live frame's contents other than its face. The fields are dropped in this order: the memory is freed before
/// the budget is credited, and the frames are dropped last.
struct Rest {
    /// The bytes that the face points to.
    buffer: Buffer,
    hints: OnceLock<Hints>,
    charge: Charge,
    /// `None` for a frame outside every cache.
    frames: Option<Arc<Frames>>,
}

/// Where a page's children were last seen. Child `i` uses the cell at `i` modulo the length. A cell is a [`Hint`]
/// as a number.
struct Hints {
    cells: Box<[AtomicU64]>,
    charge: Charge,
}

/// Where a page was last seen: the number of its frame, and the memory block in which its bytes began. The number
/// is 0 if the page was not seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hint(u64);

impl Hint {
    /// How many bits of a hint are for the frame number: enough for 1 TiB of pages of 4 KiB. The other bits are for
    /// the block number, and are enough for addresses of 48 bits.
    const NUMBER_BITS: u32 = 28;

    /// Where `page` is. If a number does not fit, the hint says that the page was not seen.
    fn of(page: LivePage<'_>) -> Self {
        let (number, block) = (page.number(), (page.bytes().as_ptr().addr() / BLOCK_BYTES) as u64);
        let fits = number >> Self::NUMBER_BITS == 0 && block >> (u64::BITS - Self::NUMBER_BITS) == 0;
        Self(if fits { block << Self::NUMBER_BITS | u64::from(number) } else { 0 })
    }

    /// The number of the frame; 0 if the page was not seen.
    #[inline]
    pub fn number(self) -> u32 {
        (self.0 & ((1 << Self::NUMBER_BITS) - 1)) as u32
    }

    /// Prefetches the bytes of the page that a reader needs first.
    #[inline]
    pub fn prefetch(self) {
        self.prefetch_bytes(FIRST_BYTES);
    }

    /// Prefetches the first `bytes` bytes of the page.
    #[inline]
    pub fn prefetch_bytes(self, bytes: usize) {
        prefetch((self.0 >> Self::NUMBER_BITS) as usize * BLOCK_BYTES, bytes);
    }
}

impl Frame {
    fn new(number: u32, rest: NonNull<RestCell>) -> Self {
        Self {
            word: AtomicU32::new(0),
            next: AtomicU32::new(0),
            slot: AtomicU32::new(0),
            unit: AtomicU64::new(0),
            number,
            uses: Uses::default(),
            face: UnsafeCell::new(Face::NONE),
            rest,
        }
    }

    /// Sets the name of the frame, which must not be live.
    fn set_name(&self, key: PageKey) {
        self.slot.store(key.slot, Ordering::Relaxed);
        self.unit.store(key.unit, Ordering::Relaxed);
    }

    /// Number of the next frame in the chain.
    pub fn next(&self) -> u32 {
        self.next.load(Ordering::Acquire)
    }

    /// Sets the number of the next frame in the chain. The caller holds the lock of the chain's stripe.
    pub fn set_next(&self, number: u32) {
        self.next.store(number, Ordering::Release);
    }

    fn cell(&self) -> &RestCell {
        // SAFETY: the cell lives as long as the frame, and is shared by references only.
        unsafe { self.rest.as_ref() }
    }

    /// The place of the page in the policy. The caller holds the lock of the stripe.
    pub fn place(&self) -> u32 {
        self.cell().place.load(Ordering::Relaxed)
    }

    /// Sets the place of the page in the policy. The caller holds the lock of the stripe.
    pub fn set_place(&self, place: u32) {
        self.cell().place.store(place, Ordering::Relaxed);
    }

    /// Whether the page in the frame, or the page that last left it, has the given name.
    #[inline]
    pub fn is_named(&self, key: PageKey) -> bool {
        self.unit.load(Ordering::Relaxed) == key.unit && self.slot.load(Ordering::Relaxed) == key.slot
    }

    /// The name of a resident page. The caller holds the stripe's lock.
    pub fn key(&self) -> PageKey {
        PageKey { slot: self.slot.load(Ordering::Relaxed), unit: self.unit.load(Ordering::Relaxed) }
    }

    /// A reference to the page with the given name, if that page is in the frame and resident in the cache.
    #[inline]
    pub fn find(&self, key: PageKey) -> Option<PageRef> {
        let word = self.word.fetch_add(1, Ordering::Acquire);
        // Whatever is in the frame, this thread now has a pin. Dropping the reference removes it.
        let page = PageRef(NonNull::from(self));
        (word & (LIVE | CACHED) == LIVE | CACHED && word & PINS < MAX_PINS && self.is_named(key)).then_some(page)
    }

    /// A reference to a resident page. The caller holds the stripe's lock.
    pub fn pin(&self) -> PageRef {
        let word = self.word.fetch_add(1, Ordering::Acquire);
        debug_assert!(word & (LIVE | CACHED) == LIVE | CACHED, "what is in the table is the cache's");
        PageRef(NonNull::from(self))
    }

    /// Whether nothing pins the page.
    pub fn is_unpinned(&self) -> bool {
        self.word.load(Ordering::Relaxed) & PINS == 0
    }

    /// Counts a use of the page.
    #[inline]
    pub fn count_use(&self) {
        self.uses.count();
    }

    /// The uses since [`Frame::take_uses`] was last called.
    pub fn uses(&self) -> Used {
        self.uses.get()
    }

    /// Whether `page` is a reference to the page in this frame.
    pub fn is_of(&self, page: &PageRef) -> bool {
        std::ptr::eq(self, page.0.as_ptr())
    }

    /// Returns the uses since the last call, and forgets them.
    pub fn take_uses(&self) -> Used {
        self.uses.take()
    }

    /// Takes the page out, unless something pins it or it is lent. The caller holds the stripe's lock, and drops the
    /// result later.
    pub fn evict(&self, hazards: &Hazards) -> Option<Evicted> {
        self.word.compare_exchange(LIVE | CACHED, 0, Ordering::AcqRel, Ordering::Relaxed).ok()?;
        if hazards.are_on(self) {
            // Readers may have added pins meanwhile, which they take away again.
            self.word.fetch_add(LIVE | CACHED, Ordering::Release);
            return None;
        }
        // SAFETY: the word of the live frame was set to 0 here, and the page is not lent.
        Some(unsafe { self.empty() })
    }

    /// Makes the cache give the page up. The page leaves its frame now or, if it is pinned, with the last pin, or, if
    /// it is lent, when the frames next take out what is [retired](Frames::take_retired). The caller holds the
    /// stripe's lock.
    pub fn forget(&self, frames: &Frames) -> Option<Evicted> {
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            let next = if word & PINS == 0 { 0 } else { word & !CACHED | FORGOTTEN };
            match self.word.compare_exchange_weak(word, next, Ordering::AcqRel, Ordering::Relaxed) {
                // SAFETY: this thread has just set the word to 0. Until then, the frame was live and had no pins.
                Ok(_) => return if next == 0 { unsafe { self.empty_or_retire(frames) } } else { None },
                Err(changed) => word = changed,
            }
        }
    }

    /// As [`Frame::empty`]. But if the page is lent, retires the frame.
    ///
    /// # Safety
    ///
    /// As for [`Frame::empty`], but the page may be lent.
    unsafe fn empty_or_retire(&self, frames: &Frames) -> Option<Evicted> {
        if frames.hazards.are_on(self) {
            frames.retire(self.number);
            return None;
        }
        // SAFETY: the caller has set the word to 0, and the page is not lent.
        Some(unsafe { self.empty() })
    }

    /// Takes the contents out of the frame. Once the returned [`Evicted`] is dropped, another page may get the
    /// frame.
    ///
    /// # Safety
    ///
    /// The caller has set the word to 0. Until then, the frame was live, and had no pins or only one pin, which
    /// belonged to the caller. After that, the caller has found that the page is not lent, unless the cache never had
    /// it.
    unsafe fn empty(&self) -> Evicted {
        // SAFETY: the caller has set the word to 0. So until the frame is in the free list, no other thread may
        // reach the page.
        let page = unsafe { &mut *self.rest.as_ref().get() }.take().expect("a live frame holds a page");
        Evicted { page, number: self.number, key: self.key() }
    }
}

/// The contents of a frame that is being emptied. Dropping this value puts the frame into the free list. So it must
/// not be dropped before the frame has left its chain: the frame's next page may be in a chain of another stripe,
/// which is under another lock.
pub(crate) struct Evicted {
    page: Rest,
    number: u32,
    key: PageKey,
}

impl Evicted {
    /// The memory that the page took, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        self.page.memory_bytes()
    }

    /// The name of the page.
    pub fn key(&self) -> PageKey {
        self.key
    }

    /// The bytes of the page.
    pub fn bytes(&self) -> &[u8] {
        &self.page.buffer
    }

    /// Whether it was a data page with one of these lengths.
    pub fn is_data_of(&self, lengths: RangeInclusive<usize>) -> bool {
        self.page.charge.pays_for(PageKind::Data) && lengths.contains(&self.page.buffer.capacity())
    }

    /// Takes the page's buffer, with the charge that pays for the page. The frame becomes free.
    pub fn take_memory(mut self) -> (Buffer, Charge) {
        let buffer = std::mem::replace(&mut self.page.buffer, Buffer::zeroed(0));
        (buffer, std::mem::replace(&mut self.page.charge, Charge::none()))
    }
}

impl Drop for Evicted {
    #[inline]
    fn drop(&mut self) {
        if let Some(frames) = &self.page.frames {
            frames.free.lock().numbers.push(self.number);
        }
    }
}

impl Rest {
    fn memory_bytes(&self) -> u64 {
        cost_bytes(self.buffer.capacity() as u64) + self.hints.get().map_or(0, |hints| hints.charge.bytes())
    }
}

/// The frames of a cache. Thread safe.
pub(crate) struct Frames {
    /// Segment `i` has `FIRST << i` frames, and is made when the first of them is needed.
    segments: [OnceLock<Segment>; SEGMENTS],
    free: Mutex<Free>,
    /// Whether frames are retired. It changes only under the lock of `free`.
    has_retired: AtomicBool,
    /// The hazards of readers to whom pages are lent.
    hazards: Arc<Hazards>,
}

/// Frames of the first segment.
const FIRST: u32 = 64;

/// Enough for the numbers up to 2^32 - 64.
const SEGMENTS: usize = 26;

#[derive(Default)]
struct Free {
    numbers: Vec<u32>,
    /// How many frames were ever taken. Their numbers start at 1.
    made: u32,
    /// Frames whose word is 0, but whose page was lent when it should have left them. At most a few for each thread.
    retired: Vec<u32>,
}

/// Frames that are allocated together.
struct Segment {
    frames: Box<[Frame]>,
    /// The cells that the frames point to. They were allocated as a box.
    rests: NonNull<[RestCell]>,
}

// SAFETY: the rests are reached through the frames only, which are Send and Sync.
unsafe impl Send for Segment {}
// SAFETY: as above.
unsafe impl Sync for Segment {}

impl Segment {
    /// `count` frames, numbered from `first`.
    fn new(first: u32, count: u32) -> Self {
        let rests: Box<[RestCell]> = (0..count).map(|_| RestCell::default()).collect();
        let rests = NonNull::from(Box::leak(rests));
        // SAFETY: `rests` has `count` elements.
        let rest = |i: u32| unsafe { rests.cast::<RestCell>().add(i as usize) };
        let frames = (0..count).map(|i| Frame::new(first + i, rest(i))).collect();
        Self { frames, rests }
    }

    fn bytes(&self) -> u64 {
        (size_of_val(&*self.frames) + self.rests.len() * size_of::<RestCell>()) as u64
    }
}

impl Drop for Segment {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the rests came from a box, and the frames that point to them are dropped here, too.
        drop(unsafe { Box::from_raw(self.rests.as_ptr()) });
    }
}

impl Frames {
    /// No frames, whose pages are lent to readers with leases on `hazards`.
    pub fn new(hazards: Arc<Hazards>) -> Arc<Self> {
        Arc::new(Self {
            segments: [const { OnceLock::new() }; SEGMENTS],
            free: Mutex::default(),
            has_retired: AtomicBool::new(false),
            hazards,
        })
    }

    /// The hazards of readers to whom pages are lent.
    #[inline]
    pub fn hazards(&self) -> &Arc<Hazards> {
        &self.hazards
    }

    fn retire(&self, number: u32) {
        let mut free = self.free.lock();
        free.retired.push(number);
        self.has_retired.store(true, Ordering::Relaxed);
    }

    /// Whether frames are retired. The answer may be late.
    #[inline]
    pub fn has_retired(&self) -> bool {
        self.has_retired.load(Ordering::Relaxed)
    }

    /// Takes out of their retired frames all pages that are lent to nobody any more.
    pub fn take_retired(&self) -> Vec<Evicted> {
        let free = &mut *self.free.lock();
        let taken: Vec<u32> = free.retired.extract_if(.., |number| !self.hazards.are_on(self.known(*number))).collect();
        self.has_retired.store(!free.retired.is_empty(), Ordering::Relaxed);
        // SAFETY: whoever retired the frame has set its word to 0, and this thread alone has taken it from the list.
        // The page is not lent, and nobody can find it.
        taken.into_iter().map(|number| unsafe { self.known(number).empty() }).collect()
    }

    fn known(&self, number: u32) -> &Frame {
        self.get(number).expect("a retired frame was made")
    }

    /// The frame with the given number; `None` for 0.
    #[inline]
    pub fn get(&self, number: u32) -> Option<&Frame> {
        let place = (number.checked_sub(1)?).checked_add(FIRST)?;
        let segment = place.ilog2() - FIRST.ilog2();
        self.segments[segment as usize].get()?.frames.get((place - (FIRST << segment)) as usize)
    }

    /// The memory of all frames made so far. They are kept until these `Frames` are dropped.
    pub fn bytes(&self) -> u64 {
        self.segments.iter().filter_map(OnceLock::get).map(Segment::bytes).sum()
    }

    /// A frame that is not in use.
    fn take(&self) -> &Frame {
        let number = {
            let mut free = self.free.lock();
            free.numbers.pop().unwrap_or_else(|| {
                free.made += 1;
                free.made
            })
        };
        let segment = (number - 1 + FIRST).ilog2() - FIRST.ilog2();
        let (first, count) = ((FIRST << segment) - FIRST + 1, FIRST << segment);
        self.segments[segment as usize].get_or_init(|| Segment::new(first, count));
        self.get(number).expect("its segment was made")
    }
}

/// A page in memory that a step reads: its header and its payload.
pub trait Page: Deref<Target = [u8]> {
    /// The page, for what needs no pin of its own.
    fn live(&self) -> LivePage<'_>;

    /// What the page is for.
    #[inline]
    fn kind(&self) -> PageKind {
        self.live().kind()
    }

    /// Where the page was read.
    #[inline]
    fn address(&self) -> Address {
        self.live().address()
    }

    /// A reference to the page that keeps it in memory. `None` if the page is leaving, or if an eviction has just met it.
    fn keep(&self) -> Option<PageRef>;
}

impl Page for PageRef {
    #[inline]
    fn live(&self) -> LivePage<'_> {
        self.live_page()
    }

    #[inline]
    fn keep(&self) -> Option<PageRef> {
        Some(self.clone())
    }
}

/// A page in a live frame. Something else keeps it there: a pin, or a hazard.
#[derive(Clone, Copy)]
pub struct LivePage<'p>(&'p Frame);

impl fmt::Debug for LivePage<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LivePage").field("kind", &self.kind()).field("address", &self.address()).finish_non_exhaustive()
    }
}

impl<'p> LivePage<'p> {
    /// # Safety
    ///
    /// Until the end of `'p`, the frame is pinned, or it is protected and was then live and had a page of the cache.
    #[inline]
    unsafe fn new(frame: &'p Frame) -> Self {
        Self(frame)
    }

    #[inline]
    fn face(self) -> &'p Face {
        // SAFETY: while a live frame is pinned or protected, its page is not changed, and no mutable reference to it
        // exists. The thread that made this value has seen with acquire that the frame is live.
        unsafe { &*self.0.face.get() }
    }

    #[inline]
    fn rest(self) -> &'p Rest {
        // SAFETY: as for the face. The rest lives as long as the frame.
        unsafe { &*self.0.rest.as_ref().get() }.as_ref().expect("a live frame holds a page")
    }

    /// Number of the frame.
    fn number(self) -> u32 {
        self.0.number
    }

    /// The bytes of the page.
    #[inline]
    fn bytes(self) -> &'p [u8] {
        let Face { start, len, .. } = *self.face();
        // SAFETY: the face points to the bytes of the buffer in the rest. They stay there as long as the page does.
        unsafe { std::slice::from_raw_parts(start.as_ptr(), len as usize) }
    }

    #[inline]
    fn kind(self) -> PageKind {
        self.face().kind
    }

    #[inline]
    fn address(self) -> Address {
        let Face { stored_bytes, crc, .. } = *self.face();
        // A live frame keeps its name.
        let offset = self.0.unit.load(Ordering::Relaxed) * PACK_BYTES;
        Address { offset, bytes: stored_bytes, crc }
    }

    /// Whether this page has the address and the kind that its parent states. The page was verified for the address
    /// and the kind of the read that brought it, but a damaged parent may state others.
    #[inline]
    pub(crate) fn is(self, at: &Address, kind: PageKind) -> bool {
        self.kind() == kind && self.address() == *at
    }

    /// Counts a use.
    #[inline]
    pub(crate) fn count_use(self) {
        self.0.count_use();
    }

    /// Notes which part of the page a use is about.
    #[inline]
    pub(crate) fn note_part(self, part: Part) {
        self.0.uses.note(part);
    }

    /// Notes a use by a reader that notes no parts.
    #[inline]
    pub(crate) fn note_all(self) {
        self.0.uses.note_all();
    }

    /// Bytes of the page's buffer.
    fn buffer_bytes(self) -> u64 {
        u64::from(self.face().blocks) * BLOCK_BYTES as u64
    }

    /// Where child `i` of the page was last seen.
    #[inline]
    pub(crate) fn hint(self, i: usize) -> Hint {
        Hint(self.hints().map_or(0, |hints| hints.cell(i).load(Ordering::Relaxed)))
    }

    /// Remembers where child `i` of the page is, if the page has hints.
    pub(crate) fn set_hint(self, i: usize, child: LivePage<'_>) {
        if let Some(hints) = self.hints() {
            hints.cell(i).store(Hint::of(child).0, Ordering::Relaxed);
        }
    }

    /// The hints of the page. They are made here at first use, if the page is resident and the budget has room for
    /// them.
    #[inline]
    fn hints(self) -> Option<&'p Hints> {
        let rest = self.rest();
        rest.hints.get().or_else(|| self.make_hints(rest))
    }

    #[cold]
    fn make_hints(self, rest: &'p Rest) -> Option<&'p Hints> {
        if self.0.word.load(Ordering::Relaxed) & CACHED == 0 {
            return None;
        }
        let bytes = hint_bytes(self.buffer_bytes(), self.kind());
        let charge = rest.charge.for_hints(bytes)?;
        let cells = (0..bytes as usize / size_of::<AtomicU64>()).map(|_| AtomicU64::new(0)).collect();
        Some(rest.hints.get_or_init(|| Hints { cells, charge }))
    }
}

impl PageRef {
    /// A page outside every cache and budget. `buffer` holds a decoded page, as
    /// [`decode_page`](crate::page::decode_page) returns it.
    pub fn detached(buffer: Buffer, header: &PageHeader, at: Address) -> Self {
        let rest = NonNull::from(Box::leak(Box::new(RestCell::default())));
        let frame = Box::leak(Box::new(Frame::new(0, rest)));
        frame.set_name(PageKey::new(0, &at));
        // SAFETY: the frame was made here and is not known elsewhere.
        unsafe { Self::begin(NonNull::from(frame), buffer, header, &at, Charge::none(), None) }
    }

    /// A page with the given name, whose memory `charge` pays for. It is not resident in the cache yet.
    pub(crate) fn charged(
        frames: &Arc<Frames>,
        key: PageKey,
        buffer: Buffer,
        header: &PageHeader,
        at: &Address,
        charge: Charge,
    ) -> Self {
        let frame = frames.take();
        frame.set_name(key);
        frame.take_uses();
        // SAFETY: `take` gives a frame to no other thread while it is in use, so only this thread fills it.
        unsafe { Self::begin(NonNull::from(frame), buffer, header, at, charge, Some(Arc::clone(frames))) }
    }

    /// # Safety
    ///
    /// The frame is not live, and no other thread is putting a page into it. The frame has the name of the page.
    unsafe fn begin(
        frame: NonNull<Frame>,
        mut buffer: Buffer,
        header: &PageHeader,
        address: &Address,
        charge: Charge,
        frames: Option<Arc<Frames>>,
    ) -> Self {
        buffer.set_len_within_capacity(header.memory_bytes as usize);
        let face = Face {
            start: NonNull::from(&mut *buffer).cast(),
            len: header.memory_bytes,
            stored_bytes: address.bytes,
            crc: address.crc,
            blocks: u16::try_from(buffer.capacity() / BLOCK_BYTES).expect("a page is at most 8 MiB"),
            kind: header.kind,
        };
        let rest = Rest { buffer, hints: OnceLock::new(), charge, frames };
        // SAFETY: the frame is not live, so threads that look at it do not look at its contents, and only the
        // caller fills it.
        unsafe {
            *frame.as_ref().face.get() = face;
            *frame.as_ref().rest.as_ref().get() = Some(rest);
            frame.as_ref().word.fetch_add(LIVE | 1, Ordering::Release);
        }
        Self(frame)
    }

    #[inline]
    fn frame(&self) -> &Frame {
        // SAFETY: a pinned frame is not freed. A frame of a cache lives as long as its `Frames`, and the page in
        // the frame keeps the `Frames` alive. A frame outside a cache is freed when its word is set to 0.
        unsafe { self.0.as_ref() }
    }

    /// The page, for what needs no pin of its own.
    #[inline]
    fn live_page(&self) -> LivePage<'_> {
        // SAFETY: this reference pins the page.
        unsafe { LivePage::new(self.frame()) }
    }

    #[inline]
    fn rest(&self) -> &Rest {
        self.live_page().rest()
    }

    /// Number of the frame.
    pub(crate) fn number(&self) -> u32 {
        self.frame().number
    }

    /// Makes the page resident, when it enters the table. The caller holds the stripe's lock.
    pub(crate) fn give_to_cache(&self) {
        self.frame().word.fetch_or(CACHED, Ordering::Release);
    }

    /// What the page is for.
    #[inline]
    pub fn kind(&self) -> PageKind {
        self.live_page().kind()
    }

    /// Where the page was read.
    #[inline]
    pub fn address(&self) -> Address {
        self.live_page().address()
    }

    /// The length of the page's buffer, in bytes.
    pub(crate) fn buffer_bytes(&self) -> usize {
        self.live_page().buffer_bytes() as usize
    }

    /// What the page costs the cache, in bytes: its buffer and the structures around it, but not its hints.
    pub fn cost_bytes(&self) -> u64 {
        cost_bytes(self.live_page().buffer_bytes())
    }

    /// The memory that the page takes now, in bytes: its cost, and its hints if any.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.rest().memory_bytes()
    }

    /// Whether this is the only pin of the page.
    pub(crate) fn is_last(&self) -> bool {
        self.frame().word.load(Ordering::Relaxed) & PINS == 1
    }

    /// Counts a use.
    #[inline]
    pub(crate) fn count_use(&self) {
        self.frame().count_use();
    }

    /// Uses counted.
    #[cfg(test)]
    pub(crate) fn uses(&self) -> u8 {
        self.frame().uses().times()
    }

    /// Prefetches the hint that [`PageRef::prefetch_child`] reads.
    #[inline]
    pub fn prefetch_hint(&self, i: usize) {
        if let Some(hints) = self.rest().hints.get() {
            prefetch(std::ptr::from_ref(hints.cell(i)).addr(), size_of::<AtomicU64>());
        }
    }

    /// Prefetches child `i` of the page and its frame, if a hint says where they are.
    #[inline]
    pub fn prefetch_child(&self, i: usize) {
        let hint = self.live_page().hint(i);
        let Some(frames) = &self.rest().frames else { return };
        if let Some(frame) = frames.get(hint.number()) {
            hint.prefetch();
            prefetch(std::ptr::from_ref(frame).addr(), size_of::<Frame>());
        }
    }

    /// Like [`PageRef::prefetch_child`], but prefetches only the first bytes of the page, before its keys.
    #[inline]
    pub fn prefetch_child_head(&self, i: usize) {
        let hint = self.live_page().hint(i);
        let Some(frames) = &self.rest().frames else { return };
        if let Some(frame) = frames.get(hint.number()) {
            hint.prefetch_bytes(1);
            prefetch(std::ptr::from_ref(frame).addr(), size_of::<Frame>());
        }
    }
}

impl Hints {
    #[inline]
    fn cell(&self, i: usize) -> &AtomicU64 {
        self.cells.get(i).unwrap_or_else(|| &self.cells[i % self.cells.len()])
    }
}

impl Clone for PageRef {
    #[inline]
    fn clone(&self) -> Self {
        let word = self.frame().word.fetch_add(1, Ordering::Relaxed);
        let clone = Self(self.0);
        assert!(word & PINS < MAX_PINS, "a quarter of a billion references to a page were forgotten");
        clone
    }
}

impl Drop for PageRef {
    #[inline]
    fn drop(&mut self) {
        let frame = self.frame();
        let mut word = frame.word.load(Ordering::Relaxed);
        loop {
            let is_last = word & !FORGOTTEN == LIVE | 1;
            let next = if is_last { 0 } else { word - 1 };
            match frame.word.compare_exchange_weak(word, next, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) if is_last => break,
                Ok(_) => return,
                Err(changed) => word = changed,
            }
        }
        // SAFETY: this thread has just set the word to 0. Until then, the frame was live and had only this pin.
        unsafe { self.leave(word & FORGOTTEN != 0) }
    }
}

impl PageRef {
    /// Takes the page out of its frame. `may_be_lent` says whether the cache ever had it.
    ///
    /// # Safety
    ///
    /// The caller has set the word to 0. Until then, the frame was live and had only the pin of this reference.
    #[inline]
    unsafe fn leave(&self, may_be_lent: bool) {
        let frame = self.frame();
        let evicted = if may_be_lent {
            // SAFETY: the contents are still in the frame, and nobody takes them out before this thread does or has
            // retired the frame.
            let rest = unsafe { &*frame.rest.as_ref().get() };
            let frames = rest.as_ref().and_then(|rest| rest.frames.clone()).expect("the cache had the page");
            // SAFETY: as the caller promises.
            let evicted = unsafe { frame.empty_or_retire(&frames) };
            if evicted.is_none() {
                // The cache may be gone, and the page given back meanwhile. Then nobody else would free it.
                drop(frames.take_retired());
            }
            evicted
        } else {
            // SAFETY: as the caller promises, and the cache never had the page.
            Some(unsafe { frame.empty() })
        };
        if evicted.as_ref().is_some_and(|evicted| evicted.page.frames.is_none()) {
            // SAFETY: the page has no `Frames`, so its frame and the frame's rest were each leaked from a box of
            // their own. The frame cannot be found, and this was the last reference to it.
            unsafe {
                drop(Box::from_raw(frame.rest.as_ptr()));
                drop(Box::from_raw(self.0.as_ptr()));
            }
        }
        drop(evicted);
    }
}

impl Deref for PageRef {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        self.live_page().bytes()
    }
}

impl fmt::Debug for PageRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PageRef")
            .field("kind", &self.kind())
            .field("address", &self.address())
            .field("bytes", &self.len())
            .field("charge", &self.rest().charge)
            .finish()
    }
}

#[cfg(test)]
mod tests;
