//! The versions at which readers read, and the intervals between them. This module knows no rows and no files.

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
}

impl Boundaries {
    /// The `versions`, which may have any order, and all versions from `all_from` on.
    pub fn new(mut versions: Vec<Version>, all_from: Option<Version>) -> Self {
        versions.sort_unstable();
        versions.dedup();
        Self { versions, all_from }
    }

    /// A single version.
    pub fn only(version: Version) -> Self {
        Self::new(vec![version], None)
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
    }
}
