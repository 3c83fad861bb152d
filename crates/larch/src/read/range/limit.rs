//! How many rows a range still gives, and when what they all need is read ahead. It does not know how it is read.

use pages::{Admit, Stop};

/// A range with at most this limit uses a precharge in place of readahead, because readahead would also read pages beyond the
/// limit. The pages of a larger precharge may not fit in the cache together.
const CHARGED_ROWS: u64 = 1000;

/// The rows that a range still gives at most.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowLimit {
    /// `u64::MAX` without a limit.
    rows: u64,
    charging: Charging,
    admit: Admit,
}

/// Whether what the rows up to the limit need is read ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Charging {
    /// As soon as something is missing.
    IfMissing,
    /// Once the row is given of which a part was missing: parts of the rows after it will be missing, too.
    AfterRow,
    /// Now.
    Due,
    /// It was, or it is not wanted.
    Done,
}

impl RowLimit {
    /// No limit, for a range that reads pages which the cache keeps as `admit` says.
    pub fn none(admit: Admit) -> Self {
        // What the cache does not keep would be read again.
        let charging = if admit == Admit::Keep { Charging::IfMissing } else { Charging::Done };
        Self { rows: u64::MAX, charging, admit }
    }

    /// At most `rows` rows.
    pub fn at_most(self, rows: u64) -> Self {
        Self { rows: self.rows.min(rows), ..self }
    }

    /// Rows left.
    #[inline]
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Whether there is a limit.
    #[inline]
    pub fn is_set(&self) -> bool {
        self.rows < u64::MAX
    }

    /// Whether a precharge brings all that the range needs.
    #[inline]
    pub fn is_charged(&self) -> bool {
        self.rows <= CHARGED_ROWS && self.admit == Admit::Keep
    }

    /// Whether the precharge comes before the next row.
    #[inline]
    pub fn is_due(&self) -> bool {
        self.charging == Charging::Due
    }

    /// A row was given.
    #[inline]
    pub fn count(&mut self) {
        if self.is_set() {
            self.rows -= 1;
        }
    }

    /// Before a reader that waits looks for a row: runs `charge` if the time has come for it, which is as soon as `settle`,
    /// by which all sources arrive at the row, misses a page. A step.
    #[inline]
    pub fn before_row(
        &mut self,
        settle: impl FnOnce() -> Result<(), Stop>,
        charge: impl FnOnce(u64) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        if !self.is_set() || self.charging == Charging::Done {
            return Ok(());
        }
        if self.charging == Charging::IfMissing {
            match settle() {
                Ok(()) => {}
                Err(Stop::Fault) => self.charging = Charging::Due,
                Err(stop) => return Err(stop),
            }
        }
        if self.charging == Charging::Due {
            charge(self.rows)?;
            self.charging = Charging::Done;
        }
        Ok(())
    }

    /// Something of a row that a reader waits for was missing.
    #[inline]
    pub fn missed(&mut self) {
        if self.is_set() && self.charging == Charging::IfMissing {
            self.charging = Charging::AfterRow;
        }
    }

    /// The row that was looked for was given.
    #[inline]
    pub fn passed(&mut self) {
        if self.charging == Charging::AfterRow {
            self.charging = Charging::Due;
        }
    }
}
