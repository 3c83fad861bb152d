//! The rows of a range that need no merging: they follow one another in the pages and memtables where the last merge
//! has left its sources. This module does not know how a merge finds a row.

use super::rest::Rest;
use crate::read::row::{RowLoader, RowRef};
use crate::read::row_batch::RowBatch;
use crate::view::ends::Registered;
use crate::view::follow::{FollowedRow, Following};
use pages::gauge::Holding;
use sst::Direction;
use std::ops::ControlFlow;

/// The most rows of a batch. A range keeps eight bytes for each row of the batch.
const MOST_BATCH_ROWS: usize = 1024;

/// The rows that come next at one end of a range, if they need no merging.
pub(super) struct Followed {
    pub rows: Option<Following>,
    /// The bytes of the cache that these rows pin.
    pub pins: Holding,
    /// How far the range has come to its second row.
    pub second: Second,
    /// Memory of rows that were followed, for the next ones.
    pub spare: Option<Following>,
    /// How often the range may still look for rows under a guard.
    pub looks: Looks,
    /// Where the values of the rows of the last batch begin and end in their page.
    pub values: Vec<(u32, u32)>,
}

/// How far a range has come to its second row. The rows after the first one are looked at only when one of them is
/// asked for: a seek of a cursor, or a range that is read for one row, often asks for no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Second {
    /// No row was found yet.
    Unknown,
    /// A merge has found the first row in this direction, and the rows after it were not looked at.
    Due(Direction),
    /// As soon as a merge finds a row, the range looks at the rows after it.
    Passed,
}

/// The most times that a range looks for rows under a guard before a merge takes over: for the page in which it
/// begins, and for the next one if it ends there.
const MOST_LOOKS: u8 = 2;

/// After this many looks in a row that have found nothing, a cursor looks only at one in [`SKIPPED_SEEKS`] seeks:
/// probably a merge has to look at the next one, too.
const MOST_VAIN: u8 = 4;
const SKIPPED_SEEKS: u8 = 8;

/// How often a range may still look for rows under a guard.
#[derive(Clone, Copy, Debug)]
pub(super) struct Looks {
    left: u8,
    /// How many looks in a row have found nothing, and how many seeks made none since.
    vain: u8,
}

impl Looks {
    /// For a range that has not begun.
    pub const ALL: Self = Self { left: MOST_LOOKS, vain: 0 };

    /// Counts one more look. Returns false if the range may not look any more.
    #[inline]
    pub fn take_one(&mut self) -> bool {
        let may_look = self.left > 0;
        self.left = self.left.saturating_sub(1);
        may_look
    }

    /// Called when a look has found what it looked for.
    #[inline]
    pub fn found(&mut self) {
        self.vain = 0;
    }

    /// Called when a look has found nothing.
    #[inline]
    pub fn missed(&mut self) {
        self.vain = self.vain.min(MOST_VAIN - 1) + 1;
        self.left = 0;
    }

    /// Called when a merge has taken over.
    #[inline]
    pub fn end(&mut self) {
        self.left = 0;
    }

    /// Called when the range begins anew.
    #[inline]
    pub fn begin(&mut self) {
        let is_skipped = self.vain >= MOST_VAIN && self.vain < MOST_VAIN + SKIPPED_SEEKS - 1;
        self.vain += u8::from(is_skipped);
        self.left = if is_skipped { 0 } else { MOST_LOOKS };
    }
}

impl Followed {
    /// Follows no rows yet. `pins` will count what they pin.
    pub fn none(pins: Holding) -> Self {
        Self { rows: None, pins, second: Second::Unknown, spare: None, looks: Looks::ALL, values: Vec::new() }
    }

    /// Follows `rows` from now on.
    pub fn set(&mut self, rows: Option<Following>) {
        self.pins.set(rows.as_ref().map_or(0, Following::pinned_bytes));
        self.rows = rows;
    }

    /// Stops following. The bound in `rest` moves to the row that was given last.
    pub fn stop(&mut self, rest: &mut Rest) {
        // The bounds of a range that has ended no longer matter.
        if let Some(rows) = self.rows.as_ref().filter(|_| !rest.has_come_to_end()) {
            rows.close_in(rest.near(rows.direction()));
        }
        self.forget();
    }

    /// Stops following. The bounds of the range stay where they are.
    pub fn forget(&mut self) {
        if let Some(rows) = self.rows.take() {
            self.spare = Some(rows.clear());
        }
        self.pins.set(0);
    }

    /// Steps to the next row in `direction` if it needs no merging. Inlined, because each row of a scan goes through
    /// it.
    #[inline(always)]
    pub fn reach(
        &mut self,
        loader: &RowLoader,
        rest: &mut Rest,
        ends: Option<&Registered>,
        direction: Direction,
    ) -> bool {
        let Some(rows) = &mut self.rows else { return false };
        if rest.is_over || rows.direction() != direction || loader.failed.get().is_some() {
            return false;
        }
        let newest = loader.handle.core().views.generation();
        if rows.generation() != newest && !self.renew(loader, rest, ends, newest) {
            return false;
        }
        self.rows.as_mut().is_some_and(Following::next)
    }

    /// Called when there is a newer view than the one in which the rows were found. Releases the older view. Returns
    /// false if the table was dropped.
    #[cold]
    fn renew(&mut self, loader: &RowLoader, rest: &mut Rest, ends: Option<&Registered>, newest: u64) -> bool {
        let Some(rows) = &mut self.rows else { return false };
        rows.renew(newest);
        // The thread that made the new view may have found these ends locked and skipped them.
        drop(ends.map(|ends| ends.take_old(newest)));
        let is_there = loader.handle.core().views.newest().files_of(&loader.table).is_ok();
        if !is_there {
            self.stop(rest);
        }
        is_there
    }

    /// The followed rows. One of them was [reached](Followed::reach).
    #[inline(always)]
    pub fn reached(&self) -> &Following {
        self.rows.as_ref().expect("a row was reached")
    }

    /// The row that was reached.
    #[inline(always)]
    pub fn row<'r>(&'r self, loader: &'r RowLoader) -> RowRef<'r> {
        let FollowedRow { key, beside_main, spot } = self.reached().row();
        RowRef { loader, beside_main, key, spot }
    }

    /// Gives the row that was reached.
    #[inline]
    pub fn give(&mut self, rest: &mut Rest) {
        self.rows.as_mut().expect("a row was reached").give();
        rest.count(1);
    }

    /// Calls `each` with the row that was reached and then with the rows that follow in its page, until `each`
    /// breaks, the range reaches its limit or fails, or there is a newer view. Returns the value with which `each`
    /// broke.
    #[inline]
    pub fn run<B>(
        &mut self,
        loader: &RowLoader,
        rest: &mut Rest,
        each: &mut impl FnMut(RowRef<'_>) -> ControlFlow<B>,
    ) -> Option<B> {
        let (rows, views) = (self.rows.as_mut().expect("a row was reached"), &loader.handle.core().views);
        let generation = rows.generation();
        let broken = rows.run(|FollowedRow { key, beside_main, spot }| {
            rest.count(1);
            let row = RowRef { loader, beside_main, key, spot };
            if let ControlFlow::Break(end) = each(row) {
                return ControlFlow::Break(Some(end));
            }
            let goes_on = !rest.is_over && loader.failed.get().is_none() && views.generation() == generation;
            if goes_on { ControlFlow::Continue(()) } else { ControlFlow::Break(None) }
        });
        broken.flatten()
    }

    /// Gives the row that was reached and the rows after it in its page, at most `most` in all.
    pub fn batch<'r>(&'r mut self, loader: &'r RowLoader, rest: &mut Rest, most: usize) -> RowBatch<'r> {
        let left = usize::try_from(rest.limit.rows()).unwrap_or(usize::MAX);
        let Self { rows, values, .. } = self;
        values.clear();
        let rows = rows.as_mut().expect("a row was reached");
        if !rows.gather(most.min(left).min(MOST_BATCH_ROWS), values) {
            self.give(rest);
            return RowBatch::one(self.row(loader));
        }
        let given = self.values.len();
        rest.count(given as u64);
        if given == 1 {
            return RowBatch::one(self.row(loader));
        }
        let streak = self.reached().given_streak().expect("its rows were given");
        RowBatch::of_page(loader, streak, &self.values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_whose_looks_find_nothing_looks_at_every_eighth_seek_until_one_finds_a_row() {
        let (mut looks, mut looked) = (Looks::ALL, Vec::new());
        for seek in 0..40 {
            looks.begin();
            if looks.take_one() {
                looked.push(seek);
                if seek < 27 { looks.missed() } else { looks.found() }
            }
        }
        assert_eq!(looked[..7], [0, 1, 2, 3, 11, 19, 27]);
        assert_eq!(looked[7..], (28..40).collect::<Vec<_>>());
        assert!(looks.take_one() && !looks.take_one(), "a range looks at two pages");
    }
}
