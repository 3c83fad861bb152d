//! Which files there are: an immutable [`FileSet`], edits that lead from one to the next, and the log that keeps them.
//! Only this folder makes file sets.

pub mod edit;
pub mod file_set;
pub mod log;
pub mod tables;

pub use edit::Edit;
pub use file_set::{DbFile, FileSet, LEVELS, Level, TableFiles, TableId, TableInfo};
pub use log::ManifestLog;
