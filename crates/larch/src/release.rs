//! Releases of Larch, and which features of the formats each of them reads. A database can be told to write nothing that
//! an older release does not read ([`Builder::compat`](crate::Builder::compat)), so that a roll-back to it stays possible.
//!
//! Whatever chooses a feature asks [`Release::features`] first, and does without the feature where that lacks its bit. A
//! new feature bit gets a line in [`FEATURES`] with the release that brings it; a test compares the table with the bits
//! that the decoders know.

use crate::log::record::LogKind;
use std::fmt;
use std::str::FromStr;

/// A release of Larch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Release {
    /// 0.1, the first one.
    V0_1,
    /// One with a feature that no release has, to see that older ones are spared it.
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
}

/// Feature bits, and the first release that reads files with them.
const FEATURES: &[(Format, u32, Release)] = &[
    (Format::Sst, sst::FEATURES, Release::V0_1),
    (Format::Manifest, crate::log::record::EDIT_FIELDS, Release::V0_1),
    #[cfg(test)]
    (Format::Manifest, tests::LATER, Release::Later),
    #[cfg(test)]
    (Format::Sst, tests::LATER, Release::Later),
];

impl Release {
    /// Every release, the oldest first.
    pub const ALL: &[Self] = &[Self::V0_1];

    /// The newest one: this one.
    pub const NEWEST: Self = Self::V0_1;

    /// What a file may have so that this release reads it.
    pub(crate) fn features(self, format: Format) -> u32 {
        let known = FEATURES.iter().filter(|(of, _, since)| *of == format && *since <= self);
        known.fold(0, |bits, (_, bit, _)| bits | bit)
    }
}

impl LogKind {
    /// What the header of a new file says that its reader must or may know, so that `release` reads it.
    pub(crate) fn features_for(self, release: Release) -> u32 {
        match self {
            Self::WriteAhead => 0,
            Self::Manifest => release.features(Format::Manifest),
        }
    }
}

/// `0.1`.
impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V0_1 => "0.1",
            #[cfg(test)]
            Self::Later => "later",
        })
    }
}

/// As it is displayed. An error lists the releases there are.
impl FromStr for Release {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.iter().copied().find(|release| release.to_string() == text);
        known.ok_or_else(|| {
            let names: Vec<String> = Self::ALL.iter().map(Self::to_string).collect();
            format!("{text} is no release that this one can write for; choose from {}", names.join(", "))
        })
    }
}

#[cfg(test)]
mod tests;
