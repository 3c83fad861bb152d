//! A hash table that finds the frame of a page. Its chains are linked through the frames. This module does not know
//! what is in the frames.
//!
//! * All pages of a chain are in the same stripe, and the chain changes only under that stripe's lock.
//! * While a lock-free search looks at a frame, the frame may leave its chain, and the search may then miss a page
//!   that is in the table. So a page counts as missing only after a search under the lock. A search never finds a
//!   wrong page, because it pins or protects the frame before it compares the name.
//! * When a table has become too small, it is succeeded by one with at least twice as many chains. The old table is
//!   not freed, because another thread may still be searching it without a lock. All tables together take less than
//!   twice the memory of the last one.

use crate::frame::{Frame, Frames};
use crate::page_key::PageKey;
use crate::{LentPage, PageRef};
use os::sync::OnceLock;
use os::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use os::sync::hazard::Lease;

/// The number of chains of the smallest table. Each stripe has at least one chain.
#[cfg(not(any(loom, shuttle)))]
const MIN_CHAINS: usize = 64;
/// Under these libraries, each look at a chain is a step of the schedule.
#[cfg(any(loom, shuttle))]
const MIN_CHAINS: usize = 8;

/// The most tables that can succeed one another. The cache runs out of frame numbers before it needs more.
const TABLES: usize = 27;

/// The most frames that a lock-free search looks at. Longer chains are very rare. The limit also ends a search that
/// was led into another chain by a frame that moved.
const MAX_STEPS: usize = 16;

/// A hash table of frames.
pub(crate) struct FrameTable {
    /// Table `i` has `MIN_CHAINS << i` chains. Each cell is the number of the first frame of its chain.
    tables: [OnceLock<Box<[AtomicU32]>>; TABLES],
    current: AtomicUsize,
}

impl FrameTable {
    /// A table for about `frames` frames.
    pub fn new(frames: u64) -> Self {
        let table = Self { tables: [const { OnceLock::new() }; TABLES], current: AtomicUsize::new(0) };
        let wanted = Self::wanted(frames);
        table.make(wanted);
        table.current.store(wanted, Ordering::Relaxed);
        table
    }

    fn wanted(frames: u64) -> usize {
        let chains = frames.next_power_of_two().max(MIN_CHAINS as u64);
        ((chains / MIN_CHAINS as u64).ilog2() as usize).min(TABLES - 1)
    }

    fn make(&self, i: usize) -> &[AtomicU32] {
        self.tables[i].get_or_init(|| (0..MIN_CHAINS << i).map(|_| AtomicU32::new(0)).collect())
    }

    fn chains(&self) -> &[AtomicU32] {
        self.tables[self.current.load(Ordering::Acquire)].get().expect("the current table was made")
    }

    fn chain(&self, key: PageKey) -> &AtomicU32 {
        let chains = self.chains();
        &chains[key.hash() as usize & (chains.len() - 1)]
    }

    /// Memory of all tables in bytes.
    pub fn bytes(&self) -> u64 {
        self.tables.iter().filter_map(OnceLock::get).map(|chains| size_of_val(&**chains) as u64).sum()
    }

    /// The page with the given name; a lock-free search, which may miss it.
    #[inline]
    pub fn find(&self, frames: &Frames, key: PageKey) -> Option<PageRef> {
        self.search(frames, key, |frame| frame.find(key))
    }

    /// Lends the page with the given name to the thread of `lease`; a lock-free search, which may miss it.
    #[inline]
    pub fn lend<'g>(&self, frames: &'g Frames, key: PageKey, lease: &'g Lease) -> Option<LentPage<'g>> {
        self.search(frames, key, |frame| frame.lend(key, lease))
    }

    /// Calls `take` with the frames that have the given name, until it returns something.
    #[inline]
    fn search<'f, T>(&self, frames: &'f Frames, key: PageKey, take: impl Fn(&'f Frame) -> Option<T>) -> Option<T> {
        let mut number = self.chain(key).load(Ordering::Acquire);
        for _ in 0..MAX_STEPS {
            let frame = frames.get(number)?;
            if frame.is_named(key)
                && let Some(page) = take(frame)
            {
                return Some(page);
            }
            number = frame.next();
        }
        None
    }

    /// The frame of the page with the given name. The caller holds the lock of the page's stripe.
    pub fn frame<'f>(&self, frames: &'f Frames, key: PageKey) -> Option<&'f Frame> {
        let mut number = self.chain(key).load(Ordering::Relaxed);
        while let Some(frame) = frames.get(number) {
            if frame.is_named(key) {
                return Some(frame);
            }
            number = frame.next();
        }
        None
    }

    /// Adds the frame of a page that becomes resident. The caller holds the lock of the page's stripe.
    pub fn insert(&self, frame: &Frame, number: u32) {
        let chain = self.chain(frame.key());
        frame.set_next(chain.load(Ordering::Relaxed));
        chain.store(number, Ordering::Release);
    }

    /// Removes a frame that is in the table. The caller holds the lock of the page's stripe.
    pub fn remove(&self, frames: &Frames, key: PageKey, number: u32) {
        let chain = self.chain(key);
        let frame = |number| frames.get(number).expect("a chain leads to its frames");
        let mut at = chain.load(Ordering::Relaxed);
        let next = frame(number).next();
        if at == number {
            chain.store(next, Ordering::Release);
            return;
        }
        loop {
            let before = frame(at);
            at = before.next();
            if at == number {
                before.set_next(next);
                return;
            }
        }
    }

    /// Whether the table is too small for `frames` frames.
    pub fn is_small_for(&self, frames: u64) -> bool {
        Self::wanted(frames) > self.current.load(Ordering::Relaxed)
    }

    /// Switches to a table for `frames` frames. The caller holds the locks of all stripes.
    pub fn grow(&self, all: &Frames, frames: u64) {
        let (from, to) = (self.current.load(Ordering::Relaxed), Self::wanted(frames));
        if to <= from {
            return;
        }
        let old: Vec<u32> = self.numbers(all, 0, 1).collect();
        let chains = self.make(to);
        for number in old {
            let frame = all.get(number).expect("a chain leads to its frames");
            let chain = &chains[frame.key().hash() as usize & (chains.len() - 1)];
            frame.set_next(chain.load(Ordering::Relaxed));
            chain.store(number, Ordering::Release);
        }
        self.current.store(to, Ordering::Release);
    }

    /// The numbers of the frames of stripe `stripe` out of `stripes`. The caller holds the stripe's lock.
    pub fn numbers<'t>(&'t self, frames: &'t Frames, stripe: usize, stripes: usize) -> impl Iterator<Item = u32> + 't {
        let chains = self.chains().iter().skip(stripe).step_by(stripes);
        chains.flat_map(|chain| {
            let first = Some(chain.load(Ordering::Relaxed)).filter(|&number| number > 0);
            std::iter::successors(first, |&number| {
                let frame = frames.get(number).expect("a chain leads to its frames");
                Some(frame.next()).filter(|&next| next > 0)
            })
        })
    }
}
