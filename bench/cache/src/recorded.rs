//! A trace in the form in which it is replayed: pages have numbers, and what is known of them in advance is in tables.

use crate::Failed;
use pages::policy::Class;
use pages::trace::{How, TracedAccess};
use pages::{PageKind, Reason};
use std::collections::HashMap;

/// What one workload asked of the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// The workload.
    pub name: String,
    /// Operations it did meanwhile.
    pub operations: u64,
    /// What was asked for.
    pub accesses: Vec<TracedAccess>,
}

/// A trace to be replayed.
#[derive(Debug)]
pub struct Recorded {
    /// The workload.
    pub name: String,
    /// Operations it did meanwhile.
    pub operations: u64,
    /// Its pages by number.
    pub pages: Vec<Page>,
    /// What happened to them.
    pub events: Vec<Event>,
    /// Bytes of pages that were known and not dead, when that was most: index and data.
    pub live_bytes: [u64; 2],
}

/// A page of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// What it is remembered by.
    pub key: u64,
    /// What it is worth to others.
    pub class: Class,
    /// Memory it takes.
    pub bytes: u32,
}

/// Something happened to a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its number.
    pub page: u32,
    /// What.
    pub what: What,
    /// Whether it is for a read of one key.
    pub is_point: bool,
}

/// What happens to a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Somebody needs it.
    Needed,
    /// It is read ahead if it is missing.
    Ahead,
    /// Its file is dead.
    Dead,
}

impl Recorded {
    /// Gives the pages of `trace` numbers, in the order in which they came.
    pub fn new(trace: &Trace) -> Result<Self, Failed> {
        let is_empty = trace.accesses.iter().all(|access| access.how == How::Dead);
        if is_empty || trace.operations == 0 {
            return Err(Failed::Empty(format!("the trace of {} is empty", trace.name)));
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
        Ok(Self { name: trace.name.clone(), operations: trace.operations, pages, events, live_bytes })
    }

    /// Bytes of pages that were known and not dead, when that was most.
    pub fn data_bytes(&self) -> u64 {
        self.live_bytes.iter().sum()
    }
}

/// Where figures of a class stand.
pub fn index(class: Class) -> usize {
    match class {
        Class::Index => 0,
        Class::Data => 1,
    }
}

/// Steele, Lea and Flood's SplitMix64: every bit of it depends on every bit of `place`.
fn hash(place: u64) -> u64 {
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
