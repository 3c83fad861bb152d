//! Belady's policy: drops the page whose next use is furthest in the future, which may be the new page itself. For
//! pages of one size, as nearly all of our traces' are, no policy has more hits.

use super::bytes_of;
use crate::cache::policy::Policy;
use crate::cache::recorded::{Page, Recorded, What};
use std::collections::BinaryHeap;

/// The page is never needed again.
const NEVER: u32 = u32::MAX;

pub(super) struct Opt<'p> {
    pages: &'p [Page],
    budget: u64,
    /// For each access, the time of the next access to the same page.
    next: Vec<u32>,
    now: usize,
    /// When each resident page is needed next.
    resident: Vec<Option<u32>>,
    /// The same times, latest first, with stale entries in between.
    latest: BinaryHeap<(u32, u32)>,
    bytes: u64,
    evicted: u64,
}

impl<'p> Opt<'p> {
    pub fn new(recorded: &'p Recorded, budget: u64) -> Self {
        let needed: Vec<u32> =
            recorded.events.iter().filter(|event| event.what == What::Needed).map(|event| event.page).collect();
        let mut seen = vec![NEVER; recorded.pages.len()];
        let mut next = vec![NEVER; needed.len()];
        for (time, page) in needed.into_iter().enumerate().rev() {
            next[time] = std::mem::replace(&mut seen[page as usize], time as u32);
        }
        Self {
            pages: &recorded.pages,
            budget,
            next,
            now: 0,
            resident: vec![None; recorded.pages.len()],
            latest: BinaryHeap::new(),
            bytes: 0,
            evicted: 0,
        }
    }

    /// Keeps `page` until its next use, and evicts pages if memory is full.
    fn keep(&mut self, page: u32) {
        let next = self.next[self.now];
        self.now += 1;
        if self.resident[page as usize].replace(next).is_none() {
            self.bytes += bytes_of(self.pages, page);
        }
        self.latest.push((next, page));
        while self.bytes > self.budget || self.latest.peek().is_some_and(|(next, _)| *next == NEVER) {
            let (next, page) = self.latest.pop().expect("what is in memory is here");
            if self.resident[page as usize] == Some(next) {
                self.resident[page as usize] = None;
                self.bytes -= bytes_of(self.pages, page);
                self.evicted += 1;
            }
        }
    }
}

impl Policy for Opt<'_> {
    fn has(&self, page: u32) -> bool {
        self.resident[page as usize].is_some()
    }

    fn hit(&mut self, page: u32) {
        self.keep(page);
    }

    fn admit(&mut self, page: u32, _: bool) {
        self.keep(page);
    }

    fn remove(&mut self, page: u32) {
        if self.resident[page as usize].take().is_some() {
            self.bytes -= bytes_of(self.pages, page);
        }
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn looks(&self) -> (u64, u64) {
        (self.evicted, self.evicted)
    }

    fn reads_ahead(&self) -> bool {
        false
    }
}
