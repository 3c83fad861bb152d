//! What a caller chooses about the files that a builder writes. It knows no rows and writes nothing.

use crate::format::filter::FilterKind;
use crate::format::meta::{FEATURES, PageIndexKind};
use os::BLOCK_BYTES;
use pages::Compression;

/// How files of a table are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BuildOptions {
    /// The target length of a data page in bytes, including its header. Larger rows get their own pages.
    pub page_bytes: u32,
    /// The target length of an index node in bytes, at most [`MAX_NODE_BYTES`](crate::format::MAX_NODE_BYTES).
    pub node_bytes: u32,
    /// Which indexes to write.
    pub index: PageIndexKind,
    /// Whether data and value pages are compressed; nodes never are. The level must [exist](Compression::check). It
    /// must not be zstd if `features` lack the bit of zstd.
    pub compression: Compression,
    /// The most children of a node, at least 3. It is for tests that want tall trees.
    pub max_node_children: usize,
    /// The most rows of a page. It is for tests that want many pages.
    pub max_page_rows: usize,
    /// The number of column groups beside the main one, at most [`MAX_GROUPS`](crate::MAX_GROUPS).
    pub groups: usize,
    /// The filter over the keys. A file of one data page gets none: reading the filter would cost as much as
    /// reading the page.
    pub filter: FilterKind,
    /// The length of the key prefixes that also go into the filter; 0 for no prefixes.
    pub filter_prefix_bytes: u16,
    /// The feature bits that the file may have: the bits that its oldest reader knows or may ignore. An optional
    /// thing is left out if its bit is not among them.
    /// left out where its bit is not among them.
    pub features: u32,
}

impl Default for BuildOptions {
    fn default() -> Self {
        Self {
            page_bytes: 16 << 10,
            node_bytes: 16 << 10,
            index: PageIndexKind::Btree,
            compression: Compression::None,
            max_node_children: usize::MAX / 4,
            max_page_rows: usize::MAX,
            groups: 0,
            filter: FilterKind::None,
            filter_prefix_bytes: 0,
            features: FEATURES,
        }
    }
}

impl BuildOptions {
    /// Values longer than this lie outside their page. So a page has room for at least four rows; or for two, if
    /// the page has a block or more and its quarter is less than a block. A value outside takes whole blocks in
    /// memory: if it is shorter than a block, that is several times its length.
    pub fn inline_bytes(&self) -> usize {
        let page = self.page_bytes as usize;
        // Almost half a page, so that two rows with their keys fit.
        let half = if page < BLOCK_BYTES { 0 } else { page / 2 - page / 32 };
        (page / 4).max(half.min(BLOCK_BYTES))
    }
}
