//! Versions with names, which compactions keep. This module does not know what a version contains.

use sst::Version;
use std::time::Duration;

/// The most versions of a database that have names at the same time.
pub const MAX_KEPT: usize = 1_000;

/// A version with a name. Compactions keep the rows that it shows until the name is
/// [forgotten](crate::Database::forget), also after the database was closed and opened again.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Kept {
    /// The name.
    pub name: String,
    /// The version.
    pub version: Version,
    /// When the version got its name, as the time since the beginning of 1970 by the clock of the process that wrote to
    /// the database.
    pub since: Duration,
}

impl Kept {
    /// A version that gets its name `micros` microseconds after the beginning of 1970.
    pub(crate) fn new(name: &str, version: Version, micros: u64) -> Self {
        Self { name: name.to_owned(), version, since: Duration::from_micros(micros) }
    }

    /// The time of [`Kept::since`], in microseconds after the beginning of 1970.
    pub(crate) fn micros(&self) -> u64 {
        micros(self.since)
    }
}

/// What a database is to be read as of: a name, or a version.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AsOf {
    /// The version that was kept under this name.
    Name(String),
    /// A version that is kept, pinned by a snapshot, or the newest.
    Version(Version),
    /// The version that was the newest at this time since the beginning of 1970, if it is kept.
    Time(Duration),
}

/// A time in microseconds.
pub(crate) fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

impl From<Duration> for AsOf {
    fn from(time: Duration) -> Self {
        Self::Time(time)
    }
}

impl From<&str> for AsOf {
    fn from(name: &str) -> Self {
        Self::Name(name.to_owned())
    }
}

impl From<String> for AsOf {
    fn from(name: String) -> Self {
        Self::Name(name)
    }
}

impl From<Version> for AsOf {
    fn from(version: Version) -> Self {
        Self::Version(version)
    }
}

impl From<&Kept> for AsOf {
    fn from(kept: &Kept) -> Self {
        Self::Version(kept.version)
    }
}
