//! What a read will take of a file, and where it stops. It knows no pages.

use crate::Direction;
use crate::read::{Groups, Sst};
use crate::row::Version;
use std::ops::{Bound, Range};

/// The most of a range that will be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AtMost {
    /// Rows that are not erased.
    pub rows: u64,
    /// Stored bytes of data pages, for each tree of a file. The first page is free.
    pub bytes: u64,
}

impl AtMost {
    /// All of the range.
    pub const ALL: Self = Self { rows: u64::MAX, bytes: u64::MAX };

    /// This many rows.
    pub fn rows(rows: u64) -> Self {
        Self { rows, ..Self::ALL }
    }

    /// This many bytes.
    pub fn bytes(bytes: u64) -> Self {
        Self { bytes, ..Self::ALL }
    }
}

/// What will be read of a file.
#[derive(Clone, Debug)]
pub struct ReadPlan<'k> {
    /// Where keys begin.
    pub low: Bound<&'k [u8]>,
    /// Where they end. A reader sees that they do by looking at the row after.
    pub high: Bound<&'k [u8]>,
    /// Row ids within which it stays.
    pub rows: Range<u64>,
    /// Which end it starts from.
    pub direction: Direction,
    /// When it stops.
    pub limits: AtMost,
    /// Column groups whose parts it reads.
    pub groups: Groups,
    /// Version it reads at.
    pub at: Version,
    /// Whether it reads values that lie outside their pages.
    pub values: bool,
}

impl ReadPlan<'_> {
    /// Everything, from the start, as of now, of the main group.
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

    /// Whether newer versions than the one that is read may stand in the file's main tree.
    pub(super) fn is_old(&self, sst: &Sst) -> bool {
        self.at.0 < sst.meta.newest.0.saturating_add(sst.version_offset)
    }

    pub(super) fn reads_values(&self, sst: &Sst) -> bool {
        self.values && sst.meta.value_bytes > 0
    }

    /// Whether anything but keys, versions and kinds is read, so that it matters which rows exactly are.
    pub(super) fn needs_rows(&self, sst: &Sst) -> bool {
        self.groups.any_beside_main() || self.is_old(sst) && sst.meta.history.is_some() || self.reads_values(sst)
    }
}
