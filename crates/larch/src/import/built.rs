//! Files that are built without a database, and how a table ingests them. This folder knows which files exist, but
//! not how rows are sorted.
//!
//! ```text
//! rows ──▶ sorted files ──▶ a directory, which counts once it has a list of its files      build-files, on any machine
//!                               │
//!          checked, a second name or a copy ──▶ the directory of a database ──▶ one edit of its manifest      ingest
//! ```
//!
//! A *shard* is a part of the rows of a new table. Each shard can be built alone, on any machine, and all shards
//! can be built at the same time (decision 72).
//!
//! Invariant: a built file is never changed after the build, because databases may share it.

pub mod builder;
pub mod directory;
pub mod ingest;
pub(crate) mod list;
