//! Reads of a database: a get, a range, a cursor. They take the newest view, and seek again in the new view when it
//! is replaced. This module knows nothing of writing and compaction.

pub mod again;
pub mod changed_keys;
pub mod content;
mod cursor;
pub mod files_apart;
mod forms;
pub mod multi;
pub mod range;
pub mod reader;
pub mod row;
mod row_batch;
mod scan;
pub mod versions;
pub mod work;

pub use content::Content;
pub use cursor::Cursor;
pub use forms::Tried;
pub(crate) use forms::content_of;

pub use range::Range;
pub(crate) use reader::LaterReader;
pub use reader::Reader;
pub use row::RowRef;
pub use row_batch::{InlineParts, RowBatch};
pub use scan::Scan;

use crate::view::value::Parts;

/// A [`Range`] that returns some parts of each row, see [`Selection`](crate::Selection).
pub type PartRange = Range<Parts>;

/// A [`Cursor`] that lends some parts of each row, see [`Selection`](crate::Selection).
pub type PartCursor = Cursor<Parts>;

/// A [`Scan`] that returns some parts of each row, see [`Selection`](crate::Selection).
pub type PartScan = Scan<Parts>;

#[cfg(test)]
mod tests;
