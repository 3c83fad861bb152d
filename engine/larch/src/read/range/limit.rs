//! How many rows a range may still give, and when it loads all that these rows need at once. This module does not
//! know how the rows are loaded.

use pages::Admit;

/// The largest limit with which a range uses a precharge instead of readahead, which would also read pages beyond the
/// limit. The pages for more rows may not fit in the cache together.
const PRECHARGED_ROWS: u64 = 1000;

/// How many more rows a range may give.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowLimit {
    /// `u64::MAX` if there is no limit.
    rows: u64,
    precharging: Precharging,
    admit: Admit,
}

/// When a range makes the precharge for the rows up to its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Precharging {
    /// On the first missing page.
    IfMissing,
    /// Once the current row is given. A page of one of its parts was missing, and the next rows will miss such pages,
    /// too.
    AfterRow,
    /// Before the next row.
    Due,
    /// Never: it was made, or the range makes none.
    Done,
}

impl RowLimit {
    /// No limit, for a range that reads with `admit`.
    pub fn none(admit: Admit) -> Self {
        // If the cache does not keep the pages of a precharge, they would only be read again.
        let precharging = if admit == Admit::Keep { Precharging::IfMissing } else { Precharging::Done };
        Self { rows: u64::MAX, precharging, admit }
    }

    /// Lowers the limit to `rows`.
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

    /// Whether the first missing page makes the precharge due.
    #[inline]
    pub fn watches_first_miss(&self) -> bool {
        self.is_set() && self.precharging == Precharging::IfMissing
    }

    /// Called when the first page is missing on the way to a row.
    pub fn missed_first(&mut self) {
        self.precharging = Precharging::Due;
    }

    /// Whether the precharge has to be made before the next row.
    #[inline]
    pub fn is_due(&self) -> bool {
        self.precharging == Precharging::Due
    }

    /// Called when the precharge was made.
    pub fn precharged(&mut self) {
        self.precharging = Precharging::Done;
    }

    /// Called when a blocking read misses a page of a row after all sources have reached the row.
    #[inline]
    pub fn missed(&mut self) {
        if self.watches_first_miss() {
            self.precharging = Precharging::AfterRow;
        }
    }

    /// Called when the row that the read looked for was given.
    #[inline]
    pub fn given(&mut self) {
        if self.precharging == Precharging::AfterRow {
            self.precharging = Precharging::Due;
        }
    }

    /// Counts `rows` rows that were given, with or without merging.
    #[inline]
    pub fn count(&mut self, rows: u64) {
        if self.is_set() {
            self.rows -= rows;
        }
    }
}
