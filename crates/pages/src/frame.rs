//! A page in memory and its pins. It does not know how the page is found, nor what its payload means.
//!
//! The bytes were verified before the page was put into its frame and never change. [`PageRef`] is `Send + Sync`; while
//! one lives the page is pinned: it cannot be evicted and counts against the budget.
//!
//! Frames are numbered and never freed while their `Frames` live, so that a reader without a lock may look at one that
//! is just being emptied, or holds another page by now. Everything about a frame goes through one word:
//!
//! ```text
//! bit 31    LIVE      it holds a page
//! bit 30    CACHED    the cache has the page, so that it can be found
//! 0..30     pins      references to it, and readers that are just comparing its name
//! ```
//!
//! * A reader that looks for a page adds a pin and then reads the name. If both marks are there and the name is right,
//!   the pin is a reference; otherwise it is taken away again, as any reference is. A pin keeps what it found from
//!   changing.
//! * A page goes when the word is changed to 0 in one step, which succeeds only once: the cache changes it from LIVE
//!   and CACHED without pins, when it evicts the page or gives it up; the holder of the last pin changes it from LIVE
//!   and that pin. So no page is left without an owner, and a thread that has given up its pin does not look at the
//!   frame again: the frames may be gone with the page.
//! * Looking adds to an empty frame's word too, so a page comes into a frame by adding LIVE and the first pin.
//! * What is in a live frame is written before LIVE is added (release) and read after LIVE was seen (acquire). The
//!   thread that set the word to 0 takes it out, after all holders of the page have released it (release, acquire).

use crate::cache::budget::Charge;
use crate::cache::key::PageKey;
use crate::cost::{cost_bytes, hint_bytes};
use crate::{Address, PageHeader, PageKind};
use os::Buffer;
use os::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use os::sync::{Arc, Mutex, OnceLock};
use std::cell::UnsafeCell;
use std::fmt;
use std::ops::Deref;
use std::ptr::NonNull;

const LIVE: u32 = 1 << 31;
const CACHED: u32 = 1 << 30;
const PINS: u32 = CACHED - 1;
/// The most references that are given out, so that leaked references never reach the two marks. The rest is for pins of
/// readers that are being refused.
const MAX_PINS: u32 = PINS / 2;

/// The most uses that are counted from one look of the policy to the next: the policy does not distinguish more.
const MAX_USES: u8 = 3;

/// A page in memory, header and payload. Cloning costs one atomic addition; it panics when half a billion references
/// were leaked, which is the only way to have as many.
pub struct PageRef(NonNull<Frame>);

// SAFETY: a frame is shared by references only; its word is atomic, and what it holds is Send + Sync and not changed while
// a reference lives.
unsafe impl Send for PageRef {}
// SAFETY: as above.
unsafe impl Sync for PageRef {}

/// A place for a page.
#[repr(align(64))]
pub(crate) struct Frame {
    word: AtomicU32,
    /// Number of the next frame in the table's chain, 0 for none. Written under the lock of the chain's shard.
    next: AtomicU32,
    /// The name of the page: what is read before it is known that it is this page.
    slot: AtomicU32,
    /// Where the policy has it. Under the lock of the shard.
    place: AtomicU32,
    unit: AtomicU64,
    uses: AtomicU8,
    /// Own number; 0 of a frame that is alone.
    number: u32,
    page: UnsafeCell<Option<FramePage>>,
}

// SAFETY: `page` is reached only through a pin of a live frame, for reading, or, alone, by the thread that set the word
// to 0 or took the frame's number from the list of free ones; see the top of the file.
unsafe impl Sync for Frame {}

/// What a live frame holds. Fields drop in this order: the memory is freed before the budget is credited, and the
/// frames go last.
struct FramePage {
    buffer: Buffer,
    address: Address,
    kind: PageKind,
    /// Frames where children of the page were last seen, by their place modulo the length; made when first wanted.
    hints: OnceLock<Box<[AtomicU32]>>,
    charge: Charge,
    /// `None` for a frame that is alone.
    frames: Option<Arc<Frames>>,
}

impl Frame {
    fn new(number: u32) -> Self {
        Self {
            word: AtomicU32::new(0),
            next: AtomicU32::new(0),
            slot: AtomicU32::new(0),
            place: AtomicU32::new(0),
            unit: AtomicU64::new(0),
            uses: AtomicU8::new(0),
            number,
            page: UnsafeCell::new(None),
        }
    }

    /// Number of the next frame in the chain.
    pub fn next(&self) -> u32 {
        self.next.load(Ordering::Acquire)
    }

    /// Under the lock of the chain's shard.
    pub fn set_next(&self, number: u32) {
        self.next.store(number, Ordering::Release);
    }

    /// Where the policy has the page. Under the lock of the shard.
    pub fn place(&self) -> u32 {
        self.place.load(Ordering::Relaxed)
    }

    /// Under the lock of the shard.
    pub fn set_place(&self, place: u32) {
        self.place.store(place, Ordering::Relaxed);
    }

    /// Whether the frame has, or had, this name.
    #[inline]
    pub fn is_named(&self, key: PageKey) -> bool {
        self.unit.load(Ordering::Relaxed) == key.unit && self.slot.load(Ordering::Relaxed) == key.slot
    }

    /// The name, of a page that the cache has. Under the lock of the shard.
    pub fn key(&self) -> PageKey {
        PageKey { slot: self.slot.load(Ordering::Relaxed), unit: self.unit.load(Ordering::Relaxed) }
    }

    /// A reference to the page, if the frame holds the one of this name and the cache has it.
    #[inline]
    pub fn find(&self, key: PageKey) -> Option<PageRef> {
        let word = self.word.fetch_add(1, Ordering::Acquire);
        // Whatever the frame holds, this is a pin now, and dropping the reference removes it.
        let page = PageRef(NonNull::from(self));
        (word & (LIVE | CACHED) == LIVE | CACHED && word & PINS < MAX_PINS && self.is_named(key)).then_some(page)
    }

    /// A reference to a page that the cache has. Under the lock of the shard.
    pub fn pin(&self) -> PageRef {
        let word = self.word.fetch_add(1, Ordering::Acquire);
        debug_assert!(word & (LIVE | CACHED) == LIVE | CACHED, "what is in the table is the cache's");
        PageRef(NonNull::from(self))
    }

    /// Whether only the cache has the page.
    pub fn is_unpinned(&self) -> bool {
        self.word.load(Ordering::Relaxed) & PINS == 0
    }

    /// Counts a use of the page. Two at once may count as one: it is a hint.
    pub fn count_use(&self) {
        let uses = self.uses.load(Ordering::Relaxed);
        if uses < MAX_USES {
            self.uses.store(uses + 1, Ordering::Relaxed);
        }
    }

    /// The uses since they were last taken.
    pub fn uses(&self) -> u8 {
        self.uses.load(Ordering::Relaxed)
    }

    /// Whether `page` is a reference to the page in this frame.
    pub fn is_of(&self, page: &PageRef) -> bool {
        std::ptr::eq(self, page.0.as_ptr())
    }

    /// The uses since this was last asked, and forgets them.
    pub fn take_uses(&self) -> u8 {
        let uses = self.uses.load(Ordering::Relaxed);
        if uses > 0 {
            self.uses.store(0, Ordering::Relaxed);
        }
        uses
    }

    /// Takes the page out if there is no reference to it; the caller drops what is returned. Under the lock of the
    /// shard.
    pub fn evict(&self) -> Option<Evicted> {
        self.word.compare_exchange(LIVE | CACHED, 0, Ordering::AcqRel, Ordering::Relaxed).ok()?;
        // SAFETY: the word was set to 0 here, from live.
        Some(unsafe { self.empty() })
    }

    /// The cache gives the page up: it goes now or, later, with its last reference. Under the lock of the shard.
    pub fn forget(&self) -> Option<Evicted> {
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            let next = if word & PINS == 0 { 0 } else { word & !CACHED };
            match self.word.compare_exchange_weak(word, next, Ordering::AcqRel, Ordering::Relaxed) {
                // SAFETY: the word was set to 0 here, from live and no pins.
                Ok(_) => return (next == 0).then(|| unsafe { self.empty() }),
                Err(changed) => word = changed,
            }
        }
    }

    /// Takes out what the frame holds; it is used again once that is dropped.
    ///
    /// # Safety
    ///
    /// The caller has set the word to 0, from live and no pins but one of its own.
    unsafe fn empty(&self) -> Evicted {
        // SAFETY: by setting the word the caller became the only thread that may reach the page, until it is in the
        // list.
        let page = unsafe { &mut *self.page.get() }.take().expect("a live frame holds a page");
        Evicted { page, number: self.number }
    }
}

/// What was in a frame, on its way out. The frame is used again once this is dropped, and not before it has left its chain:
/// the next page in it may come into a chain of another shard, under another lock.
pub(crate) struct Evicted {
    page: FramePage,
    number: u32,
}

impl Evicted {
    /// What it cost.
    pub fn cost_bytes(&self) -> u64 {
        cost_bytes(&self.page.buffer, self.page.kind)
    }
}

impl Drop for Evicted {
    fn drop(&mut self) {
        if let Some(frames) = &self.page.frames {
            frames.free.lock().numbers.push(self.number);
        }
    }
}

/// The frames of a cache. Thread safe.
pub(crate) struct Frames {
    /// Segment `i` has `FIRST << i` frames, made when the first of them is wanted.
    segments: [OnceLock<Box<[Frame]>>; SEGMENTS],
    free: Mutex<Free>,
}

/// Frames of the first segment.
const FIRST: u32 = 64;

/// Enough for as many frames as there are numbers.
const SEGMENTS: usize = 26;

#[derive(Default)]
struct Free {
    numbers: Vec<u32>,
    /// Frames ever used. Their numbers are 1 and up.
    made: u32,
}

impl Frames {
    pub fn new() -> Arc<Self> {
        Arc::new(Self { segments: [const { OnceLock::new() }; SEGMENTS], free: Mutex::default() })
    }

    /// The frame of this number; `None` for 0.
    #[inline]
    pub fn get(&self, number: u32) -> Option<&Frame> {
        let place = (number.checked_sub(1)?).checked_add(FIRST)?;
        let segment = place.ilog2() - FIRST.ilog2();
        self.segments[segment as usize].get()?.get((place - (FIRST << segment)) as usize)
    }

    /// Memory of all frames made so far, which stay.
    pub fn bytes(&self) -> u64 {
        self.segments.iter().filter_map(OnceLock::get).map(|frames| size_of_val(&**frames) as u64).sum()
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
        let first = (FIRST << segment) - FIRST + 1;
        let frames = || (first..first + (FIRST << segment)).map(Frame::new).collect();
        self.segments[segment as usize].get_or_init(frames);
        self.get(number).expect("its segment was made")
    }
}

impl PageRef {
    /// A page that belongs to no cache and no budget; `buffer` holds a decoded page, as
    /// [`decode_page`](crate::page::decode_page) returns it.
    pub fn detached(buffer: Buffer, header: &PageHeader, at: Address) -> Self {
        let frame = NonNull::from(Box::leak(Box::new(Frame::new(0))));
        // SAFETY: the frame was made here and is not known elsewhere.
        unsafe { Self::begin(frame, buffer, header, at, Charge::none(), None) }
    }

    /// A page of this name, whose memory is paid for by `charge`. The cache does not have it yet.
    pub(crate) fn charged(
        frames: &Arc<Frames>,
        key: PageKey,
        buffer: Buffer,
        header: &PageHeader,
        at: Address,
        charge: Charge,
    ) -> Self {
        let frame = frames.take();
        frame.slot.store(key.slot, Ordering::Relaxed);
        frame.unit.store(key.unit, Ordering::Relaxed);
        frame.uses.store(0, Ordering::Relaxed);
        // SAFETY: the frame came out of the list of free ones.
        unsafe { Self::begin(NonNull::from(frame), buffer, header, at, charge, Some(Arc::clone(frames))) }
    }

    /// # Safety
    ///
    /// The frame is not live, and no other thread is putting a page into it.
    unsafe fn begin(
        frame: NonNull<Frame>,
        mut buffer: Buffer,
        header: &PageHeader,
        address: Address,
        charge: Charge,
        frames: Option<Arc<Frames>>,
    ) -> Self {
        buffer.set_len_within_capacity(header.memory_bytes as usize);
        let page = FramePage { buffer, address, kind: header.kind, hints: OnceLock::new(), charge, frames };
        // SAFETY: it is not live, so a thread that looks at it does not look at the page; and the caller alone fills
        // it.
        unsafe {
            *frame.as_ref().page.get() = Some(page);
            frame.as_ref().word.fetch_add(LIVE | 1, Ordering::Release);
        }
        Self(frame)
    }

    #[inline]
    fn frame(&self) -> &Frame {
        // SAFETY: a pinned frame is not freed: one of a cache lives as long as its frames, which the page in it keeps; one
        // that is alone is freed when its word is set to 0.
        unsafe { self.0.as_ref() }
    }

    #[inline]
    fn page(&self) -> &FramePage {
        // SAFETY: while it is pinned a live frame's page is not changed, and there is no mutable reference to it. The
        // thread that made the first reference saw with acquire that it is live.
        unsafe { &*self.frame().page.get() }.as_ref().expect("a live frame holds a page")
    }

    /// Number of the frame.
    pub(crate) fn number(&self) -> u32 {
        self.frame().number
    }

    /// From now on the cache has the page: it is in the table. Under the lock of the shard.
    pub(crate) fn give_to_cache(&self) {
        self.frame().word.fetch_or(CACHED, Ordering::Release);
    }

    /// What the page is for.
    #[inline]
    pub fn kind(&self) -> PageKind {
        self.page().kind
    }

    /// Where the page was read.
    #[inline]
    pub fn address(&self) -> Address {
        self.page().address
    }

    /// Whether this is the page that a parent means. It was verified for the address and kind it was read with; a
    /// damaged parent may mean another.
    #[inline]
    pub(crate) fn is(&self, at: &Address, kind: PageKind) -> bool {
        let page = self.page();
        page.kind == kind && page.address == *at
    }

    /// Memory the page takes, in bytes: its buffer and what stands around it.
    pub fn cost_bytes(&self) -> u64 {
        cost_bytes(&self.page().buffer, self.kind())
    }

    /// Whether only this reference and the cache have the page.
    pub(crate) fn is_last(&self) -> bool {
        self.frame().word.load(Ordering::Relaxed) & PINS == 1
    }

    /// Counts a use.
    pub(crate) fn count_use(&self) {
        self.frame().count_use();
    }

    /// Uses counted.
    #[cfg(test)]
    pub(crate) fn uses(&self) -> u8 {
        self.frame().uses.load(Ordering::Relaxed)
    }

    /// Number of the frame in which child `i` of the page was last seen, 0 if it was not.
    pub(crate) fn hint(&self, i: usize) -> u32 {
        self.hint_cell(i).map_or(0, |hint| hint.load(Ordering::Relaxed))
    }

    /// Remembers where child `i` of the page was seen.
    pub(crate) fn set_hint(&self, i: usize, number: u32) {
        if let Some(hint) = self.hint_cell(i) {
            hint.store(number, Ordering::Relaxed);
        }
    }

    fn hint_cell(&self, i: usize) -> Option<&AtomicU32> {
        let page = self.page();
        let hints = page.hints.get_or_init(|| {
            let hints = hint_bytes(page.buffer.capacity() as u64, page.kind) as usize / size_of::<AtomicU32>();
            (0..hints).map(|_| AtomicU32::new(0)).collect()
        });
        if hints.is_empty() { None } else { hints.get(i % hints.len()) }
    }
}

impl Clone for PageRef {
    fn clone(&self) -> Self {
        let word = self.frame().word.fetch_add(1, Ordering::Relaxed);
        let clone = Self(self.0);
        assert!(word & PINS < MAX_PINS, "half a billion references to a page were forgotten");
        clone
    }
}

impl Drop for PageRef {
    fn drop(&mut self) {
        let frame = self.frame();
        let mut word = frame.word.load(Ordering::Relaxed);
        loop {
            let next = if word == LIVE | 1 { 0 } else { word - 1 };
            match frame.word.compare_exchange_weak(word, next, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) if word == LIVE | 1 => break,
                Ok(_) => return,
                Err(changed) => word = changed,
            }
        }
        // SAFETY: the word was set to 0 here, from live and this pin.
        let evicted = unsafe { frame.empty() };
        if evicted.page.frames.is_none() {
            // SAFETY: a frame that is alone was leaked from a box when its page was put in, cannot be found, and this
            // was the last reference to it.
            drop(unsafe { Box::from_raw(self.0.as_ptr()) });
        }
        drop(evicted);
    }
}

impl Deref for PageRef {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.page().buffer
    }
}

impl fmt::Debug for PageRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let page = self.page();
        f.debug_struct("PageRef")
            .field("kind", &page.kind)
            .field("address", &page.address)
            .field("bytes", &page.buffer.len())
            .field("charge", &page.charge)
            .finish()
    }
}

#[cfg(test)]
mod tests;
