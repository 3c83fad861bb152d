//! Reading: takes a view of memory and files of one moment, and finds keys and ranges in it as of a version. It knows
//! nothing of writing and compaction.

pub mod again;
pub mod ahead;
mod content;
mod cover;
mod cursor;
mod found;
pub mod frontier;
pub mod level;
pub mod merge;
pub mod multi;
mod part_list;
pub mod point;
pub mod precharge;
pub mod range;
pub mod reader;
pub mod row;
mod row_batch;
mod scan;
mod tried;
mod value;
pub mod view;

pub use content::Content;
pub use cursor::Cursor;
pub use found::FoundRow;
pub use part_list::PartList;
pub use precharge::Prefetched;
pub use range::Range;
pub(crate) use reader::LaterReader;
pub use reader::Reader;
pub use row::RowRef;
pub use row_batch::{InlineParts, RowBatch};
pub use scan::Scan;
pub use tried::Tried;
pub use value::{Key, Parts, Value};
pub use view::View;

/// A [`Range`] that gives some parts of each row, see [`Selection`](crate::Selection).
pub type PartRange = Range<Parts>;

/// A [`Cursor`] that lends some parts of each row, see [`Selection`](crate::Selection).
pub type PartCursor = Cursor<Parts>;

/// A [`Scan`] that gives some parts of each row, see [`Selection`](crate::Selection).
pub type PartScan = Scan<Parts>;

#[cfg(test)]
mod tests;
