//! What a pass over a file, or over one of its trees, has found. This module does not know how the pass found it.

use std::ops::Range;

/// What a pass found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pass {
    /// Whether a page is missing that decides which other pages are needed. Then the next pass asks for more pages.
    pub missing: bool,
    /// Whether pages were asked for, or are left for the next pass.
    pub noted: bool,
    /// Whether all pages of the main tree that decide which other pages are needed were in memory.
    pub is_known: bool,
    /// The main rows that will be read, as far as they are known. The reader also looks at the row after the end of
    /// a key range. The rows here do not include that row.
    pub rows: Range<u64>,
    /// An upper bound on the rows read from the file that count against a limit. It is exact if the main tree is
    /// known.
    pub items: u64,
    /// Whether the reader comes to the end of the file before it has all rows that it wants, and goes on in the
    /// next file. It is false as long as the main tree is not known.
    pub overshot: bool,
    /// Whether there was not enough room to read ahead all pages that the reader needs.
    pub is_cut: bool,
}

impl Pass {
    pub(super) fn add(&mut self, other: &Self) {
        self.missing |= other.missing;
        self.noted |= other.noted;
        self.is_cut |= other.is_cut;
    }
}
