//! The bounds of the files of a level, in a form that is fast to search for one key. The prefix that all bounds
//! share is stored once. Of the rest of each bound, only the *head* is stored: its first eight bytes as a number.
//! So the heads of a whole level lie side by side in a few cache lines, while the full bounds are three pointers
//! away, with each file. The files must not overlap.

use super::db_file::DbFile;
use crate::base::key_head::head;
use os::sync::Arc;
use std::cmp::Ordering;
use std::ops::Range;

/// The bounds of the files of a level, in the order of the files.
#[derive(Debug)]
pub struct LevelBounds {
    /// The prefix that all bounds have in common.
    prefix: Box<[u8]>,
    /// For each lower bound, the head of its bytes after the prefix.
    lows: Box<[u64]>,
    /// For each upper bound, the head of its bytes after the prefix; the greatest number if a file has no upper
    /// bound.
    highs: Box<[u64]>,
}

impl LevelBounds {
    /// The bounds of `level`, whose files are ordered by key.
    pub fn of(level: &[Arc<DbFile>]) -> Self {
        let lows = || level.iter().map(|file| file.sst.bounds().low.as_slice());
        let highs = || level.iter().map(|file| file.sst.bounds().high.as_deref());
        // Bounds are in order, so a prefix of both the least and the greatest is a prefix of all. The greatest may
        // be an upper bound before the last lower bound if both were cut to the same bytes, so compare both.
        let greatest = highs().flatten().next_back().max(lows().next_back()).unwrap_or_default();
        let least = lows().next().unwrap_or_default();
        let prefix = &least[..least.iter().zip(greatest).take_while(|(a, b)| a == b).count()];
        let rest = |bound: &[u8]| head(&bound[prefix.len()..]);
        Self {
            lows: lows().map(rest).collect(),
            highs: highs().map(|high| high.map_or(u64::MAX, rest)).collect(),
            prefix: prefix.into(),
        }
    }

    /// The places, in the level, of the files that may have `key`, by heads alone. The second value is true if this
    /// is exact. Otherwise, the head of `key` equals that of a bound, and the full bounds may rule out some of
    /// these files.
    #[inline]
    pub fn around(&self, key: &[u8]) -> (Range<usize>, bool) {
        let shared = key.len().min(self.prefix.len());
        let order = if shared == 0 { Ordering::Equal } else { key[..shared].cmp(&self.prefix[..shared]) };
        let key_head = match order {
            Ordering::Equal if shared == self.prefix.len() => head(&key[shared..]),
            Ordering::Less | Ordering::Equal => return (0..0, true),
            // `key` is greater than every bound.
            Ordering::Greater => u64::MAX,
        };
        let start = self.highs.partition_point(|high| *high < key_head);
        let files = self.lows[start..].partition_point(|low| *low <= key_head);
        let is_certain = files == 0 || files == 1 && self.lows[start] < key_head && key_head < self.highs[start];
        (start..start + files, is_certain)
    }
}
