//! The types that reads return, and options of reads: parts of rows, batches of rows of a page, directions, and how
//! much to read ahead.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! use larch::rows::AtMost;
//!
//! let fruit = larch::Database::open(&directory)?.table("fruit")?;
//! fruit.extend([("apple", "red"), ("pear", "green")])?;
//! fruit.prefetch("a".., AtMost::rows(100))?; // the disk is asked for all of their pages at once
//! assert_eq!(fruit.range("a"..).count(), 2);
//! # Ok(())
//! # }
//! ```

pub use crate::read::{Content, InlineParts, PartCursor, PartRange, PartScan, RowBatch, RowRef, Tried};
pub use crate::view::precharge::Prefetched;
pub use sst::{AtMost, Direction};
