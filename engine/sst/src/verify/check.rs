//! A running check: which file it checks, and what it has found so far. This module does not know in which order
//! the parts of a file are checked.

use super::report::FileReport;
use crate::format::expiry::Expiry;
use crate::read::{Sst, Whole};
use crate::row::Version;
use os::BLOCK_BYTES;
use pages::{Address, Codec, Error, PageHeader, PageKind, PageRef, PageSource, Result};

/// A check in progress.
pub(super) struct Check<'a, S: ?Sized> {
    pub sst: &'a Sst,
    pub whole: Whole<'a, S>,
    pub progress: &'a mut dyn FnMut(u64),
    /// The offset, length and kind of every page.
    pub extents: Vec<(u64, u32, PageKind)>,
    pub report: FileReport,
    pub found: RowFacts,
}

/// The sums over all rows and pages. The check compares them with the meta.
#[derive(Default)]
pub(super) struct RowFacts {
    pub versions: Option<(Version, Version)>,
    pub value_bytes: u64,
    pub user_bytes: u64,
    /// Whether some page is compressed by zstd.
    pub has_zstd: bool,
    /// When rows expire, without their bytes.
    pub expiry: Option<Box<Expiry>>,
}

impl<S: PageSource + ?Sized> Check<'_, S> {
    pub fn corrupt(&self, kind: PageKind, offset: u64, why: impl Into<String>) -> Error {
        self.sst.file.corrupt(kind, offset, why)
    }

    pub fn footer_offset(&self) -> u64 {
        self.sst.meta.file_bytes.saturating_sub(BLOCK_BYTES as u64)
    }

    /// Reads a page that belongs to no tree. Reading verifies the page.
    pub fn page(&mut self, at: &Address, kind: PageKind) -> Result<PageRef> {
        let page = self.whole.page_at(at, kind)?;
        self.count(&page, at, kind)?;
        Ok(page)
    }

    /// Counts a page as a part of the file. If the page is compressed by zstd, the footer must say so. Otherwise a
    /// release that does not know zstd would not refuse the file.
    pub fn count(&mut self, page: &PageRef, at: &Address, kind: PageKind) -> Result<()> {
        if header_of(page).codec == Codec::Zstd {
            self.found.has_zstd = true;
            if !self.sst.meta.has_zstd {
                let why = "it is compressed by zstd, and the footer does not say that a page of the file is";
                return Err(self.corrupt(kind, at.offset, why));
            }
        }
        self.extents.push((at.offset, at.bytes, kind));
        let totals = &mut self.report.pages[kind.index()];
        totals.pages += 1;
        totals.bytes += u64::from(at.bytes);
        (self.progress)(self.report.all_pages().bytes);
        Ok(())
    }
}

fn header_of(page: &PageRef) -> PageHeader {
    PageHeader::decode(page).expect("a page in memory has been decoded")
}

/// Checks that the header of a page names the right level, which is the page's height above the data pages.
pub(super) fn check_level<S: PageSource + ?Sized>(
    check: &Check<'_, S>,
    page: &PageRef,
    at: &Address,
    level: usize,
) -> Result<()> {
    let header = header_of(page);
    if usize::from(header.level) == level {
        return Ok(());
    }
    Err(check.corrupt(page.kind(), at.offset, format!("it is of level {} where {level} belongs", header.level)))
}
