//! The releases of Larch, and which format features each of them reads. With
//! [`Builder::compat`](crate::Builder::compat), a database writes only what an older release can read, so that the
//! user can go back to that release.
//!
//! Code that uses a feature first asks [`Release::features`] for its bit. A new feature bit needs a line in
//! [`FEATURES`] with the first release that knows it; a test compares this table with the bits that the decoders
//! know.

use super::record::{BEGIN_RECORD, EDIT_FIELDS, LEAN_RECORDS, LogKind, TIMES};
use std::fmt;
use std::str::FromStr;

/// A release of Larch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Release {
    /// Release 0.1, the first release.
    V0_1,
    /// Release 0.2. It introduced block filters, zstd pages, and logs that have lean records and begin before the
    /// previous log is durable.
    V0_2,
    /// A fictitious release, with which tests show that files for older releases do not have its feature.
    #[cfg(test)]
    Later,
}

/// The formats that have feature bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// SSTs.
    Sst,
    /// Manifests.
    Manifest,
    /// Write-ahead logs.
    Log,
}

/// The SST features that release 0.2 introduced.
const SST_0_2: u32 = sst::BLOCK_FILTER | sst::NODE_SAMPLES | sst::ZSTD | sst::UNTIL | sst::MERGES;

/// Feature bits, each with its format and with the first release that can read it.
const FEATURES: &[(Format, u32, Release)] = &[
    (Format::Sst, sst::FEATURES & !SST_0_2, Release::V0_1),
    (Format::Sst, SST_0_2, Release::V0_2),
    (Format::Manifest, EDIT_FIELDS, Release::V0_1),
    (Format::Log, BEGIN_RECORD | LEAN_RECORDS | TIMES, Release::V0_2),
    #[cfg(test)]
    (Format::Manifest, tests::LATER, Release::Later),
    #[cfg(test)]
    (Format::Sst, tests::LATER, Release::Later),
];

impl Release {
    /// Every release, the oldest first.
    pub const ALL: &[Self] = &[Self::V0_1, Self::V0_2];

    /// This release.
    pub const NEWEST: Self = Self::V0_2;

    /// Whether the release can read a manifest that describes indexes. Their edits need no feature bit: a release
    /// that does not know the number of an edit refuses the manifest.
    pub(crate) fn reads_indexes(self) -> bool {
        self >= Self::V0_2
    }

    /// Whether the release can read a manifest in which versions have names, and keeps these versions. As for indexes,
    /// there is no feature bit.
    pub(crate) fn reads_kept(self) -> bool {
        self >= Self::V0_2
    }

    /// Whether the release can read merges, in files and in logs. An older release does not know their kind in a log, and
    /// refuses the log.
    pub(crate) fn reads_merges(self) -> bool {
        self.features(Format::Sst) & sst::MERGES != 0
    }

    /// Whether the release can read rows with times until which they are there, in logs and in SSTs.
    pub(crate) fn reads_times(self) -> bool {
        self.features(Format::Sst) & sst::UNTIL != 0 && self.features(Format::Log) & TIMES != 0
    }

    /// Whether the release can read zstd pages, and the options of a table that asks for them.
    pub(crate) fn reads_zstd(self) -> bool {
        self.features(Format::Sst) & sst::ZSTD != 0
    }

    /// The features of `format` that this release can read.
    pub(crate) fn features(self, format: Format) -> u32 {
        let known = FEATURES.iter().filter(|(of, _, since)| *of == format && *since <= self);
        known.fold(0, |bits, (_, bit, _)| bits | bit)
    }
}

impl LogKind {
    /// The feature bits in the header of a new file that `release` must be able to read.
    pub(crate) fn features_for(self, release: Release) -> u32 {
        match self {
            Self::WriteAhead => release.features(Format::Log),
            Self::Manifest => release.features(Format::Manifest),
        }
    }
}

/// Writes a release in the form `0.2`.
impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V0_1 => "0.1",
            Self::V0_2 => "0.2",
            #[cfg(test)]
            Self::Later => "later",
        })
    }
}

/// Reads the form that `Display` writes. An error lists the releases that exist.
impl FromStr for Release {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.iter().copied().find(|release| release.to_string() == text);
        known.ok_or_else(|| {
            let names: Vec<String> = Self::ALL.iter().map(Self::to_string).collect();
            format!("this release cannot write for a release {text}; choose from {}", names.join(", "))
        })
    }
}

#[cfg(test)]
mod tests;
