//! What can be stored at a place outside of this machine, and what a store says about branches.

use serde::Serialize;
use std::time::Duration;

/// What is stored at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// A database.
    Database,
    /// Backups. A backup command reads and writes the store alone, without directories of this machine beside it.
    Backups,
}

/// What a branch shares with its origin, and what was copied for it.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Branched {
    /// The number of SSTs that the branch shares with its origin.
    pub files: u64,
    /// The number of bytes in these SSTs.
    pub bytes: u64,
    /// The number of bytes in the copied manifest and logs.
    pub copied_bytes: u64,
}

/// A branch that exists or is being made.
#[derive(Clone, Debug)]
pub struct BranchFound {
    /// The place of the branch in the store.
    pub place: String,
    /// When the branch was asked for, as the time since the start of 1970.
    pub since: Duration,
    /// How many files of its origin the branch needs, and the number of bytes in them; `None` if the branch is
    /// still being made, or if the process that made it was interrupted.
    pub files: Option<(u64, u64)>,
}
