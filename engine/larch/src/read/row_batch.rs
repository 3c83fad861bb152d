//! Rows that lie together in a page and are handed over at once, so that a reader of one part of many rows can loop
//! over the page itself. This module does not know how the rows were found.

use super::row::{RowLoader, RowRef};
use sst::{Direction, GroupParts, Streak};
use std::fmt;

/// One or more consecutive rows of a [`Range`](super::Range), borrowed until the next rows are requested. They are
/// either rows of one page whose parts all lie in their pages, or a single [row](RowBatch::row).
pub struct RowBatch<'r>(Rows<'r>);

enum Rows<'r> {
    One(RowRef<'r>),
    Page(PageRows<'r>),
}

#[derive(Clone, Copy)]
struct PageRows<'r> {
    loader: &'r RowLoader,
    /// Stands at the last of the rows.
    streak: &'r Streak,
    /// Where the values of the rows begin and end in the page of `streak`.
    values: &'r [(u32, u32)],
}

impl<'r> RowBatch<'r> {
    /// A batch of a single row.
    pub(super) fn one(row: RowRef<'r>) -> Self {
        Self(Rows::One(row))
    }

    /// The rows whose `values` lie in the page of `streak`, which must stand at the last of them.
    pub(super) fn of_page(loader: &'r RowLoader, streak: &'r Streak, values: &'r [(u32, u32)]) -> Self {
        Self(Rows::Page(PageRows { loader, streak, values }))
    }

    /// The number of rows.
    #[expect(clippy::len_without_is_empty, reason = "a batch is never empty")]
    #[inline]
    pub fn len(&self) -> usize {
        match &self.0 {
            Rows::One(_) => 1,
            Rows::Page(page) => page.values.len(),
        }
    }

    /// The number of parts of each row; see [`RowRef::part_count`].
    #[inline]
    pub fn part_count(&self) -> usize {
        match &self.0 {
            Rows::One(row) => row.part_count(),
            Rows::Page(page) => page.loader.wanted.len(),
        }
    }

    /// The row of a single-row batch. Only such a row can have parts that lie outside their pages.
    #[inline]
    pub fn row(&self) -> Option<&RowRef<'r>> {
        match &self.0 {
            Rows::One(row) => Some(row),
            Rows::Page(_) => None,
        }
    }

    /// Part `i` of each row, in row order. `None` if the part lies outside its page and has to be loaded: then the
    /// batch is a single [row](RowBatch::row). Parts are counted as for [`RowRef::part_len`].
    ///
    /// # Panics
    ///
    /// If the selection has fewer groups.
    #[inline]
    pub fn inline_parts(&self, i: usize) -> Option<InlineParts<'_>> {
        Some(InlineParts(match &self.0 {
            Rows::One(row) => Parts::One(Some(row.inline_part(i)?)),
            Rows::Page(page) => {
                let wanted = &page.loader.wanted;
                match wanted.group(i) {
                    0 => Parts::Main(page.streak.page(), page.values.iter()),
                    group => {
                        Parts::Beside(page.streak.group_parts(wanted.set().beside_main_before(group)), page.places())
                    }
                }
            }
        }))
    }

    /// Calls `each` with the keys, in row order.
    pub fn for_each_key(&self, mut each: impl FnMut(&[u8])) {
        match &self.0 {
            Rows::One(row) => each(row.key()),
            Rows::Page(page) => page.streak.for_each_key(page.places(), each),
        }
    }
}

impl PageRows<'_> {
    /// The places of the rows in the page, in row order.
    #[inline]
    fn places(&self) -> Places {
        let last = self.streak.row().expect("the streak stands at a row");
        let before = self.values.len() - 1;
        match self.streak.direction() {
            Direction::Forward => Places { next: last - before, step: 1, left: self.values.len() },
            Direction::Backward => Places { next: last + before, step: usize::MAX, left: self.values.len() },
        }
    }
}

/// Places of consecutive rows in a page.
struct Places {
    next: usize,
    /// 1, or `usize::MAX` as -1.
    step: usize,
    left: usize,
}

impl Iterator for Places {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        self.left = self.left.checked_sub(1)?;
        let place = self.next;
        self.next = place.wrapping_add(self.step);
        Some(place)
    }
}

/// One part of each row of a [`RowBatch`].
pub struct InlineParts<'b>(Parts<'b>);

enum Parts<'b> {
    One(Option<&'b [u8]>),
    Main(&'b [u8], std::slice::Iter<'b, (u32, u32)>),
    Beside(GroupParts<'b>, Places),
}

impl<'b> Iterator for InlineParts<'b> {
    type Item = &'b [u8];

    #[inline]
    fn next(&mut self) -> Option<&'b [u8]> {
        match &mut self.0 {
            Parts::One(part) => part.take(),
            Parts::Main(page, values) => values.next().map(|&(start, end)| &page[start as usize..end as usize]),
            Parts::Beside(parts, places) => places.next().map(|place| parts.part(place)),
        }
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = match &self.0 {
            Parts::One(part) => part.iter().len(),
            Parts::Main(_, values) => values.len(),
            Parts::Beside(_, places) => places.left,
        };
        (left, Some(left))
    }

    // One loop for each kind, instead of a `match` for each row.
    #[inline]
    fn fold<B, F: FnMut(B, &'b [u8]) -> B>(self, first: B, mut with: F) -> B {
        match self.0 {
            Parts::One(part) => part.into_iter().fold(first, with),
            Parts::Main(page, values) => {
                values.fold(first, |all, &(start, end)| with(all, &page[start as usize..end as usize]))
            }
            Parts::Beside(parts, places) => places.fold(first, |all, place| with(all, parts.part(place))),
        }
    }
}

impl ExactSizeIterator for InlineParts<'_> {}

impl fmt::Debug for RowBatch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RowBatch").field("rows", &self.len()).finish_non_exhaustive()
    }
}

impl fmt::Debug for InlineParts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InlineParts").field("left", &self.len()).finish_non_exhaustive()
    }
}
