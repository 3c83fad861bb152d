//! One part of the cache: which of its pages are being read, and what the policy knows of its pages in memory. A
//! stripe does not know the budget, or how pages are read.
//!
//! Pages in memory are found in the table of the whole cache. The chains of that table are divided among the stripes.
//!
//! Not thread safe: the cache has a lock around each stripe.

use super::flight::Flight;
use super::table::FrameTable;
use crate::frame::{Evicted, Frame, Frames};
use crate::page_key::{KeyHash, PageKey};
use crate::policy::{Class, Policy, PolicyPlace, Tuning, Use};
use crate::{PageKind, PageRef};
use os::sync::Arc;
use os::sync::atomic::{AtomicU64, Ordering};
use std::collections::HashMap;

/// How much a page in the cache has been used lately.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageHeat {
    /// How often a proven page may still be found unused before it is evicted; `None` for other pages.
    pub chances: Option<u8>,
    /// How often the page was used since the cache last looked at it; 3 stands for 3 or more.
    pub uses: u8,
}

impl PageHeat {
    /// The heat as one number, which is 0 for a page that was not used again after its first use.
    pub fn degrees(self) -> u8 {
        self.uses + self.chances.map_or(0, |chances| 2 + chances)
    }
}

/// One part of the cache.
pub(crate) struct Stripe {
    flights: HashMap<PageKey, Arc<Flight>, KeyHash>,
    policy: Policy<u32>,
    kept: Arc<KeptShare>,
}

/// How many bytes of the cache kept pages may take, and how many bytes they take now. All stripes share one count.
#[derive(Default)]
pub(crate) struct KeptShare {
    most_bytes: AtomicU64,
    bytes: AtomicU64,
}

impl KeptShare {
    pub fn set_most(&self, bytes: u64) {
        self.most_bytes.store(bytes, Ordering::Relaxed);
    }

    pub fn most_bytes(&self) -> u64 {
        self.most_bytes.load(Ordering::Relaxed)
    }

    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    fn try_add(&self, bytes: u64) -> bool {
        let fits = self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes <= self.most_bytes();
        if !fits {
            self.take_away(bytes);
        }
        fits
    }

    fn take_away(&self, bytes: u64) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl Stripe {
    /// An empty stripe.
    pub fn new(kept: Arc<KeptShare>) -> Self {
        Self { flights: HashMap::default(), policy: Policy::new(Tuning::DEFAULT), kept }
    }

    /// The flight of a page, if the page is being read.
    pub fn flight(&self, key: PageKey) -> Option<&Arc<Flight>> {
        self.flights.get(&key)
    }

    /// Marks a missing page as being read.
    pub fn take_off(&mut self, key: PageKey, flight: Arc<Flight>) {
        let before = self.flights.insert(key, flight);
        debug_assert!(before.is_none(), "only a missing page takes off");
    }

    /// Notes that the read of a page is over.
    pub fn end_flight(&mut self, key: PageKey) {
        self.flights.remove(&key);
        if self.flights.is_empty() && self.flights.capacity() > MAX_IDLE_FLIGHTS {
            self.flights.shrink_to(MAX_IDLE_FLIGHTS);
        }
    }

    /// Notes that the cache has the page from now on. `asked` says whether a step needs the page already, and
    /// `kept` whether its file is kept.
    pub fn admit(
        &mut self,
        table: &FrameTable,
        frames: &Frames,
        key: PageKey,
        page: &PageRef,
        asked: bool,
        kept: bool,
    ) {
        let frame = frames.get(page.number()).expect("a page of a cache is in one of its frames");
        let place = self.policy.admit(page.number(), key.hash(), class(page.kind()), page.cost_bytes(), asked);
        frame.set_place(place.0);
        page.give_to_cache();
        table.insert(frame, page.number());
        if kept {
            self.keep(frame, page);
        }
    }

    /// Keeps a page in memory as long as other pages can be evicted, if the share of kept pages has room. Kept data
    /// pages give up room for an index page.
    pub fn keep(&mut self, frame: &Frame, page: &PageRef) {
        let place = PolicyPlace(frame.place());
        if self.policy.is_kept(place) {
            return;
        }
        while !self.kept.try_add(page.cost_bytes()) {
            let given_up = match class(page.kind()) {
                Class::Index => self.keep_less(Class::Data),
                Class::Data => None,
            };
            if given_up.is_none() {
                return;
            }
        }
        self.policy.keep(place);
    }

    /// From now on, the page of a frame stays no longer than other pages.
    pub fn keep_no_more(&mut self, frame: &Frame) {
        self.counting_kept(|policy| policy.keep_no_more(PolicyPlace(frame.place())));
    }

    /// While the share is exceeded, stops keeping pages of this stripe.
    pub fn keep_within_share(&mut self) {
        while self.kept.bytes() > self.kept.most_bytes() {
            if self.keep_less(Class::Data).or_else(|| self.keep_less(Class::Index)).is_none() {
                break;
            }
        }
    }

    fn keep_less(&mut self, class: Class) -> Option<u64> {
        let bytes = self.policy.keep_less(class)?;
        self.kept.take_away(bytes);
        Some(bytes)
    }

    /// Calls `act`, which may remove kept pages, and updates the count of kept bytes.
    fn counting_kept<T>(&mut self, act: impl FnOnce(&mut Policy<u32>) -> T) -> T {
        let before = self.policy.kept_bytes();
        let outcome = act(&mut self.policy);
        self.kept.take_away(before - self.policy.kept_bytes());
        outcome
    }

    /// How much the page of a frame has been used lately.
    pub fn heat(&self, frame: &Frame) -> PageHeat {
        PageHeat { chances: self.policy.chances(PolicyPlace(frame.place())), uses: frame.uses() }
    }

    /// Treats the page of a frame as a proven page.
    pub fn prove(&mut self, frame: &Frame, chances: u8) {
        self.policy.prove(PolicyPlace(frame.place()), chances);
    }

    /// Takes out unpinned pages that together take at least `bytes`, if the stripe has that many bytes of unpinned
    /// pages. For each page that it takes out, it looks at no more than `look` pages. The pages go to `out`, so
    /// that their memory is freed after the lock is released. Returns how many bytes these pages took.
    pub fn evict(
        &mut self,
        table: &FrameTable,
        frames: &Frames,
        bytes: u64,
        look: usize,
        out: &mut Vec<Evicted>,
    ) -> u64 {
        let frame = |number| frames.get(number).expect("the policy knows frames of the cache");
        let mut freed = 0;
        while freed < bytes {
            let uses = |number| {
                let frame: &Frame = frame(number);
                if frame.is_unpinned() { Use::Times(frame.take_uses()) } else { Use::Pinned }
            };
            let Some((number, _)) = self.counting_kept(|policy| policy.evict(look, uses)) else { break };
            let victim = frame(number);
            let key = victim.key();
            match victim.evict() {
                Some(evicted) => {
                    table.remove(frames, key, number);
                    freed += evicted.memory_bytes();
                    out.push(evicted);
                }
                None => {
                    // A reader has just pinned the page, so it is in use.
                    let page = victim.pin();
                    let place = self.policy.admit(number, key.hash(), class(page.kind()), page.cost_bytes(), true);
                    victim.set_place(place.0);
                }
            }
        }
        freed
    }

    /// Takes out the page of a frame, pinned or not.
    pub fn forget(&mut self, table: &FrameTable, frames: &Frames, number: u32, out: &mut Vec<Evicted>) {
        let frame = frames.get(number).expect("the table knows frames of the cache");
        self.counting_kept(|policy| policy.remove(PolicyPlace(frame.place())));
        table.remove(frames, frame.key(), number);
        out.extend(frame.forget());
    }
}

/// A stripe without flights keeps memory for this many flights.
const MAX_IDLE_FLIGHTS: usize = 64;

/// What a page is worth.
fn class(kind: PageKind) -> Class {
    if kind.serves_many() { Class::Index } else { Class::Data }
}
