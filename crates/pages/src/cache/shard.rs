//! One part of the cache: a table of pages by key, and the clock that chooses which of them go. It does not know the
//! budget, nor how pages are read.
//!
//! * Every resident page has two references of the cache's own, the table's and the ring's: [`OWN_REFERENCES`]. One
//!   with more is pinned and stays. New references come only from the table, under the shard's lock, or from one that
//!   exists already; so a page seen unpinned under the lock cannot be pinned before it is taken out.
//! * The ring keeps the order of admission. A page that goes leaves a hole, and the next that comes takes the newest
//!   hole, just behind the hand: it has a full turn of the hand before it is looked at.
//!
//! Not thread safe: the cache has a lock around each shard.

use super::flight::Flight;
use crate::{Address, PACK_BYTES, PageRef, PagedFile};
use os::sync::Arc;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};

/// References to a resident page that are no pins.
const OWN_REFERENCES: usize = 2;

/// Which page: file slot and offset in units of [`PACK_BYTES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub slot: u32,
    pub unit: u64,
}

impl Key {
    pub fn new(file: &PagedFile, at: &Address) -> Self {
        Self { slot: file.slot(), unit: at.offset / PACK_BYTES }
    }

    /// A hash whose every bit depends on every bit of the key: the halves of a 128-bit product, folded. The constants
    /// are digits of pi and e; an attacker chooses neither slots nor offsets.
    pub fn hash(self) -> u64 {
        let unit = u128::from(self.unit ^ 0x243F_6A88_85A3_08D3);
        let slot = u128::from(u64::from(self.slot).rotate_left(32) ^ 0xB7E1_5162_8AED_2A6B);
        let product = unit * (slot | 1);
        (product >> 64) as u64 ^ product as u64
    }
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(Key::hash(*self));
    }
}

/// Passes on the one number a [`Key`] writes.
#[derive(Default)]
pub(crate) struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn write(&mut self, _: &[u8]) {
        unreachable!("a key writes one u64");
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// For tables by [`Key`].
pub(crate) type KeyHash = BuildHasherDefault<KeyHasher>;

/// What the table says about a page that is not simply missing.
pub(crate) enum Entry {
    /// In memory.
    Resident(PageRef),
    /// Being read.
    InFlight(Arc<Flight>),
}

/// One part of the cache.
#[derive(Default)]
pub(crate) struct Shard {
    table: HashMap<Key, Entry, KeyHash>,
    ring: Vec<Option<(Key, PageRef)>>,
    holes: Vec<usize>,
    hand: usize,
}

impl Shard {
    /// What is known of a page.
    pub fn entry(&self, key: Key) -> Option<&Entry> {
        self.table.get(&key)
    }

    /// Marks a missing page as being read.
    pub fn take_off(&mut self, key: Key, flight: Arc<Flight>) {
        let before = self.table.insert(key, Entry::InFlight(flight));
        debug_assert!(before.is_none(), "only a missing page takes off");
    }

    /// The reading of a page is over: it is kept if there is one to keep, otherwise missing again.
    pub fn land(&mut self, key: Key, page: Option<&PageRef>) {
        match page {
            None => {
                self.table.remove(&key);
            }
            Some(page) => {
                self.table.insert(key, Entry::Resident(page.clone()));
                let resident = Some((key, page.clone()));
                match self.holes.pop() {
                    Some(hole) => self.ring[hole] = resident,
                    None => self.ring.push(resident),
                }
            }
        }
    }

    /// Takes out unpinned pages worth at least `bytes` if there are, looking at no more than `look` places of the ring
    /// for each. The pages go to `out`, so that their memory is freed after the lock is. Returns what they are worth.
    pub fn evict(&mut self, bytes: u64, look: usize, out: &mut Vec<PageRef>) -> u64 {
        let mut freed = 0;
        while freed < bytes
            && let Some(place) = self.victim(look)
        {
            let page = self.vacate(place);
            freed += page.cost_bytes();
            out.push(page);
        }
        self.close_holes();
        freed
    }

    /// The first unpinned page without heat that the hand meets; if `look` places have none, the coldest unpinned page
    /// among them. What the hand passes cools.
    fn victim(&mut self, look: usize) -> Option<usize> {
        let mut coldest: Option<(u8, usize)> = None;
        for _ in 0..look.min(self.ring.len()) {
            let place = self.hand % self.ring.len();
            self.hand = place + 1;
            let Some((_, page)) = &self.ring[place] else { continue };
            if page.references() > OWN_REFERENCES {
                continue;
            }
            let heat = page.heat();
            if heat == 0 {
                return Some(place);
            }
            page.set_heat(heat - 1);
            if coldest.is_none_or(|(least, _)| heat < least) {
                coldest = Some((heat, place));
            }
        }
        coldest.map(|(_, place)| place)
    }

    /// Takes out all pages of a file, pinned or not.
    pub fn forget(&mut self, slot: u32, out: &mut Vec<PageRef>) {
        for place in 0..self.ring.len() {
            if self.ring[place].as_ref().is_some_and(|(key, _)| key.slot == slot) {
                out.push(self.vacate(place));
            }
        }
        self.close_holes();
    }

    fn vacate(&mut self, place: usize) -> PageRef {
        let (key, page) = self.ring[place].take().expect("the place was seen to hold a page");
        self.table.remove(&key);
        self.holes.push(place);
        page
    }

    /// Once more than half of the ring is holes, closes them; so this costs less than the evictions that made them.
    fn close_holes(&mut self) {
        if self.ring.len() >= 64 && self.holes.len() > self.ring.len() / 2 {
            let ahead = self.ring[..self.hand].iter().flatten().count();
            self.ring.retain(Option::is_some);
            self.hand = ahead;
            self.holes.clear();
            self.ring.shrink_to_fit();
            self.holes.shrink_to_fit();
            self.table.shrink_to_fit();
        }
    }

    /// What the resident pages that nobody has pinned are worth. Looks at all of them.
    pub fn unpinned_bytes(&self) -> u64 {
        let unpinned = |page: &PageRef| page.references() == OWN_REFERENCES;
        self.pages().filter(|(_, page)| unpinned(page)).map(|(_, page)| page.cost_bytes()).sum()
    }

    /// The resident pages.
    pub fn pages(&self) -> impl Iterator<Item = &(Key, PageRef)> {
        self.ring.iter().flatten()
    }

    /// Places of the ring, holes among them.
    #[cfg(test)]
    pub fn places(&self) -> usize {
        self.ring.len()
    }
}
