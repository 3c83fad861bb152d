//! What cursors ask of a page of rows, the same for all layouts. It does not know how a page stores its rows.

use super::outside_value::OutsideValue;
use crate::row::Version;

/// What a cursor must know of a page of rows, or about rows.
pub trait PageRows: Copy {
    /// Reads the head of a validated page.
    fn of(page: &[u8]) -> Self;

    /// Rows in the page, at least one.
    fn rows(&self) -> usize;

    /// Row id of the first row.
    fn first_row(&self) -> u64;

    /// The reference to the value of row `i`, if it lies outside the page and the row is one of `seen`.
    fn outside<'p>(&self, _page: &'p [u8], _i: usize, _seen: Seen) -> Option<OutsideValue<'p>> {
        None
    }
}

/// Which rows of a page a reader sees, by what the page says. Versions are those of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// All of them.
    All,
    /// Those not newer than this.
    At(Version),
    /// In a history: the newest version of each main row that is not newer than this.
    NewestAt(Version),
}
