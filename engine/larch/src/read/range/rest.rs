//! What is left of a range: the bounds of the keys that were not given to the caller yet, and how many more rows the
//! range may give. This module does not know where rows come from.

use super::limit::RowLimit;
use crate::base::bounds;
use pages::Admit;
use sst::Direction;
use sst::precharge::is_empty;
use std::ops::Bound;

/// The rows that a range has not given yet.
pub(super) struct Rest {
    /// Moves to each row that is given from its end. While rows are followed the bound lags behind, and it catches up
    /// when following stops.
    pub low: Bound<Vec<u8>>,
    pub high: Bound<Vec<u8>>,
    pub limit: RowLimit,
    /// Whether the range has ended: at the end of its keys, or at its limit.
    pub is_over: bool,
    /// How often the range was restarted, at most 255. The range of a cursor is restarted at each seek.
    pub restarts: u8,
    /// The memory of at most two bounds that became unbounded, for later bounds.
    spare: Vec<Vec<u8>>,
}

impl Rest {
    /// All rows with keys in these bounds.
    pub fn new((low, high): bounds::Owned, admit: Admit) -> Self {
        let is_over = is_empty(&low.as_ref().map(Vec::as_slice), &high.as_ref().map(Vec::as_slice));
        Self { low, high, limit: RowLimit::none(admit), is_over, restarts: 0, spare: Vec::new() }
    }

    /// Gives at most `rows` of these rows.
    pub fn set_limit(&mut self, rows: u64) {
        // A range that has ended has read all its keys, so a limit changes nothing.
        if !self.is_over {
            self.limit = self.limit.at_most(rows);
            self.is_over = self.limit.rows() == 0;
        }
    }

    /// Continues with the rows between these bounds. There must be no limit.
    pub fn restart(&mut self, low: Bound<&[u8]>, high: Bound<&[u8]>) {
        debug_assert!(!self.limit.is_set(), "a limit counts the rows of one range");
        self.restarts = self.restarts.saturating_add(1);
        self.is_over = is_empty(&low, &high);
        replace(&mut self.low, low, &mut self.spare);
        replace(&mut self.high, high, &mut self.spare);
    }

    /// The bounds.
    pub fn bounds(&self) -> bounds::Borrowed<'_> {
        (self.low.as_ref().map(Vec::as_slice), self.high.as_ref().map(Vec::as_slice))
    }

    /// Counts `rows` rows that were given. The range ends when it reaches its limit.
    #[inline]
    pub fn count(&mut self, rows: u64) {
        self.limit.count(rows);
        self.is_over = self.limit.rows() == 0;
    }

    /// Whether the range has read all its keys, as opposed to having reached its limit.
    pub fn has_come_to_end(&self) -> bool {
        self.is_over && self.limit.rows() > 0
    }

    /// The bound at the end from which rows are taken in `direction`.
    #[inline]
    pub fn near(&mut self, direction: Direction) -> &mut Bound<Vec<u8>> {
        match direction {
            Direction::Forward => &mut self.low,
            Direction::Backward => &mut self.high,
        }
    }

    /// The key of the last row that a merge found in `direction`. This row was given.
    pub fn last_key(&self, direction: Direction) -> &[u8] {
        let bound = match direction {
            Direction::Forward => &self.low,
            Direction::Backward => &self.high,
        };
        let Bound::Excluded(key) = bound else { unreachable!("giving a row moves the bound to it") };
        key
    }
}

/// Moves the bound `near` to `key`, whose row was given.
#[inline]
pub(super) fn close_in(near: &mut Bound<Vec<u8>>, key: &[u8]) {
    match near {
        Bound::Excluded(last) => key.clone_into(last),
        Bound::Included(last) => {
            let mut last = std::mem::take(last);
            key.clone_into(&mut last);
            *near = Bound::Excluded(last);
        }
        Bound::Unbounded => *near = Bound::Excluded(key.to_vec()),
    }
}

/// A range has two bounds, so it can use no more spare keys at once.
const MAX_SPARE: usize = 2;

/// Replaces a bound, reusing its memory or that of a `spare` key.
fn replace(bound: &mut Bound<Vec<u8>>, with: Bound<&[u8]>, spare: &mut Vec<Vec<u8>>) {
    let key = match std::mem::replace(bound, Bound::Unbounded) {
        Bound::Included(key) | Bound::Excluded(key) => Some(key),
        Bound::Unbounded => None,
    };
    if matches!(with, Bound::Unbounded) {
        if spare.len() < MAX_SPARE {
            spare.extend(key);
        }
        return;
    }
    let mut key = key.or_else(|| spare.pop()).unwrap_or_default();
    *bound = with.map(|with| {
        with.clone_into(&mut key);
        key
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_that_become_unbounded_again_and_again_keep_no_more_memory() {
        let mut rest = Rest::new((Bound::Unbounded, Bound::Unbounded), Admit::Keep);
        for _ in 0..1000 {
            rest.restart(Bound::Unbounded, Bound::Unbounded);
            close_in(&mut rest.low, b"the first");
            close_in(&mut rest.high, b"the last");
        }
        assert_eq!(rest.spare.len(), MAX_SPARE);
    }
}
