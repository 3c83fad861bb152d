//! Copies of a database: a checkpoint in another directory of the disk, backups that share files, and what is restored
//! from a backup. It knows which files a database is made of, and not what is in them.
//!
//! ```text
//! moment ──▶ rows in memory, as files of level 0 ─┐
//!        ──▶ its manifest ────────────────────────┼─▶ a new directory, which becomes a database when all of it is durable
//!        ──▶ its files: a second name, or copies ─┘
//! ```
//!
//! Every copy shows one version: all commits up to it, and none after it. A copy has no logs, because the rows that
//! are not in files yet are written to files of the copy. Commits do not wait for a copy, because making a copy
//! takes no lock that commits take.
//!
//! Invariants:
//! - A directory is a database only after its last step, a rename. Until then it has the file `UNFINISHED`.
//! - Two directories share only files that are never written again, which are the SSTs.

mod beside;
pub(crate) mod list;
mod moment;
mod store;

pub mod backup;
pub mod backups;
pub mod checkpoint;
