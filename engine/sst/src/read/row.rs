//! A version of a row in the form that a reader gets. This module does not know how the version was found.

use super::stored_value::StoredValue;
use crate::row::{RowKind, Until, Version};
use pages::{Page, PageRef};

/// Where a version of a row is in its file. The parts of this version in other column groups have the same row id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowPlace {
    /// The row id in the main tree, for newest versions.
    Newest(u64),
    /// The row id in the history.
    Older(u64),
}

/// A version of a row, with its page in the form in which the source gave it.
#[derive(Clone, Debug)]
pub struct Row<P = PageRef> {
    /// The commit that wrote it.
    pub version: Version,
    /// What the version says about its key.
    pub kind: RowKind,
    /// Its value, or the part of the value in the main column group. It may still lie outside its page.
    pub value: StoredValue<P>,
    /// Where the version is.
    pub place: RowPlace,
}

impl<P: Page> Row<P> {
    /// The time until which the row is there; `None` if it has no time.
    #[inline]
    pub fn until(&self) -> Option<Until> {
        if self.kind == RowKind::PutUntil { self.value.until() } else { None }
    }
}
