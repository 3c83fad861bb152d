//! Which rows and which columns of a table a command prints.

use std::ops::Bound;

/// A range of keys: its lower and its upper bound.
pub type Range = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// Which rows are read.
pub struct Keys {
    /// Ranges of keys that do not overlap, in ascending order.
    pub ranges: Vec<Range>,
    /// Whether the rows are read from the last to the first.
    pub reverse: bool,
    /// The most rows that are read.
    pub limit: u64,
}

impl Keys {
    /// All rows of a range, in ascending order. `None` is a range without keys.
    pub fn of(range: Option<Range>) -> Self {
        Self { ranges: range.into_iter().collect(), reverse: false, limit: u64::MAX }
    }

    /// The row with this key alone.
    pub fn one(key: &[u8]) -> Self {
        Self::of(Some((Bound::Included(key.to_vec()), Bound::Included(key.to_vec()))))
    }
}

/// Which columns are read.
#[derive(Clone, Copy, Default)]
pub struct Columns<'a> {
    /// Those of the key alone.
    pub keys: bool,
    /// Beside those of the key, only the columns of these groups; all columns if it is empty.
    pub groups: &'a [String],
}
