//! Filters of compactions: functions of the program that judge rows while compactions read them. This module knows no
//! storage.

use sst::Version;
use std::fmt;
use std::time::Duration;

/// Judges rows while compactions read them, see [`Table::filter`](crate::Table::filter). Every closure with this
/// signature is a filter.
///
/// It may judge a row several times, or one that was replaced meanwhile. It runs on a thread that compacts, so it should
/// be fast and must not use the database. If it panics, the row stays, and the filter is not asked again.
pub trait CompactionFilter: Send + Sync {
    /// Says what is to become of `row`.
    fn judge(&self, row: &JudgedRow<'_>) -> Verdict;
}

impl<F: Fn(&JudgedRow<'_>) -> Verdict + Send + Sync> CompactionFilter for F {
    fn judge(&self, row: &JudgedRow<'_>) -> Verdict {
        self(row)
    }
}

/// A row, as a [`CompactionFilter`] sees it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct JudgedRow<'r> {
    /// The key.
    pub key: &'r [u8],
    /// The value in parts: one for each [column group](crate::TableOptions::groups) of the table, or a single part if
    /// the table has no groups.
    pub parts: &'r [&'r [u8]],
    /// The version of the commit that wrote the row. [`Database::time_of`](crate::Database::time_of) says when that was,
    /// if the database keeps its past.
    pub version: Version,
    /// The time until which the row is there, since the beginning of 1970. `None` if it does not expire.
    pub until: Option<Duration>,
}

impl<'r> JudgedRow<'r> {
    /// The value of a row in a table without column groups; otherwise the first part.
    pub fn value(&self) -> &'r [u8] {
        self.parts[0]
    }
}

/// What is to become of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The row stays as it is.
    Keep,
    /// The row is removed.
    Remove,
    /// The row gets a new value, in as many parts as [`JudgedRow::parts`] has. It keeps its time, if it has one.
    Replace(Vec<Vec<u8>>),
}

impl Verdict {
    /// Replaces the value of a row in a table without column groups.
    pub fn replace(value: impl Into<Vec<u8>>) -> Self {
        Self::Replace(vec![value.into()])
    }
}

/// How many rows a filter has judged, and what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FilterCounts {
    /// Rows that the filter has judged.
    pub judged: u64,
    /// Rows that were removed because the filter said so.
    pub removed: u64,
    /// Rows that were replaced because the filter said so.
    pub replaced: u64,
    /// Rows that were to be removed or replaced, but had been written again before that.
    pub outdated: u64,
    /// Rows that were to be removed or replaced, but were left to a later compaction, because too many waited for it or
    /// the commit failed.
    pub left: u64,
    /// Whether the filter has panicked, so that it is not asked any more.
    pub has_panicked: bool,
}

/// Prints the counts in one line, for people.
impl fmt::Display for FilterCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { judged, removed, replaced, outdated, left, has_panicked } = self;
        write!(
            f,
            "{judged} rows judged, {removed} removed, {replaced} replaced, {outdated} written again, {left} left"
        )?;
        f.write_str(if *has_panicked { ", the filter has panicked" } else { "" })
    }
}
