//! How much of its past a database keeps. This module knows no rows.

use sst::Version;
use std::time::Duration;

/// How much of its past a database keeps, beside the versions with names and those that snapshots pin. Within it, reads
/// can see the database as of each commit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Retention {
    /// Nothing.
    #[default]
    None,
    /// What was current at one of this many newest versions before the newest.
    Versions(u64),
    /// What was current within this time until now. The time is that of the machine that writes.
    Time(Duration),
    /// Everything since this was asked for.
    Everything,
}

/// What a database keeps of its past now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retained {
    /// How much is to be kept. Not [`Retention::None`].
    pub retention: Retention,
    /// Compactions that begin now keep this version and each later one.
    pub from: Version,
    /// Whether reads can see all these versions. If not, a compaction that began before may drop some of them.
    pub is_sure: bool,
}
