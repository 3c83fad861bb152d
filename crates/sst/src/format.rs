//! Pure encoding and decoding: bytes in, values out. Knows no files and no cursors.
//!
//! `docs/format/sst.md` has the pictures in one place. Pages are used as they lie: [`validate`] checks a page's
//! structure once when it is loaded, after its checksum, and everything that reads it afterwards relies on that.

pub mod column;
pub mod data_page;
pub mod features;
pub mod field;
pub mod filter;
pub mod group_page;
pub mod key;
pub mod meta;
pub mod node;
pub mod varint;

use crate::row::Version;
use data_page::OutsideValue;
use pages::{PageKind, page::HEADER_BYTES};

/// No node of a B-tree is larger, its header included: it has room for four children between the longest separators.
pub const MAX_NODE_BYTES: usize = 256 << 10;

/// Chunk of a large value, its header not included.
pub const MAX_CHUNK_BYTES: usize = 1 << 20;

/// Checks the structure of a decoded page, so that no later access can leave its bounds. The answer says what is wrong.
///
/// # Errors
///
/// What is wrong with the page, as the end of a sentence that names it.
pub fn validate(kind: PageKind, page: &[u8]) -> Result<(), String> {
    match kind {
        PageKind::Data | PageKind::History | PageKind::RangeErase => data_page::validate(page),
        PageKind::Index if page.len() > MAX_NODE_BYTES => {
            Err(format!("a node of {} bytes, at most {MAX_NODE_BYTES} are allowed", page.len()))
        }
        PageKind::Index | PageKind::Flat => node::validate(page),
        PageKind::Value => match page.len().saturating_sub(HEADER_BYTES) {
            1..=MAX_CHUNK_BYTES => Ok(()),
            bytes => Err(format!("a value chunk of {bytes} bytes, 1 to {MAX_CHUNK_BYTES} are allowed")),
        },
        PageKind::Group | PageKind::GroupHistory => group_page::validate(page),
        PageKind::Filter => filter::validate(page),
        PageKind::Footer => Err("footer pages are not read through the cache".to_owned()),
    }
}

/// What a cursor must know of a page of rows, or about rows.
pub trait PageRows: Copy {
    /// Reads the head of a validated page.
    fn of(page: &[u8]) -> Self;

    /// Rows in the page, at least one.
    fn rows(&self) -> usize;

    /// Row id of the first row.
    fn first_row(&self) -> u64;

    /// The reference to the value of row `i`, if it lies outside the page and the row is one of `seen`.
    fn outside<'p>(&self, _page: &'p [u8], _i: usize, _seen: Seen) -> Option<OutsideValue<'p>> {
        None
    }
}

/// Which rows of a page a reader sees, by what the page says. Versions are those of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// All of them.
    All,
    /// Those not newer than this.
    At(Version),
    /// In a history: of each main row the newest version that is not newer than this.
    NewestAt(Version),
}

/// The little-endian number at `at`, within the page.
#[inline]
fn u32_at(page: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(page[at..at + 4].try_into().expect("four bytes"))
}

/// As [`u32_at`], of eight bytes.
#[inline]
fn u64_at(page: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(page[at..at + 8].try_into().expect("eight bytes"))
}

#[cfg(test)]
mod tests;
