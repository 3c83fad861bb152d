//! Compactions in another process, or on another machine that sees the same files.
//!
//! A writer that was opened with [`Builder::compaction_workers`](crate::Builder::compaction_workers) offers its
//! compactions, a [`CompactionWorker`] in another process does them, and the writer installs the new files. If no
//! worker finishes a compaction, the writer does it itself. The example `workers.rs` of the crate starts a writer and
//! a worker.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! use larch::worker::CompactionWorker;
//!
//! let db = larch::Database::builder(&directory).compaction_workers(true).open()?;
//! db.table("fruit")?.insert("apple", "red")?;
//! let mut worker: CompactionWorker = larch::Database::builder(&directory).compaction_worker()?;
//! assert!(worker.work_once()?.is_none(), "there is nothing to compact");
//! # Ok(())
//! # }
//! ```

pub use crate::workers::worker::{CompactedJob, CompactionWorker};
