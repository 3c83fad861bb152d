//! The results of statistics, as plain values.

use sst::stats::Estimate;

/// What a range of a table contains; see [`Statistics::range_stats`](crate::Reader::range_stats).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct RangeStats {
    /// The number of rows that a reader sees.
    pub rows: Estimate,
    /// The number of rows in files. Older versions of a row in the same file do not count. A key in several files
    /// counts once for each.
    pub stored_rows: Estimate,
    /// How many of the stored rows are erases.
    pub erased_rows: Estimate,
    /// The stored bytes in files: data pages, large values, older versions and other column groups, but no indexes
    /// and no range erases.
    pub file_bytes: Estimate,
    /// The part of [`RangeStats::file_bytes`] in data pages of the main tree, which have the keys and the values or
    /// the first column group.
    pub data_bytes: Estimate,
    /// The part of [`RangeStats::file_bytes`] in each column group. Empty if the table stores values as a whole.
    /// Large values of the first group do not count.
    pub groups: Vec<RangeGroup>,
    /// The part of [`RangeStats::file_bytes`] in older versions, in all groups.
    pub history_bytes: Estimate,
    /// The levels that have files in the range, from level 0 down.
    pub levels: Vec<RangeLevel>,
    /// The number of keys in memory. A key in several memtables counts once for each.
    pub memory_rows: u64,
    /// The bytes of all versions of the keys in memory.
    pub memory_bytes: u64,
}

/// What a range contains in one column group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct RangeGroup {
    /// The name of the column group.
    pub name: String,
    /// The stored bytes of the newest versions in this group. For the first group these are the data pages, which
    /// also have the keys.
    pub bytes: Estimate,
}

/// What a range contains in one level.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct RangeLevel {
    /// The number of the level.
    pub level: usize,
    /// The number of files that may have keys in the range.
    pub files: u64,
    /// Stored rows, including erases.
    pub rows: Estimate,
    /// Stored bytes, as in [`RangeStats::file_bytes`].
    pub bytes: Estimate,
}
