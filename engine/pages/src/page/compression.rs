//! The caller's choice whether and how pages are compressed. This module does not compress.

use std::fmt;
use std::str::FromStr;

/// Whether and how pages are compressed. Each page says how it is stored, so the choice affects only new pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Compression {
    /// Not compressed.
    #[default]
    None,
    /// LZ4. A page is stored compressed if that makes it at least an eighth smaller.
    Lz4,
    /// zstd. A page is stored compressed if that makes it at least an eighth smaller. Files are smaller than with
    /// LZ4, but reading a page takes several times as long. For data that is far away or seldom read.
    Zstd {
        /// How much time zstd spends on finding repetitions, from [1 to 19](Compression::ZSTD_LEVELS). The level
        /// costs time only when pages are written, not when they are read.
        level: u8,
    },
}

impl Compression {
    /// zstd at its usual level.
    pub const ZSTD: Self = Self::Zstd { level: 3 };

    /// The levels that can be chosen. zstd has three more, which save nothing on pages and take several times the
    /// memory.
    pub const ZSTD_LEVELS: std::ops::RangeInclusive<u8> = 1..=19;

    /// The cargo feature that this build lacks for the compression, if any. A build without the feature neither
    /// writes nor reads such pages.
    pub fn missing_feature(self) -> Option<&'static str> {
        match self {
            Self::Lz4 if cfg!(not(feature = "lz4")) => Some("lz4"),
            Self::Zstd { .. } if cfg!(not(feature = "zstd")) => Some("zstd"),
            Self::None | Self::Lz4 | Self::Zstd { .. } => None,
        }
    }

    /// Checks the level of zstd.
    ///
    /// # Errors
    ///
    /// A text that says what is wrong with the level.
    pub fn check(self) -> Result<(), String> {
        match self {
            Self::Zstd { level } if !Self::ZSTD_LEVELS.contains(&level) => Err(format!(
                "zstd has no level {level}; choose from {} to {}",
                Self::ZSTD_LEVELS.start(),
                Self::ZSTD_LEVELS.end()
            )),
            Self::None | Self::Lz4 | Self::Zstd { .. } => Ok(()),
        }
    }
}

/// `none`, `lz4`, `zstd:3`.
impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Lz4 => f.write_str("lz4"),
            Self::Zstd { level } => write!(f, "zstd:{level}"),
        }
    }
}

/// Accepts what `Display` writes, and `zstd` for [`Compression::ZSTD`]. An error lists the choices.
impl FromStr for Compression {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = match text.split_once(':') {
            None if text == "none" => Some(Self::None),
            None if text == "lz4" => Some(Self::Lz4),
            None if text == "zstd" => Some(Self::ZSTD),
            Some(("zstd", level)) => level.parse().ok().map(|level| Self::Zstd { level }),
            _ => None,
        };
        known.filter(|known| known.check().is_ok()).ok_or_else(|| {
            let (first, last) = (Self::ZSTD_LEVELS.start(), Self::ZSTD_LEVELS.end());
            format!("`{text}` is not none, lz4, zstd, or zstd:LEVEL with a level from {first} to {last}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compression_is_read_as_it_is_written() {
        let all = [Compression::None, Compression::Lz4].into_iter();
        for compression in all.chain(Compression::ZSTD_LEVELS.map(|level| Compression::Zstd { level })) {
            assert_eq!(compression.to_string().parse(), Ok(compression));
        }
        assert_eq!("zstd".parse(), Ok(Compression::Zstd { level: 3 }));
        for wrong in ["", "zip", "LZ4", "lz4:1", "zstd:", "zstd:0", "zstd:20", "zstd:-1", "zstd:300", "zstd:3:3"] {
            let expected = format!("`{wrong}` is not none, lz4, zstd, or zstd:LEVEL with a level from 1 to 19");
            assert_eq!(wrong.parse::<Compression>(), Err(expected));
        }
    }

    #[test]
    fn a_codec_that_the_build_lacks_is_named_by_its_feature() {
        let zstd = Compression::ZSTD_LEVELS.map(|level| Compression::Zstd { level }.missing_feature());
        assert_eq!(Compression::None.missing_feature(), None, "the compression by default is in every build");
        assert_eq!(Compression::default(), Compression::None);
        assert_eq!(Compression::Lz4.missing_feature().is_none(), cfg!(feature = "lz4"));
        assert!(zstd.into_iter().all(|missing| missing == (!cfg!(feature = "zstd")).then_some("zstd")));
    }

    #[test]
    fn a_level_that_there_is_not_is_named() {
        let check = |level| Compression::Zstd { level }.check();
        assert_eq!((check(1), check(19)), (Ok(()), Ok(())));
        assert_eq!(check(0), Err("zstd has no level 0; choose from 1 to 19".to_owned()));
        assert_eq!(check(20), Err("zstd has no level 20; choose from 1 to 19".to_owned()));
    }
}
