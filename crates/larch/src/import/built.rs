//! Files that are built without a database, and how a table takes them in. It knows which files exist, and not how rows
//! are sorted.
//!
//! ```text
//! rows ──▶ sorted files ──▶ a directory, which counts once it has a list of its files      build-files, on any machine
//!                               │
//!          checked, a second name or a copy ──▶ the directory of a database ──▶ one edit of its manifest      ingest
//! ```
//!
//! A *shard* is a part of the rows of a new table that is built into files by itself (decision 72).
//!
//! Invariant: a file of such a directory is never written again, because databases may share it.

pub mod builder;
pub mod directory;
pub mod ingest;
pub(crate) mod list;
