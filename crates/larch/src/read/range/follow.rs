//! Rows that are taken one after the other from the page of the last row, because no other source has a row between
//! them. They are taken without the lock of the [ends](super::ends): they pin a page and hold no file, and they are the
//! rows of the version of the range in every later view.

use pages::PageRef;
use sst::{Direction, Streak};
use std::ops::{Bound, Range};

/// Where a value lies in its page, as a slice wants it.
#[inline]
pub(super) fn in_page(place: &Range<u32>) -> Range<usize> {
    place.start as usize..place.end as usize
}

/// The next rows at one end of a range.
pub(super) struct Following {
    streak: Streak,
    /// The generation of the view in which they were found; or of a newer view, and then the end is gone.
    generation: u64,
    /// The key of the next row. It becomes the bound of the end when the row is given.
    key: Vec<u8>,
    /// Where in the page the value of the row given last lies.
    value: Range<u32>,
}

impl Following {
    /// The rows of `streak`, found in the view `generation`.
    #[inline]
    pub fn new(streak: Streak, generation: u64) -> Self {
        Self { streak, generation, key: Vec::new(), value: 0..0 }
    }

    #[inline]
    pub fn direction(&self) -> Direction {
        self.streak.direction()
    }

    #[inline]
    pub fn generation(&self) -> u64 {
        self.generation
    }

    pub fn streak(&self) -> &Streak {
        &self.streak
    }

    /// Notes the generation of the newest view; true if it has changed.
    #[inline]
    pub fn renew(&mut self, newest: u64) -> bool {
        std::mem::replace(&mut self.generation, newest) != newest
    }

    /// The page of all these rows.
    #[inline]
    pub fn page(&self) -> &PageRef {
        self.streak.page()
    }

    /// Where in the page the value of the row given last lies.
    #[inline]
    pub fn value(&self) -> Range<usize> {
        in_page(&self.value)
    }

    /// The next row: its key, the page, and where its value lies there. The same one again until it was
    /// [given](Self::give).
    #[inline]
    pub fn next(&mut self) -> Option<(&[u8], &PageRef, Range<u32>)> {
        let place = self.streak.next(&mut self.key)?;
        Some((&self.key, self.streak.page(), place))
    }

    /// The next row, whose value lies at `place`, was given: `near`, the bound of this end, closes in on it.
    #[inline]
    pub fn give(&mut self, place: Range<u32>, near: &mut Bound<Vec<u8>>) {
        self.streak.advance();
        self.value = place;
        match near {
            Bound::Excluded(last) => std::mem::swap(last, &mut self.key),
            Bound::Included(_) | Bound::Unbounded => *near = Bound::Excluded(std::mem::take(&mut self.key)),
        }
    }
}
