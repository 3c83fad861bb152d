//! The keys of the history, the tree of older versions. This module does not know the pages of that tree.

use crate::row::Version;

/// Key of an older version in the history: row id ascending, version descending.
///
/// ```text
/// row id u64 big-endian | !version u64 big-endian
/// ```
pub fn history_key(row: u64, version: Version) -> [u8; 16] {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&row.to_be_bytes());
    key[8..].copy_from_slice(&(!version.0).to_be_bytes());
    key
}
