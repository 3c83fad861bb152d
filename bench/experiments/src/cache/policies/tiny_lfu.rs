//! W-TinyLFU (Einziger, Friedman, Manes 2017), as in Caffeine and Scylla but with a window of fixed size. The
//! window is an LRU of 1 % of the bytes. The main part is a segmented LRU with 80 % of its bytes protected. Once
//! the cache is full, a page that leaves the window enters the main part only if it was used more often than the
//! page that it would evict. A sketch counts uses, and is halved from time to time. Page classes are ignored.

use super::bytes_of;
use super::line::Lines;
use crate::cache::policy::Policy;
use crate::cache::recorded::Page;

const WINDOW: usize = 0;
const PROBATION: usize = 1;
const PROTECTED: usize = 2;

pub(super) struct TinyLfu<'p> {
    pages: &'p [Page],
    budget: u64,
    lines: Lines<'p>,
    sketch: Sketch,
    evicted: u64,
}

impl<'p> TinyLfu<'p> {
    pub fn new(pages: &'p [Page], budget: u64) -> Self {
        let all_bytes: u64 = pages.iter().map(|page| u64::from(page.bytes)).sum();
        let resident = budget * pages.len() as u64 / all_bytes.max(1);
        Self { pages, budget, lines: Lines::new(pages, 3), sketch: Sketch::new(resident as usize), evicted: 0 }
    }

    fn window_bytes(&self) -> u64 {
        self.budget / 100
    }

    fn uses(&self, page: u32) -> u8 {
        self.sketch.uses(self.pages[page as usize].key)
    }

    /// Moves pages from an overfull window to the main part, and evicts pages while the budget is exceeded.
    fn settle(&mut self) {
        while self.lines.bytes(WINDOW) > self.window_bytes() {
            let candidate = self.lines.oldest(WINDOW).expect("a window that exceeds its bytes has pages");
            while self.bytes() > self.budget {
                let victim = self.lines.oldest(PROBATION).or_else(|| self.lines.oldest(PROTECTED));
                self.evicted += 1;
                match victim {
                    Some(victim) if self.uses(candidate) > self.uses(victim) => self.lines.remove(victim),
                    _ => {
                        self.lines.remove(candidate);
                        break;
                    }
                }
            }
            if self.lines.line_of(candidate) == Some(WINDOW) {
                self.lines.push(PROBATION, candidate);
            }
        }
        // Pages differ in size, so the budget may still be exceeded.
        while self.bytes() > self.budget {
            let victim = [PROBATION, PROTECTED, WINDOW].into_iter().find_map(|line| self.lines.pop(line));
            self.evicted += u64::from(victim.is_some());
        }
    }
}

impl Policy for TinyLfu<'_> {
    fn has(&self, page: u32) -> bool {
        self.lines.line_of(page).is_some()
    }

    fn hit(&mut self, page: u32) {
        self.sketch.count(self.pages[page as usize].key);
        match self.lines.line_of(page).expect("a page that is hit is in memory") {
            WINDOW => self.lines.push(WINDOW, page),
            _ => {
                self.lines.push(PROTECTED, page);
                while self.lines.bytes(PROTECTED) > (self.budget - self.window_bytes()) * 4 / 5 {
                    let demoted = self.lines.oldest(PROTECTED).expect("there is the page that was hit");
                    self.lines.push(PROBATION, demoted);
                }
            }
        }
    }

    fn admit(&mut self, page: u32, is_needed: bool) {
        if is_needed {
            self.sketch.count(self.pages[page as usize].key);
        }
        if bytes_of(self.pages, page) <= self.budget {
            self.lines.push(WINDOW, page);
            self.settle();
        }
    }

    fn remove(&mut self, page: u32) {
        self.lines.remove(page);
    }

    fn bytes(&self) -> u64 {
        [WINDOW, PROBATION, PROTECTED].iter().map(|line| self.lines.bytes(*line)).sum()
    }

    fn looks(&self) -> (u64, u64) {
        (2 * self.evicted, self.evicted)
    }
}

/// A count-min sketch that estimates how often a key was used: four rows of counters that saturate at 15. All are
/// halved when the number of counted uses reaches ten times the number of pages in the cache. Until then, no
/// estimate below 15 is too low.
struct Sketch {
    counters: Vec<u8>,
    width: usize,
    counts: usize,
    most_counts: usize,
}

impl Sketch {
    fn new(pages: usize) -> Self {
        let width = (4 * pages).next_power_of_two().max(64);
        Self { counters: vec![0; 4 * width], width, counts: 0, most_counts: 10 * pages.max(1) }
    }

    fn places(&self, key: u64) -> [usize; 4] {
        let (low, high) = (key as u32 as usize, (key >> 32) as usize | 1);
        [0, 1, 2, 3].map(|row| row * self.width + (low.wrapping_add(row.wrapping_mul(high)) & (self.width - 1)))
    }

    fn uses(&self, key: u64) -> u8 {
        self.places(key).map(|place| self.counters[place]).into_iter().min().expect("there are four")
    }

    fn count(&mut self, key: u64) {
        let least = self.uses(key);
        if least < 15 {
            for place in self.places(key) {
                if self.counters[place] == least {
                    self.counters[place] += 1;
                }
            }
        }
        self.counts += 1;
        if self.counts >= self.most_counts {
            self.counts /= 2;
            self.counters.iter_mut().for_each(|counter| *counter /= 2);
        }
    }
}
