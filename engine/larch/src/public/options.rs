//! Options that are seldom needed: levels, filters, the index of a file, when rows expire, and which releases can read
//! the files.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! use larch::options::{FilterKind, Filters};
//!
//! let db = larch::Database::open(&directory)?;
//! let options = larch::TableOptions { filters: Filters::all(FilterKind::None), ..Default::default() };
//! db.table_with("only scanned", options)?;
//! # Ok(())
//! # }
//! ```

pub use crate::base::expiry::{Expiry, ExpiryTime};
pub use crate::base::options::{Filters, LevelOptions};
pub use crate::base::release::Release;
pub use sst::{FilterKind, PageIndexKind};
