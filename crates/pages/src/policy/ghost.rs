//! Which pages went lately, by a hash of 32 bits. It may forget a page early, and takes another for it now and then.
//!
//! Buckets of eight, a cache line each; a page that went takes the place of the oldest in its bucket. An entry is the
//! number of the departure and the hash, of which the high bits choose the bucket:
//!
//! ```text
//!   departure  u32 | hash  u32
//! ```
//!
//! Two pages are mixed up if their 32 bits are alike: beside a million pages one ask in four thousand is mistaken.

/// Entries of a bucket.
const BUCKET: usize = 8;

/// Pages that went, as many as are resident.
#[derive(Default)]
pub(super) struct Ghost {
    buckets: Vec<[GhostEntry; BUCKET]>,
    /// Departures so far, modulo 2^32. The first is 1.
    departures: u32,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct GhostEntry {
    /// 0: none.
    departure: u32,
    hash: u32,
}

impl Ghost {
    /// A page went while `pages` are resident.
    pub fn remember(&mut self, hash: u32, pages: usize) {
        if pages > self.buckets.len() * BUCKET {
            self.grow(pages);
        }
        // 0 is no departure; the entries of 2^32 departures ago are long replaced.
        self.departures = self.departures.checked_add(1).unwrap_or(1);
        let entry = GhostEntry { departure: self.departures, hash };
        self.insert(entry);
    }

    /// Whether the page is among the last that went, as many as `pages`; it no longer is.
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

    /// Room for `pages` and a quarter more. Every entry finds its new bucket by its hash.
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
        // The best place is the one that has the page already, so that no page is remembered twice; then a free place,
        // then the oldest page.
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
