//! What cursors need to know about a page of rows, in a form that is the same for all layouts of pages. This module
//! does not know how a page stores its rows.

use super::outside_value::OutsideValue;
use crate::row::Version;

/// What a cursor must know about a page of rows.
pub trait PageRows: Copy {
    /// Reads the head of a validated page.
    fn of(page: &[u8]) -> Self;

    /// The number of rows in the page, at least one.
    fn rows(&self) -> usize;

    /// Row id of the first row.
    fn first_row(&self) -> u64;

    /// The reference to the value of row `i`, if the value lies outside the page and the row is one of `seen`.
    fn outside<'p>(&self, _page: &'p [u8], _i: usize, _seen: Seen) -> Option<OutsideValue<'p>> {
        None
    }
}

/// The rows of a page that a reader sees, as far as the page alone can tell. The versions are those that the file
/// stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// All rows.
    All,
    /// The rows that are not newer than this version.
    At(Version),
    /// In a history: for each main row, the newest of those versions that are not newer than the given version.
    NewestAt(Version),
}
