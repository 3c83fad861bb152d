//! A version of a row as a reader gets it. It does not know how the version was found.

use super::stored_value::StoredValue;
use crate::row::{RowKind, Version};

/// Where a version of a row stands in its file. Its parts in other column groups have the same row id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowPlace {
    /// Row id in the main tree, for newest versions.
    Newest(u64),
    /// Row id in the history.
    Older(u64),
}

/// A version of a row.
#[derive(Clone, Debug)]
pub struct Row {
    /// Commit that wrote it.
    pub version: Version,
    /// What it says.
    pub kind: RowKind,
    /// Its value, or the part of it that is in the main column group; perhaps still outside.
    pub value: StoredValue,
    /// Where it stands.
    pub place: RowPlace,
}
