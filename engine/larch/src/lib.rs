//! Larch: an embeddable, ordered storage engine for data much larger than memory.
//!
//! A [`Database`] holds [tables](Table), and a table holds rows sorted by key. Rows live in immutable files. Each
//! file has a B-tree index whose nodes are ordinary pages: they are cached and evicted like pages of rows. So the
//! program decides how much memory the engine uses, whatever the size of the data.
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
//! A read whose pages are all in memory never waits. What happens when a page is missing depends on the form of the
//! read:
//!
//! * [`get`](Reader::get), [`multi_get`](Reader::multi_get) and [`range`](Reader::range) wait for the disk.
//! * [`try_get`](Reader::try_get) and [`Range::try_next`] never touch the disk. If a page is missing, they report
//!   that they would fault.
//! * [`get_async`](Reader::get_async), [`multi_get_async`](Reader::multi_get_async) and
//!   [`scan_async`](Reader::scan_async) are futures for any executor. With them, one thread can keep thousands of
//!   reads in flight. A future can be dropped at any time.
//!
//! These are methods of [`Reader`]. A [`Table`] dereferences to its `Reader`; snapshots, transactions and
//! [selections](Selection) have the same methods. The moves of a [`Cursor`] come in all three forms, too.
//!
//! # Three forms of a write
//!
//! A write waits while the write buffer or level 0 of its table is full, and while commits are being slowed down.
//!
//! * [`Table::insert`], [`Batch::commit`] and [`Batch::submit`] block their thread while they wait.
//! * [`Table::insert_async`], [`Batch::commit_async`] and [`Batch::submit_async`] are futures: other tasks run while
//!   they wait.
//! * [`Batch::try_submit`] never waits. If it would have to, it hands the batch back.
//!
//! # Transactions
//!
//! [`Database::transact`] runs reads and writes that take effect together, as if nothing else happened at the same
//! time. If another commit changes what the transaction has read, the whole transaction is retried.
//! [`Database::transact_async`] does the same in a task. [`Database::begin`] returns a [`Transaction`] that the
//! program commits itself; its commit returns a [`Conflict`] if another commit has changed what it has read. A
//! [`Batch`] writes without reading. [`Table::insert_new`], [`Table::compare_and_swap`] and [`Table::fetch_update`]
//! are for a single row.
//!
//! # Indexes
//!
//! [`Table::index_by`] makes an [`Index`] of a table, which finds rows by something other than their key. Every
//! commit keeps it up to date. A closure computes the index keys of a row, and the program passes this closure again
//! after each open. [`Table::create_index`] makes an index from a declaration, which describes the index keys
//! instead. The engine does not know the types of values, so a program [registers](Builder::extractors) extractors
//! that understand declarations.
//!
//! # Bulk loads
//!
//! [`Table::import`] writes rows straight into sorted files. [`Builder::build_files`] does the same without a
//! database, on any machine. [`Table::ingest`] then makes such files part of a table without reading a row.
//!
//! # Temporary databases
//!
//! [`Builder::temporary`] opens a database in a new directory, which is removed when the last handle is dropped.
//! [`Builder::in_memory`] opens a database in the memory of the process.
//!
//! # Memory
//!
//! [`Builder::cache_bytes`] is the memory for pages of every kind. [`Builder::write_buffer_bytes`] is the memory for
//! rows that are not in files yet. In addition, the engine uses at most 16 MiB for building, merging and reading
//! ahead, and a few hundred bytes for each file.
//!
//! With [`Budget::free`], the cache grows into the free memory of the machine, and shrinks when other programs need it.
//!
//! A compaction does not leave the cache cold: if pages of the old files were in use, it loads the pages of the new
//! files that replace them. [`Table::warm`] loads pages of a table before the first read. The engine loads pages by
//! itself for tables [kept in memory](TableOptions::in_memory), and after a restart with
//! [`Builder::warm_from_last`].
//!
//! # Durability
//!
//! A call that commits returns when the commit is on stable storage ([`Durability::Synced`], the default), or as
//! soon as the operating system has it ([`Durability::Buffered`]). [`Batch::submit`] returns at once with a
//! [`Commit`], for which the program can wait later: in a thread, with a future, or with a callback. After a crash,
//! the database holds a prefix of all commits in commit order, and this prefix contains every [`Durability::Synced`]
//! commit whose call has returned. After a failed sync, the database refuses writes until it is opened again.
//!
//! # Trouble
//!
//! If a flush or a compaction fails, for example because the disk is full, the engine retries it by itself.
//! [`Metrics::troubles`](stats::Metrics::troubles) says what fails and why. Writes succeed until the write buffer is
//! full. From then on they fail with [`Error::Full`], which names the cause, until the cause is gone. A corrupt file
//! stops only the compactions of its table.
//!
//! # Features
//!
//! Cargo features of the crate. Only `lz4` and `zstd` are on by default.
//!
//! * `lz4`: [`Compression::Lz4`].
//! * `zstd`: [`Compression::Zstd`]. It implies `lz4`, and needs a C compiler to build.
//! * `bytes`: a [`Key`] or a [`Value`] becomes `bytes::Bytes` without a copy.
//! * `serde`: reports and numbers about a database implement `Serialize`.
//! * `tracing`: the [events](event) of the engine also go to the crate `tracing`.
//!
//! A program that was built without a codec refuses options that ask for it, and databases that need it. The error
//! names the missing feature.
#![cfg_attr(doctest, doc = include_str!("../../../README.md"))]
#![cfg_attr(doctest, doc = include_str!("../../../docs/guide/merges.md"))]
#![cfg_attr(doctest, doc = include_str!("../../../docs/guide/tables.md"))]

mod base;
mod changes;
mod compact;
mod conflicts;
mod copies;
mod core;
mod files;
mod follow;
#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzz;
mod handle;
mod import;
mod indexes;
mod inspect;
mod levels;
mod log;
mod manifest;
mod memtable;
mod open;
mod public;
mod read;
pub mod repair;
mod sizes;
mod view;
mod warm;
mod workers;
mod write;

pub use public::{
    backup, bulk, check, event, explain, filter, index, machine, options, past, rows, stats, transaction, worker,
};

use pages::gauge;

pub use base::bounds::IntoKeyRange;
pub use base::budget::Budget;
pub use base::conflict::Conflict;
pub use base::error::{Error, Result};
pub use base::operand::{MergeFunction, MergeOp};
pub use base::options::{Durability, Follow, TableOptions};
pub use base::record::LogError;
pub use base::watch::{GoOn, Progress};
pub use handle::batch::Batch;
pub use handle::cache::Cache;
pub use handle::commit::Commit;
pub use handle::database::{Builder, Database};
pub use handle::index::Index;
pub use handle::readable::Readable;
pub use handle::selection::Selection;
pub use handle::snapshot::Snapshot;
pub use handle::table::Table;
pub use handle::transaction::Transaction;
pub use read::{Cursor, Range, Reader, Scan};
pub use sst::{Compression, MAX_KEY_BYTES, Version, successor};
pub use view::value::{Key, Parts, Value};
