//! The versions at which readers read, and the intervals between them. This module knows no rows and no files.

use super::table::TableId;
use sst::Version;

/// The versions at which readers may read: single ones, and perhaps all from some version on. The versions after one
/// of these, up to the next, form an *interval*. Of several versions of a key in an interval, readers can see only the
/// newest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Boundaries {
    /// In ascending order, each once.
    versions: Vec<Version>,
    /// Readers may also read at this version and at each later one.
    all_from: Option<Version>,
    /// The tables for which another version takes the place of `all_from`.
    tables: Vec<(TableId, Option<Version>)>,
}

impl Boundaries {
    /// The `versions`, which may have any order, and all versions from `all_from` on.
    pub fn new(mut versions: Vec<Version>, all_from: Option<Version>) -> Self {
        versions.sort_unstable();
        versions.dedup();
        Self { versions, all_from, tables: Vec::new() }
    }

    /// A single version.
    pub fn only(version: Version) -> Self {
        Self::new(vec![version], None)
    }

    /// Like this, but each of `tables` is read at all versions from another one on.
    #[must_use]
    pub fn with_tables(self, tables: Vec<(TableId, Option<Version>)>) -> Self {
        Self { tables, ..self }
    }

    /// The boundaries for readers of `table`.
    pub fn of(&self, table: TableId) -> Self {
        let own = self.tables.iter().find(|(other, _)| *other == table);
        let all_from = own.map_or(self.all_from, |(_, from)| *from);
        Self { versions: self.versions.clone(), all_from, tables: Vec::new() }
    }

    /// The tables with a past of their own. They are part of what a change of the boundaries can mean.
    pub fn tables(&self) -> &[(TableId, Option<Version>)] {
        &self.tables
    }

    /// The single versions, in ascending order.
    pub fn versions(&self) -> &[Version] {
        &self.versions
    }

    /// The version from which on readers may read at every version.
    pub fn all_from(&self) -> Option<Version> {
        self.all_from
    }

    /// The oldest version at which a reader may read. [`Version::MAX`] if there is none.
    pub fn oldest(&self) -> Version {
        let first = self.versions.first().copied().unwrap_or(Version::MAX);
        self.all_from.map_or(first, |from| first.min(from))
    }

    /// The number of the interval of `version`: how many boundaries are less than it. Versions newer than all
    /// boundaries form the last interval.
    #[inline]
    pub fn interval(&self, version: Version) -> u64 {
        let before = |version: Version| self.versions.partition_point(|&boundary| boundary < version) as u64;
        match self.all_from {
            Some(from) if version > from => before(from) + (version.0 - from.0),
            _ => before(version),
        }
    }
}

impl From<Vec<Version>> for Boundaries {
    fn from(versions: Vec<Version>) -> Self {
        Self::new(versions, None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_end_at_single_versions_and_at_each_version_of_a_window() {
        let intervals = |versions: &[u64], from: Option<u64>| -> Vec<u64> {
            let versions = versions.iter().map(|&version| Version(version)).collect();
            let boundaries = Boundaries::new(versions, from.map(Version));
            (1..=8).map(|version| boundaries.interval(Version(version))).collect()
        };
        assert_eq!(intervals(&[], None), [0; 8]);
        assert_eq!(intervals(&[6, 3], None), [0, 0, 0, 1, 1, 1, 2, 2]);
        assert_eq!(intervals(&[], Some(5)), [0, 0, 0, 0, 0, 1, 2, 3]);
        assert_eq!(intervals(&[2, 5, 7], Some(5)), [0, 0, 1, 1, 1, 2, 3, 4]);
        assert_eq!(intervals(&[2, 6], Some(1)), [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(Boundaries::new(vec![Version(4)], Some(Version(2))).oldest(), Version(2));
        assert_eq!(Boundaries::new(vec![Version(1)], Some(Version(2))).oldest(), Version(1));
        let tables = vec![(TableId(1), None), (TableId(2), Some(Version(3)))];
        let all = Boundaries::new(vec![Version(8)], Some(Version(5))).with_tables(tables);
        let from = |table: u32| all.of(TableId(table)).all_from().map(|from| from.0);
        assert_eq!([from(1), from(2), from(3)], [None, Some(3), Some(5)]);
        assert_eq!([1, 2, 3].map(|table| all.of(TableId(table)).oldest().0), [8, 3, 5]);
    }
}
