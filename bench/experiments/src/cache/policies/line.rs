//! Linked lists of pages, called lines. A page is in at most one line.

use super::bytes_of;
use crate::cache::recorded::Page;

/// The lines of a policy.
pub(super) struct Lines<'p> {
    pages: &'p [Page],
    links: Vec<Link>,
    ends: Vec<Ends>,
}

#[derive(Clone, Copy)]
struct Link {
    newer: u32,
    older: u32,
    /// The page's line, or [`NONE`].
    line: u32,
}

#[derive(Clone, Copy)]
struct Ends {
    oldest: u32,
    newest: u32,
    bytes: u64,
}

const NONE: u32 = u32::MAX;

impl<'p> Lines<'p> {
    /// Makes `lines` empty lines.
    pub fn new(pages: &'p [Page], lines: usize) -> Self {
        let link = Link { newer: NONE, older: NONE, line: NONE };
        let ends = Ends { oldest: NONE, newest: NONE, bytes: 0 };
        Self { pages, links: vec![link; pages.len()], ends: vec![ends; lines] }
    }

    /// The line that the page is in.
    pub fn line_of(&self, page: u32) -> Option<usize> {
        let line = self.links[page as usize].line;
        (line != NONE).then_some(line as usize)
    }

    pub fn oldest(&self, line: usize) -> Option<u32> {
        let page = self.ends[line].oldest;
        (page != NONE).then_some(page)
    }

    pub fn bytes(&self, line: usize) -> u64 {
        self.ends[line].bytes
    }

    /// Moves a page to the newest end of `line`.
    pub fn push(&mut self, line: usize, page: u32) {
        self.remove(page);
        let ends = &mut self.ends[line];
        let before = std::mem::replace(&mut ends.newest, page);
        ends.bytes += bytes_of(self.pages, page);
        self.links[page as usize] = Link { newer: NONE, older: before, line: line as u32 };
        match before {
            NONE => ends.oldest = page,
            _ => self.links[before as usize].newer = page,
        }
    }

    /// Removes a page from its line, if the page is in a line.
    pub fn remove(&mut self, page: u32) {
        let Some(line) = self.line_of(page) else { return };
        let Link { newer, older, .. } = self.links[page as usize];
        self.links[page as usize].line = NONE;
        let ends = &mut self.ends[line];
        ends.bytes -= bytes_of(self.pages, page);
        match older {
            NONE => ends.oldest = newer,
            _ => self.links[older as usize].newer = newer,
        }
        match newer {
            NONE => ends.newest = older,
            _ => self.links[newer as usize].older = older,
        }
    }

    /// Removes the oldest page of `line`, and returns it.
    pub fn pop(&mut self, line: usize) -> Option<u32> {
        let page = self.oldest(line)?;
        self.remove(page);
        Some(page)
    }
}
