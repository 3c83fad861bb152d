//! Reads a file through a [`pages::PageSource`]: point look-ups and cursors. This module knows no other file.
//!
//! Every call that may answer [`Stop`](pages::Stop) is a *step*: it has no effect before it has all the pages that
//! it needs. If it ends with a fault, pages are missing from memory: the caller fetches them and makes the same
//! call again.

mod cursor;
mod descent;
mod erases;
mod excerpt;
mod filter;
mod filter_use;
mod gap;
mod keyed_subtree;
mod parts;
mod range_erase;
mod readahead;
mod rest_of_page;
mod row;
mod scan_end;
mod sought_key;
mod sst;
mod stored_value;
mod streak;
mod tree;
mod values;
mod ways;
mod whole;

pub use cursor::SstCursor;
pub(crate) use descent::Descent;
pub use descent::Subtree;
pub use erases::{CoverAround, EraseCursor};
pub use excerpt::CUTTER;
pub use filter_use::FilterUse;
pub use gap::KnownGap;
pub use keyed_subtree::KeyedSubtree;
pub use parts::{GroupCursor, Groups};
pub use range_erase::RangeErase;
pub(crate) use range_erase::decode_range_erase;
pub use readahead::Readahead;
pub use rest_of_page::RestOfPage;
pub use row::{Row, RowPlace};
pub use sought_key::SoughtKey;
pub use sst::Sst;
pub use stored_value::{LoadedValue, StoredValue};
pub use streak::{GroupParts, RunEnd, Streak, StreakRow, StreakStart};
pub use tree::{PartCursor, Seek, TreeCursor};
pub use ways::{Reached, Ways};
pub(crate) use whole::{Whole, WholeTree};

#[cfg(test)]
mod tests;
