//! A string of at most `N` bytes. The text is stored inside its row, so that making a row allocates nothing.

use std::fmt;

/// At most `N` bytes of ASCII.
#[derive(Clone)]
pub struct Text<const N: usize> {
    len: u16,
    bytes: [u8; N],
}

impl<const N: usize> Text<N> {
    /// The greatest number of bytes.
    pub const MOST: usize = N;
    /// The empty text.
    pub const EMPTY: Self = Self { len: 0, bytes: [0; N] };

    /// A text of these bytes.
    ///
    /// # Panics
    ///
    /// Panics if there are more than `N` bytes.
    pub fn of(bytes: &[u8]) -> Self {
        let mut text = Self::EMPTY;
        text.set(bytes);
        text
    }

    /// Replaces the text by these bytes.
    ///
    /// # Panics
    ///
    /// Panics if there are more than `N` bytes.
    pub fn set(&mut self, bytes: &[u8]) {
        self.resized(bytes.len()).copy_from_slice(bytes);
    }

    /// Makes the text `len` bytes long, and returns its bytes. The caller must write them.
    ///
    /// # Panics
    ///
    /// Panics if `len` is more than `N`.
    pub fn resized(&mut self, len: usize) -> &mut [u8] {
        assert!(len <= N, "{len} bytes do not fit into {N}");
        self.len = len as u16;
        &mut self.bytes[..len]
    }

    /// Its bytes.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len.into()]
    }
}

impl<const N: usize> PartialEq for Text<N> {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl<const N: usize> Eq for Text<N> {}

impl<const N: usize> Default for Text<N> {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl<const N: usize> fmt::Debug for Text<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.as_bytes().escape_ascii())
    }
}
