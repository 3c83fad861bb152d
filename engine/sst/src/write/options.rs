//! What a caller chooses about the files that a builder writes. This module knows no rows and writes nothing.

use crate::format::filter::FilterKind;
use crate::format::meta::{FEATURES, PageIndexKind};
use os::BLOCK_BYTES;
use pages::Compression;

/// How files of a table are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BuildOptions {
    /// The target length of a data page in bytes, including its header. A row that is larger gets a page of its
    /// own.
    pub page_bytes: u32,
    /// The target length of an index node in bytes, at most [`MAX_NODE_BYTES`](crate::format::MAX_NODE_BYTES).
    pub node_bytes: u32,
    /// Which indexes to write.
    pub index: PageIndexKind,
    /// Whether data pages and value pages are compressed. Nodes are never compressed. The level must
    /// [exist](Compression::check). The compression must not be zstd if `features` lack the bit of zstd.
    pub compression: Compression,
    /// The most children of a node. It must be at least 3. Tests that want tall trees set it.
    pub max_node_children: usize,
    /// The most rows of a page. Tests that want many pages set it.
    pub max_page_rows: usize,
    /// The number of column groups without the main group, at most [`MAX_GROUPS`](crate::MAX_GROUPS).
    pub groups: usize,
    /// The filter over the keys. A file with only one data page gets no filter: reading the filter would cost as
    /// much as reading the page.
    pub filter: FilterKind,
    /// The length of the key prefixes that go into the filter together with the keys, or 0 for no prefixes.
    pub filter_prefix_bytes: u16,
    /// The feature bits that the file may have: those that the oldest reader of the file knows or may ignore. If
    /// the bit of an optional part of the format is not among them, the file does not get this part.
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
    /// Values longer than this lie outside their pages. The limit is a quarter of a page, so that at least four
    /// values fit into a page. In pages of at least a block, the limit is raised to up to a block, as long as two
    /// rows still fit: a value outside its page takes whole blocks of memory, which may be several times the length
    /// of a short value.
    pub fn inline_bytes(&self) -> usize {
        let page = self.page_bytes as usize;
        // This is a little less than half a page, so that two rows fit with their keys.
        let half = if page < BLOCK_BYTES { 0 } else { page / 2 - page / 32 };
        (page / 4).max(half.min(BLOCK_BYTES))
    }
}
