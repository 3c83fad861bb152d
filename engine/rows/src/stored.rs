//! A declaration as bytes that the engine keeps without understanding them: a version and a text.
//!
//! ```text
//! version u8    1
//! text          UTF-8, to the end
//! ```

/// The version of the language in which declarations are written.
const VERSION: u8 = 1;

/// Stored bytes that are no declaration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadStored {
    /// There are no bytes at all.
    #[error("there is no declaration: the bytes are empty")]
    Empty,
    /// The declaration is of a version that this release does not know.
    #[error("made by a newer Larch: a declaration of version {0}; open it with that release")]
    Version(u8),
    /// The text is not UTF-8 from this byte on.
    #[error("the declaration is not UTF-8 from byte {0} on")]
    NotUtf8(usize),
    /// The text is no declaration.
    #[error("the declaration cannot be read: {0}")]
    Text(#[from] crate::scanner::BadText),
}

/// The stored bytes of a declaration with the given text.
pub fn to_bytes(text: &str) -> Vec<u8> {
    [&[VERSION], text.as_bytes()].concat()
}

/// Takes the text of a declaration out of its stored bytes.
pub fn text_of(bytes: &[u8]) -> Result<&str, BadStored> {
    match bytes.split_first() {
        None => Err(BadStored::Empty),
        Some((&VERSION, text)) => std::str::from_utf8(text).map_err(|bad| BadStored::NotUtf8(1 + bad.valid_up_to())),
        Some((&version, _)) => Err(BadStored::Version(version)),
    }
}
