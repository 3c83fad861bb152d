//! The releases of Larch, and which features of the formats each release reads. With
//! [`Builder::compat`](crate::Builder::compat) a database writes only what an older release can read, so that going
//! back to that release stays possible.
//!
//! Code that wants to use a feature asks [`Release::features`] first, and does without the feature if its bit is
//! missing. For a new feature bit, add a line to [`FEATURES`] with the release that brings it. A test compares the
//! table with the bits that the decoders know.

use super::record::{BEGIN_RECORD, EDIT_FIELDS, LogKind};
use std::fmt;
use std::str::FromStr;

/// A release of Larch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Release {
    /// 0.1, the first one.
    V0_1,
    /// 0.2. Filters are made of blocks, and pages may be compressed by zstd. A log may begin before the previous log
    /// is durable.
    V0_2,
    /// A release with a feature that no real release has, for tests which show that older releases do not get the
    /// feature.
    #[cfg(test)]
    Later,
}

/// Which format a feature bit belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// SSTs.
    Sst,
    /// Manifests.
    Manifest,
    /// Write-ahead logs.
    Log,
}

/// Features of SSTs that release 0.2 brought.
const SST_0_2: u32 = sst::BLOCK_FILTER | sst::NODE_SAMPLES | sst::ZSTD;

/// Feature bits, and the first release that reads files with them.
const FEATURES: &[(Format, u32, Release)] = &[
    (Format::Sst, sst::FEATURES & !SST_0_2, Release::V0_1),
    (Format::Sst, SST_0_2, Release::V0_2),
    (Format::Manifest, EDIT_FIELDS, Release::V0_1),
    (Format::Log, BEGIN_RECORD, Release::V0_2),
    #[cfg(test)]
    (Format::Manifest, tests::LATER, Release::Later),
    #[cfg(test)]
    (Format::Sst, tests::LATER, Release::Later),
];

impl Release {
    /// Every release, the oldest first.
    pub const ALL: &[Self] = &[Self::V0_1, Self::V0_2];

    /// The newest release, which is this release.
    pub const NEWEST: Self = Self::V0_2;

    /// Whether the release reads a manifest with indexes. The edits of indexes need no feature bit: a release that
    /// does not know the number of an edit refuses the manifest because of this number.
    pub(crate) fn reads_indexes(self) -> bool {
        self >= Self::V0_2
    }

    /// Whether the release reads pages compressed by zstd, and the options of a table that asks for such pages.
    pub(crate) fn reads_zstd(self) -> bool {
        self.features(Format::Sst) & sst::ZSTD != 0
    }

    /// The features that a file may have if this release must read it.
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

/// Written as `0.2`.
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

/// Reads what `Display` writes. An error lists the releases that exist.
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
