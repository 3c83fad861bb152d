//! What a read will take from a file, and where the read stops. This module knows no pages.

use crate::Direction;
use crate::read::{Groups, Sst};
use crate::row::Version;
use std::ops::{Bound, Range};

/// The limits of a read within its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AtMost {
    /// The most rows that are not erased.
    pub rows: u64,
    /// The most stored bytes of data pages. The limit holds for each tree of a file. The first page does not count
    /// against this limit.
    pub bytes: u64,
}

impl AtMost {
    /// All of the range.
    pub const ALL: Self = Self { rows: u64::MAX, bytes: u64::MAX };

    /// At most this many rows.
    pub fn rows(rows: u64) -> Self {
        Self { rows, ..Self::ALL }
    }

    /// At most this many bytes.
    pub fn bytes(bytes: u64) -> Self {
        Self { bytes, ..Self::ALL }
    }
}

/// What will be read of a file.
#[derive(Clone, Debug)]
pub struct ReadPlan<'k> {
    /// Where the keys begin.
    pub low: Bound<&'k [u8]>,
    /// The end of the key range. A reader looks at the first row after the range, too, to see that the range has
    /// ended.
    pub high: Bound<&'k [u8]>,
    /// The row ids within which the read stays.
    pub rows: Range<u64>,
    /// The direction of the read. The direction decides at which end of the range the read starts.
    pub direction: Direction,
    /// When it stops.
    pub limits: AtMost,
    /// The column groups whose parts are read.
    pub groups: Groups,
    /// The version at which the file is read.
    pub at: Version,
    /// Whether values that lie outside their pages are read.
    pub values: bool,
}

impl ReadPlan<'_> {
    /// All rows of the main group, read forward from the start at the newest version.
    pub const ALL: Self = Self {
        low: Bound::Unbounded,
        high: Bound::Unbounded,
        rows: 0..u64::MAX,
        direction: Direction::Forward,
        limits: AtMost::ALL,
        groups: Groups::MAIN,
        at: Version::MAX,
        values: true,
    };

    /// Whether the file's main tree may have rows with versions that are newer than the version of the read.
    pub(super) fn is_old(&self, sst: &Sst) -> bool {
        self.at.0 < sst.meta.newest.0.saturating_add(sst.version_offset)
    }

    pub(super) fn reads_values(&self, sst: &Sst) -> bool {
        self.values && sst.meta.value_bytes > 0
    }

    /// Whether the read takes anything other than keys, versions and kinds. Only then does it matter exactly which
    /// rows are read.
    pub(super) fn needs_rows(&self, sst: &Sst) -> bool {
        self.groups.any_beside_main() || self.is_old(sst) && sst.meta.history.is_some() || self.reads_values(sst)
    }
}
