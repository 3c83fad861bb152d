//! SST files that are built without a database, and their ingest into a table. This folder knows which files exist,
//! but not how rows are sorted.
//!
//! ```text
//! rows ──▶ sorted files ──▶ a directory, which counts once it has a list of its files      build-files, on any machine
//!                               │
//!          checked, a second name or a copy ──▶ the directory of a database ──▶ one edit of its manifest      ingest
//! ```
//!
//! A *shard* is a directory of built files with a part of the rows of a new table. Shards can be built at the same
//! time, on any machines (decision 72).
//!
//! Invariant: a built file is never changed after the build, because databases may share it.

pub mod builder;
pub mod directory;
pub mod ingest;
pub(crate) mod list;
