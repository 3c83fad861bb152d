//! The answers of statistics, as plain values.

use sst::stats::Estimate;

/// What a range of a table contains, see [`Statistics::range_stats`](crate::Reader::range_stats).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RangeStats {
    /// Rows that a reader sees.
    pub rows: Estimate,
    /// Newest versions of rows in files. A key that is in several files counts in each.
    pub stored_rows: Estimate,
    /// The stored rows that are erases.
    pub erased_rows: Estimate,
    /// Stored bytes in files: data pages, large values, older versions and other column groups, without indexes and
    /// range erases.
    pub file_bytes: Estimate,
    /// The part of [`RangeStats::file_bytes`] in data pages of the main tree: keys, and values or the first column
    /// group.
    pub data_bytes: Estimate,
    /// [`RangeStats::file_bytes`] by column group; empty if values are whole. Large values of the first group are not
    /// counted.
    pub groups: Vec<RangeGroup>,
    /// The part of [`RangeStats::file_bytes`] for older versions, in all groups.
    pub history_bytes: Estimate,
    /// The levels that have files in the range, from the top.
    pub levels: Vec<RangeLevel>,
    /// Keys in memory. A key that is in several memtables counts in each.
    pub memory_rows: u64,
    /// Memory of the versions of these keys, in bytes.
    pub memory_bytes: u64,
}

/// What a column group contains of a range.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RangeGroup {
    /// Its name.
    pub name: String,
    /// Stored bytes of its newest versions. For the first group these are the data pages, with the keys.
    pub bytes: Estimate,
}

/// What a level contains of a range.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RangeLevel {
    /// Its number.
    pub level: usize,
    /// Files that may have keys in the range.
    pub files: u64,
    /// Stored rows, including erases.
    pub rows: Estimate,
    /// Stored bytes, as in [`RangeStats::file_bytes`].
    pub bytes: Estimate,
}
