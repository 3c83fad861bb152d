//! When versions were made: a sparse list of moments. This module reads no clock.

use os::sync::Arc;
use sst::Version;

/// The list is thinned out when it has this many moments: of its older half, at most a quarter of this many stay, about
/// equally far apart in time. So the recent past is known to the second, and the older past to a thousandth of its length.
const MOST: usize = 4096;

/// A moment: `version` was the newest version at this time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VersionTime {
    /// The version.
    pub version: Version,
    /// Microseconds after the beginning of 1970, by a clock that may have been changed between two moments.
    pub micros: u64,
}

/// Moments in the order of their versions.
#[derive(Clone, Debug, Default)]
pub struct Times(Arc<Vec<VersionTime>>);

impl Times {
    /// Adds a moment. Does nothing if a later version is known already.
    pub fn add(&mut self, moment: VersionTime) {
        if self.0.last().is_some_and(|last| last.version >= moment.version) {
            return;
        }
        let all = Arc::make_mut(&mut self.0);
        if all.len() >= MOST {
            thin_out(all);
        }
        all.push(moment);
    }

    /// Drops the moments before `version`, except the last of them. The caller reads no version before `version`.
    pub fn forget_before(&mut self, version: Version) {
        let useless = self.0.partition_point(|moment| moment.version < version).saturating_sub(1);
        if useless > 0 {
            Arc::make_mut(&mut self.0).drain(..useless);
        }
    }

    /// Drops the moments after `version`, which a copy does not have.
    pub fn forget_after(&mut self, version: Version) {
        let left = self.through(version).len();
        if left < self.0.len() {
            Arc::make_mut(&mut self.0).truncate(left);
        }
    }

    /// The moments up to `version`.
    pub fn through(&self, version: Version) -> &[VersionTime] {
        &self.0[..self.0.partition_point(|moment| moment.version <= version)]
    }

    /// Drops the moments up to `version`, because another list has them.
    pub fn forget_through(&mut self, version: Version) {
        let end = self.through(version).len();
        if end > 0 {
            Arc::make_mut(&mut self.0).drain(..end);
        }
    }

    /// All moments.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &VersionTime> {
        self.0.iter()
    }

    /// The version of the last moment whose time is `micros` or earlier. If the clock was put back, two versions may have
    /// one time; the call returns the later version.
    pub fn version_at(&self, micros: u64) -> Option<Version> {
        self.0.iter().rev().find(|moment| moment.micros <= micros).map(|moment| moment.version)
    }

    /// A time at which `version` had been made: that of the next moment.
    pub fn time_of(&self, version: Version) -> Option<u64> {
        let next = self.0.partition_point(|moment| moment.version < version);
        self.0.get(next).map(|moment| moment.micros)
    }
}

/// Drops moments of the older half that lie close to another one.
fn thin_out(all: &mut Vec<VersionTime>) {
    let newer = all.split_off(all.len() / 2);
    let span = newer[0].micros.saturating_sub(all[0].micros);
    let apart = span / (MOST / 4) as u64;
    let mut last: Option<u64> = None;
    // A moment before the last one tells that the clock was put back.
    all.retain(|moment| {
        let is_close = last.is_some_and(|last| moment.micros >= last && moment.micros - last < apart);
        if !is_close {
            last = Some(moment.micros);
        }
        !is_close
    });
    if all.len() > MOST / 3 {
        // The clock has jumped so often that times say little.
        let mut is_odd = false;
        all.retain(|_| {
            is_odd = !is_odd;
            is_odd
        });
    }
    all.extend(newer);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(moments: impl IntoIterator<Item = (u64, u64)>) -> Times {
        let mut times = Times::default();
        moments.into_iter().for_each(|(version, micros)| times.add(VersionTime { version: Version(version), micros }));
        times
    }

    #[test]
    fn a_time_leads_to_the_newest_version_before_it_and_back() {
        let times = times([(10, 100), (20, 200), (20, 250), (30, 300)]);
        let at = |micros| times.version_at(micros).map(|version| version.0);
        assert_eq!(
            [at(99), at(100), at(199), at(200), at(299), at(1000)],
            [None, Some(10), Some(10), Some(20), Some(20), Some(30)]
        );
        let of = |version| times.time_of(Version(version));
        assert_eq!([of(1), of(10), of(11), of(30), of(31)], [Some(100), Some(100), Some(200), Some(300), None]);
    }

    #[test]
    fn a_clock_that_is_put_back_leads_to_the_later_version() {
        let times = times([(10, 1000), (20, 5000), (30, 1100)]);
        assert_eq!(times.version_at(1050), Some(Version(10)));
        assert_eq!(times.version_at(1100), Some(Version(30)));
        assert_eq!(times.version_at(9000), Some(Version(30)));
    }

    #[test]
    fn a_clock_that_jumps_all_the_time_does_not_make_the_list_grow() {
        let times =
            times((1..=50_000).map(|number| (number, if number % 2 == 0 { number } else { 1_000_000 - number })));
        assert!(times.iter().count() <= MOST);
    }

    #[test]
    fn the_list_stays_short_and_knows_the_recent_past_best() {
        let mut times = times((1..=100_000).map(|number| (number, 10 * number)));
        assert!(times.iter().count() <= MOST);
        for version in [99_999, 99_000, 98_500] {
            let found = times.version_at(10 * version).expect("it is known").0;
            assert!((version - 1..=version).contains(&found), "{found} for {version}");
        }
        for version in [5_000, 50_000, 90_000] {
            let about = times.version_at(10 * version).expect("it is known roughly").0;
            assert!((version - 200..=version).contains(&about), "{about} for {version}");
        }
        times.forget_before(Version(99_000));
        let first: Vec<u64> = times.iter().take(2).map(|moment| moment.version.0).collect();
        assert!(first[0] < 99_000 && first[1] >= 99_000, "{first:?}");
        assert_eq!(times.through(Version(99_990)).last().map(|moment| moment.version), Some(Version(99_990)));
        times.forget_through(Version(99_990));
        assert_eq!(times.iter().count(), 10);
    }
}
