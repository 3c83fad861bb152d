//! Numbers about a database: what the engine has done and what it has in memory ([`Metrics`]), how much space a
//! table takes ([`TableStats`]), what a range contains ([`RangeStats`], [`Histogram`]), and how many requests an
//! object store got and what they cost ([`Bill`]).
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! let db = larch::Database::open(&directory)?;
//! let fruit = db.table("fruit")?;
//! fruit.extend([("apple", "red"), ("pear", "green")])?;
//! db.flush()?;
//! assert_eq!(db.metrics().flushes, 1);
//! assert_eq!(fruit.stats()?.rows, 2);
//! # Ok(())
//! # }
//! ```

pub use crate::core::background::trouble::{FailedWork, Trouble};
pub use crate::core::background::warmth::Warmed;
pub use crate::inspect::metrics::{GroupStats, LevelStats, Memory, Metrics, TableStats};
pub use crate::inspect::published::WriterMetrics;
pub use crate::sizes::shape::Resolution;
pub use crate::sizes::types::{RangeGroup, RangeLevel, RangeStats};
pub use os::store::{Bill, Cost, Counts, Price, Requests};
pub use pages::{Admit, CacheUsage, PageKind, Reason};
pub use sst::stats::{Bucket, CutPoint, Estimate, Histogram, Metric};
