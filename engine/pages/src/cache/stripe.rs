//! One part of the cache: its pages in flight, and the policy for its resident pages. A stripe does not know the
//! budget, or how pages are read.
//!
//! Resident pages are found in one table for the whole cache, whose chains are divided among the stripes.
//!
//! Not thread safe: the cache has a lock around each stripe.

use super::excerpts::{self, Cut};
use super::flight::Flight;
use super::table::FrameTable;
use crate::frame::{Evicted, Frame, Frames, Used};
use crate::page_key::{KeyHash, PageKey};
use crate::policy::{Class, Policy, PolicyPlace, Tuning, Use};
use crate::{PageKind, PageRef};
use os::sync::Arc;
use os::sync::atomic::{AtomicU64, Ordering};
use std::collections::HashMap;

/// How much a page in the cache has been used lately.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageHeat {
    /// How many more times the policy may find the page unused before it evicts it; `None` if the page is not
    /// proven.
    pub chances: Option<u8>,
    /// Uses since the policy last looked at the page; 3 stands for 3 or more.
    pub uses: u8,
}

impl PageHeat {
    /// The heat as one number: 0 for a page that was not used again after its first use.
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

/// How many bytes kept pages may take, and how many they take now. All stripes share one count.
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

    /// Makes a page resident. `asked` says whether a step already needs the page, and `kept` whether its file is
    /// kept.
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

    /// Keeps a page in memory as long as other pages can be evicted, if the share of kept pages has room. An index
    /// page may take the room of kept data pages.
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

    /// Makes the frame's page evictable like any other.
    pub fn keep_no_more(&mut self, frame: &Frame) {
        self.counting_kept(|policy| policy.keep_no_more(PolicyPlace(frame.place())));
    }

    /// Demotes kept pages of this stripe until the share is no longer exceeded.
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

    /// Calls `act`, which may remove kept pages, and corrects the count of kept bytes.
    fn counting_kept<T>(&mut self, act: impl FnOnce(&mut Policy<u32>) -> T) -> T {
        let before = self.policy.kept_bytes();
        let outcome = act(&mut self.policy);
        self.kept.take_away(before - self.policy.kept_bytes());
        outcome
    }

    /// How much the frame's page has been used lately.
    pub fn heat(&self, frame: &Frame) -> PageHeat {
        PageHeat { chances: self.policy.chances(PolicyPlace(frame.place())), uses: frame.uses().times() }
    }

    /// Makes the frame's page proven; see [`Policy::prove`].
    pub fn prove(&mut self, frame: &Frame, chances: u8) {
        self.policy.prove(PolicyPlace(frame.place()), chances);
    }

    /// Evicts unpinned pages of at least `bytes` in total, as far as the stripe has them. For each page, it looks
    /// at no more than `look` pages. The evicted pages go to `out`, so that their memory is freed after the lock is
    /// released. Returns the bytes that they took, and the excerpts that `cut` took out of them: it is given how a page was
    /// used and whether it is proven, and returns `None` if the page is wanted as a whole.
    pub fn evict(
        &mut self,
        (table, frames): (&FrameTable, &Frames),
        bytes: u64,
        look: usize,
        cut: impl Fn(&Frame, Used, bool) -> Option<Vec<Cut>>,
        out: &mut Vec<Evicted>,
    ) -> (u64, Vec<Cut>) {
        let frame = |number| frames.get(number).expect("the policy knows frames of the cache");
        let mut freed = 0;
        // Pages that are lent. They count as pinned for the rest of this call.
        let mut lent = Vec::new();
        let mut all_cuts = Vec::new();
        while freed < bytes {
            // What was cut out of the page that is looked at.
            let mut cuts = None;
            let uses = |number, is_proven| {
                let frame: &Frame = frame(number);
                if !frame.is_unpinned() || lent.contains(&number) {
                    return Use::Pinned;
                }
                let used = frame.take_uses();
                cuts = cut(frame, used, is_proven);
                if cuts.is_some() { Use::ForFewBytes } else { Use::Times(used.times()) }
            };
            let kept_bytes = self.policy.kept_bytes();
            let Some((number, _)) = self.counting_kept(|policy| policy.evict(look, uses)) else { break };
            let was_kept = self.policy.kept_bytes() < kept_bytes;
            let victim = frame(number);
            let key = victim.key();
            match victim.evict(frames.hazards()) {
                Some(evicted) => {
                    table.remove(frames, key, number);
                    freed += evicted.memory_bytes();
                    out.push(evicted);
                    all_cuts.extend(cuts.into_iter().flatten());
                }
                None => {
                    // A reader has just pinned the page, or it is lent, so it is in use: it goes back to the policy.
                    lent.push(number);
                    let page = victim.pin();
                    let place = self.policy.admit(number, key.hash(), class(page.kind()), page.cost_bytes(), true);
                    victim.set_place(place.0);
                    if excerpts::are_in(key) {
                        self.prove(victim, 0);
                    }
                    if was_kept {
                        self.keep(victim, &page);
                    }
                }
            }
        }
        (freed, all_cuts)
    }

    /// Drops the frame's page from the cache, pinned or not.
    pub fn forget(&mut self, table: &FrameTable, frames: &Frames, number: u32, out: &mut Vec<Evicted>) {
        let frame = frames.get(number).expect("the table knows frames of the cache");
        self.counting_kept(|policy| policy.remove(PolicyPlace(frame.place())));
        table.remove(frames, frame.key(), number);
        out.extend(frame.forget(frames));
    }
}

/// A stripe without flights keeps room for this many of them.
const MAX_IDLE_FLIGHTS: usize = 64;

/// What a page is worth.
fn class(kind: PageKind) -> Class {
    if kind.serves_many() { Class::Index } else { Class::Data }
}
