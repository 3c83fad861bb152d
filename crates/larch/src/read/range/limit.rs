//! How many rows a range still gives, and when it loads all that these rows need at once. This module does not know
//! how the rows are loaded.

use pages::Admit;

/// A range with at most this limit uses a precharge instead of readahead, because readahead would also read pages
/// beyond the limit. The pages of a larger precharge may not fit in the cache together.
const PRECHARGED_ROWS: u64 = 1000;

/// How many rows a range still gives at most.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowLimit {
    /// `u64::MAX` without a limit.
    rows: u64,
    precharging: Precharging,
    admit: Admit,
}

/// When a range makes the precharge of the rows up to its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Precharging {
    /// As soon as a page is missing.
    IfMissing,
    /// After a row is given that missed a part: the rows after it will miss parts, too.
    AfterRow,
    /// Before the next row.
    Due,
    /// The precharge was made, or the range makes none.
    Done,
}

impl RowLimit {
    /// No limit, for a range whose reads admit pages to the cache as `admit` says.
    pub fn none(admit: Admit) -> Self {
        // A precharge is useless if the cache does not keep its pages: they would be read again.
        let precharging = if admit == Admit::Keep { Precharging::IfMissing } else { Precharging::Done };
        Self { rows: u64::MAX, precharging, admit }
    }

    /// At most `rows` rows.
    pub fn at_most(self, rows: u64) -> Self {
        Self { rows: self.rows.min(rows), ..self }
    }

    /// How many rows are left.
    #[inline]
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Whether a limit is set.
    #[inline]
    pub fn is_set(&self) -> bool {
        self.rows < u64::MAX
    }

    /// Whether the range uses a precharge instead of readahead.
    #[inline]
    pub fn uses_precharge(&self) -> bool {
        self.rows <= PRECHARGED_ROWS && self.admit == Admit::Keep
    }

    /// Whether the first page that is missing makes the precharge due.
    #[inline]
    pub fn watches_first_miss(&self) -> bool {
        self.is_set() && self.precharging == Precharging::IfMissing
    }

    /// The first page is missing on the way to a row.
    pub fn missed_first(&mut self) {
        self.precharging = Precharging::Due;
    }

    /// Whether the precharge comes before the next row.
    #[inline]
    pub fn is_due(&self) -> bool {
        self.precharging == Precharging::Due
    }

    /// The precharge was made.
    pub fn precharged(&mut self) {
        self.precharging = Precharging::Done;
    }

    /// A page was missing of a row that a reader waits for. At that time all sources had come to the row.
    #[inline]
    pub fn missed(&mut self) {
        if self.watches_first_miss() {
            self.precharging = Precharging::AfterRow;
        }
    }

    /// The row that was looked for was given.
    #[inline]
    pub fn given(&mut self) {
        if self.precharging == Precharging::AfterRow {
            self.precharging = Precharging::Due;
        }
    }

    /// Counts `rows` rows that the range has given, with a merge or without one.
    #[inline]
    pub fn count(&mut self, rows: u64) {
        if self.is_set() {
            self.rows -= rows;
        }
    }
}
