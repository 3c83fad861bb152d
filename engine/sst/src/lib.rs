//! One immutable sorted file with its index: its format, its builder and its cursors. This crate knows no levels,
//! no snapshots and no log.
//!
//! A file consists of data pages, an index whose nodes are pages like any other, and a footer. Opening a file reads
//! nothing: the database knows the roots, and the first read that needs a page loads it. See `docs/format/sst.md`.

mod copied_page;
mod direction;
mod dump;
#[cfg(test)]
mod fixture;
pub mod format;
mod key_range;
pub mod plan;
pub mod precharge;
pub mod read;
pub mod row;
mod slice;
pub mod stats;
#[cfg(test)]
mod tests;
mod verify;
mod write;

pub use copied_page::CopiedPage;
pub use direction::Direction;
pub use dump::{DumpDetail, dump, read_footer, read_origin};
pub use format::expiry::Expiry;
pub use format::filter::{FilterKind, hash_key};
pub use format::meta::{
    BLOCK_FILTER, FEATURES, FORMAT_VERSION, FilterTree, GroupTrees, KeyBounds, MAX_GROUPS, MAX_ORIGIN_BYTES, MERGES,
    Meta, NODE_SAMPLES, PageIndexKind, RareTree, Root, Tree, TreeKind, UNTIL, ZSTD,
};
pub use format::node::Totals;
pub use format::validate;
pub use key_range::{KeyRange, next_string, successor};
pub use precharge::AtMost;
pub use read::{
    CUTTER, CoverAround, EraseCursor, FilterUse, GroupCursor, GroupParts, Groups, KeyedSubtree, KnownGap, LoadedValue,
    PartCursor, RangeErase, Reached, Readahead, RestOfPage, Row, RowPlace, RunEnd, Seek, SoughtKey, Sst, SstCursor,
    StoredValue, Streak, StreakRow, StreakStart, Subtree, TreeCursor, Ways,
};
pub use row::{MAX_KEY_BYTES, RowKind, Until, Version};
pub use slice::{RowRanges, Slice};
pub use stats::{Estimate, RangeTotals};
pub use verify::{FileReport, PageTotals, verify};
pub use write::{BuildOptions, Compression, SstBuilder};
