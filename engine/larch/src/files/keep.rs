//! Decides which versions some reader may still see. This module knows only versions, no rows and no files, and its
//! functions are pure. Readers read at [`Boundaries`]; of several versions of a key in one interval between these, they
//! can see only the newest.

use crate::base::boundaries::Boundaries;
use sst::Version;

/// Whether all boundaries are at or after `version`, so that no reader sees anything older than `version`.
pub fn is_in_oldest_interval(boundaries: &Boundaries, version: Version) -> bool {
    boundaries.interval(version) == 0
}

/// The newest version of each interval. `versions` must be sorted from newest to oldest, and so is the result.
pub fn newest_of_each_interval(boundaries: &Boundaries, versions: &[Version]) -> Vec<Version> {
    let mut kept: Vec<Version> = Vec::new();
    for &version in versions {
        if kept.last().is_none_or(|&last| boundaries.interval(last) != boundaries.interval(version)) {
            kept.push(version);
        }
    }
    kept
}

/// Decides which versions of a key to keep. The caller asks about each version of the key, newest first.
#[derive(Debug, Default)]
pub struct KeyFilter {
    /// The interval of the last version asked about.
    last: Option<u64>,
}

impl KeyFilter {
    /// Whether some reader can see `version` of the key. `covers` are the versions of the range erases over the
    /// key, newest first, with at least the newest of each interval.
    pub fn keep(&mut self, boundaries: &Boundaries, version: Version, covers: &[Version]) -> bool {
        let interval_here = boundaries.interval(version);
        if self.last.replace(interval_here) == Some(interval_here) {
            return false;
        }
        // The oldest cover that is newer than the version was the first to hide it.
        let hidden_by = covers.iter().rev().find(|&&cover| cover > version);
        hidden_by.is_none_or(|&cover| boundaries.interval(cover) != interval_here)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(boundaries: &[u64], versions: &[u64], covers: &[u64]) -> Vec<u64> {
        kept_from(boundaries, None, versions, covers)
    }

    fn kept_from(boundaries: &[u64], all_from: Option<u64>, versions: &[u64], covers: &[u64]) -> Vec<u64> {
        let versions_of = |numbers: &[u64]| numbers.iter().map(|&n| Version(n)).collect::<Vec<_>>();
        let boundaries = Boundaries::new(versions_of(boundaries), all_from.map(Version));
        let covers = versions_of(covers);
        let mut filter = KeyFilter::default();
        versions.iter().copied().filter(|&n| filter.keep(&boundaries, Version(n), &covers)).collect()
    }

    #[test]
    fn only_the_newest_version_of_an_interval_survives() {
        assert_eq!(kept(&[9], &[9, 7, 3], &[]), [9]);
        assert_eq!(kept(&[5, 9], &[9, 7, 5, 3], &[]), [9, 5]);
        assert_eq!(kept(&[4, 9], &[9, 7, 5, 3], &[]), [9, 3]);
        assert_eq!(kept(&[5], &[9, 7, 5, 3], &[]), [9, 5], "versions that nobody sees yet form an interval too");
    }

    #[test]
    fn what_a_range_erase_hides_from_all_readers_goes() {
        assert_eq!(kept(&[9], &[7], &[8]), [] as [u64; 0]);
        assert_eq!(kept(&[7, 9], &[7], &[8]), [7], "a reader at 7 still sees it");
        assert_eq!(kept(&[9], &[8], &[8]), [8], "a put of the same commit wins");
        assert_eq!(kept(&[5, 9], &[7, 3], &[8, 4]), [] as [u64; 0]);
        assert_eq!(kept(&[3, 9], &[7, 3], &[8, 4]), [3]);
    }

    #[test]
    fn agrees_with_asking_every_reader() {
        // With versions from 1 to 6, tries all possible sets of row versions, covers and readers.
        for bits in 0u32..1 << 18 {
            let set = |shift: u32| (1..=6u64).filter(move |n| bits >> (shift + *n as u32 - 1) & 1 != 0);
            let versions: Vec<u64> = set(0).collect::<Vec<_>>().into_iter().rev().collect();
            let covers: Vec<u64> = set(6).collect::<Vec<_>>().into_iter().rev().collect();
            let readers: Vec<u64> = set(12).collect();
            if versions.iter().any(|version| covers.contains(version)) {
                continue;
            }
            let mut boundaries = readers.clone();
            boundaries.push(7);
            // A window from each version on is the same as a reader at each of its versions.
            for from in 1..=7 {
                let all: Vec<u64> =
                    boundaries.iter().copied().filter(|&reader| reader < from).chain(from..=7).collect();
                let windowed = kept_from(&boundaries, Some(from), &versions, &covers);
                assert_eq!(windowed, kept(&all, &versions, &covers), "from {from} beside {boundaries:?}");
            }
            let kept = kept(&boundaries, &versions, &covers);
            for reader in boundaries {
                let see = |rows: &[u64]| {
                    let row = rows.iter().find(|&&row| row <= reader).copied();
                    let cover = covers.iter().find(|&&cover| cover <= reader).copied();
                    row.filter(|&row| cover.is_none_or(|cover| cover < row))
                };
                assert_eq!(see(&kept), see(&versions), "reader {reader} of {versions:?} under {covers:?}");
            }
        }
    }
}
