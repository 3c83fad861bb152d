//! Copies of a database: a checkpoint in another directory of the disk, backups that share files, and a database
//! restored from a backup. This folder knows which files a database consists of, but not what is in them.
//!
//! ```text
//! moment ──▶ rows in memory, as files of level 0 ─┐
//!        ──▶ its manifest ────────────────────────┼─▶ a new directory, which becomes a database when all of it is durable
//!        ──▶ its files: a second name, or copies ─┘
//! ```
//!
//! Every copy shows one version: it has all commits up to this version and none after it. A copy has no logs: rows
//! that are only in memory are written to files of the copy. A copy takes no lock that commits take, so it never
//! makes them wait.
//!
//! Invariants:
//! - The last step of making a directory is a rename. Until then, the directory has the file `UNFINISHED` and is not
//!   a database.
//! - Two directories share only files that never change again, that is, SSTs.

mod beside;
pub(crate) mod list;
mod moment;
mod older;
mod store;

pub mod backup;
pub mod backups;
pub mod checkpoint;
