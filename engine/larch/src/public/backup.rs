//! Copies of a database: checkpoints, which share files with the database, and backups, which copy only files that no
//! earlier backup has.
//!
//! [`Database::checkpoint`](crate::Database::checkpoint) makes a second database in another directory of the same
//! disk, and links files instead of copying them. [`Database::backup`](crate::Database::backup) copies files into a
//! directory of [`Backups`]. A file is copied there only once, however many backups contain it.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # let (path, dest, copy) = (directory.path().join("db"), directory.path().join("backups"), directory.path().join("copy"));
//! use larch::backup::Backups;
//!
//! let db = larch::Database::open(&path)?;
//! db.table("fruit")?.insert("apple", "red")?;
//! db.backup(&dest)?;
//!
//! Backups::at(&dest).restore(None, &copy, |_| {})?;
//! assert_eq!(larch::Database::open(&copy)?.table("fruit")?.get("apple")?.as_deref(), Some(&b"red"[..]));
//! # Ok(())
//! # }
//! ```

pub use crate::copies::backup::BackupReport;
pub use crate::copies::backups::{BackupInfo, BackupProblem, Backups, VerifyReport};
pub use crate::copies::checkpoint::CheckpointReport;
