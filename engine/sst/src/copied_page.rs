//! A data page with all its rows, for a merge that copies it to another file. This module does not know which keys
//! of other files lie between the keys of the page.
//!
//! Two fields of a page depend on its file: the number of its first row, and the base of its versions if the file
//! was imported. The rest is the same in any file, unless a row refers to value pages or to older versions.

use crate::format::PageRows;
use crate::format::data_page::{Layout, RowRecord};
use crate::row::Version;
use pages::PageRef;

/// A data page whose rows refer to nothing outside it. Pins the page.
#[derive(Debug)]
pub struct CopiedPage {
    page: PageRef,
    layout: Layout,
    version_offset: u64,
    erased: u64,
}

impl CopiedPage {
    /// Wraps `page`; `None` if one of its rows refers to something outside the page, or is a merge.
    pub(crate) fn of(page: &PageRef, layout: &Layout, version_offset: u64) -> Option<Self> {
        let erased = layout.erased_alone(page)?;
        layout.base_version().checked_add(version_offset)?;
        Some(Self { page: page.clone(), layout: *layout, version_offset, erased })
    }

    /// How many rows it has.
    pub fn rows(&self) -> usize {
        self.layout.rows()
    }

    /// How many of its rows are erases.
    pub fn erased(&self) -> u64 {
        self.erased
    }

    /// A version that is not newer than any row of the page.
    pub(crate) fn base_version(&self) -> Version {
        Version(self.layout.base_version() + self.version_offset)
    }

    /// Its length in memory, in bytes.
    pub fn bytes(&self) -> usize {
        self.page.len()
    }

    /// Replaces `key` with the key of row `i`, and returns the version and the length of the value in bytes.
    pub(crate) fn read_row(&self, i: usize, key: &mut Vec<u8>) -> (Version, usize) {
        let RowRecord { version, value_bytes, .. } = self.layout.read_row(&self.page, i, key);
        (Version(version.0.saturating_add(self.version_offset)), value_bytes)
    }

    /// Replaces `out` with the page as it must be in a file where its first row has the number `first_row`.
    pub(crate) fn write(&self, first_row: u64, out: &mut Vec<u8>) {
        out.clear();
        out.extend_from_slice(&self.page);
        Layout::rebase(out, self.base_version().0, first_row);
    }
}
