//! CLOCK with heat. Data pages are admitted with heat 1, or 0 if they were read ahead, and uses raise it up to 2.
//! Index pages are admitted with heat 3, and uses raise it up to 5. The hand takes one unit of heat from each page
//! that it passes, and evicts the first page without heat. If 64 pages in a row have heat, it evicts the coldest of
//! them.

use super::bytes_of;
use super::line::Lines;
use crate::cache::policy::Policy;
use crate::cache::recorded::Page;
use ::pages::policy::Class;

const LOOK: usize = 64;

pub(super) struct Clock<'p> {
    pages: &'p [Page],
    budget: u64,
    lines: Lines<'p>,
    heat: Vec<u8>,
    looks: u64,
    evicted: u64,
}

impl<'p> Clock<'p> {
    pub fn new(pages: &'p [Page], budget: u64) -> Self {
        Self { pages, budget, lines: Lines::new(pages, 1), heat: vec![0; pages.len()], looks: 0, evicted: 0 }
    }

    fn class(&self, page: u32) -> Class {
        self.pages[page as usize].class
    }

    fn evict(&mut self) {
        let mut coldest: Option<(u8, u32)> = None;
        for _ in 0..LOOK {
            let Some(page) = self.lines.oldest(0) else { return };
            self.looks += 1;
            let heat = &mut self.heat[page as usize];
            if coldest.is_none_or(|(least, _)| *heat < least) {
                coldest = Some((*heat, page));
            }
            if *heat == 0 {
                break;
            }
            *heat -= 1;
            self.lines.push(0, page);
        }
        let (_, page) = coldest.expect("it looked at a page");
        self.lines.remove(page);
        self.evicted += 1;
    }
}

impl Policy for Clock<'_> {
    fn has(&self, page: u32) -> bool {
        self.lines.line_of(page).is_some()
    }

    fn hit(&mut self, page: u32) {
        let most = match self.class(page) {
            Class::Index => 5,
            Class::Data => 2,
        };
        let heat = &mut self.heat[page as usize];
        *heat = (*heat + 1).min(most);
    }

    fn admit(&mut self, page: u32, is_needed: bool) {
        let bytes = bytes_of(self.pages, page);
        if bytes > self.budget {
            return;
        }
        while self.bytes() + bytes > self.budget {
            self.evict();
        }
        self.heat[page as usize] = match self.class(page) {
            Class::Index => 3,
            Class::Data => u8::from(is_needed),
        };
        self.lines.push(0, page);
    }

    fn remove(&mut self, page: u32) {
        self.lines.remove(page);
    }

    fn bytes(&self) -> u64 {
        self.lines.bytes(0)
    }

    fn looks(&self) -> (u64, u64) {
        (self.looks, self.evicted)
    }
}
