//! A trace in the form that is replayed: pages are numbered, and their properties are in an array.

use crate::cache::empty;
use harness::Failure;
use pages::policy::Class;
use pages::trace::{How, TracedAccess};
use pages::{PageKind, Reason};
use std::collections::HashMap;

/// The accesses of one workload to the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// The workload.
    pub name: String,
    /// Operations of the workload during the trace.
    pub operations: u64,
    /// The accesses.
    pub accesses: Vec<TracedAccess>,
}

/// A trace that can be replayed.
#[derive(Debug)]
pub struct Recorded {
    /// The workload.
    pub name: String,
    /// Operations of the workload during the trace.
    pub operations: u64,
    /// The pages, by number.
    pub pages: Vec<Page>,
    /// What happened to the pages.
    pub events: Vec<Event>,
    /// How many of the events, from the first, only fill the cache and are not counted.
    pub warm_up: usize,
    /// The bytes of index and data pages that were alive when their sum was at its peak. A page lives from its
    /// first access until its file is dead.
    pub live_bytes: [u64; 2],
}

/// A page of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// A hash that identifies the page, for policies that remember evicted pages.
    pub key: u64,
    /// Index page or data page.
    pub class: Class,
    /// Bytes of memory that it takes.
    pub bytes: u32,
}

/// An event of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The number of the page.
    pub page: u32,
    /// What happened to it.
    pub what: What,
    /// Whether the access was for a read of one key.
    pub is_point: bool,
}

/// What happens to a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A client needs the page.
    Needed,
    /// The page is read ahead if it is missing.
    Ahead,
    /// The page's file is dead.
    Dead,
}

impl Trace {
    /// A number that tells the trace from others of the same name.
    pub fn hash(&self) -> u64 {
        let mixed = |sum, access: &TracedAccess| {
            let place = u64::from(access.file) << 32 | u64::from(access.unit);
            let more = u64::from(access.bytes) << 24 | (access.kind as u64) << 16 | (access.how as u64) << 8;
            hash(hash(sum ^ place) ^ more ^ access.reason as u64)
        };
        self.accesses.iter().fold(self.operations, mixed)
    }
}

impl Recorded {
    /// Numbers the pages of `trace` in the order of their first access.
    pub fn new(trace: &Trace) -> Result<Self, Failure> {
        let is_empty = trace.accesses.iter().all(|access| access.how == How::Dead);
        if is_empty || trace.operations == 0 {
            return Err(empty(format!("the trace of {} is empty", trace.name)));
        }
        let mut numbers: HashMap<u64, u32> = HashMap::new();
        let mut of_file: HashMap<u32, Vec<u32>> = HashMap::new();
        let mut pages: Vec<Page> = Vec::new();
        let (mut alive, mut live_bytes) = ([0; 2], [0; 2]);
        let mut events = Vec::with_capacity(trace.accesses.len());
        for access in &trace.accesses {
            let what = match access.how {
                How::Hit | How::Needed => What::Needed,
                How::Ahead => What::Ahead,
                How::Dead => {
                    let dead = of_file.remove(&access.file).unwrap_or_default();
                    for page in &dead {
                        let Page { class, bytes, .. } = pages[*page as usize];
                        alive[index(class)] -= u64::from(bytes);
                    }
                    events.extend(dead.into_iter().map(|page| Event { page, what: What::Dead, is_point: false }));
                    continue;
                }
            };
            let place = u64::from(access.file) << 32 | u64::from(access.unit);
            let page = *numbers.entry(place).or_insert_with(|| {
                let page = pages.len() as u32;
                of_file.entry(access.file).or_default().push(page);
                let class = class(access.kind);
                pages.push(Page { key: hash(place), class, bytes: access.bytes });
                alive[index(class)] += u64::from(access.bytes);
                if alive.iter().sum::<u64>() > live_bytes.iter().sum() {
                    live_bytes = alive;
                }
                page
            });
            events.push(Event { page, what, is_point: access.reason == Reason::Point });
        }
        Ok(Self { name: trace.name.clone(), operations: trace.operations, pages, events, warm_up: 0, live_bytes })
    }

    /// The peak of the bytes of all living pages.
    pub fn data_bytes(&self) -> u64 {
        self.live_bytes.iter().sum()
    }
}

/// The index of a class in arrays like `[index pages, data pages]`.
pub fn index(class: Class) -> usize {
    match class {
        Class::Index => 0,
        Class::Data => 1,
    }
}

/// SplitMix64 of Steele, Lea and Flood. Every bit of the result depends on every bit of `place`.
pub fn hash(place: u64) -> u64 {
    let mut mixed = place.wrapping_add(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

fn class(kind: PageKind) -> Class {
    match kind {
        PageKind::Index | PageKind::RangeErase | PageKind::Flat | PageKind::Filter => Class::Index,
        PageKind::Data
        | PageKind::History
        | PageKind::Value
        | PageKind::Group
        | PageKind::GroupHistory
        | PageKind::Footer => Class::Data,
    }
}

#[cfg(test)]
mod tests;
