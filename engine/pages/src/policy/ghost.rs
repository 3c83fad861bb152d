//! Remembers which pages were evicted lately, each by a 32-bit hash. The ghost may forget a page early, and now and
//! then it mistakes one page for another.
//!
//! Entries are in buckets of eight, one cache line each. An evicted page replaces the oldest entry of its bucket.
//! An entry has the number of the eviction and the hash of the page, whose high bits choose the bucket:
//!
//! ```text
//!   departure  u32 | hash  u32
//! ```
//!
//! Two pages with equal 32-bit hashes are mixed up. With a million remembered pages, one in four thousand lookups
//! gets a wrong answer.

/// Entries of a bucket.
const BUCKET: usize = 8;

/// The pages that were evicted last, as many as are resident.
#[derive(Default)]
pub(super) struct Ghost {
    buckets: Vec<[GhostEntry; BUCKET]>,
    /// The number of evictions so far, modulo 2^32. The first eviction has the number 1.
    departures: u32,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct GhostEntry {
    /// The number of the eviction that made the entry; 0 if the entry is free.
    departure: u32,
    hash: u32,
}

impl Ghost {
    /// Notes that a page was evicted. `pages` is the number of resident pages.
    pub fn remember(&mut self, hash: u32, pages: usize) {
        if pages > self.buckets.len() * BUCKET {
            self.grow(pages);
        }
        // No eviction has the number 0. After 2^32 evictions the numbers start over; the old entries with these
        // numbers were replaced long ago.
        self.departures = self.departures.checked_add(1).unwrap_or(1);
        let entry = GhostEntry { departure: self.departures, hash };
        self.insert(entry);
    }

    /// Whether the page is among the last `pages` pages that were evicted. If it is, the ghost forgets it.
    pub fn take(&mut self, hash: u32, pages: usize) -> bool {
        if self.buckets.is_empty() {
            return false;
        }
        let now = self.departures;
        let bucket = self.bucket(hash);
        let found = self.buckets[bucket].iter_mut().find(|entry| entry.departure != 0 && entry.hash == hash);
        found.is_some_and(|entry| (now.wrapping_sub(std::mem::take(entry).departure) as usize) < pages)
    }

    pub fn memory_bytes(&self) -> usize {
        self.buckets.capacity() * size_of::<[GhostEntry; BUCKET]>()
    }

    /// Makes room for `pages` entries and a quarter more, and rehashes the entries.
    fn grow(&mut self, pages: usize) {
        let buckets = (pages + pages / 4).div_ceil(BUCKET);
        let before = std::mem::replace(&mut self.buckets, vec![[GhostEntry::default(); BUCKET]; buckets]);
        for entry in before.into_iter().flatten().filter(|entry| entry.departure != 0) {
            self.insert(entry);
        }
    }

    fn insert(&mut self, entry: GhostEntry) {
        let now = self.departures;
        let bucket = self.bucket(entry.hash);
        // Best is an entry of the same page, so that no page is remembered twice; then a free entry; then the
        // oldest one.
        let age = |known: &GhostEntry| match known.departure {
            0 => 1 << 32,
            _ if known.hash == entry.hash => u64::MAX,
            departure => u64::from(now.wrapping_sub(departure)),
        };
        let oldest = self.buckets[bucket].iter_mut().max_by_key(|known| age(known));
        *oldest.expect("a bucket has entries") = entry;
    }

    fn bucket(&self, hash: u32) -> usize {
        ((u64::from(hash) * self.buckets.len() as u64) >> 32) as usize
    }
}
