//! Checks whether a database is sound, and shows what its files contain.
//!
//! [`Database::check`](crate::Database::check) reads every page of every file and reports each [`Problem`]. [`dump`]
//! shows a file as text. [`repair`](crate::repair::repair) salvages what can still be read of a damaged database.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! let db = larch::Database::open(&directory)?;
//! db.table("fruit")?.insert("apple", "red")?;
//! db.flush()?;
//! let report = db.check(|_| {})?;
//! assert!(report.problems.is_empty() && report.files == 1);
//! # Ok(())
//! # }
//! ```

pub use crate::core::background::problem::Problem;
pub use crate::inspect::check::CheckReport;
pub use crate::inspect::dump::{dump, dump_on};
pub use crate::manifest::directory::listing::is_file_of_database;
pub use sst::DumpDetail;
