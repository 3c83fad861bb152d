//! LRU: evicts the least recently used page.

use super::bytes_of;
use super::line::Lines;
use crate::cache::policy::Policy;
use crate::cache::recorded::Page;

pub(super) struct Lru<'p> {
    pages: &'p [Page],
    budget: u64,
    lines: Lines<'p>,
    evicted: u64,
}

impl<'p> Lru<'p> {
    pub fn new(pages: &'p [Page], budget: u64) -> Self {
        Self { pages, budget, lines: Lines::new(pages, 1), evicted: 0 }
    }
}

impl Policy for Lru<'_> {
    fn has(&self, page: u32) -> bool {
        self.lines.line_of(page).is_some()
    }

    fn hit(&mut self, page: u32) {
        self.lines.push(0, page);
    }

    fn admit(&mut self, page: u32, _: bool) {
        let bytes = bytes_of(self.pages, page);
        while self.lines.bytes(0) + bytes > self.budget && self.lines.pop(0).is_some() {
            self.evicted += 1;
        }
        if bytes <= self.budget {
            self.lines.push(0, page);
        }
    }

    fn remove(&mut self, page: u32) {
        self.lines.remove(page);
    }

    fn bytes(&self) -> u64 {
        self.lines.bytes(0)
    }

    fn looks(&self) -> (u64, u64) {
        (self.evicted, self.evicted)
    }
}
