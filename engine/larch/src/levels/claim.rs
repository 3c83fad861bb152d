//! Claims: a compaction claims a range of levels and a range of keys. Compactions whose claims do not overlap may
//! run at the same time and be installed in any order. This module does not know how a compaction is chosen.
//!
//! ```text
//!            a         h         p         z
//!   level 0  . . . . . . . . . . . . . . .      A and B share keys but no level, B and C share levels but no keys.
//!   level 4  [    A    ]                        A and C share neither.
//!   level 5  [ . . . . ]. . . . . . . . . .
//!   level 6  [ B ]      [    C    ]
//! ```
//!
//! Why claims are enough: for each key, the versions in a level are newer than those in all deeper levels. A
//! compaction claims all levels from its uppermost input down to its outputs, for the keys of its inputs, so no
//! other compaction can move a row of these keys past it, below an older row. A compaction also relies on which
//! keys the levels below its outputs have. No rows can reach these levels while it runs, except through the levels
//! that it has claimed.

use crate::manifest::{DbFile, TableFiles};
use os::sync::Arc;
use sst::KeyBounds;
use std::ops::RangeInclusive;

/// The levels and keys of one table that a compaction changes.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    levels: RangeInclusive<usize>,
    bounds: KeyBounds,
}

impl Claim {
    /// The claim of a compaction that merges `inputs` of `table`, given by level and number, into the level `to`;
    /// `None` without inputs.
    pub fn of(table: &TableFiles, inputs: &[(usize, u64)], to: usize) -> Option<Self> {
        let is_input = |(level, file): &(usize, &Arc<DbFile>)| inputs.contains(&(*level, file.number));
        let bounds = table.files().filter(is_input).map(|(_, file)| file.sst.bounds().clone());
        let bounds = bounds.reduce(|a, b| a.union(&b))?;
        let first = inputs.iter().map(|(level, _)| *level).min()?;
        Some(Self { levels: first..=to, bounds })
    }

    /// Whether the two claims have both a level and a key in common.
    pub fn meets(&self, other: &Self) -> bool {
        self.levels.start() <= other.levels.end()
            && other.levels.start() <= self.levels.end()
            && self.bounds.overlaps(&other.bounds)
    }

    /// Whether the compaction removes files from `level`.
    pub fn takes_from(&self, level: usize) -> bool {
        self.levels.contains(&level) && level < *self.levels.end()
    }

    /// Whether the compaction removes `file` from `level`.
    pub fn takes(&self, level: usize, file: &DbFile) -> bool {
        self.takes_from(level) && self.bounds.overlaps(file.sst.bounds())
    }
}
