//! What statistics answer with.

use sst::stats::Estimate;

/// What a range of a table holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RangeStats {
    /// Rows that a reader sees.
    pub rows: Estimate,
    /// Rows in files, newest versions: a key in several files counts in each.
    pub stored_rows: Estimate,
    /// Of these, erases.
    pub erased_rows: Estimate,
    /// Stored bytes in files: data pages, large values, older versions, other column groups. Indexes and range erases are
    /// not among them.
    pub file_bytes: Estimate,
    /// Of these, in data pages of the main tree: keys, and values or the first column group.
    pub data_bytes: Estimate,
    /// Of these, by column group; none if values are whole. Large values of the first group are not among its bytes.
    pub groups: Vec<RangeGroup>,
    /// Of these, of older versions, in all groups.
    pub history_bytes: Estimate,
    /// Levels with files there, from the top.
    pub levels: Vec<RangeLevel>,
    /// Keys in memory; a key in several memtables counts in each.
    pub memory_rows: u64,
    /// Memory of their versions in bytes.
    pub memory_bytes: u64,
}

/// What a column group holds of a range.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RangeGroup {
    /// Its name.
    pub name: String,
    /// Stored bytes of its newest versions; of the first group these are the data pages, with the keys.
    pub bytes: Estimate,
}

/// What a level holds of a range.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RangeLevel {
    /// Its number.
    pub level: usize,
    /// Files that may have keys there.
    pub files: u64,
    /// Rows, erases among them.
    pub rows: Estimate,
    /// Stored bytes, as in [`RangeStats::file_bytes`].
    pub bytes: Estimate,
}
