//! What a pass over a file, or over one of its trees, has found. It does not know how the pass found it.

use std::ops::Range;

/// What a pass found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pass {
    /// Pages are missing, and they decide what else is needed: after the next round more is asked for.
    pub missing: bool,
    /// Pages were asked for, or are left for the next pass.
    pub noted: bool,
    /// Every page of the main tree that decides what is needed was in memory.
    pub is_known: bool,
    /// Main rows that will be read: those known so far. The row after the end of a key range, which is looked at, is
    /// not among them.
    pub rows: Range<u64>,
    /// At most this many rows that count against a limit are read from the file; exactly this many if the main tree is
    /// known.
    pub items: u64,
    /// The reader comes to the end of the file before it has what it wants, and will go on in the next one. Not before
    /// the main tree is known.
    pub overshot: bool,
    /// The reader comes further than room for pages is left.
    pub is_cut: bool,
}

impl Pass {
    pub(super) fn add(&mut self, other: &Self) {
        self.missing |= other.missing;
        self.noted |= other.noted;
        self.is_cut |= other.is_cut;
    }
}
