//! Feature bits, which announce what a reader of a file must know or may ignore. Every format with such bits
//! follows the same rule, so a release can tell files that are too new for it from damaged files. This module knows
//! no format and no file.
//!
//! ```text
//! bits  0-15   optional: a reader that does not know the bit reads the file without what it brings
//! bits 16-31   required: a reader that does not know the bit refuses the file and names the bit
//! ```
//!
//! Invariant: everything in a page, record or edit is announced by the bits or by the numbered fields around it. So
//! if all bits of a file are known and something does not decode, the file is damaged.

/// The bits that a reader has to know.
pub const REQUIRED: u32 = 0xffff_0000;

/// The reason why bytes cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// The bytes are damaged.
    Corrupt(String),
    /// The bytes are whole, but a newer release is needed. The text names what is not known: `feature 23`.
    Newer(String),
}

impl Unreadable {
    /// The same error, with the place where it was found.
    pub fn within(self, place: impl std::fmt::Display) -> Self {
        match self {
            Self::Corrupt(why) => Self::Corrupt(format!("{place}: {why}")),
            Self::Newer(what) => Self::Newer(format!("{what} of {place}")),
        }
    }
}

impl From<String> for Unreadable {
    fn from(why: String) -> Self {
        Self::Corrupt(why)
    }
}

impl From<&str> for Unreadable {
    fn from(why: &str) -> Self {
        Self::Corrupt(why.to_owned())
    }
}

/// A text for people. This value becomes a part of another error, which names the file that holds the bytes.
impl std::fmt::Display for Unreadable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Corrupt(why) => f.write_str(why),
            Self::Newer(what) => write!(f, "made by a newer Larch: {what}"),
        }
    }
}

/// Refuses required bits that are not among `known`.
///
/// # Errors
///
/// [`Unreadable::Newer`] names what is not known.
pub fn check(features: u32, known: u32) -> Result<(), Unreadable> {
    match features & REQUIRED & !known {
        0 => Ok(()),
        unknown => Err(Unreadable::Newer(named(unknown))),
    }
}

/// Refuses a format version other than the known one.
///
/// # Errors
///
/// [`Unreadable::Newer`] names a version that is not known; [`Unreadable::Corrupt`] for version 0, which no release
/// wrote.
pub fn check_version(version: u32, known: u32) -> Result<(), Unreadable> {
    match version {
        version if version == known => Ok(()),
        // No release wrote version 0, and no release will write a smaller version than `known` again.
        0 => Err(Unreadable::Corrupt("it is of format version 0, which does not exist".to_owned())),
        version => Err(Unreadable::Newer(format!("format version {version}"))),
    }
}

/// The bits of `features` by number: `feature 23` or `features 20, 23`.
pub fn named(features: u32) -> String {
    let bits: Vec<String> = (0..u32::BITS).filter(|bit| features & 1 << bit != 0).map(|bit| bit.to_string()).collect();
    format!("{} {}", if bits.len() == 1 { "feature" } else { "features" }, bits.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_required_bits_that_are_not_known_are_refused_by_name() {
        let newer = |what: &str| Err(Unreadable::Newer(what.to_owned()));
        assert_eq!(check(0, 0), Ok(()));
        assert_eq!(check(0xffff, 0), Ok(()), "all optional bits");
        assert_eq!(check(1 << 23, 1 << 23), Ok(()));
        assert_eq!(check(1 << 23 | 1 << 16 | 1, 1 << 16), newer("feature 23"));
        assert_eq!(check(1 << 31 | 1 << 16, 0), newer("features 16, 31"));
        let place = Unreadable::Newer("feature 23".to_owned()).within("file 24");
        assert_eq!(place.to_string(), "made by a newer Larch: feature 23 of file 24");
        assert_eq!(check_version(2, 1), newer("format version 2"));
        assert!(matches!(check_version(0, 1), Err(Unreadable::Corrupt(_))));
    }
}
