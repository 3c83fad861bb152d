//! Where to cut many sorted sources into pieces of about one size. It knows sources, not what one hides of another.

use super::Estimate;
use crate::read::Sst;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// Rows, erased ones among them.
    Rows,
    /// Stored bytes of data pages and of what belongs to their rows and lies elsewhere.
    Bytes,
}

/// Where something is cut between rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CutPoint {
    /// What is less lies before it.
    pub at: Vec<u8>,
    /// Whether a row has this key for certain; otherwise it is a string that separates.
    pub is_key: bool,
}

/// What lies between two cut points.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// Everything of the bucket lies before this; `None`: the last.
    pub end: Option<CutPoint>,
    /// How much lies in this bucket and those before it.
    pub through: Estimate,
    /// Middle of `through`.
    pub value: u64,
}

/// Buckets in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    /// What was measured.
    pub metric: Metric,
    /// Of what size buckets should be.
    pub resolution: u64,
    /// In the order of keys; cut points and values grow strictly.
    pub buckets: Vec<Bucket>,
    /// How much lies in all.
    pub total: Estimate,
    /// Index nodes that were asked for.
    pub index_pages: u64,
}

/// Something sorted that has rows.
#[derive(Clone, Copy, Debug)]
pub enum Source<'a> {
    /// What is seen of a file.
    File(&'a Sst),
    /// Rows in memory, in runs in the order of keys, apart.
    Memory(&'a [MemoryRun]),
}

/// Some neighbouring rows in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryRun {
    /// Key of the first.
    pub first_key: Vec<u8>,
    /// Key of the last.
    pub last_key: Vec<u8>,
    /// How many.
    pub rows: u64,
    /// Bytes of them.
    pub bytes: u64,
}
