//! What a pass over a file, or over one of its trees, has found. It does not know how the pass found it.

use std::ops::Range;

/// What a pass found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pass {
    /// Whether pages are missing that decide what else is needed. Then more is asked for after the next round.
    pub missing: bool,
    /// Whether pages were asked for, or are left for the next pass.
    pub noted: bool,
    /// Whether every page of the main tree that decides what is needed was in memory.
    pub is_known: bool,
    /// The main rows that will be read, as far as they are known. The row after the end of a key range, which is
    /// looked at, does not belong to them.
    pub rows: Range<u64>,
    /// The most rows that are read from the file and count against a limit. If the main tree is known, exactly this
    /// many are read.
    pub items: u64,
    /// Whether the reader comes to the end of the file before it has what it wants, and will go on in the next
    /// file. It is false as long as the main tree is not known.
    pub overshot: bool,
    /// Whether the reader goes further than there is room for pages.
    pub is_cut: bool,
}

impl Pass {
    pub(super) fn add(&mut self, other: &Self) {
        self.missing |= other.missing;
        self.noted |= other.noted;
        self.is_cut |= other.is_cut;
    }
}
