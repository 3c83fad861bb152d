//! Pure encoding and decoding: bytes in, values out. This module knows no files and no cursors.
//!
//! `docs/format/sst.md` shows all these formats in one place. Pages are used as they lie in memory: [`validate`]
//! checks the structure of a page once when the page is loaded, after its checksum. Everything that reads the page
//! later relies on this check.

pub mod column;
pub mod data_page;
pub mod expiry;
pub mod features;
pub mod field;
pub mod filter;
pub mod group_page;
mod history;
pub mod key;
mod little_endian;
pub mod meta;
pub mod node;
mod outside_value;
mod page_rows;
pub mod varint;

pub use history::history_key;
pub use outside_value::{MAX_CHUNK_BYTES, OutsideValue};
pub use page_rows::{PageRows, Seen};

use pages::{PageKind, page::HEADER_BYTES};

/// Size limit of a B-tree node in bytes, header included. Even with the longest separators, four children fit.
pub const MAX_NODE_BYTES: usize = 256 << 10;

/// Checks the structure of a decoded page, so that no later access can leave its bounds.
///
/// # Errors
///
/// A description of the defect, worded to follow the page's name in an error message.
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

#[cfg(test)]
mod tests;
