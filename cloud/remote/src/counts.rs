//! Counts requests and bytes for many threads. This module does not know who makes the requests, or what they cost.

use os::store::{Counts, Requests};
use os::sync::atomic::{AtomicU64, Ordering};

/// The kinds of requests for which stores have prices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A put of an object or a part, or the beginning or end of an upload in parts.
    Put,
    /// A read of a range of an object, or a query for its length and other metadata.
    Get,
    /// A page of a listing.
    List,
    /// The removal of an object.
    Delete,
}

/// Shared counters. All accesses are relaxed: the counts are statistics and order no other memory access.
#[derive(Debug, Default)]
pub struct Counters {
    puts: AtomicU64,
    gets: AtomicU64,
    lists: AtomicU64,
    deletes: AtomicU64,
    pub retries: AtomicU64,
    pub read_bytes: AtomicU64,
    pub written_bytes: AtomicU64,
}

impl Counters {
    /// Counts a request.
    pub fn count(&self, kind: Kind) {
        let counter = match kind {
            Kind::Put => &self.puts,
            Kind::Get => &self.gets,
            Kind::List => &self.lists,
            Kind::Delete => &self.deletes,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// The counts so far.
    pub fn get(&self) -> Counts {
        let value = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counts {
            requests: Requests {
                puts: value(&self.puts),
                gets: value(&self.gets),
                lists: value(&self.lists),
                deletes: value(&self.deletes),
            },
            retries: value(&self.retries),
            read_bytes: value(&self.read_bytes),
            written_bytes: value(&self.written_bytes),
        }
    }
}
