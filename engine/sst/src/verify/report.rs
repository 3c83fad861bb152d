//! What a checked file holds. This module does not know how the file was checked.

use pages::PageKind;

/// What a file holds, as [`verify`](super::verify) counted it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileReport {
    pub(super) pages: [PageTotals; PageKind::ALL.len()],
    /// Rows of the main tree.
    pub rows: u64,
    /// Rows of the main tree that are erases.
    pub erased: u64,
    /// Older versions of rows.
    pub older_versions: u64,
    /// Range erases.
    pub range_erases: u64,
    /// Zeros between pages.
    pub padding_bytes: u64,
    /// The length of the file, including the footer.
    pub file_bytes: u64,
}

/// Pages of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageTotals {
    /// How many.
    pub pages: u64,
    /// Their stored bytes.
    pub bytes: u64,
}

impl FileReport {
    /// Pages of one kind.
    pub fn pages_of(&self, kind: PageKind) -> PageTotals {
        self.pages[kind.index()]
    }

    /// The pages of all kinds, without the footer.
    pub fn all_pages(&self) -> PageTotals {
        self.pages.iter().fold(PageTotals::default(), |sum, kind| PageTotals {
            pages: sum.pages + kind.pages,
            bytes: sum.bytes + kind.bytes,
        })
    }
}
