//! Where excerpts lie: hash tables from names to places in pages of excerpts. This module does not know the pages.

use crate::page_key::PageKey;
use os::sync::Mutex;
use os::sync::atomic::{AtomicU64, Ordering};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// The slot of pages with excerpts. No file of a cache has it.
pub const SLOT: u32 = 0;

/// The number of hash tables. Each has a lock, and two cache lines of its own, because processors fetch lines in pairs.
const SHARDS: usize = 16;

/// Where an excerpt lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The number of the page.
    pub page: u32,
    /// The offset in the page, divided by 8.
    pub at: u16,
}

impl Place {
    /// The name of the page in the cache.
    pub fn key(self) -> PageKey {
        PageKey { slot: SLOT, unit: self.page.into() }
    }
}

/// The places of all excerpts, by the hashes of their names. Of two names with the same hash, it has the later one.
#[derive(Default)]
pub struct Places([Shard; SHARDS]);

#[derive(Default)]
#[repr(align(128))]
struct Shard {
    table: Mutex<Table>,
    found: AtomicU64,
}

/// The hash table of a shard.
#[derive(Default)]
struct Table {
    places: HashMap<u32, Place, BuildHasherDefault<SpreadHash>>,
    /// For how many places the table's memory has room. The map itself counts the room of removed ones late.
    room: usize,
}

impl Table {
    fn enter(&mut self, hash: u32, place: Place) {
        self.places.insert(hash, place);
        self.room = self.room.max(self.places.capacity());
    }

    fn leave(&mut self, hash: u32, place: Place) {
        if self.places.get(&hash) != Some(&place) {
            return;
        }
        self.places.remove(&hash);
        let left = self.places.len();
        // Half of the memory has room for a quarter more, so the table does not grow again at once.
        if left < self.room * 3 / 8 {
            self.places.shrink_to(left + left / 4);
            self.room = self.places.capacity();
        }
    }
}

/// Spreads the hashes of names, which are the keys. All keys of a shard have the same low bits.
#[derive(Default)]
struct SpreadHash(u64);

impl Hasher for SpreadHash {
    fn write(&mut self, _: &[u8]) {
        unreachable!("a key writes one u32");
    }

    fn write_u32(&mut self, hash: u32) {
        self.0 = u64::from(hash).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_right(32);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

impl Places {
    fn shard(&self, hash: u32) -> &Shard {
        &self.0[hash as usize % SHARDS]
    }

    /// The place of an excerpt.
    pub fn find(&self, hash: u32) -> Option<Place> {
        self.shard(hash).table.lock().places.get(&hash).copied()
    }

    /// Enters an excerpt. An older place of the same name is forgotten.
    pub fn enter(&self, hash: u32, place: Place) {
        self.shard(hash).table.lock().enter(hash, place);
    }

    /// Removes an excerpt, unless it was entered anew with another place.
    pub fn leave(&self, hash: u32, place: Place) {
        self.shard(hash).table.lock().leave(hash, place);
    }

    /// Counts an excerpt that a reader has found.
    pub fn count_found(&self, hash: u32) {
        self.shard(hash).found.fetch_add(1, Ordering::Relaxed);
    }

    /// How many excerpts readers have found.
    pub fn found(&self) -> u64 {
        self.0.iter().map(|shard| shard.found.load(Ordering::Relaxed)).sum()
    }

    /// How many excerpts there are, and for how many the tables have room.
    #[cfg(test)]
    pub fn sizes(&self) -> (usize, usize) {
        let sizes = self.0.iter().map(|shard| shard.table.lock()).map(|table| (table.places.len(), table.room));
        sizes.fold((0, 0), |sum, size| (sum.0 + size.0, sum.1 + size.1))
    }
}
