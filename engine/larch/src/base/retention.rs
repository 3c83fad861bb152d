//! How much of its past a database keeps, and a table of it that has a rule of its own. This module knows no rows.

use super::table::TableId;
use os::sync::Arc;
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

/// The rule by which a table keeps its past.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableRule {
    /// That of the database.
    OfDatabase,
    /// A rule of its own, which may be [`Retention::None`].
    Own(Retention),
}

/// What a table keeps of its past now, if that is not just what the database keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableRetained {
    /// How much is to be kept.
    pub rule: TableRule,
    /// Compactions that begin now keep this version and each later one, if the rule keeps any. The past of the database
    /// may begin later.
    pub from: Version,
    /// Whether reads can see all these versions. If not, a compaction that began before may drop some of them.
    pub is_sure: bool,
}

/// Which tables show a version. Tables have rules of their own, so some may have dropped what others keep.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Showing {
    /// All.
    #[default]
    All,
    /// These alone, sorted. A table that is created later is not one of them, because it may take the place of one that
    /// does not show the version.
    Only(Arc<Vec<TableId>>),
}

impl Showing {
    /// Whether `table` shows the version.
    #[inline]
    pub fn shows(&self, table: TableId) -> bool {
        match self {
            Self::All => true,
            Self::Only(shown) => shown.binary_search(&table).is_ok(),
        }
    }
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
