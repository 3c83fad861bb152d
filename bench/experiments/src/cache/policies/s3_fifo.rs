//! S3-FIFO, as in "FIFO queues are all you need for cache eviction" (Yang, Zhang, Qiu, Yue, Rashmi; SOSP 2023).
//! There is a small line with a tenth of the bytes, a main line, and a ghost line of the size of the main line.
//! Page classes are ignored.

use super::bytes_of;
use super::line::Lines;
use crate::cache::policy::Policy;
use crate::cache::recorded::Page;

const SMALL: usize = 0;
const MAIN: usize = 1;
/// Remembers pages that are no longer in memory.
const GHOST: usize = 2;

/// A page with this many uses moves from the small line to the main line.
const PROMOTING_USES: u8 = 2;

pub(super) struct S3Fifo<'p> {
    pages: &'p [Page],
    budget: u64,
    lines: Lines<'p>,
    uses: Vec<u8>,
    looks: u64,
    evicted: u64,
}

impl<'p> S3Fifo<'p> {
    pub fn new(pages: &'p [Page], budget: u64) -> Self {
        Self { pages, budget, lines: Lines::new(pages, 3), uses: vec![0; pages.len()], looks: 0, evicted: 0 }
    }

    fn small_bytes(&self) -> u64 {
        self.budget / 10
    }

    fn evict(&mut self) {
        if self.lines.bytes(SMALL) >= self.small_bytes() || self.lines.oldest(MAIN).is_none() {
            self.evict_small();
        } else {
            self.evict_main();
        }
    }

    fn evict_small(&mut self) {
        while let Some(page) = self.lines.oldest(SMALL) {
            self.looks += 1;
            if self.uses[page as usize] >= PROMOTING_USES {
                self.uses[page as usize] = 0;
                self.lines.push(MAIN, page);
                continue;
            }
            self.lines.push(GHOST, page);
            while self.lines.bytes(GHOST) > self.budget - self.small_bytes() {
                self.lines.pop(GHOST);
            }
            self.evicted += 1;
            return;
        }
        self.evict_main();
    }

    fn evict_main(&mut self) {
        while let Some(page) = self.lines.pop(MAIN) {
            self.looks += 1;
            match &mut self.uses[page as usize] {
                0 => {
                    self.evicted += 1;
                    return;
                }
                uses => {
                    *uses -= 1;
                    self.lines.push(MAIN, page);
                }
            }
        }
    }
}

impl Policy for S3Fifo<'_> {
    fn has(&self, page: u32) -> bool {
        matches!(self.lines.line_of(page), Some(SMALL | MAIN))
    }

    fn hit(&mut self, page: u32) {
        let uses = &mut self.uses[page as usize];
        *uses = (*uses + 1).min(3);
    }

    fn admit(&mut self, page: u32, _: bool) {
        let bytes = bytes_of(self.pages, page);
        if bytes > self.budget {
            return;
        }
        let line = if self.lines.line_of(page) == Some(GHOST) { MAIN } else { SMALL };
        while self.bytes() + bytes > self.budget {
            self.evict();
        }
        self.uses[page as usize] = 0;
        self.lines.push(line, page);
    }

    fn remove(&mut self, page: u32) {
        self.lines.remove(page);
    }

    fn bytes(&self) -> u64 {
        self.lines.bytes(SMALL) + self.lines.bytes(MAIN)
    }

    fn looks(&self) -> (u64, u64) {
        (self.looks, self.evicted)
    }
}
