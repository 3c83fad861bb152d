//! What a caller chooses about the files that a builder writes. It knows no rows and writes nothing.

use crate::format::filter::FilterKind;
use crate::format::meta::{FEATURES, PageIndexKind};
use os::BLOCK_BYTES;
use pages::Compression;

/// How files of a table are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BuildOptions {
    /// Target length of a data page in bytes, its header included. Larger rows get a page of their own.
    pub page_bytes: u32,
    /// Target length of an index node in bytes, at most [`MAX_NODE_BYTES`](crate::format::MAX_NODE_BYTES).
    pub node_bytes: u32,
    /// Which indexes to write.
    pub index: PageIndexKind,
    /// Whether data and value pages are compressed; nodes never are. It has [a level that exists](Compression::check),
    /// and not zstd where the features lack its bit.
    pub compression: Compression,
    /// Most children of a node, at least 3. For tests that want tall trees.
    pub max_node_children: usize,
    /// Most rows of a page. For tests that want many pages.
    pub max_page_rows: usize,
    /// Column groups beside the main one, at most [`MAX_GROUPS`](crate::MAX_GROUPS).
    pub groups: usize,
    /// The filter over the keys. A file of one data page has none: reading it would cost as much.
    pub filter: FilterKind,
    /// The first bytes of keys this long go into the filter too; 0 for none.
    pub filter_prefix_bytes: u16,
    /// The feature bits that the file may have: those that its oldest reader knows, or may ignore. What is optional is
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
    /// Values longer than this lie outside their page: four rows to a page at least, or two in a page of a block or
    /// more whose quarter is less than a block. A value outside has blocks of its own in memory, and so takes several
    /// times its length there if it is shorter than one.
    pub fn inline_bytes(&self) -> usize {
        let page = self.page_bytes as usize;
        // Room for two rows with their keys.
        let half = if page < BLOCK_BYTES { 0 } else { page / 2 - page / 32 };
        (page / 4).max(half.min(BLOCK_BYTES))
    }
}
