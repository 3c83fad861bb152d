//! A row as files store it: key, version, kind and value. This module does not decide which versions a reader may
//! see.

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
}

impl RowKind {
    /// The kind stored as `byte`.
    pub fn from_u8(byte: u8) -> Option<Self> {
        match byte {
            0 => Some(Self::Put),
            1 => Some(Self::Erase),
            2 => Some(Self::Merge),
            _ => None,
        }
    }
}

/// Maximum length of a key in bytes: 64 KiB, whatever the page size.
pub const MAX_KEY_BYTES: usize = 64 << 10;
