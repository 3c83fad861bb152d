//! The rows of a range that need no merging: they come one after the other from pages and memtables in which the last
//! merge has left its sources. This module does not know how a merge finds a row.

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

/// Rows that come next at one of the ends of a range.
pub(super) struct Followed {
    pub rows: Option<Following>,
    /// How many bytes of the cache the rows pin.
    pub pins: Holding,
    /// Where the values lie of rows that were given together.
    pub values: Vec<(u32, u32)>,
}

impl Followed {
    /// No rows. `pins` counts what rows pin later.
    pub fn none(pins: Holding) -> Self {
        Self { rows: None, pins, values: Vec::new() }
    }

    /// These rows come next.
    pub fn set(&mut self, rows: Option<Following>) {
        self.pins.set(rows.as_ref().map_or(0, Following::pinned_bytes));
        self.rows = rows;
    }

    /// No rows are followed any more. The bound in `rest` moves to the row that was given last.
    pub fn stop(&mut self, rest: &mut Rest) {
        // If the range has come to its end, its bounds mean nothing.
        if let Some(rows) = self.rows.take().filter(|_| !rest.has_come_to_end()) {
            rows.close_in(rest.near(rows.direction()));
        }
        self.pins.set(0);
    }

    /// Goes to the next row in `direction`, if this row needs no merging. The function is inlined, because each row
    /// of a scan goes through it.
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

    /// A view exists that is newer than the view in which rows were followed. Releases the older view. Returns false
    /// if the table was dropped.
    #[cold]
    fn renew(&mut self, loader: &RowLoader, rest: &mut Rest, ends: Option<&Registered>, newest: u64) -> bool {
        let Some(rows) = &mut self.rows else { return false };
        rows.renew(newest);
        // The thread that made the new view may have found the ends in use.
        drop(ends.map(|ends| ends.take_old(newest)));
        let is_there = loader.handle.core().views.newest().files_of(&loader.table).is_ok();
        if !is_there {
            self.stop(rest);
        }
        is_there
    }

    /// The rows, one of which was [reached](Followed::reach).
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

    /// The row that was reached is given.
    #[inline]
    pub fn give(&mut self, rest: &mut Rest) {
        self.rows.as_mut().expect("a row was reached").give();
        rest.count(1);
    }

    /// Hands the row that was reached to `each`, and then the rows that follow in its page. It stops at the limit, or
    /// when a newer view exists. If `each` broke, it returns what `each` broke with.
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

    /// Gives the row that was reached, and the rows after it that lie in its page: at most `most` rows in all.
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
