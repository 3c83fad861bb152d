//! A row as files store it: key, version, kind, value, and the time until which it is there. This module does not
//! decide which versions a reader may see.

use std::num::NonZeroU64;

/// The place of a row's commit in the commit order: each commit has a number, and later commits have greater
/// numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Version(pub u64);

impl Version {
    /// This version is newer than every commit: a read at it sees the newest version of every row.
    pub const MAX: Self = Self(u64::MAX);
}

/// What a version says about its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum RowKind {
    /// The key has this value.
    Put = 0,
    /// The key has no value.
    Erase = 1,
    /// The value is an operand, which says how the value that older rows give the key is changed. Only the engine
    /// knows operands.
    Merge = 2,
    /// The key has this value until a time ([`Until`]), which is stored with the row. The reader compares the time with a
    /// clock.
    PutUntil = 3,
}

impl RowKind {
    /// The kind stored as `byte`.
    pub fn from_u8(byte: u8) -> Option<Self> {
        match byte {
            0 => Some(Self::Put),
            1 => Some(Self::Erase),
            2 => Some(Self::Merge),
            3 => Some(Self::PutUntil),
            _ => None,
        }
    }
}

/// The time from which on a row is gone, in milliseconds since the beginning of 1970 in UTC. It is never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Until(NonZeroU64);

impl Until {
    /// The bytes of a stored time: a little-endian number.
    pub const BYTES: usize = 8;

    /// The time that is `millis` milliseconds after the beginning of 1970. For 0 it is the first millisecond after it.
    pub fn from_millis(millis: u64) -> Self {
        Self(NonZeroU64::new(millis).unwrap_or(NonZeroU64::MIN))
    }

    /// The milliseconds since the beginning of 1970.
    #[inline]
    pub fn millis(self) -> u64 {
        self.0.get()
    }

    /// The stored form.
    #[inline]
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        self.millis().to_le_bytes()
    }

    /// The time of this stored form; `None` if the bytes are no time.
    #[inline]
    pub fn of_bytes(bytes: [u8; Self::BYTES]) -> Option<Self> {
        NonZeroU64::new(u64::from_le_bytes(bytes)).map(Self)
    }

    /// The time that is stored in `bytes` directly before the offset `at`; `None` if none is.
    #[inline]
    pub fn before(bytes: &[u8], at: usize) -> Option<Self> {
        Self::of_bytes(*bytes.get(..at)?.last_chunk()?)
    }
}

/// Maximum length of a key in bytes: 64 KiB, whatever the page size.
pub const MAX_KEY_BYTES: usize = 64 << 10;
