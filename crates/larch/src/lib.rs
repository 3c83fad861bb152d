//! Larch: an embeddable, ordered storage engine for data much larger than memory.
//!
//! Rows are sorted by key. Files are immutable and carry a B-tree index whose nodes are ordinary pages, so memory is a
//! budget and not a consequence of the data's size.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! let db = larch::Database::builder(&directory).cache_bytes(16 << 20).open()?;
//! let users = db.table("users")?;
//! users.insert(b"ada", b"1815")?;
//!
//! let mut batch = db.batch();
//! batch.insert(&users, b"alan", b"1912");
//! batch.remove(&users, b"ada");
//! batch.commit()?;
//!
//! for row in users.range("a".."b").rev() {
//!     let (key, value) = row?;
//!     println!("{} {}", key.escape_ascii(), value.escape_ascii());
//! }
//! db.close()?;
//! # Ok(())
//! # }
//! ```
//!
//! # Three forms of a read
//!
//! A read that finds its pages in memory never waits. One that misses some waits for the disk ([`Table::get`],
//! [`Table::multi_get`], [`Table::range`]); or says that it would fault, and touches no disk ([`Table::try_get`],
//! [`Range::try_next`]); or is a future, so that one thread can have thousands of them under way, with any executor
//! ([`Table::get_async`], [`Table::multi_get_async`], [`Table::scan_async`]). Snapshots and [selections](Selection) have all
//! three. A future can be dropped at any time.
//!
//! # Memory
//!
//! [`Builder::cache_bytes`] holds pages of every kind, [`Builder::write_buffer_bytes`] rows that are not in files yet.
//! Besides these the engine uses at most 16 MiB for building, merging and reading ahead, and a few hundred bytes a file.
//!
//! What is in memory stays there across compactions: pages of new files come in where those of the old ones were in use.
//! Pages that nobody has read yet come by [`Table::warm`], for tables that are [to be in memory](TableOptions::in_memory), and
//! after a restart by [`Builder::warm_from_last`].
//!
//! # Durability
//!
//! A commit is acknowledged once it is on stable storage ([`Durability::Synced`], the default) or once it is with the
//! operating system ([`Durability::Buffered`]). After a crash the database holds a prefix of the commit order that
//! contains every acknowledged synced commit. After a failed write or sync further writes are refused until the
//! database is opened again.
//!
//! # Trouble
//!
//! A flush or compaction that fails, because the disk is full or a descriptor is missing, is tried again by itself, and
//! [`Metrics::troubles`] says what fails and why. Writes go on until the write buffer is full; then they fail with
//! [`Error::Full`], which names the cause, and go on when it is gone. A corrupt file stops the compaction of its table alone.
#![cfg_attr(doctest, doc = include_str!("../../../README.md"))]

mod background;
mod bounds;
mod cancel;
mod compact;
mod core;
mod error;
mod event;
mod files;
#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzz;
mod handle;
mod inspect;
mod log;
mod manifest;
mod memtable;
mod open;
mod options;
mod parts;
mod read;
mod release;
mod repair;
mod stats;
mod tables;
mod warm;
mod write;

pub use background::trouble::{FailedWork, Trouble};
use pages::gauge;

pub use bounds::IntoKeyRange;
pub use cancel::Cancel;
pub use error::{Error, Result};
pub use event::{CompactionReason, Event, EventLevel, StallReason};
pub use handle::batch::Batch;
pub use handle::cache::Cache;
pub use handle::database::{Builder, Database};
pub use handle::readable::Readable;
pub use handle::selection::Selection;
pub use handle::snapshot::Snapshot;
pub use handle::statistics::Statistics;
pub use handle::table::Table;
pub use handle::until::Until;
pub use inspect::check::{CheckProgress, CheckReport};
pub use inspect::dump::{dump, dump_on};
pub use inspect::explain::{
    Explained, ExplainedFile, ExplainedLevel, ExplainedPages, Explanation, PageFound, PageVisit, Verdict,
};
pub use inspect::metrics::{GroupStats, LevelStats, Memory, Metrics, TableStats};
pub use inspect::problem::Problem;
pub use log::record::LogError;
pub use options::{Durability, Filters, LevelOptions, TableOptions};
pub use os::Machine;
pub use os::real::ThreadPool;
pub use os::sim::SimDisk;
pub use pages::{Admit, CacheUsage, PageKind, Reason};
pub use read::{Content, Key, PartRange, PartScan, Parts, Prefetched, Range, Reader, RowRef, Scan, Tried, Value};
pub use release::Release;
pub use repair::salvage::Loss;
pub use repair::{RepairReport, repair, repair_on};
pub use sst::format::meta::successor;
pub use sst::stats::{Bucket, CutPoint, Estimate, Histogram, Metric};
pub use sst::{Compression, Direction, DumpDetail, FilterKind, IndexKind, Limits, MAX_KEY_BYTES, Version};
pub use stats::shape::Resolution;
pub use stats::types::{RangeGroup, RangeLevel, RangeStats};
pub use tables::import::{Import, ImportReport};
pub use warm::loader::Warmed;
